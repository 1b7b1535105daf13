//! What a model is told, and what of its slips is mended: argument repair, refusals with the
//! exact usage, the manager's own tools, notes beside results. Pure: text in, text out.
//!
//! Reading order: [`schema`] (what a tool takes) → `repair` (slips with one reading) →
//! [`usage`] (how a tool is called, in few words) → `problem` (what is wrong with arguments) →
//! [`refusal`] (what a model is told then) → [`nearest`] (the name that was meant) →
//! [`manager`] (the four tools of hybrid lists) → [`note`] (texts beside a result).

pub mod manager;
pub mod nearest;
pub mod note;
mod problem;
pub mod refusal;
mod repair;
pub mod schema;
pub mod usage;

pub use schema::{Schema, Verdict};

/// `text`, or its first `most` characters and an ellipsis.
pub fn cut(text: &str, most: usize) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]).into(),
    }
}
