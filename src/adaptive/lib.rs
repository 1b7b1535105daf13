//! Which tools an app will probably call next, from those that it called (P43): how often, how
//! lately, and what usually follows what. Pure, and deterministic: the same calls at the same
//! times give the same ranking, in whatever form a tool is known.

use std::collections::BTreeMap;
use std::fmt::Debug;

/// Half of a call's weight is gone after this long, in milliseconds: five days.
const HALF_LIFE: f64 = 5.0 * 86_400_000.0;

/// Half of the credit for being the latest is gone after this long: a day and a half.
const FRESH: f64 = 36.0 * 3_600_000.0;

/// A pause after which the next call does not follow from the one before, in milliseconds.
const PAUSE: i64 = 30 * 60_000;

/// What a tool's frequency, its recency and its place after the last call count.
const OFTEN: f64 = 0.5;
const LATELY: f64 = 0.15;
const AFTER: f64 = 0.35;

/// A tool whose calls weigh less is out of use: two calls, three weeks ago.
const LEAST: f64 = 0.1;

/// Calls that a tool needs before it is listed.
const CALLS: u32 = 2;

/// How much better than the last of a full list a tool must be to take its place: a changed list
/// costs the app its prompt cache.
const BETTER: f64 = 1.1;

/// Tools that are remembered, and what follows each.
const TOOLS: usize = 500;
const FOLLOWERS: usize = 16;

/// The habits of one app.
#[derive(Debug, Clone)]
pub struct Habits<T: Ord> {
    tools: BTreeMap<T, Use>,
    /// Tool → what was called right after it, and how much that weighs.
    after: BTreeMap<T, BTreeMap<T, Weight>>,
    last: Option<(T, i64)>,
}

#[derive(Debug, Clone, Copy)]
struct Use {
    calls: u32,
    weight: Weight,
}

/// A sum of calls, each worth less the longer ago it was.
#[derive(Debug, Clone, Copy)]
struct Weight {
    sum: f64,
    /// When that was so, milliseconds since the Unix epoch.
    at: i64,
}

impl Weight {
    const NONE: Self = Self { sum: 0.0, at: i64::MIN };

    fn now(self, now: i64) -> f64 {
        self.sum * half(now.saturating_sub(self.at), HALF_LIFE)
    }

    fn add(&mut self, at: i64) {
        // Clocks are set back now and then; time here never is.
        let at = at.max(self.at);
        *self = Self { sum: self.now(at) + 1.0, at };
    }
}

fn half(age: i64, life: f64) -> f64 {
    (-(age.max(0) as f64) / life).exp2()
}

/// A tool in a ranking.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked<T> {
    /// Which.
    pub tool: T,
    /// 0–1.
    pub score: f64,
    /// How often it was called.
    pub calls: u32,
}

impl<T: Ord> Default for Habits<T> {
    fn default() -> Self {
        Self { tools: BTreeMap::new(), after: BTreeMap::new(), last: None }
    }
}

impl<T: Clone + Ord + Debug> Habits<T> {
    /// Those of an app that made these calls, oldest first.
    pub fn replay(calls: impl IntoIterator<Item = (T, i64)>) -> Self {
        let mut habits = Self::default();
        for (tool, at) in calls {
            habits.note(tool, at);
        }
        habits
    }

    /// Notes a call, at milliseconds since the Unix epoch.
    pub fn note(&mut self, tool: T, at: i64) {
        if let Some((last, before)) = &self.last
            && at.saturating_sub(*before) <= PAUSE
            && *last != tool
        {
            let next = self.after.entry(last.clone()).or_default();
            next.entry(tool.clone()).or_insert(Weight::NONE).add(at);
            if next.len() > FOLLOWERS {
                forget_least(next, at, |weight| *weight);
            }
        }
        let noted =
            self.tools.entry(tool.clone()).or_insert(Use { calls: 0, weight: Weight::NONE });
        noted.calls = noted.calls.saturating_add(1);
        noted.weight.add(at);
        if self.tools.len() > TOOLS {
            forget_least(&mut self.tools, at, |noted| noted.weight);
            let tools = &self.tools;
            self.after.retain(|tool, next| {
                next.retain(|tool, _| tools.contains_key(tool));
                tools.contains_key(tool)
            });
        }
        self.last = Some((tool, at));
    }

    /// Takes over what was learned of a tool that has another name now (P31).
    pub fn rename(&mut self, from: &T, to: &T) {
        if let Some(noted) = self.tools.remove(from) {
            self.tools.insert(to.clone(), noted);
        }
        if let Some(next) = self.after.remove(from) {
            self.after.insert(to.clone(), next);
        }
        for next in self.after.values_mut() {
            if let Some(weight) = next.remove(from) {
                next.insert(to.clone(), weight);
            }
        }
        if let Some((last, _)) = &mut self.last
            && last == from
        {
            last.clone_from(to);
        }
    }

