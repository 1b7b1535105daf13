//! Habits by hand, and on logs of apps of several kinds, beside simpler rules.

use mcpm_adaptive::{Habits, evaluate};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

fn pick(
    habits: &Habits<&'static str>,
    now: i64,
    cap: usize,
    shown: &[&'static str],
) -> Vec<&'static str> {
    habits.pick(now, cap, shown, |_| true)
}

#[test]
fn p43_a_tool_needs_a_second_use_and_leaves_when_out_of_use() {
    let mut habits = Habits::replay([("a", 0), ("b", MINUTE), ("a", 2 * MINUTE)]);
    assert_eq!(pick(&habits, 3 * MINUTE, 10, &[]), ["a"]);
    habits.note("b", 4 * MINUTE);
    assert_eq!(pick(&habits, 5 * MINUTE, 10, &["a"]), ["a", "b"], "new ones come last");
    for day in 1..60 {
        habits.note("b", day * DAY);
    }
    assert_eq!(pick(&habits, 60 * DAY, 10, &["a", "b"]), ["b"]);
    assert!(habits.pick(60 * DAY, 10, &[], |tool| *tool != "b").is_empty());
}

#[test]
fn p43_what_follows_what_is_learned() {
    let mut calls = Vec::new();
    for day in 0..10 {
        for (place, tool) in
            ["generate_image", "get_job", "read", "read", "read", "list"].into_iter().enumerate()
        {
            calls.push((tool, day * DAY + place as i64 * 20 * MINUTE));
        }
    }
    let mut habits = Habits::replay(calls);
    let score = |habits: &Habits<&'static str>, now| {
        habits.ranking(now).into_iter().find(|ranked| ranked.tool == "get_job").unwrap().score
    };
    assert_eq!(habits.ranking(10 * DAY)[0].tool, "read");
    habits.note("generate_image", 10 * DAY);
    let (soon, later) = (10 * DAY + MINUTE, 10 * DAY + HOUR);
    // After a pause nothing follows.
    assert!(score(&habits, soon) > score(&habits, later) + 0.2);
}

#[test]
fn p43_a_list_changes_only_for_what_is_clearly_better() {
    let even = |tools: &[&'static str], rounds: i64| {
        let mut calls = Vec::new();
        for round in 0..rounds {
            for (place, tool) in tools.iter().enumerate() {
                calls.push((*tool, (round * tools.len() as i64 + place as i64) * HOUR));
            }
        }
        Habits::replay(calls)
    };
    let habits = even(&["a", "b", "c", "d"], 5);
    let now = 20 * HOUR;
    let first = pick(&habits, now, 3, &[]);
    assert_eq!(pick(&habits, now, 3, &first), first);
    let (shown, smaller) = (["b", "a", "c"], pick(&habits, now, 2, &["b", "a", "c"]));
    assert_eq!(pick(&habits, now, 3, &shown), shown, "in the order in which it was shown");
    assert_eq!(smaller.len(), 2);
    assert!(pick(&habits, now, 0, &shown).is_empty());
}

#[test]
fn p31_what_was_learned_follows_a_rename() {
    let mut habits = Habits::replay([("a", 0), ("b", 1), ("a", 2), ("b", 3), ("a", 4)]);
    let before: Vec<_> = habits.ranking(5).into_iter().map(|r| (r.score, r.calls)).collect();
    habits.rename(&"a", &"x");
    let after = habits.ranking(5);
    assert!(after.iter().any(|r| r.tool == "x") && after.iter().all(|r| r.tool != "a"));
    let after: Vec<_> = after.into_iter().map(|r| (r.score, r.calls)).collect();
    assert_eq!(after, before);
}

#[test]
fn memory_is_bounded_and_time_may_jump() {
    let mut habits = Habits::default();
    for number in 0..5000i64 {
        habits.note(number % 1999, number * MINUTE);
    }
    assert!(habits.ranking(5000 * MINUTE).len() <= 500);
    for at in [i64::MAX, i64::MIN, 0, -1] {
        habits.note(1, at);
        let sound = |score: f64| (0.0..=1.0).contains(&score);
        assert!(habits.ranking(at).iter().all(|ranked| sound(ranked.score)));
    }
}

