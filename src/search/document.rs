//! A tool as search sees it: its fields as words, and the text that is embedded.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::words::words;

/// Fields of a document, in the order of their weights.
pub(crate) const FIELDS: usize = 5;

/// Characters of the embedded text; models read less.
const EMBEDDED: usize = 2000;

/// Tells one embedded text from all others.
pub type TextHash = [u8; 32];

/// What is said of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    /// Its server's name.
    pub server: &'a str,
    /// What its server is for; may be empty.
    pub server_about: &'a str,
    /// The name that clients call.
    pub exposed: &'a str,
    /// The server's own name for it.
    pub name: &'a str,
    /// Its title; may be empty.
    pub title: &'a str,
    /// Its description, the operator's where there is one.
    pub description: &'a str,
    /// Its arguments, as (name, description).
    pub arguments: &'a [(String, String)],
}

/// A text that is embedded.
#[derive(Debug)]
pub(crate) struct Passage {
    pub(crate) text: String,
    pub(crate) hash: TextHash,
}

impl Passage {
    fn new(text: String) -> Arc<Self> {
        let hash = Sha256::digest(&text).into();
        Arc::new(Self { text, hash })
    }
}

/// A tool as search sees it.
#[derive(Debug)]
pub struct Document {
    /// Word → how often it stands in each field.
    pub(crate) words: BTreeMap<Box<str>, [f32; FIELDS]>,
    /// Words in each field.
    pub(crate) lengths: [f32; FIELDS],
    /// Names without case and separators: a query that is one of them means this tool.
    pub(crate) names: [String; 2],
    /// The tool in a few words.
    pub(crate) tool: Arc<Passage>,
    /// What its server is for; the same for all of its tools.
    pub(crate) about: Option<Arc<Passage>>,
}

impl Document {
    /// Takes in what is said of a tool.
    pub fn new(text: &Text<'_>) -> Self {
        let mut words_of: BTreeMap<Box<str>, [f32; FIELDS]> = BTreeMap::new();
        let mut lengths = [0.0; FIELDS];
        let mut add = |field: usize, text: &str| {
            for word in words(text) {
                if let Some(count) = words_of.entry(word.into()).or_default().get_mut(field) {
                    *count += 1.0;
                }
                if let Some(length) = lengths.get_mut(field) {
                    *length += 1.0;
                }
            }
        };
        add(0, text.name);
        add(0, text.title);
        add(1, text.description);
        for (name, description) in text.arguments {
            add(2, name);
            add(3, description);
        }
        add(4, text.server);
        let names = [normal(text.exposed), normal(text.name)];
        let about: String = text.server_about.trim().chars().take(EMBEDDED).collect();
        let about = (!about.is_empty()).then(|| Passage::new(about));
        Self { words: words_of, lengths, names, tool: Passage::new(embedded(text)), about }
    }

    /// The texts that are embedded for it.
    pub(crate) fn passages(&self) -> impl Iterator<Item = &Arc<Passage>> {
        std::iter::once(&self.tool).chain(&self.about)
    }

    /// Tells the embedded texts from all others: what a change of any of them changes.
    pub fn hashes(&self) -> impl Iterator<Item = TextHash> {
        self.passages().map(|passage| passage.hash)
    }
}

/// A name without case and separators.
pub(crate) fn normal(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn embedded(text: &Text<'_>) -> String {
    let spaced = spaced(text.name);
    let title = if text.title.is_empty() { String::new() } else { format!(" ({})", text.title) };
    let names: Vec<&str> = text.arguments.iter().map(|(name, _)| name.as_str()).collect();
    let arguments = match names[..] {
        [] => String::new(),
        _ => format!(" Arguments: {}", names.join(", ")),
    };
    let description: String = text.description.chars().take(EMBEDDED).collect();
    format!("{} {spaced}{title}: {description}{arguments}", text.server)
}

/// A name as words: `take_screenshot` and `takeScreenshot` are `take screenshot`.
fn spaced(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut before_small = false;
    for letter in name.chars() {
        if letter.is_alphanumeric() {
            if before_small && letter.is_uppercase() {
                out.push(' ');
            }
            out.push(letter);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
        before_small = letter.is_lowercase();
    }
    out.trim().to_owned()
}
