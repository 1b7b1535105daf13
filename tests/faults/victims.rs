//! Servers in the test's own process, and what befalls them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::relay::Relay;
use super::{Runs, Victim, pause};
use crate::support::gateway::Gateway;
use crate::support::odd::{Action, Answer, Odd, Request, State};
use crate::support::tls::Authority;

const TOOLS: [&str; 3] = [
    r#"{"name":"reads","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#,
    r#"{"name":"repeats","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"idempotentHint":true}}"#,
    r#"{"name":"writes","inputSchema":{"type":"object"}}"#,
];

/// How many calls of each id were really run.
type Ledger = Arc<Mutex<Runs>>;

/// What a plain server answers, and the how-manieth run of its id it was: 0 for what is no call,
/// or was not run.
fn run(request: &Request, state: &State, ledger: &Ledger) -> (Answer, usize) {
    let usual = state.usual(request);
    if request.tool().is_none() || usual.status != 200 {
        return (usual, 0);
    }
    let id = request.arguments()["id"].as_str().unwrap();
    let mut runs = ledger.lock().unwrap();
    let count = runs.entry(id.to_owned()).or_default();
    *count += 1;
    (Answer::text(request, id), *count)
}

/// How long the first run of an id lasts.
fn held(request: &Request, run: usize) -> Duration {
    let wanted = request.arguments()["hold_ms"].as_u64().filter(|_| run == 1);
    Duration::from_millis(wanted.unwrap_or_default())
}

/// The answer after that time, unless the other side goes first.
fn answer_after(answer: Answer, time: Duration) -> Action {
    if time.is_zero() {
        return answer.into();
    }
    let until = Instant::now() + time;
    Action::talk(move |wire| {
        if !wire.until(|| Instant::now() >= until) {
            return false;
        }
        wire.answer(&answer);
        true
    })
}

/// A server with a fault that can be turned on and off.
struct Switched {
    odd: Odd,
    ledger: Ledger,
    on: Arc<AtomicBool>,
}

impl Switched {
    /// `act` is asked while the fault is on, with what a plain server would answer and the run.
    fn new(act: impl Fn(&Request, Answer, usize) -> Action + Send + Sync + 'static) -> Self {
        let (ledger, on) = (Ledger::default(), Arc::new(AtomicBool::new(false)));
        let (runs, is_on) = (Arc::clone(&ledger), Arc::clone(&on));
        let odd = Odd::of(&TOOLS)
            .script(move |request, state| {
                let (answer, run) = run(request, state, &runs);
                match is_on.load(Ordering::SeqCst) {
                    true => act(request, answer, run),
                    false => answer.into(),
                }
            })
            .start();
        Self { odd, ledger, on }
    }

    fn boxed(self) -> Box<dyn Victim> {
        Box::new(self)
    }
}

impl Victim for Switched {
    fn registration(&self) -> Value {
        self.odd.registration("server")
    }

    fn runs(&self) -> Runs {
        self.ledger.lock().unwrap().clone()
    }

    fn strike(&mut self) {
        self.on.store(true, Ordering::SeqCst);
    }

    fn heal(&mut self, _: &Gateway) -> Instant {
        self.on.store(false, Ordering::SeqCst);
        Instant::now()
    }
}

/// Every answer, also to a ping, begins after a second and a half and then comes byte by byte.
pub(crate) fn slow() -> Box<dyn Victim> {
    Switched::new(|request, answer, _| {
        if request.method != "POST" || answer.body.is_empty() {
            return answer.into();
        }
        Action::talk(move |wire| {
            pause(Duration::from_millis(1500));
            let kept: Vec<_> = answer.headers.clone();
            let kind = "application/json";
            let kept: Vec<_> = kept.into_iter().filter(|(_, value)| value != kind).collect();
            wire.head(answer.status, kind, &kept);
            for byte in &answer.body {
                wire.chunk(&[*byte]);
                pause(Duration::from_millis(20));
            }
            wire.end();
            true
        })
    })
    .boxed()
}

/// Calls are run and answered with a page, all else with bytes that mean nothing.
pub(crate) fn garbage() -> Box<dyn Victim> {
    Switched::new(|_, _, run| {
        let answer = Answer::empty(200);
        if run > 0 {
            let body = b"<!doctype html><title>One moment</title>".to_vec();
            return Answer { body, ..answer }.with_header("Content-Type", "text/html").into();
        }
        let body = (0..200_u8).map(|n| n.wrapping_mul(167).wrapping_add(13)).collect();
        Answer { body, ..answer }.with_header("Content-Type", "application/json").into()
    })
    .boxed()
}

/// The first run of each id is answered with half an answer, and the end of the connection.
pub(crate) fn cut() -> Box<dyn Victim> {
    Switched::new(|_, answer, run| {
        if run != 1 {
            return answer.into();
        }
        Action::talk(move |wire| {
            let length = answer.body.len();
            let head = format!(
                "HTTP/1.1 200 Odd\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
            );
            wire.write(head.as_bytes());
            wire.write(&answer.body[..length / 2]);
            false
        })
    })
    .boxed()
}

