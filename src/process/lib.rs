//! Local programs that are servers: how one is started, its lines in and out, how it ends, and
//! that none outlives the manager. What the lines mean is the business of the crate `transport`.
//!
//! Reading order: [`Child`] (one program with its group) → [`Warden`] (ends the groups when the
//! manager is killed).

mod child;
mod warden;

pub use child::{Child, Error, MAX_LINE, Stderr};
pub use warden::{Warden, stand_guard};
