//! The search itself, and the one thread that embeds: questions before documents, one text at
//! a time, at low priority. Whatever is missing, search by words answers (P61).

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::document::{Document, Passage, TextHash};
use crate::fuse::fuse;
use crate::lexical::Index;
use crate::model::{ModelId, Unusable};

mod worker;

/// How long a question waits for its vector before words alone answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Questions whose vectors are remembered.
const REMEMBERED: usize = 512;

/// Questions that may wait; beyond that, words alone answer.
const WAITING: usize = 256;

/// Characters of a question that are looked at.
const QUERY: usize = 1000;

/// How many of the best tools a question is moved towards, and how far.
const FEEDBACK: usize = 3;
const TOWARDS: f32 = 0.2;

/// How much what a server is for counts beside what its tool is for.
const ABOUT: f32 = 0.2;

/// Where the runtime and the model are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// Files that ONNX Runtime may be, the first that is there is taken.
    pub libraries: Vec<PathBuf>,
    /// The model's folder.
    pub model: PathBuf,
}

/// A vector as it is kept over a restart.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// The model that made it.
    pub model: ModelId,
    /// The text it is of.
    pub text: TextHash,
    /// Unit length.
    pub values: Arc<[f32]>,
}

/// Which sort of search answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Words and meaning.
    Semantic,
    /// Words alone.
    Lexical,
}

impl Mode {
    /// The word used in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Lexical => "lexical",
        }
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Which sort of search it was.
    pub mode: Mode,
    /// Best first.
    pub hits: Vec<Hit>,
}

/// One tool that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Its number in the index.
    pub document: usize,
    /// 0–1.
    pub score: f32,
}

/// How far search by meaning is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// No model is set up.
    Off,
    /// The model is being loaded.
    Loading,
    /// It answers; so many texts wait for their vectors.
    Ready {
        /// Texts that wait.
        waiting: usize,
    },
    /// It cannot be used, and why.
    Failed(Unusable),
}

/// Search over any number of indexes, with one model.
#[derive(Debug)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    vectors: RwLock<HashMap<TextHash, Arc<[f32]>>>,
    remembered: Mutex<Remembered>,
    status: Mutex<Status>,
}

/// A question's text, and who waits for its vector.
type Question = (String, oneshot::Sender<Option<Arc<[f32]>>>);

#[derive(Default)]
struct Queue {
    questions: VecDeque<Question>,
    passages: VecDeque<Arc<Passage>>,
    queued: HashSet<TextHash>,
    /// Told when no passage waits.
    idle: Vec<oneshot::Sender<()>>,
    stop: bool,
}

/// The last questions' vectors; the oldest goes first.
#[derive(Default)]
struct Remembered {
    vectors: HashMap<String, Arc<[f32]>>,
    order: VecDeque<String>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("status", &*lock(&self.status)).finish_non_exhaustive()
    }
}

impl Engine {
    /// Search by words alone.
    pub fn lexical() -> Self {
        Self { shared: Arc::new(Shared::new(Status::Off)) }
    }

    /// Search by words at once, and by meaning as soon as the model at `places` is loaded.
    /// `known` are vectors of an earlier run, `keep` is told of each new one; it is called on
    /// the engine's thread and must not wait.
    pub fn start(
        places: Places,
        known: Vec<Vector>,
        keep: impl Fn(Vector) + Send + 'static,
    ) -> Self {
        let shared = Arc::new(Shared::new(Status::Loading));
        worker::start(shared.clone(), places, known, Box::new(keep));
        Self { shared }
    }

    /// How far search by meaning is.
    pub fn status(&self) -> Status {
        let status = lock(&self.shared.status).clone();
        match status {
            Status::Ready { .. } => {
                Status::Ready { waiting: lock(&self.shared.queue).queued.len() }
            }
            other => other,
        }
    }

    /// Has the documents' vectors made that are not there yet, in the background.
    pub fn take_in(&self, documents: impl IntoIterator<Item = Arc<Document>>) {
        let wanted: Vec<_> = {
            let vectors = read(&self.shared.vectors);
            let all = documents.into_iter();
            let passages = all.flat_map(|each| each.passages().cloned().collect::<Vec<_>>());
            passages.filter(|each| !vectors.contains_key(&each.hash)).collect()
        };
        if !self.has_model() {
            return;
        }
        let mut queue = lock(&self.shared.queue);
        for passage in wanted {
            if queue.queued.insert(passage.hash) {
                queue.passages.push_back(passage);
            }
        }
        drop(queue);
        self.shared.wake.notify_one();
    }

    /// Waits until no document waits for its vector, at most `patience`. Returns at once when
    /// there is no model.
    pub async fn settled(&self, patience: Duration) {
        let idle = {
            let mut queue = lock(&self.shared.queue);
            if queue.queued.is_empty() || !self.has_model() {
                return;
            }
            let (told, idle) = oneshot::channel();
            queue.idle.push(told);
            idle
        };
        let _ = tokio::time::timeout(patience, idle).await;
    }

    fn has_model(&self) -> bool {
        matches!(*lock(&self.shared.status), Status::Loading | Status::Ready { .. })
    }