/// Behind a relay whose connections can be left half open.
struct HalfOpen {
    relay: Relay,
    odd: Odd,
    ledger: Ledger,
}

pub(crate) fn half_open() -> Box<dyn Victim> {
    let ledger = Ledger::default();
    let runs = Arc::clone(&ledger);
    let odd = Odd::of(&TOOLS)
        .script(move |request, state| {
            let (answer, run) = run(request, state, &runs);
            answer_after(answer, held(request, run))
        })
        .start();
    Box::new(HalfOpen { relay: Relay::to(odd.address), odd, ledger })
}

impl Victim for HalfOpen {
    fn registration(&self) -> Value {
        let url = self
            .odd
            .url("/mcp")
            .replace(&self.odd.address.to_string(), &self.relay.address.to_string());
        // The connection gives no sign, so this alone ends the wait of what may not run twice.
        json!({"name": "server", "url": url, "call_timeout_ms": 10_000})
    }

    fn runs(&self) -> Runs {
        self.ledger.lock().unwrap().clone()
    }

    fn strike(&mut self) {
        self.relay.cut();
    }

    fn heal(&mut self, _: &Gateway) -> Instant {
        self.relay.mend();
        Instant::now()
    }
}

/// Forgets its sessions, and nothing else.
struct Forgetful(Switched);

pub(crate) fn session_lost() -> Box<dyn Victim> {
    Box::new(Forgetful(Switched::new(|_, answer, _| answer.into())))
}

impl Victim for Forgetful {
    fn registration(&self) -> Value {
        self.0.registration()
    }

    fn runs(&self) -> Runs {
        self.0.runs()
    }

    fn strike(&mut self) {
        self.0.odd.forget_sessions();
    }

    fn heal(&mut self, gateway: &Gateway) -> Instant {
        self.0.heal(gateway)
    }

    fn lasts(&self) -> bool {
        false
    }
}

/// Takes one credential only, which changes; the operator enters the new one some time later.
struct Locked {
    odd: Odd,
    ledger: Ledger,
    changed: Arc<AtomicBool>,
}

pub(crate) fn unauthorised() -> Box<dyn Victim> {
    let (ledger, changed) = (Ledger::default(), Arc::new(AtomicBool::new(false)));
    let (runs, is_changed) = (Arc::clone(&ledger), Arc::clone(&changed));
    let odd = Odd::of(&TOOLS)
        .script(move |request, state| {
            let wanted =
                if is_changed.load(Ordering::SeqCst) { "Bearer new" } else { "Bearer old" };
            match request.header("authorization") == Some(wanted) {
                true => run(request, state, &runs).0.into(),
                false => Answer::empty(401).into(),
            }
        })
        .start();
    Box::new(Locked { odd, ledger, changed })
}

impl Victim for Locked {
    fn registration(&self) -> Value {
        let mut registration = self.odd.registration("server");
        registration["headers"] = json!({"Authorization": "Bearer old"});
        registration
    }

    fn runs(&self) -> Runs {
        self.ledger.lock().unwrap().clone()
    }

    fn strike(&mut self) {
        self.changed.store(true, Ordering::SeqCst);
    }

    fn heal(&mut self, gateway: &Gateway) -> Instant {
        let since = Instant::now();
        let headers = json!({"headers": {"Authorization": "Bearer new"}});
        gateway.api("PATCH", "/upstreams/server", &headers);
        since
    }
}

/// An https server whose certificate ends.
struct Expiring {
    odd: Odd,
    ledger: Ledger,
    authority: Authority,
    folder: tempfile::TempDir,
}

pub(crate) fn tls_expired() -> Box<dyn Victim> {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.pem"), &authority.pem).unwrap();
    let ledger = Ledger::default();
    let runs = Arc::clone(&ledger);
    let odd = Odd::of(&TOOLS)
        .tls(authority.certify("localhost", 2999))
        .script(move |request, state| {
            let (answer, run) = run(request, state, &runs);
            answer_after(answer, held(request, run))
        })
        .start();
    Box::new(Expiring { odd, ledger, authority, folder })
}

impl Victim for Expiring {
    fn registration(&self) -> Value {
        let url = format!("https://localhost:{}/mcp", self.odd.address.port());
        json!({"name": "server", "url": url, "ca_file": self.folder.path().join("ca.pem")})
    }

    fn runs(&self) -> Runs {
        self.ledger.lock().unwrap().clone()
    }

    fn strike(&mut self) {
        self.odd.set_tls(self.authority.certify("localhost", 2020));
        self.odd.close_connections();
    }

    fn heal(&mut self, _: &Gateway) -> Instant {
        self.odd.set_tls(self.authority.certify("localhost", 2999));
        Instant::now()
    }
}
