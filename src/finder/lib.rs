//! Search over what one group reaches (P44, P60): the catalog's tools as documents, an index for
//! each view, made when it is first searched. What is out of reach is not in a view's index, so it
//! changes neither results nor scores.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use catalog::snapshot::Listed;
use catalog::{Catalog, GroupId, Resolved, Server, ServerId, Tool, View};
use search::{Document, Index, Text};

pub use search::{Engine, LIBRARY, Mode, ModelId, Places, Status, Vector};

/// Tools that are looked at for one that does the same.
const ALIKE: usize = 20;

/// Search over one catalog after the other.
#[derive(Debug)]
pub struct Finder {
    engine: Engine,
    documents: Mutex<HashMap<(ServerId, String), Kept>>,
    indexes: Mutex<HashMap<GroupId, Arc<Slot>>>,
}

/// A document, and what it was made of.
#[derive(Debug)]
struct Kept {
    server: Arc<Server>,
    about: String,
    tool: Arc<Tool>,
    exposed: Arc<str>,
    document: Arc<Document>,
}

/// A view and its index.
#[derive(Debug)]
struct Slot {
    view: Arc<View>,
    index: OnceLock<Index>,
}

/// What a search found.
#[derive(Debug, Clone)]
pub struct Found {
    /// Which sort of search it was.
    pub mode: Mode,
    /// Best first.
    pub hits: Vec<Hit>,
}

/// One tool that was found.
#[derive(Debug, Clone)]
pub struct Hit {
    /// Its server.
    pub server: Arc<Server>,
    /// The tool.
    pub tool: Arc<Tool>,
    /// The name that clients see.
    pub exposed: Arc<str>,
    /// 0–1.
    pub score: f32,
}

impl Finder {
    /// Over no tools yet.
    pub fn new(engine: Engine) -> Self {
        Self { engine, documents: Mutex::default(), indexes: Mutex::default() }
    }

    /// How far search by meaning is.
    pub fn status(&self) -> Status {
        self.engine.status()
    }

    /// Takes up a new catalog. Its tools are found by words at once, by meaning as soon as
    /// their vectors are made.
    pub fn follow(&self, catalog: &Catalog) {
        let mut before = std::mem::take(&mut *lock(&self.documents));
        let mut after = HashMap::with_capacity(before.len());
        for listed in catalog.servers() {
            let about = about(listed);
            for (tool, exposed) in listed.known.tools.iter().zip(&listed.exposed) {
                let key = (listed.server.id, tool.name.clone());
                let known = before.remove(&key).filter(|kept| {
                    kept.tool == *tool
                        && kept.exposed == *exposed
                        && kept.server.name == listed.server.name
                        && kept.about == about
                });
                let kept = known.unwrap_or_else(|| Kept {
                    document: Arc::new(document(&listed.server.name, about, tool, exposed)),
                    server: listed.server.clone(),
                    about: about.to_owned(),
                    tool: tool.clone(),
                    exposed: exposed.clone(),
                });
                after.insert(key, kept);
            }
        }
        let documents: Vec<_> = after.values().map(|kept| kept.document.clone()).collect();
        *lock(&self.documents) = after;
        self.engine.take_in(documents);
        lock(&self.indexes).clear();
    }

    /// Waits until everything can be found by its meaning, at most `patience`.
    pub async fn settled(&self, patience: Duration) {
        self.engine.settled(patience).await;
    }

    /// The tools within the view's reach that fit a task told in a few words, best first.
    pub async fn search(&self, view: &Arc<View>, query: &str, most: usize) -> Found {
        let slot = self.slot(view);
        // Thousands of tools take a while, and other requests wait for this thread.
        if slot.index.get().is_none() {
            let documents = self.documents_of(view);
            let slot = slot.clone();
            let made = tokio::task::spawn_blocking(move || {
                slot.index.get_or_init(|| Index::new(documents));
            });
            let _ = made.await;
        }
        let Some(index) = slot.index.get() else {
            return Found { mode: Mode::Lexical, hits: Vec::new() };
        };
        told(view, self.engine.search(index, query, most).await)
    }

    /// The tools within the view's reach that do what one of them does, best first.
    pub fn alike(&self, view: &Arc<View>, server: ServerId, tool: &str) -> Vec<Hit> {
        let place = view.all().position(|each| each.server.id == server && each.tool.name == tool);
        let Some(place) = place else { return Vec::new() };
        let slot = self.slot(view);
        let index = slot.index.get_or_init(|| Index::new(self.documents_of(view)));
        told(view, self.engine.alike(index, place, ALIKE)).hits
    }

    fn slot(&self, view: &Arc<View>) -> Arc<Slot> {
        let mut indexes = lock(&self.indexes);
        let fresh = || Arc::new(Slot { view: view.clone(), index: OnceLock::new() });
        let slot = indexes.entry(view.group.id).or_insert_with(fresh);
        if !Arc::ptr_eq(&slot.view, view) {
            *slot = fresh();
        }
        slot.clone()
    }

    /// In the order of [`View::all`]. A tool that a newer catalog has in another form is found by
    /// that form.
    fn documents_of(&self, view: &View) -> Vec<Arc<Document>> {
        let documents = lock(&self.documents);
        let of = |Resolved { server, tool, exposed }: Resolved<'_>| match documents
            .get(&(server.id, tool.name.clone()))
        {
            Some(kept) => kept.document.clone(),
            None => Arc::new(document(&server.name, &server.description, tool, exposed)),
        };
        view.all().map(of).collect()
    }
}

fn told(view: &View, found: search::Found) -> Found {
    let all: Vec<Resolved<'_>> = view.all().collect();
    let hit = |hit: search::Hit| {
        let Resolved { server, tool, exposed } = *all.get(hit.document)?;
        let (server, tool) = (server.clone(), tool.clone());
        Some(Hit { server, tool, exposed: exposed.clone(), score: hit.score })
    };
    Found { mode: found.mode, hits: found.hits.into_iter().filter_map(hit).collect() }
}

/// What a server is for: the operator's words, else its own.
pub fn about(listed: &Listed) -> &str {
    match listed.server.description.as_str() {
        "" => listed.known.says.as_deref().unwrap_or_default(),
        words => words,
    }
}

fn document(server: &str, about: &str, tool: &Tool, exposed: &str) -> Document {
    let arguments = tool.schema().arguments().into_iter();
    let arguments: Vec<_> = arguments.map(|each| (each.name, each.description)).collect();
    Document::new(&Text {
        server,
        server_about: about,
        exposed,
        name: &tool.name,
        title: &tool.title,
        description: &tool.description,
        arguments: &arguments,
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
