//! Any bytes as an event stream, cut in any places; the first bytes say where.
#![no_main]

#[path = "../../src/protocol/tests/properties/events.rs"]
mod events;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (cuts, stream) = bytes.split_at(bytes.len().min(3));
    let cuts: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut) + 1).collect();
    events::check(stream, if cuts.is_empty() { &[1] } else { &cuts });
});
