//! One row of the matrix: three apps, one server, one fault; what was told, and how fast.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use super::{Fault, Runs, TOOLS, Told, Victim, When, pause};
use crate::support::gateway::Gateway;
use crate::support::mcp::{Message, Session};
use crate::support::{SOON, eventually};

/// From the fault until the API or an answer says that something is wrong.
const DETECTED: Duration = Duration::from_secs(3);

/// From the server's return until a good answer.
const RECOVERED: Duration = Duration::from_secs(5);

/// Time between two calls of an app.
const PACE: Duration = Duration::from_millis(100);

/// How long the call runs that is under way when the fault strikes.
const HELD_MS: u32 = 700;

#[derive(Default)]
pub(super) struct Row {
    /// Text of the three cells.
    pub(super) cells: Vec<String>,
    /// What is not as it has to be.
    pub(super) offences: Vec<String>,
}

/// A call that was made and how it ended.
struct Made {
    /// Place in [`TOOLS`].
    tool: usize,
    id: String,
    told: Told,
    ended: Instant,
}

/// What the threads of a row share.
struct Stage {
    gateway: Gateway,
    apps: [Session; 3],
    /// Since when the server could answer again.
    back: Mutex<Option<Instant>>,
}

/// When things were seen.
struct Seen {
    struck: Instant,
    back: Instant,
    /// When the API no longer said `connected`.
    state: Option<Instant>,
    /// What it said when it should have said `connected` again.
    status: String,
}

pub(super) fn run(fault: &Fault) -> Row {
    let mut victim = (fault.victim)();
    let gateway = Gateway::start();
    gateway.add_server(&victim.registration());
    let apps = TOOLS.map(|_| gateway.session(&gateway.add_key("full")));
    let stage = Stage { gateway, apps, back: Mutex::default() };
    let (sender, made) = channel();
    for place in 0..TOOLS.len() {
        stage.call(place, "warm", 0, &sender);
    }
    let seen = std::thread::scope(|scope| perform(scope, &stage, fault, &mut *victim, &sender));
    drop(sender);
    let made: Vec<Made> = made.into_iter().collect();
    let mut row = Row::default();
    if seen.status != "connected" {
        row.offences.push(format!("afterwards the API says `{}`", seen.status));
    }
    let runs = victim.runs();
    for (place, tool) in TOOLS.iter().enumerate() {
        let of_tool: Vec<_> = made.iter().filter(|call| call.tool == place).collect();
        row.judge(fault, tool, &fault.told[place], &of_tool, &seen, &runs);
    }
    row
}

fn perform<'s>(
    scope: &'s Scope<'s, '_>,
    stage: &'s Stage,
    fault: &Fault,
    victim: &mut dyn Victim,
    sender: &Sender<Made>,
) -> Seen {
    let start = || -> Vec<ScopedJoinHandle<'_, Told>> {
        let each = (0..TOOLS.len()).map(|place| {
            let sender = sender.clone();
            scope.spawn(move || stage.call(place, "first", HELD_MS, &sender))
        });
        each.collect()
    };
    let mut first = Vec::new();
    if fault.when == When::Before {
        first = start();
        eventually("three calls that run", SOON, || {
            let runs = victim.runs();
            TOOLS.iter().all(|tool| runs.contains_key(&format!("{tool}-first"))).then_some(())
        });
    }
    let struck = Instant::now();
    victim.strike();
    if fault.when == When::After {
        first = start();
    }
    for place in 0..TOOLS.len() {
        let sender = sender.clone();
        scope.spawn(move || stage.keep_calling(scope, place, &sender));
    }
    let mut state = None;
    let mut look = || {
        if state.is_none() && stage.status() != "connected" {
            state = Some(Instant::now());
        }
        state.is_some()
    };
    while victim.lasts()
        && (struck.elapsed() < fault.lasts
            || (fault.noticed
                && struck.elapsed() < 2 * DETECTED
                && !look()
                && !first.iter().all(ScopedJoinHandle::is_finished)))
    {
        look();
        pause(Duration::from_millis(20));
    }
    let healed = victim.heal(&stage.gateway);
    let back = if victim.lasts() { healed } else { struck };
    *stage.back.lock().unwrap() = Some(back);
    while back.elapsed() < RECOVERED && stage.status() != "connected" {
        pause(Duration::from_millis(20));
    }
    Seen { struck, back, state, status: stage.status() }
}

