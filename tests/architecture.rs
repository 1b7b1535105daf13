//! House rules that a machine can check: who may use whom, where things live, how large they
//! get, and that the documents say what the code does. A failed test says what to do.
//!
//! - `edges`: crates, and the packages that have one home
//! - `sources`: rules about files and the words in them
//! - `cases`: the faults of other gateways against the tests that stand for them
//! - `documents`: README, ARCHITECTURE and the conf file against the code
//! - `tree`: reading the work tree

#[path = "architecture/cases.rs"]
mod cases;
#[path = "architecture/documents.rs"]
mod documents;
#[path = "architecture/edges.rs"]
mod edges;
#[path = "architecture/sources.rs"]
mod sources;
#[path = "architecture/tree.rs"]
mod tree;
