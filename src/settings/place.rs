//! Which setting stands where in a conf file: the file once more as a tree with positions,
//! read only to word an error.

use std::fmt::{self, Write as _};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

/// The way to a setting, such as `upstreams[0].url`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Way(pub(super) Vec<Step>);

/// One step of a [`Way`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if depth == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl Way {
    /// Without its last step; `None` at the top.
    pub(super) fn section(&self) -> Option<String> {
        let (_, above) = self.0.split_last()?;
        let mut text = String::new();
        write!(text, "{}", Self(above.to_vec())).ok()?;
        (!text.is_empty()).then_some(text)
    }

    /// Whether what stands there may be a secret.
    pub(super) fn is_secret(&self) -> bool {
        let secret = |step: &Step| {
            let Step::Key(key) = step else { return false };
            ["headers", "env"].contains(&key.as_str()) || key.contains("token")
        };
        self.0.iter().any(secret)
    }
}

/// A conf file as a tree.
#[derive(Debug)]
pub(super) struct Tree(Spanned<Node>);

#[derive(Debug)]
enum Node {
    Leaf,
    List(Vec<Spanned<Node>>),
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
}

impl Tree {
    /// Reads the file; `None` when it is not YAML at all.
    pub(super) fn read(text: &str) -> Option<Self> {
        let options = serde_saphyr::options! { with_snippet: false };
        serde_saphyr::from_str_with_options(text, options).ok().map(Self)
    }

    /// The setting whose key or value stands at the location.
    pub(super) fn way_to(&self, location: Location) -> Option<Way> {
        let mut steps = Vec::new();
        find(&self.0, location, &mut steps).then_some(Way(steps))
    }

    /// Where the setting stands, or the nearest part of the file around it.
    pub(super) fn location_of(&self, way: &Way) -> Location {
        let mut node = &self.0;
        for step in &way.0 {
            let next = match (&node.value, step) {
                (Node::List(items), Step::Index(index)) => items.get(*index),
                (Node::Map(entries), Step::Key(key)) => {
                    entries.iter().find(|(name, _)| name.value == *key).map(|(_, value)| value)
                }
                _ => None,
            };
            let Some(next) = next else { break };
            node = next;
        }
        node.referenced
    }
}

fn same(one: Location, other: Location) -> bool {
    (one.line(), one.column()) == (other.line(), other.column())
}

/// Depth first, since a mapping starts where its first key does.
fn find(node: &Spanned<Node>, location: Location, steps: &mut Vec<Step>) -> bool {
    let mut try_step = |step: Step, key: Option<Location>, value: &Spanned<Node>| {
        steps.push(step);
        let found = key.is_some_and(|key| same(key, location)) || find(value, location, steps);
        if !found {
            steps.pop();
        }
        found
    };
    let below = match &node.value {
        Node::Leaf => false,
        Node::List(items) => {
            items.iter().enumerate().any(|(index, item)| try_step(Step::Index(index), None, item))
        }
        Node::Map(entries) => entries.iter().any(|(key, value)| {
            try_step(Step::Key(key.value.clone()), Some(key.referenced), value)
        }),
    };
    below || same(node.referenced, location)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_str<E>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            list.push(entry);
        }
        Ok(Node::Map(list))
    }
}
