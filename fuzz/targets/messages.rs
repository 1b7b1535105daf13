//! Any bytes as a JSON-RPC message, against serde_json's own values.
#![no_main]

#[path = "../../src/protocol/tests/properties/message.rs"]
mod message;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| message::check(bytes));