/// Pseudo-random numbers of 0–1, the same each time.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// 0..count, the small ones much oftener.
    fn skewed(&mut self, count: usize) -> usize {
        let power = self.next().powi(3);
        (power * count as f64) as usize
    }
}

type Log = Vec<(usize, i64)>;

/// Calls in bursts through working days; `next` says which tool, from the day and the last one.
fn log(days: i64, mut next: impl FnMut(&mut Dice, i64, Option<usize>) -> usize) -> Log {
    let (mut dice, mut log) = (Dice(7), Log::new());
    for day in 0..days {
        let mut at = day * DAY + 9 * HOUR;
        for _burst in 0..4 {
            let mut last = None;
            for _ in 0..6 {
                let tool = next(&mut dice, day, last);
                log.push((tool, at));
                last = Some(tool);
                at += 1 + (dice.next() * 3.0 * MINUTE as f64) as i64;
            }
            at += HOUR + (dice.next() * HOUR as f64) as i64;
        }
    }
    log
}

/// The same few tools, day after day.
fn steady() -> Log {
    log(40, |dice, _, _| dice.skewed(60))
}

/// Another set of tools each week.
fn projects() -> Log {
    log(40, |dice, day, _| {
        let base = (day / 7) as usize * 17;
        (base + dice.skewed(25)) % 120
    })
}

/// What comes next depends mostly on what was last.
fn chains() -> Log {
    log(40, |dice, _, last| match last {
        Some(last) if dice.next() < 0.8 => (last * 7 + 3) % 45,
        _ => dice.skewed(45),
    })
}

/// The share of calls listed by a rule that scores tools by their calls before.
fn by(log: &Log, cap: usize, score: impl Fn(&[i64], i64) -> f64) -> f64 {
    let mut calls: std::collections::BTreeMap<usize, Vec<i64>> = Default::default();
    let mut listed = 0;
    for (tool, at) in log {
        let mut all: Vec<_> = calls.iter().filter(|(_, calls)| calls.len() >= 2).collect();
        all.sort_by(|one, other| score(other.1, *at).total_cmp(&score(one.1, *at)));
        listed += usize::from(all.iter().take(cap).any(|(known, _)| *known == tool));
        calls.entry(*tool).or_default().push(*at);
    }
    listed as f64 / log.len() as f64
}

#[test]
#[expect(clippy::print_stdout, reason = "the table is what the README shows")]
fn p43_better_than_simpler_rules_over_all_kinds_of_log() {
    println!("| log | latest | most frequent | decayed | learned |\n|---|---:|---:|---:|---:|");
    let mut sums = [0.0; 4];
    for (name, log) in [("steady", steady()), ("projects", projects()), ("chains", chains())] {
        let latest = by(&log, 10, |calls, _| calls[calls.len() - 1] as f64);
        let frequent = by(&log, 10, |calls, _| calls.len() as f64);
        let decayed = by(&log, 10, |calls, now| {
            calls.iter().map(|at| (-((now - at) as f64) / (7 * DAY) as f64).exp2()).sum()
        });
        let hits = evaluate(&log, 10);
        let rates = [latest, frequent, decayed, hits.rate()];
        let [.., learned] = rates;
        println!("| {name} | {latest:.3} | {frequent:.3} | {decayed:.3} | {learned:.3} |");
        println!("{} lists differed from the one before, of {}", hits.changes, hits.calls);
        // Each simple rule is right for one kind of app; none is lost by much.
        let best = latest.max(frequent).max(decayed);
        assert!(learned > best - 0.06, "{name}: {rates:?}");
        for (sum, rate) in sums.iter_mut().zip(rates) {
            *sum += rate;
        }
        assert_eq!(evaluate(&log, 10), hits, "the same each time");
    }
    let [latest, frequent, decayed, learned] = sums.map(|sum| sum / 3.0);
    let best = latest.max(frequent).max(decayed);
    assert!(learned > best + 0.05, "{learned} against {latest}, {frequent}, {decayed}");
}
