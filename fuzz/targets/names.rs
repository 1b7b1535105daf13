//! Any names of servers and tools: lines of text, taken in pairs; the first bytes are the order.
#![no_main]

extern crate mcpm_protocol as protocol;

#[path = "../../src/catalog/tests/names/table.rs"]
mod table;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((order, names)) = bytes.split_first_chunk() else { return };
    let names = String::from_utf8_lossy(names);
    let lines: Vec<&str> = names.split('\n').collect();
    let pairs: Vec<_> =
        lines.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect();
    table::check(&pairs, u64::from_be_bytes(*order));
});