    /// The tools of `index` for a task told in a few words, best first, at most `most`. Those
    /// that have nothing to do with it are left out, as far as that can be told.
    pub async fn search(&self, index: &Index, query: &str, most: usize) -> Found {
        let query: String = query.trim().chars().take(QUERY).collect();
        if query.is_empty() || index.is_empty() {
            return Found { mode: Mode::Lexical, hits: Vec::new() };
        }
        let vector = self.vector(&query).await;
        self.ranked(index, &query, vector.as_deref(), most)
    }

    /// As [`Engine::search`], by words alone and at once.
    pub fn by_words(&self, index: &Index, query: &str, most: usize) -> Found {
        let query: String = query.trim().chars().take(QUERY).collect();
        self.ranked(index, &query, None, most)
    }

    /// The tools of `index` that do what the one of that number does, best first, without it.
    /// At once: its vector is known, or its words are asked for.
    pub fn alike(&self, index: &Index, document: usize, most: usize) -> Found {
        let Some(own) = index.documents.get(document) else {
            return Found { mode: Mode::Lexical, hits: Vec::new() };
        };
        let vector = read(&self.shared.vectors).get(&own.tool.hash).cloned();
        let query: String = own.tool.text.chars().take(QUERY).collect();
        let mut found = self.ranked(index, &query, vector.as_deref(), most.saturating_add(1));
        found.hits.retain(|hit| hit.document != document);
        found.hits.truncate(most);
        found
    }

    fn ranked(&self, index: &Index, query: &str, vector: Option<&[f32]>, most: usize) -> Found {
        let words = index.scores(query);
        let near = vector.and_then(|query| self.near(index, query, &words));
        let mode = if near.is_some() { Mode::Semantic } else { Mode::Lexical };
        let mut scores = near.unwrap_or_else(|| fuse(&words, None));
        for number in index.named(query) {
            if let Some(score) = scores.get_mut(number) {
                *score = 1.0 + f32::EPSILON;
            }
        }
        let mut hits: Vec<Hit> = scores
            .into_iter()
            .enumerate()
            .filter(|(_, score)| *score > 0.0)
            .map(|(document, score)| Hit { document, score })
            .collect();
        hits.sort_by(|one, other| {
            other.score.total_cmp(&one.score).then(one.document.cmp(&other.document))
        });
        hits.truncate(most);
        for hit in &mut hits {
            hit.score = hit.score.min(1.0);
        }
        Found { mode, hits }
    }

    /// Scores by words and meaning; `None` when no document has a vector yet. The best ones
    /// say more of what is meant than a few words can, so the question is moved a little
    /// towards them and put once more.
    fn near(&self, index: &Index, query: &[f32], words: &[f32]) -> Option<Vec<f32>> {
        let vectors = read(&self.shared.vectors);
        let of = |passage: &Arc<Passage>| {
            vectors.get(&passage.hash).filter(|each| each.len() == query.len())
        };
        let cosines = |query: &[f32]| -> Vec<Option<f32>> {
            let near = |vector: &Arc<[f32]>| dot(vector, query);
            let one = |document: &Arc<Document>| {
                let about = document.about.as_ref().and_then(of).map_or(0.0, near);
                Some(near(of(&document.tool)?) + ABOUT * about)
            };
            index.documents.iter().map(one).collect()
        };
        let first = cosines(query);
        if first.iter().all(Option::is_none) {
            return None;
        }
        let mut best: Vec<_> = fuse(words, Some(&first)).into_iter().enumerate().collect();
        best.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        let best =
            best.into_iter().filter_map(|(number, _)| of(&index.documents.get(number)?.tool));
        let mut moved = query.to_vec();
        for vector in best.take(FEEDBACK) {
            for (value, towards) in moved.iter_mut().zip(vector.iter()) {
                *value += TOWARDS / FEEDBACK as f32 * towards;
            }
        }
        Some(fuse(words, Some(&cosines(&moved))))
    }

    /// The vector of a question; `None` when there is no model, or not in time.
    async fn vector(&self, query: &str) -> Option<Arc<[f32]>> {
        if !matches!(*lock(&self.shared.status), Status::Ready { .. }) {
            return None;
        }
        if let Some(known) = lock(&self.shared.remembered).vectors.get(query) {
            return Some(known.clone());
        }
        let (answer, vector) = oneshot::channel();
        {
            let mut queue = lock(&self.shared.queue);
            if queue.questions.len() >= WAITING {
                return None;
            }
            queue.questions.push_back((query.to_owned(), answer));
        }
        self.shared.wake.notify_one();
        let vector = tokio::time::timeout(PATIENCE, vector).await.ok()?.ok()??;
        lock(&self.shared.remembered).add(query, &vector);
        Some(vector)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        lock(&self.shared.queue).stop = true;
        self.shared.wake.notify_one();
    }
}

impl Shared {
    fn new(status: Status) -> Self {
        Self {
            queue: Mutex::default(),
            wake: Condvar::new(),
            vectors: RwLock::default(),
            remembered: Mutex::default(),
            status: Mutex::new(status),
        }
    }
}

impl Remembered {
    fn add(&mut self, query: &str, vector: &Arc<[f32]>) {
        if self.vectors.insert(query.to_owned(), vector.clone()).is_none() {
            self.order.push_back(query.to_owned());
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.vectors.remove(&oldest);
        }
    }
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// A lock is held for moments only, and what it guards is whole after each of them.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}
