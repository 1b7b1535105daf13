//! Any bytes as the name that a request was sent to.
#![no_main]

#[path = "../../filters/tests/hosts/model.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| model::check(bytes));
