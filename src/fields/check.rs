//! What values may be, said once for every noun. Pure.

use std::time::Duration;

use catalog::Secret;
use url::Url;

use crate::Invalid;

/// A group's or server's name: white space around it is dropped; 1–64 characters, none of
/// them a control character or `/`, so that it fits one segment of a path.
pub fn name(given: &str) -> Result<String, Invalid> {
    let name = given.trim();
    let wrong = if name.is_empty() {
        "must not be empty"
    } else if name.chars().count() > 64 {
        "must have at most 64 characters"
    } else if name.chars().any(char::is_control) {
        "must not hold control characters"
    } else if name.contains('/') {
        "must not hold `/`"
    } else if name == "." || name == ".." {
        "must not be `.` or `..`, which URLs cannot carry"
    } else {
        return Ok(name.to_owned());
    };
    Err(Invalid::new("name", wrong))
}

/// A key's label: anything short on one line, also nothing.
pub fn label(given: &str) -> Result<String, Invalid> {
    let label = given.trim();
    if label.chars().count() > 200 {
        return Err(Invalid::new("label", "must have at most 200 characters"));
    }
    if label.chars().any(char::is_control) {
        return Err(Invalid::new("label", "must be one line without control characters"));
    }
    Ok(label.to_owned())
}

/// Tool names for a group's defaults, repeats dropped. They need not lead anywhere now.
pub fn defaults(given: Vec<String>) -> Result<Vec<String>, Invalid> {
    let mut names: Vec<String> = Vec::with_capacity(given.len());
    for name in given {
        if name.trim().is_empty() || name.len() > 256 || name.chars().any(char::is_control) {
            return Err(Invalid::new("defaults", format!("holds `{name}`, which is no tool name")));
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// A time in milliseconds, 100 ms to `most`.
pub fn time(field: &str, given: u64, most: Duration) -> Result<Duration, Invalid> {
    let time = Duration::from_millis(given);
    if time < Duration::from_millis(100) || time > most {
        let most = most.as_millis();
        return Err(Invalid::new(field, format!("must be 100–{most} (milliseconds), not {given}")));
    }
    Ok(time)
}

/// A text of at most `most` bytes.
pub fn short(field: &str, given: &str, most: usize) -> Result<(), Invalid> {
    if given.len() > most {
        let message = format!("must have at most {most} bytes, not {}", given.len());
        return Err(Invalid::new(field, message));
    }
    Ok(())
}

/// Longest address of a server, in bytes.
const URL_MAX: usize = 4096;

/// Where a server answers. `${NAME}` references stand for anything, so they are put aside.
pub fn url(given: &str) -> Result<String, Invalid> {
    let text = given.trim();
    short("url", text, URL_MAX)?;
    let wrong = |message: &str| Err(Invalid::new("url", format!("{message}, not `{text}`")));
    if text.starts_with("${") && text.contains('}') {
        return Ok(text.to_owned());
    }
    let Ok(url) = Url::parse(&without_references(text)) else {
        return wrong("must be a whole address such as `http://host:8940/mcp`");
    };
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return wrong("must start with `http://` or `https://` and a host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        // The address is shown in lists and logs; its text is left out here for that reason.
        let message = "must not hold a user name or password; send an `Authorization` header";
        return Err(Invalid::new("url", message));
    }
    if url.fragment().is_some() || text.chars().any(|c| c.is_control() || c == ' ') {
        return wrong("must not hold `#`, spaces or control characters");
    }
    Ok(text.to_owned())
}

/// Headers for a server, in their order.
pub fn headers(given: Vec<(String, Secret)>) -> Result<Vec<(String, Secret)>, Invalid> {
    // These belong to the connection and the protocol; another value would break both.
    const OURS: [&str; 9] = [
        "host",
        "connection",
        "content-length",
        "content-type",
        "transfer-encoding",
        "accept",
        "accept-encoding",
        "mcp-session-id",
        "mcp-protocol-version",
    ];
    let mut seen: Vec<String> = Vec::with_capacity(given.len());
    for (name, value) in &given {
        let field = format!("headers.{name}");
        let lower = name.to_ascii_lowercase();
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(Invalid::new(
                "headers",
                format!("holds `{name}`, which is no header name"),
            ));
        }
        if OURS.contains(&lower.as_str()) {
            return Err(Invalid::new(&field, "is set by the manager itself; leave it out"));
        }
        if seen.contains(&lower) {
            return Err(Invalid::new(&field, "is given twice, in different case"));
        }
        if value.reveal().bytes().any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
            return Err(Invalid::new(&field, "must be one line without control characters"));
        }
        seen.push(lower);
    }
    Ok(given)
}

/// Variables for a process, in their order.
pub fn env(given: Vec<(String, Secret)>) -> Result<Vec<(String, Secret)>, Invalid> {
    for (name, value) in &given {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(Invalid::new("env", format!("holds `{name}`, which is no variable name")));
        }
        if value.reveal().contains('\0') {
            return Err(Invalid::new(&format!("env.{name}"), "must not hold a NUL character"));
        }
    }
    Ok(given)
}

