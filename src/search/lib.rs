//! Tools from a few words on a task: by their words, and by their meaning where a model is
//! there (P60, P61). It fetches nothing and knows no group: an [`Index`] is of one reach.
//!
//! Reading order: [`document`] (a tool as search sees it) → `words` → [`lexical`] (by words) →
//! [`model`] and `embed` (text into vectors) → `fuse` (both into one score) → [`engine`]
//! (the thread that embeds, and the search itself).

pub mod document;
mod embed;
pub mod engine;
mod fuse;
pub mod lexical;
pub mod model;
mod words;

pub use document::{Document, Text, TextHash};
pub use engine::{Engine, Found, Hit, Mode, Places, Status, Vector};
pub use lexical::Index;
pub use model::{LIBRARY, ModelId, Unusable};
