//! What names become, by example and by property.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{acceptable, expose};

fn check(pairs: &[(&str, &str)], expect: &[&str]) {
    assert_eq!(expose(pairs), expect);
}

#[test]
fn unique_names_pass_unchanged() {
    check(&[("a", "read"), ("b", "write-file")], &["read", "write-file"]);
}

#[test]
fn cat_10_shared_names_are_qualified_for_every_holder() {
    check(
        &[("Image Generator", "server_status"), ("b", "server_status"), ("b", "x")],
        &["Image_Generator__server_status", "b__server_status", "x"],
    );
}

#[test]
fn cat_07_separator_ambiguity_gets_tails() {
    let names = expose(&[("my__srv", "x"), ("my", "srv__x"), ("o", "x"), ("p", "srv__x")]);
    assert!(names[0].starts_with("my__srv__x_") && names[1].starts_with("my__srv__x_"));
    assert_ne!(names[0], names[1]);
    assert_eq!(&names[2..], ["o__x", "p__srv__x"]);
}

#[test]
fn cat_04_odd_names_become_acceptable() {
    let long = "a".repeat(70);
    let tools = [long.as_str(), "a.b", "a:b", "a/b", "a b", "", "🎉"];
    let pairs: Vec<_> = tools.iter().map(|tool| ("s", *tool)).collect();
    let names = expose(&pairs);
    assert!(names.iter().all(|name| acceptable(name)), "{names:?}");
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn a_foreseen_tail_is_not_shared() {
    let long = "a".repeat(70);
    let tail = expose(&[("s", long.as_str())]).remove(0);
    let names = expose(&[("s", long.as_str()), ("t", tail.as_str())]);
    assert_eq!(names[1], tail);
    assert_ne!(names[0], names[1]);
}

#[test]
fn reserved_names_are_renamed() {
    check(&[("s", "search_tools")], &["s__search_tools"]);
}

#[test]
fn a_made_up_name_yields_to_a_real_one() {
    let names = expose(&[("a", "x"), ("b", "x"), ("c", "a__x")]);
    assert_eq!((names[1].as_str(), names[2].as_str()), ("b__x", "a__x"));
    assert!(names[0].starts_with("a__x_"));
}

proptest! {
    #[test]
    fn unique_acceptable_and_independent_of_order(
        pairs in proptest::collection::btree_set(("[a-c._]{1,3}", "[a-c._ ]{0,4}|a{60,70}"), 1..24),
        seed in any::<u64>(),
    ) {
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(s, t)| (s.as_str(), t.as_str())).collect();
        let names = expose(&pairs);
        prop_assert!(names.iter().all(|name| acceptable(name)));
        prop_assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        order.sort_by_key(|i| seed.rotate_left(*i as u32 * 7) ^ (*i as u64).wrapping_mul(0x9E37_79B9));
        let shuffled: Vec<_> = order.iter().map(|i| pairs[*i]).collect();
        let again = expose(&shuffled);
        for (place, original) in order.iter().enumerate() {
            prop_assert_eq!(&again[place], &names[*original]);
        }
    }
}
