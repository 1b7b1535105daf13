//! One file per method: parse, ask the gateway, answer.

pub(crate) mod discover;
pub(crate) mod initialize;
pub(crate) mod simple;
pub(crate) mod stream;
pub(crate) mod tools_call;
pub(crate) mod tools_list;