    /// Every tool in use, the likeliest first.
    pub fn ranking(&self, now: i64) -> Vec<Ranked<T>> {
        let most = self.tools.values().map(|noted| noted.weight.now(now)).fold(0.0, f64::max);
        let followers = self.last.as_ref().filter(|(_, at)| now.saturating_sub(*at) <= PAUSE);
        let followers = followers.and_then(|(last, _)| self.after.get(last));
        let sum: f64 = followers.into_iter().flatten().map(|(_, weight)| weight.now(now)).sum();
        let score = |tool: &T, noted: &Use| {
            let often = noted.weight.now(now) / most.max(f64::MIN_POSITIVE);
            let lately = half(now.saturating_sub(noted.weight.at), FRESH);
            let next = followers.and_then(|next| next.get(tool));
            // One call more in the sum: what followed once need not follow again.
            let after = next.map_or(0.0, |weight| weight.now(now) / (sum + 1.0));
            OFTEN * often.sqrt() + LATELY * lately + AFTER * after
        };
        let in_use = self.tools.iter().filter(|(_, noted)| noted.weight.now(now) >= LEAST);
        let mut ranking: Vec<_> = in_use
            .map(|(tool, noted)| Ranked {
                tool: tool.clone(),
                score: score(tool, noted).clamp(0.0, 1.0),
                calls: noted.calls,
            })
            .collect();
        ranking.sort_by(|one, other| {
            other.score.total_cmp(&one.score).then_with(|| one.tool.cmp(&other.tool))
        });
        ranking
    }

    /// The learned part of a list: at most `cap` of the tools that `may` be in it. Those `shown`
    /// before stay in their order as long as they belong there; new ones come last.
    pub fn pick(&self, now: i64, cap: usize, shown: &[T], may: impl Fn(&T) -> bool) -> Vec<T> {
        let mut ranking = self.ranking(now);
        ranking.retain(|ranked| ranked.calls >= CALLS && may(&ranked.tool));
        let score = |tool: &T| {
            let ranked = ranking.iter().find(|ranked| ranked.tool == *tool);
            ranked.map(|ranked| ranked.score)
        };
        let mut picked: Vec<T> =
            shown.iter().filter(|tool| score(tool).is_some()).cloned().collect();
        picked.dedup();
        // A smaller cap drops the least likely.
        while picked.len() > cap {
            drop_least(&mut picked, score);
        }
        for candidate in &ranking {
            if picked.contains(&candidate.tool) {
                continue;
            }
            if picked.len() >= cap {
                let least = picked.iter().filter_map(score).fold(f64::INFINITY, f64::min);
                if candidate.score <= least * BETTER {
                    break;
                }
                drop_least(&mut picked, score);
            }
            if picked.len() < cap {
                picked.push(candidate.tool.clone());
            }
        }
        picked
    }
}

fn drop_least<T>(picked: &mut Vec<T>, score: impl Fn(&T) -> Option<f64>) {
    let scores = picked.iter().enumerate().map(|(at, tool)| (at, score(tool).unwrap_or(0.0)));
    // Of equals, the one that came last.
    let least = scores.rev().min_by(|one, other| one.1.total_cmp(&other.1));
    if let Some((at, _)) = least {
        picked.remove(at);
    }
}

fn forget_least<T: Clone + Ord, V>(
    map: &mut BTreeMap<T, V>,
    now: i64,
    weight: impl Fn(&V) -> Weight,
) {
    let weights = map.iter().map(|(tool, value)| (tool, weight(value)));
    let least = weights.min_by(|one, other| {
        one.1.now(now).total_cmp(&other.1.now(now)).then(one.1.at.cmp(&other.1.at))
    });
    if let Some(tool) = least.map(|(tool, _)| tool.clone()) {
        map.remove(&tool);
    }
}

/// How good lists would have been for a log of calls: before each call the list is picked anew,
/// as an app would have read it then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hits {
    /// Calls of tools in the list.
    pub listed: u32,
    /// All calls.
    pub calls: u32,
    /// Lists that differed from the one before.
    pub changes: u32,
}

impl Hits {
    /// The share of calls whose tool was in the list.
    pub fn rate(self) -> f64 {
        f64::from(self.listed) / f64::from(self.calls.max(1))
    }
}

/// Replays a log, oldest call first.
pub fn evaluate<T: Clone + Ord + Debug>(log: &[(T, i64)], cap: usize) -> Hits {
    let (mut habits, mut hits, mut shown) = (Habits::default(), Hits::default(), Vec::new());
    for (tool, at) in log {
        let list = habits.pick(*at, cap, &shown, |_| true);
        hits.listed += u32::from(list.contains(tool));
        hits.calls += 1;
        hits.changes += u32::from(list != shown);
        shown = list;
        habits.note(tool.clone(), *at);
    }
    hits
}
