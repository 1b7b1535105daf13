//! Calls that nobody waits for any more and that run on all the same, as a legacy client that
//! lost its connection expects (F35).

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use conversation::{Cancellable, Kept};

use crate::call::{Reply, Running, Step};

/// How far a call has come.
pub enum Underway {
    /// It is not handed to its server yet.
    Starting(Pin<Box<dyn Future<Output = Result<Running, Reply>> + Send>>),
    /// Its server has it.
    Running(Box<Running>),
}

impl std::fmt::Debug for Underway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Starting(_) => "Starting",
            Self::Running(_) => "Running",
        })
    }
}

/// Lets the call run on. It still ends when `cancellable` is cancelled: by the client, with
/// its session, or with its key. What comes of it is put into `kept`, together with the raw id
/// that it answers, where the client may ask for it.
pub fn run_on(call: Underway, cancellable: Option<Cancellable>, kept: Option<(Arc<Kept>, String)>) {
    tokio::spawn(async move {
        let cancelled = async {
            match &cancellable {
                Some(call) => call.cancelled.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let keep = |message: &mut dyn FnMut(&str) -> Bytes| {
            if let Some((kept, id)) = &kept {
                kept.push(message(id));
            }
        };
        // Dropped half-way, it tells the server to stop.
        tokio::select! {
            () = to_the_end(call, keep) => {}
            () = cancelled => {}
        }
        if let Some((kept, _)) = &kept {
            kept.end();
        }
    });
}

async fn to_the_end(call: Underway, keep: impl Fn(&mut dyn FnMut(&str) -> Bytes)) {
    let mut running = match call {
        Underway::Running(running) => *running,
        Underway::Starting(starting) => match starting.await {
            Ok(running) => running,
            Err(reply) => return keep(&mut |id| reply.message(id).into()),
        },
    };
    running.alone();
    loop {
        match running.next().await {
            Step::Notice(notice) => keep(&mut |_| Bytes::copy_from_slice(notice.as_bytes())),
            Step::Done(reply) => return keep(&mut |id| reply.message(id).into()),
        }
    }
}
