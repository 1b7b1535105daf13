//! The check of `Host`, for names of any form. `fuzz/` runs the same check on names that a
//! fuzzer makes up.

mod model;

use proptest::prelude::*;
use proptest::sample::select;

/// Names that are nearly right.
fn host() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        4 => select(vec![
            "localhost", "LOCALHOST", "localhost.", "a.localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]",
            "[0:0:0:0:0:0:0:1]", "[::FFFF:127.0.0.1]", "[fe80::1%25eth0]", "[fd00::1]", "[localhost]", "[::1",
            "my.lan", "MY.LAN", "mcp.lan", "bare", "evil.example", "10.0.0.1", "0.0.0.0", "", ".", "[]",
            "localhost.evil.example", "evil.example#localhost", "localhost@evil.example", "127.0.0.1.",
        ])
        .prop_map(str::to_owned),
        1 => "[a-z0-9.:@\\[\\]%_-]{0,20}",
        1 => "[ -~]{0,12}",
    ];
    let port = prop_oneof![
        3 => Just(String::new()),
        3 => select(vec![":8899", ":1", ":", ":*", ":x", ":80:80", ":-1", ":08899", ": 1"]).prop_map(str::to_owned),
        1 => "[:0-9*a]{0,4}",
    ];
    (name, port).prop_map(|(name, port)| name + &port)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn hosts_pass_where_the_model_lets_them_pass(host in host()) {
        model::check(host.as_bytes());
    }

    #[test]
    fn any_bytes_get_a_verdict(host in proptest::collection::vec(any::<u8>(), 0..24)) {
        model::check(&host);
    }
}
