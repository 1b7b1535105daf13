//! The table of names, for servers and tools of any name. `fuzz/` runs the same check on names
//! that a fuzzer makes up.

mod table;

use proptest::prelude::*;
use proptest::sample::select;

/// Names that come close to each other once they are cleaned, joined and shortened.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[ab._]{0,3}",
        2 => "[ab]__[ab._]{0,3}",
        1 => "a{58,70}",
        1 => select(vec!["search_tools", "call_tool", "é", "\0", "日本", "A", "a__a_", "-"])
            .prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn names_fit_are_unique_and_lead_back_whatever_the_order(
        pairs in proptest::collection::vec((name(), name()), 0..24),
        order in any::<u64>(),
    ) {
        table::check(&pairs, order);
    }

    /// Names that the manager itself makes up are taken by other servers, again and again.
    #[test]
    fn names_that_were_made_up_may_be_real_ones_too(
        pairs in proptest::collection::vec((name(), name()), 1..8),
        order in any::<u64>(),
    ) {
        let mut all = pairs;
        for round in 0..3 {
            let borrowed: Vec<_> = all.iter().map(|(s, t)| (s.as_str(), t.as_str())).collect();
            let made_up = mcpm_catalog::naming::expose(&borrowed);
            all.extend(made_up.into_iter().map(|name| (format!("taker {round}"), name)));
            table::check(&all, order);
        }
    }
}
