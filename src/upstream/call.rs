//! A request in flight on an owner's session.

use std::sync::Arc;

use protocol::Era;
use transport::{Event, Exchange, Failure, Recipe};

use crate::slot::Slot;
use crate::upstream::{Owner, Upstream};

/// A call in flight on a session, with the one retry that a forgotten session allows.
pub struct Call {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) owner: Owner,
    pub(crate) slot: Arc<Slot>,
    pub(crate) recipe: Arc<dyn Recipe>,
    pub(crate) exchange: Exchange,
    pub(crate) era: Era,
    pub(crate) retried: bool,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl Call {
    /// The era of the server that answers.
    pub fn era(&self) -> Era {
        self.era
    }

    /// Waits for what comes next. Not cancel-safe: keep the future until it is done.
    ///
    /// # Errors
    /// How the call failed. A forgotten session is opened anew and the call sent again,
    /// once, since it was not run (P28).
    pub async fn next(&mut self) -> Result<Event, Failure> {
        loop {
            match self.exchange.next().await {
                Err(Failure::SessionLost) if !self.retried => {
                    self.retried = true;
                    self.upstream.forget(self.owner, &self.slot);
                    // Boxed: rare, and as large as the start of the call was.
                    let again = self.upstream.begin(self.owner, &*self.recipe);
                    let (slot, exchange, era) = Box::pin(again).await?;
                    (self.slot, self.exchange, self.era) = (slot, exchange, era);
                }
                Err(failure) => {
                    // A broken connection does not end a session over HTTP; the server
                    // says so itself, by not knowing it.
                    if matches!(failure, Failure::SessionLost) || !self.slot.is_usable() {
                        self.upstream.forget(self.owner, &self.slot);
                    }
                    return Err(self.upstream.met(failure));
                }
                event => return event,
            }
        }
    }

    /// Tells the server that nobody waits any more.
    pub fn cancel(self) {
        self.exchange.cancel();
    }
}
