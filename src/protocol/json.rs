//! JSON as text: the top level of a value is read, everything below is carried as bytes.
//!
//! A number of any size, an unknown member, the order of members: all survive, since
//! nothing here turns them into values and back.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Text that is not the JSON that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON {0}")]
pub struct Unexpected(pub &'static str);

/// The members of a JSON object in their order, each value as raw JSON text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members<'a> {
    list: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Members<'a> {
    /// Reads the top level of an object. Nesting below may be of any depth.
    ///
    /// # Errors
    /// When `text` is anything but one JSON object.
    pub fn parse(text: &'a str) -> Result<Self, Unexpected> {
        Self::from_slice(text.as_bytes())
    }

    /// As [`Members::parse`], from bytes; invalid UTF-8 is an error.
    ///
    /// # Errors
    /// When `bytes` is anything but one JSON object in UTF-8.
    pub fn from_slice(bytes: &'a [u8]) -> Result<Self, Unexpected> {
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let list = reader.deserialize_map(MembersVisitor).map_err(|_| Unexpected("object"))?;
        reader.end().map_err(|_| Unexpected("object"))?;
        Ok(Self { list })
    }

    /// The raw text of a member; of the last one when the key is repeated, as parsers do.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.list.iter().rev().find(|(name, _)| name == key).map(|(_, raw)| raw.as_ref())
    }

    /// As [`Members::get`] for a member that was not set here but read: borrows the input.
    pub fn borrowed(&self, key: &str) -> Option<&'a str> {
        self.list.iter().rev().find(|(name, _)| name == key).and_then(|(_, raw)| match raw {
            Cow::Borrowed(raw) => Some(*raw),
            Cow::Owned(_) => None,
        })
    }

    /// Puts `raw` in the place of the key's value, or last when there is none. A repeated key
    /// is left once: a reader that takes the first must find what one that takes the last does.
    pub fn set(&mut self, key: &str, raw: &str) {
        let raw = Cow::Owned(raw.to_owned());
        let Some(place) = self.list.iter().position(|(name, _)| name == key) else {
            self.list.push((Cow::Owned(key.to_owned()), raw));
            return;
        };
        self.list[place].1 = raw;
        let mut at = 0;
        self.list.retain(|(name, _)| {
            at += 1;
            name != key || at == place + 1
        });
    }

    /// Removes every member of that key.
    pub fn remove(&mut self, key: &str) {
        self.list.retain(|(name, _)| name != key);
    }

    /// Keeps the members whose key passes.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.list.retain(|(name, _)| keep(name));
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Keys and raw values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.list.iter().map(|(key, raw)| (key.as_ref(), raw.as_ref()))
    }

    /// The object as compact JSON text; values as they were.
    pub fn to_text(&self) -> String {
        let size = self.list.iter().map(|(key, raw)| key.len() + raw.len() + 4).sum::<usize>() + 2;
        let mut out = Vec::with_capacity(size);
        self.write(&mut out);
        String::from_utf8(out).expect("keys and values came from UTF-8 text")
    }

    /// Appends [`Members::to_text`].
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        for (place, (key, raw)) in self.list.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            write_string(key, out);
            out.push(b':');
            out.extend_from_slice(raw.as_bytes());
        }
        out.push(b'}');
    }
}

/// The elements of a JSON array, each as raw text.
///
/// # Errors
/// When `text` is anything but one JSON array.
pub fn elements(text: &str) -> Result<Vec<&str>, Unexpected> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let list = reader.deserialize_seq(ElementsVisitor).map_err(|_| Unexpected("array"))?;
    reader.end().map_err(|_| Unexpected("array"))?;
    Ok(list)
}

/// The text of a JSON string; `None` for any other value.
pub fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.trim().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str(raw).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

/// Appends `text` as a JSON string.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a string is written to memory");
}

/// `text` as a JSON string.
pub fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    write_string(text, &mut out);
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// The same JSON on one line, for transports that end a message with a newline. Line ends
/// can stand only between tokens, where any white space is as good.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(['\n', '\r']) {
        Cow::Owned(text.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether `bytes` is one JSON value of any depth.
pub fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(bytes).is_ok()
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<(Cow<'de, str>, Cow<'de, str>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::with_capacity(8);
        while let Some(key) = map.next_key::<Key<'de>>()? {
            list.push((key.0, Cow::Borrowed(map.next_value::<&RawValue>()?.get())));
        }
        Ok(list)
    }
}

/// `Cow<str>` of serde always copies; this one borrows where the key has no escape.
struct Key<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct ElementsVisitor;

impl<'de> Visitor<'de> for ElementsVisitor {
    type Value = Vec<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(raw) = seq.next_element::<&RawValue>()? {
            list.push(raw.get());
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::{Members, elements, is_json, string};

    #[test]
    fn members_keep_text_and_order() {
        let text = r#"{"b":1e999,"a":{"z" : 1},"ü\n":"x","b":12345678901234567890123}"#;
        let members = Members::parse(text).expect("an object");
        assert_eq!(members.get("b"), Some("12345678901234567890123"));
        assert_eq!(members.get("a"), Some(r#"{"z" : 1}"#));
        assert_eq!(members.to_text(), text);
    }

    #[test]
    fn set_replaces_in_place_and_appends() {
        let mut members = Members::parse(r#"{"a":1,"b":2}"#).expect("an object");
        members.set("a", "3");
        members.set("c", "4");
        members.remove("b");
        assert_eq!(members.to_text(), r#"{"a":3,"c":4}"#);
    }

    #[test]
    fn a_repeated_key_is_set_once() {
        let mut members = Members::parse(r#"{"a":1,"b":2,"a":3}"#).expect("an object");
        assert_eq!(members.get("a"), Some("3"));
        members.set("a", "4");
        assert_eq!(members.to_text(), r#"{"a":4,"b":2}"#);
    }

    #[test]
    fn deep_nesting_is_carried_not_followed() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(3000), "]".repeat(3000));
        assert!(Members::parse(&deep).is_ok() && is_json(deep.as_bytes()));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["", "[]", "5", "{", "{} {}", "null", "\u{feff}{}"] {
            assert!(Members::parse(text).is_err(), "{text}");
        }
        assert!(Members::from_slice(b"{\"a\":\"\xff\"}").is_err());
    }

    #[test]
    fn strings_and_arrays() {
        assert_eq!(string(r#" "a\u00fc" "#).as_deref(), Some("aü"));
        assert_eq!(string("5"), None);
        assert_eq!(elements("[1, {\"a\":2} ]"), Ok(vec!["1", "{\"a\":2}"]));
    }
}
