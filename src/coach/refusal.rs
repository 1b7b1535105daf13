//! What a model is told when its arguments were not taken: every problem, how the tool is
//! called, and a call to copy (P52).

use crate::cut;
use crate::schema::Schema;

/// Optional arguments that a usage line names.
const OPTIONAL: usize = 12;

/// Characters of an example.
const EXAMPLE: usize = 600;

/// The text for a call of `name` that was not made, for the `problems` that
/// [`Schema::judge`] found.
pub fn arguments(name: &str, schema: &Schema, problems: &[String]) -> String {
    let count = match problems {
        [_] => "a problem".to_owned(),
        more => format!("{} problems", more.len()),
    };
    let mut text = format!("`{name}` was not run: {count} with its arguments.\n");
    for problem in problems {
        text.push_str("- ");
        text.push_str(problem);
        text.push('\n');
    }
    text.push_str(&usage(name, schema));
    text
}

/// The usage line and an example.
pub fn usage(name: &str, schema: &Schema) -> String {
    let line = schema.line(name, OPTIONAL);
    format!("Usage: {line}\nExample arguments: {}", cut(&schema.example(), EXAMPLE))
}
