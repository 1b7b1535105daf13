//! The fault matrix: what a server behind can suffer, against what kind of tool is called. Each
//! row is one server and one gateway; three apps call one tool each, and have a call under way
//! when the fault strikes, or make one right after. The server counts how often each call really
//! ran. `make faults` prints the table that the README shows.

mod processes;
mod relay;
mod row;
mod victims;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::processes::Blow;
use self::row::Row;
use crate::support::gateway::Gateway;

/// The tools that each server has, from harmless to harmful.
const TOOLS: [&str; 3] = ["reads", "repeats", "writes"];

/// Rows that run at the same time: each is a gateway, a server and many calls.
const BESIDE: usize = 4;

/// Call id → how often it was run.
type Runs = BTreeMap<String, usize>;

/// A server that is about to suffer.
trait Victim: Send + Sync {
    /// Its registration, under the name `server`.
    fn registration(&self) -> Value;

    fn runs(&self) -> Runs;

    fn strike(&mut self);

    /// Ends the fault; from the time that is returned on, the server could answer.
    fn heal(&mut self, gateway: &Gateway) -> Instant;

    /// Whether there is a time in which the server does not work.
    fn lasts(&self) -> bool {
        true
    }
}

/// What an app was told.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Told {
    /// The tool's own, right result.
    Result,
    /// An error that says that the tool was not run.
    NotRun,
    /// An error that says that the call may be repeated.
    Repeatable,
    /// An error that says that nobody knows whether it was run.
    Unknown,
    /// Anything else, or nothing.
    Other(String),
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Result => "result",
            Self::NotRun => "not run",
            Self::Repeatable => "no result, repeatable",
            Self::Unknown => "outcome unknown",
            Self::Other(other) => other,
        })
    }
}

/// When the calls of a row are made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// Each is running on the server when the fault strikes.
    Before,
    /// As soon as it has struck.
    After,
}

struct Fault {
    name: &'static str,
    when: When,
    /// Whether it is to be noticed; one that is not is only to be endured.
    noticed: bool,
    /// For how long at least, where it lasts.
    lasts: Duration,
    /// What the three apps are to be told.
    told: [Told; 3],
    victim: fn() -> Box<dyn Victim>,
}

const RERUN: [Told; 3] = [Told::Result, Told::Result, Told::Unknown];
const ALL_WELL: [Told; 3] = [Told::Result, Told::Result, Told::Result];
const NO_RERUN: [Told; 3] = [Told::Repeatable, Told::Repeatable, Told::Unknown];
const REFUSED: [Told; 3] = [Told::NotRun, Told::NotRun, Told::NotRun];

/// Just longer than the first pause between two attempts to connect.
const OUTAGE: Duration = Duration::from_millis(2100);

/// Just longer than the first two pauses; the third is a long one, unless apps call meanwhile.
const LONG: Duration = Duration::from_millis(6100);

const fn fault(
    name: &'static str,
    when: When,
    told: [Told; 3],
    victim: fn() -> Box<dyn Victim>,
) -> Fault {
    Fault { name, when, noticed: true, lasts: OUTAGE, told, victim }
}

fn faults() -> [Fault; 12] {
    use When::{After, Before};
    [
        fault("killed", Before, RERUN, || processes::http(Blow::Kill)),
        Fault {
            lasts: LONG,
            ..fault("killed, for longer", Before, RERUN, || processes::http(Blow::Kill))
        },
        fault("killed, local process", Before, RERUN, || processes::stdio(Blow::Kill)),
        fault("frozen", Before, ALL_WELL, || processes::http(Blow::Freeze)),
        fault("frozen, local process", Before, ALL_WELL, || processes::stdio(Blow::Freeze)),
        fault("half-open connections", Before, RERUN, victims::half_open),
        Fault { noticed: false, ..fault("slow", After, ALL_WELL, victims::slow) },
        fault("garbage", After, NO_RERUN, victims::garbage),
        fault("session lost", After, ALL_WELL, victims::session_lost),
        fault("credential refused", After, REFUSED, victims::unauthorised),
        fault("certificate expired", Before, RERUN, victims::tls_expired),
        fault("answer cut in the middle", After, RERUN, victims::cut),
    ]
}

#[test]
#[expect(clippy::print_stdout, reason = "the table is what `make faults` is for")]
fn each_fault_against_each_kind_of_tool() {
    let faults = faults();
    let next = Mutex::new(faults.iter().enumerate());
    let rows: Mutex<BTreeMap<usize, Row>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..BESIDE {
            scope.spawn(|| {
                loop {
                    let Some((place, fault)) = next.lock().unwrap().next() else { return };
                    let row = row::run(fault);
                    rows.lock().unwrap().insert(place, row);
                }
            });
        }
    });
    let rows = rows.into_inner().unwrap();
    println!("| fault | read-only tool | idempotent tool | write tool |\n|---|---|---|---|");
    for (fault, row) in faults.iter().zip(rows.values()) {
        println!("| {} | {} |", fault.name, row.cells.join(" | "));
    }
    let offences: Vec<_> = faults
        .iter()
        .zip(rows.values())
        .flat_map(|(fault, row)| row.offences.iter().map(|text| format!("{}: {text}", fault.name)))
        .collect();
    assert!(rows.len() == faults.len() && offences.is_empty(), "\n  {}", offences.join("\n  "));
}

/// Lets real time pass: here it is what the test is about.
fn pause(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::thread::park_timeout(until.saturating_duration_since(Instant::now()));
    }
}
