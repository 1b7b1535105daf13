//! What each key's app does over time, whatever its conversations (P43). Learned in every mode, listed in adaptive groups.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use adaptive::{Habits, Ranked};
use catalog::{KeyId, Mode, ServerId, View};

/// A tool, by its server and its own name, whatever it and its server are called now (P31).
pub type ToolId = (ServerId, String);

/// Learned tools that a list holds, unless its group says otherwise.
pub const CAP: u8 = 10;

/// Calls that wait for those before the start to be read.
const WAITING: usize = 10_000;

/// The habits of all apps.
#[derive(Debug)]
pub struct Learned(Mutex<All>);

/// A call that reached its tool: whose, which tool, when it ended (milliseconds since the Unix
/// epoch).
type Call = (KeyId, ToolId, i64);

#[derive(Debug, Default)]
struct All {
    apps: HashMap<KeyId, App>,
    /// Calls since the start, until those before it are read; `None` from then on.
    waiting: Option<Vec<Call>>,
}

#[derive(Debug, Default)]
struct App {
    habits: Habits<ToolId>,
    /// As it was listed last.
    shown: Vec<ToolId>,
}

/// Nothing yet; see [`Learned::begin`].
impl Default for Learned {
    fn default() -> Self {
        Self(Mutex::new(All { waiting: Some(Vec::new()), ..All::default() }))
    }
}

impl Learned {
    /// Takes up the calls of before the start, oldest first.
    pub fn begin(&self, past: impl IntoIterator<Item = Call>) {
        let mut all = self.lock();
        let waiting = all.waiting.take().unwrap_or_default();
        past.into_iter().chain(waiting).for_each(|call| all.note(call));
    }

    /// Notes a call that reached its tool.
    pub fn note(&self, call: Call) {
        let mut all = self.lock();
        match &mut all.waiting {
            Some(waiting) if waiting.len() < WAITING => waiting.push(call),
            Some(_) => {}
            None => all.note(call),
        }
    }

    /// Forgets keys that are no longer.
    pub fn retain(&self, keep: impl Fn(KeyId) -> bool) {
        self.lock().apps.retain(|key, _| keep(*key));
    }

    /// The learned tools that the key's app lists now, in order; none where its group is not
    /// adaptive.
    pub fn pick(&self, view: &View, key: KeyId, now_ms: i64) -> Vec<ToolId> {
        if view.group.mode != Mode::Adaptive {
            return Vec::new();
        }
        let mut all = self.lock();
        let Some(app) = all.apps.get_mut(&key) else { return Vec::new() };
        let picked = app.picked(view, now_ms);
        app.shown.clone_from(&picked);
        picked
    }

    /// The key's tools in use, the likeliest first, and those of them that its app lists, or
    /// would list in an adaptive group.
    pub fn ranking(
        &self,
        view: &View,
        key: KeyId,
        now_ms: i64,
    ) -> (Vec<Ranked<ToolId>>, Vec<ToolId>) {
        let all = self.lock();
        let of = |app: &App| (app.habits.ranking(now_ms), app.picked(view, now_ms));
        all.apps.get(&key).map(of).unwrap_or_default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl All {
    fn note(&mut self, (key, tool, at_ms): Call) {
        self.apps.entry(key).or_default().habits.note(tool, at_ms);
    }
}

impl App {
    fn picked(&self, view: &View, now_ms: i64) -> Vec<ToolId> {
        let base: Vec<_> = match view.has_own_tools() {
            true => view.base().map(|each| Arc::as_ptr(each.tool)).collect(),
            false => Vec::new(),
        };
        let may = |(server, name): &ToolId| {
            let tool = view.tool(*server, name);
            tool.is_some_and(|each| !base.contains(&Arc::as_ptr(each.tool)))
        };
        let cap = view.group.adaptive_cap.unwrap_or(CAP);
        self.habits.pick(now_ms, usize::from(cap), &self.shown, may)
    }
}
