//! The input schema of one tool, compiled once, and the verdict on arguments under it (P51, P52).
//!
//! Remote references are never fetched. A schema that cannot be compiled accepts everything,
//! and so do arguments that cannot be held as values: the server then has the word.

use std::sync::OnceLock;

use jsonschema::{Validator, ValidatorMap};
use serde_json::Value;

use crate::problem;
use crate::repair::Repair;

/// Arguments longer than this, in bytes, go to the server unchecked: reading them would hold up
/// the other calls of the thread.
const MOST_ARGUMENTS: usize = 1 << 20;

/// The parts of a schema longer than this, in bytes, are not compiled one by one: its calls are
/// checked and refused, but not mended.
const MOST_SCHEMA: usize = 128 << 10;

/// An input schema.
#[derive(Debug)]
pub struct Schema {
    root: Value,
    /// Made when there is something to judge; `None` for a schema that accepts everything.
    whole: OnceLock<Option<Validator>>,
    /// Each part by its place (`#/properties/x`); made when something is to be mended.
    parts: OnceLock<Option<ValidatorMap>>,
    length: usize,
}

/// What is to be done with a call's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Sent as they are, byte for byte.
    Fits,
    /// Sent as this JSON text instead.
    Mended {
        /// The arguments, a JSON object.
        arguments: String,
        /// What was changed, a phrase each.
        changes: Vec<String>,
    },
    /// Not sent: what is wrong, a phrase each, at least one.
    Refused(Vec<String>),
}

impl Schema {
    /// Reads the JSON text of a schema: 2020-12, or the draft that `$schema` names.
    pub fn compile(text: &str) -> Self {
        let root: Value = serde_json::from_str(text).unwrap_or(Value::Bool(true));
        Self { root, whole: OnceLock::new(), parts: OnceLock::new(), length: text.len() }
    }

    /// The schema as a value; `true` when it was no JSON.
    pub(crate) fn root(&self) -> &Value {
        &self.root
    }

    /// What is to be done with `arguments`, the raw JSON of an object.
    pub fn judge(&self, arguments: &str) -> Verdict {
        let whole = self.whole.get_or_init(|| options().build(&self.root).ok());
        let Some(whole) = whole else { return Verdict::Fits };
        if arguments.len() > MOST_ARGUMENTS {
            return Verdict::Fits;
        }
        // Too deep, or a number beyond all bounds: not ours to refuse.
        let Ok(value) = serde_json::from_str::<Value>(arguments) else { return Verdict::Fits };
        if whole.is_valid(&value) {
            return Verdict::Fits;
        }
        if let Some(parts) = self.parts()
            && let Some((arguments, changes)) = Repair::new(&self.root, parts).only(arguments)
        {
            return Verdict::Mended { arguments, changes };
        }
        Verdict::Refused(problem::all(self, whole, &value))
    }

    fn parts(&self) -> Option<&ValidatorMap> {
        let make = || {
            let small = self.length <= MOST_SCHEMA;
            small.then(|| options().build_map(&self.root).ok()).flatten()
        };
        self.parts.get_or_init(make).as_ref()
    }
}

/// `format` stays what it is since 2019-09, a remark: servers differ in what they take.
fn options() -> jsonschema::ValidationOptions<'static> {
    jsonschema::options().offline().should_validate_formats(false)
}