/// A program, a path or an argument that may not be blank.
pub fn filled(field: &str, given: String) -> Result<String, Invalid> {
    if given.trim().is_empty() {
        return Err(Invalid::new(field, "must not be empty"));
    }
    without_nul(field, given)
}

/// Longest word of a command, path or value, in bytes.
const TEXT_MAX: usize = 32 << 10;

/// Text for the operating system, which ends it at a NUL.
pub fn without_nul(field: &str, given: String) -> Result<String, Invalid> {
    if given.contains('\0') {
        return Err(Invalid::new(field, "must not hold a NUL character"));
    }
    short(field, &given, TEXT_MAX)?;
    Ok(given)
}

/// `1` in the place of each reference: a host, a port and a path can all be that.
fn without_references(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, reference)) = rest.split_once("${") {
        out.push_str(before);
        let Some((_, after)) = reference.split_once('}') else {
            rest = "";
            break;
        };
        out.push('1');
        rest = after;
    }
    out + rest
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::time::Duration;

    use catalog::Secret;

    use crate::Invalid;

    fn text<T: Debug>(result: Result<T, Invalid>) -> String {
        result.map_or_else(|error| error.to_string(), |value| format!("{value:?}"))
    }

    #[test]
    fn names() {
        let check = |given: &str, expect: &str| assert_eq!(text(super::name(given)), expect);
        check(" Image Generator ", "\"Image Generator\"");
        check(&"ü".repeat(64), &format!("\"{}\"", "ü".repeat(64)));
        check(" ", "`name` must not be empty");
        check(&"x".repeat(65), "`name` must have at most 64 characters");
        check("a\nb", "`name` must not hold control characters");
        check("a/b", "`name` must not hold `/`");
        check("..", "`name` must not be `.` or `..`, which URLs cannot carry");
    }

    #[test]
    fn addresses() {
        let check = |given: &str, expect: &str| assert_eq!(text(super::url(given)), expect);
        for good in ["http://host:8940/mcp?x=1", "https://${HOST}:${PORT:-80}/${PATH}", "${URL}"] {
            check(&format!(" {good} "), &format!("{good:?}"));
        }
        check(
            "host:8940/mcp",
            "`url` must start with `http://` or `https://` and a host, not `host:8940/mcp`",
        );
        check("/mcp", "`url` must be a whole address such as `http://host:8940/mcp`, not `/mcp`");
        check(
            "ftp://h/",
            "`url` must start with `http://` or `https://` and a host, not `ftp://h/`",
        );
        check(
            "http://h/#x",
            "`url` must not hold `#`, spaces or control characters, not `http://h/#x`",
        );
        check(
            "http://me:secret@h/",
            "`url` must not hold a user name or password; send an `Authorization` header",
        );
    }

    #[test]
    fn header_names_and_values() {
        let check = |name: &str, value: &str, expect: &str| {
            let given =
                vec![("X-One".to_owned(), Secret::new("1")), (name.to_owned(), Secret::new(value))];
            assert_eq!(text(super::headers(given)), expect);
        };
        check("Authorization", "Bearer ${T}", "[(\"X-One\", ***), (\"Authorization\", ***)]");
        check("x-one", "2", "`headers.x-one` is given twice, in different case");
        check("a b", "", "`headers` holds `a b`, which is no header name");
        check("Host", "h", "`headers.Host` is set by the manager itself; leave it out");
        check("X-A", "s3cret\r\nX: y", "`headers.X-A` must be one line without control characters");
    }

    #[test]
    fn times() {
        let check = |given, expect: &str| {
            assert_eq!(text(super::time("timeout_ms", given, Duration::from_secs(600))), expect);
        };
        check(100, "100ms");
        check(99, "`timeout_ms` must be 100–600000 (milliseconds), not 99");
        check(600_001, "`timeout_ms` must be 100–600000 (milliseconds), not 600001");
    }
}
