//! The thread that has the model: loads it, then embeds what is queued until the engine goes.

use std::sync::{Arc, PoisonError};

use tokio::sync::oneshot;

use crate::document::Passage;
use crate::embed::{Embedder, Role};
use crate::engine::{Places, Shared, Status, Vector, lock};
use crate::model;

/// How much lower than the manager's own the priority of the thread is: a call must not wait
/// for a description (PLT-04).
const NICE: i32 = 10;

type Keep = Box<dyn Fn(Vector) + Send>;

/// What is next for the thread.
enum Task {
    Question(String, oneshot::Sender<Option<Arc<[f32]>>>),
    Passage(Arc<Passage>),
}

pub(super) fn start(shared: Arc<Shared>, places: Places, known: Vec<Vector>, keep: Keep) {
    let failed = shared.clone();
    let work = move || run(&shared, &places, known, &keep);
    let spawned = std::thread::Builder::new().name("embed".to_owned()).spawn(work);
    if let Err(error) = spawned {
        let why = format!("its thread cannot be started: {error}");
        *lock(&failed.status) =
            Status::Failed(model::Unusable::Model { folder: Default::default(), why });
    }
}

fn run(shared: &Shared, places: &Places, known: Vec<Vector>, keep: &Keep) {
    lower_priority();
    let loaded = model::library(&places.libraries)
        .and_then(|library| Embedder::load(&library, &places.model));
    let mut embedder = match loaded {
        Ok(embedder) => embedder,
        Err(why) => {
            tracing::warn!(%why, "search by meaning is off; words are matched");
            *lock(&shared.status) = Status::Failed(why);
            let mut queue = lock(&shared.queue);
            queue.passages.clear();
            queue.queued.clear();
            queue.idle.clear();
            return;
        }
    };
    let id = embedder.id;
    {
        let mut vectors = shared.vectors.write().unwrap_or_else(PoisonError::into_inner);
        let ours = known.into_iter().filter(|vector| vector.model == id);
        vectors.extend(ours.map(|vector| (vector.text, vector.values)));
    }
    tracing::info!(model = %places.model.display(), "search by meaning is ready");
    *lock(&shared.status) = Status::Ready { waiting: 0 };
    while let Some(task) = next(shared) {
        match task {
            Task::Question(query, answer) => {
                let vector = embedder.embed(&query, Role::Query).map(Arc::from).ok();
                let _ = answer.send(vector);
            }
            Task::Passage(passage) => {
                take_in(shared, &mut embedder, &passage, keep);
                done(shared, &passage);
            }
        }
    }
}

fn take_in(shared: &Shared, embedder: &mut Embedder, passage: &Passage, keep: &Keep) {
    let known = shared.vectors.read().unwrap_or_else(PoisonError::into_inner);
    if known.contains_key(&passage.hash) {
        return;
    }
    drop(known);
    match embedder.embed(&passage.text, Role::Document) {
        Ok(vector) => {
            let values: Arc<[f32]> = Arc::from(vector);
            let mut vectors = shared.vectors.write().unwrap_or_else(PoisonError::into_inner);
            vectors.insert(passage.hash, values.clone());
            drop(vectors);
            keep(Vector { model: embedder.id, text: passage.hash, values });
        }
        Err(why) => tracing::warn!(why, "a tool's description could not be embedded"),
    }
}

/// Notes that a passage no longer waits; whoever waited for the last one is told.
fn done(shared: &Shared, passage: &Passage) {
    let mut queue = lock(&shared.queue);
    queue.queued.remove(&passage.hash);
    if queue.queued.is_empty() {
        for waiting in queue.idle.drain(..) {
            let _ = waiting.send(());
        }
    }
}

/// Waits for the next task; `None` when the engine is gone.
fn next(shared: &Shared) -> Option<Task> {
    let mut queue = lock(&shared.queue);
    loop {
        if queue.stop {
            return None;
        }
        if let Some((query, answer)) = queue.questions.pop_front() {
            // Whoever asked may have gone.
            if !answer.is_closed() {
                return Some(Task::Question(query, answer));
            }
            continue;
        }
        if let Some(passage) = queue.passages.pop_front() {
            return Some(Task::Passage(passage));
        }
        queue = shared.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
}

#[cfg(target_os = "linux")]
fn lower_priority() {
    // On Linux, a thread has a priority of its own.
    let thread = rustix::thread::gettid();
    if let Err(error) = rustix::process::setpriority_process(Some(thread), NICE) {
        tracing::debug!(%error, "the embedding thread keeps its priority");
    }
}

#[cfg(not(target_os = "linux"))]
fn lower_priority() {}