impl Stage {
    fn status(&self) -> String {
        self.gateway.server("server")["status"].as_str().unwrap().to_owned()
    }

    /// Calls the tool at this place once, and hands over how it went.
    fn call(&self, place: usize, name: &str, hold_ms: u32, to: &Sender<Made>) -> Told {
        let tool = TOOLS[place];
        let id = format!("{tool}-{name}");
        let arguments = format!(r#"{{"id":"{id}","hold_ms":{hold_ms}}}"#);
        let told = told(&id, self.apps[place].try_call(&id, tool, &arguments));
        let made = Made { tool: place, id, told: told.clone(), ended: Instant::now() };
        let _all_judged = to.send(made);
        told
    }

    /// Calls at an even pace, whatever comes of it, until the server is back and one is good.
    fn keep_calling<'s>(&'s self, scope: &'s Scope<'s, '_>, place: usize, to: &Sender<Made>) {
        let good = Arc::new(AtomicBool::new(false));
        let started = Instant::now();
        for number in 0.. {
            let back = *self.back.lock().unwrap();
            let over = back.unwrap_or(started).elapsed() > SOON;
            if good.load(Ordering::SeqCst) || over {
                return;
            }
            let (to, good) = (to.clone(), Arc::clone(&good));
            scope.spawn(move || {
                let told = self.call(place, &number.to_string(), 0, &to);
                let is_back = self.back.lock().unwrap().is_some();
                if is_back && told == Told::Result {
                    good.store(true, Ordering::SeqCst);
                }
            });
            pause(PACE);
        }
    }
}

/// Reads an answer as an app would.
fn told(id: &str, answer: io::Result<Message>) -> Told {
    let message = match answer {
        Ok(message) => message,
        Err(error) => return Told::Other(format!("no answer: {error}")),
    };
    if message.error().is_some() {
        return Told::Other(message.0);
    }
    let text = message.text();
    match message.is_refusal() {
        false if text == id => Told::Result,
        true if text.contains("Outcome unknown") => Told::Unknown,
        true if text.contains("was not run") || text.contains("othing was run") => Told::NotRun,
        true if text.contains("safe to call it again") => Told::Repeatable,
        _ => Told::Other(message.0),
    }
}

impl Row {
    /// One cell, from all calls of one tool.
    fn judge(
        &mut self,
        fault: &Fault,
        tool: &str,
        wanted: &Told,
        made: &[&Made],
        seen: &Seen,
        runs: &Runs,
    ) {
        let ran = |id: &str| runs.get(id).copied().unwrap_or_default();
        let mut say = |text: String| self.offences.push(format!("{tool}: {text}"));
        for call in made {
            let Made { id, told, .. } = call;
            let count = ran(id);
            let most = if tool == "writes" { 1 } else { 4 };
            let is_true = match told {
                Told::Result => count >= 1,
                Told::NotRun => count == 0,
                Told::Unknown => tool == "writes",
                Told::Repeatable => tool != "writes",
                Told::Other(_) => false,
            };
            if count > most || !is_true {
                say(format!("{id} was run {count} times, and was answered: {told}"));
            }
        }
        let first = format!("{tool}-first");
        let Some(call) = made.iter().find(|call| call.id == first) else {
            return say("the call was never answered".into());
        };
        if call.told != *wanted {
            say(format!("was answered {:?} instead of {wanted:?}", call.told));
        }
        let after = |from: Instant, to: Instant| to.saturating_duration_since(from).as_millis();
        let noticed = seen.state.into_iter().chain([call.ended]).min().unwrap_or(call.ended);
        let detection = match fault.noticed {
            true => {
                if noticed > seen.struck + DETECTED {
                    say(format!("noticed after {} ms", after(seen.struck, noticed)));
                }
                format!("{} ms", after(seen.struck, noticed))
            }
            false => "–".to_owned(),
        };
        let good = made.iter().filter(|c| c.id != first && c.told == Told::Result);
        let good = good.map(|call| call.ended).filter(|ended| *ended >= seen.back).min();
        let recovery =
            good.map_or_else(|| "never".into(), |at| format!("{} ms", after(seen.back, at)));
        if good.is_none_or(|at| at > seen.back + RECOVERED) {
            say(format!("a good answer after {recovery}"));
        }
        let count = ran(&first);
        self.cells.push(format!("{}; ran {count} ×; {detection}; {recovery}", call.told));
    }
}
