//! Who may see what: ids, keys, groups, servers, tools, names, and the immutable
//! snapshot that every request reads from start to end. Pure: no I/O, no clock.
//!
//! Reading order: [`model`] (what operators set up), [`caller`] (who asks), [`reference`] (values from the
//! environment), [`tool`], `sound` and [`known`] (what a server offers), [`naming`] (what clients call
//! it), [`snapshot`] (all of it at one moment), [`view`] (what one group lists and
//! may call) and `instructions` (what its apps are told at the start).

pub mod caller;
mod instructions;
pub mod known;
pub mod model;
pub mod naming;
pub mod reference;
pub mod secret;
pub mod snapshot;
mod sound;
pub mod tool;
pub mod view;

pub use caller::Caller;
pub use known::Known;
pub use model::{
    Group, GroupId, Key, KeyHash, KeyId, Mode, Override, Pinned, Reach, Server, ServerId, Transport,
};
pub use reference::Lookup;
pub use secret::Secret;
pub use snapshot::Catalog;
pub use tool::{Tool, ToolError};
pub use view::{Meant, More, Resolved, View};
