use proptest::prelude::*;

use super::*;

fn mark(kind: &str, key: ObjectKey) -> Mark {
    Mark { kind: kind.to_owned(), key, owner: OwnerId::parse("1a2b3c4d").unwrap(), adopted: false }
}

fn www() -> Mark {
    mark("DNSRecord", ObjectKey::namespaced("shop", "www"))
}

fn ours() -> Claim {
    Claim::Ours { adopted: false }
}

fn foreign(text: &str) -> Claim {
    Claim::Foreign(text.to_owned())
}

#[test]
fn the_mark_comes_before_the_users_text() {
    assert_eq!(www().write("shop front", 100), "[managed:DNSRecord/shop/www#1a2b3c4d] shop front");
    assert_eq!(www().write("", 100), "[managed:DNSRecord/shop/www#1a2b3c4d]");
    let network = mark("VirtualNetwork", ObjectKey::cluster("corp"));
    assert_eq!(network.write("office", 256), "[managed:VirtualNetwork/corp#1a2b3c4d] office");
}

#[test]
fn the_users_text_is_cut_and_the_mark_is_not() {
    let written = www().write(&"ü".repeat(100), 100);

    assert_eq!(written.chars().count(), 100);
    assert_eq!(www().claim(&written), ours());
    assert_eq!(user_text(&written), "ü".repeat(62));
}

#[test]
fn blanks_that_an_api_would_cut_are_not_written() {
    let text = format!("  {} {}", "x".repeat(61), "y".repeat(30));

    assert_eq!(www().write(&text, 100), format!("[managed:DNSRecord/shop/www#1a2b3c4d] {}", "x".repeat(61)));
    assert_eq!(www().write("   ", 100), "[managed:DNSRecord/shop/www#1a2b3c4d]");
}

#[test]
fn long_names_are_written_as_their_hash_and_recognised() {
    let long = mark("DNSRecord", ObjectKey::namespaced("a".repeat(63), "b".repeat(200)));
    let other = mark("DNSRecord", ObjectKey::namespaced("a".repeat(63), "c".repeat(200)));

    let written = long.write("hello", 100);

    assert_eq!(written, "[managed:DNSRecord/~92a83dbcc4e5b9c2#1a2b3c4d] hello");
    assert_eq!(long.claim(&written), ours());
    assert!(matches!(other.claim(&written), Claim::Foreign(_)));
}

#[test]
fn a_name_written_in_full_is_recognised_where_the_hash_would_be_written_now() {
    let full = www().write("", 256);

    assert_eq!(www().write("", 40), "[managed:DNSRecord/~47ff47f076f0cc13#1a2b3c4d]");
    assert_eq!(www().claim(&full), ours());
}

#[test]
fn an_adopted_object_is_still_known_as_adopted() {
    let adopted = Mark { adopted: true, ..www() };

    let written = adopted.write("theirs", 100);

    assert_eq!(written, "[managed:DNSRecord/shop/www#1a2b3c4d+adopted] theirs");
    assert_eq!(www().claim(&written), Claim::Ours { adopted: true });
    assert_eq!(user_text(&written), "theirs");
}

#[test]
fn marks_of_older_operators_are_ours_when_they_name_the_object() {
    for text in [
        "[managed:DNSRecord/shop/www]",
        "[managed:DNSRecord/shop/www] hi",
        "[managed-by:DNSRecord/shop/www] hi",
        "hi [managed:DNSRecord/shop/www]",
        "[managed-by:DNSRecord/shop/www#1a2b3c4d]",
    ] {
        assert_eq!(www().claim(text), ours(), "{text}");
    }
    assert_eq!(mark("VirtualNetwork", ObjectKey::cluster("corp")).claim("[managed:VirtualNetwork/corp]"), ours());
}

#[test]
fn another_object_or_another_installation_is_foreign() {
    for inside in [
        "DNSRecord/shop/api",
        "DNSRecord/other/www#1a2b3c4d",
        "DNSRecord/shop/www#deadbeef",
        "DNSRecord/shop/www#",
        "DNSRecord/www",
        "VirtualNetwork/shop/www#1a2b3c4d",
    ] {
        assert_eq!(www().claim(&format!("[managed:{inside}] x")), foreign(inside), "{inside}");
        assert_eq!(www().claim(&format!("x [managed-by:{inside}]")), foreign(inside), "{inside}");
    }
}

#[test]
fn two_or_three_parts_are_a_mark_and_anything_else_is_none() {
    assert_eq!(www().claim("[managed:A/b]"), foreign("A/b"));
    assert_eq!(www().claim("[managed:A/b/c] hi"), foreign("A/b/c"));
    for text in
        ["[managed:A]", "[managed:A/b/c/d]", "x [managed:A/b", "", "managed:A/b]", "[managed:/b]", "[managed:A/]"]
    {
        assert_eq!(www().claim(text), Claim::Unmarked, "{text}");
    }
}

#[test]
fn only_the_first_mark_counts_so_that_a_user_cannot_forge_one() {
    let written = www().write("[managed:DNSRecord/shop/api#1a2b3c4d]", 256);

    assert_eq!(www().claim(&written), ours());
    assert_eq!(www().claim("[managed-by:A/b] [managed:DNSRecord/shop/www]"), foreign("A/b"));
    assert_eq!(www().claim("[managed:A/b] [managed-by:DNSRecord/shop/www]"), foreign("A/b"));
}

#[test]
fn the_users_text_is_what_is_not_the_mark() {
    assert_eq!(user_text("plain [text]"), "plain [text]");
    assert_eq!(user_text("[managed:A/b] hello"), "hello");
    assert_eq!(user_text("hello [managed:A/b]"), "hello");
    assert_eq!(user_text("[managed:A] hello"), "[managed:A] hello");
}

prop_compose! {
    fn any_mark()(
        kind in "[A-Z][A-Za-z]{0,25}",
        namespace in proptest::option::of("[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?"),
        name in "[a-z0-9]([a-z0-9.-]{0,80}[a-z0-9])?",
        owner in "[0-9a-f]{8}",
        adopted in any::<bool>(),
    ) -> Mark {
        Mark { kind, key: ObjectKey { namespace, name }, owner: OwnerId::parse(&owner).unwrap(), adopted }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_claimed_and_fits(mark in any_mark(), user in "\\PC{0,150}", cap in 100usize..500) {
        let written = mark.write(&user, cap);

        prop_assert_eq!(mark.claim(&written), Claim::Ours { adopted: mark.adopted });
        prop_assert!(written.chars().count() <= cap);
        prop_assert!(user.trim().starts_with(user_text(&written)));
    }

    #[test]
    fn writing_again_what_was_read_changes_nothing(mark in any_mark(), user in "\\PC{0,150}", cap in 100usize..500) {
        let written = mark.write(&user, cap);

        prop_assert_eq!(mark.write(user_text(&written), cap), written);
    }

    #[test]
    fn nobody_else_claims_it(mark in any_mark(), other in any_mark(), user in "\\PC{0,50}", cap in 100usize..500) {
        prop_assume!((&mark.kind, &mark.key, &mark.owner) != (&other.kind, &other.key, &other.owner));

        prop_assert!(matches!(other.claim(&mark.write(&user, cap)), Claim::Foreign(_)));
    }

    #[test]
    fn any_text_can_be_read(text in "(\\PC|\\[managed:|\\[managed-by:|/|#|\\]){0,30}") {
        let _ = (www().claim(&text), user_text(&text));
    }
}

#[test]
fn what_a_mark_owns_is_found_by_its_name_and_by_its_names_hash() {
    let mark = mark("DNSRecord", ObjectKey::namespaced("web", "x".repeat(80)));
    let plain = mark.write("", 500);
    let hashed = mark.write("", 100);

    assert_ne!(plain, hashed);
    for text in [plain.as_str(), hashed.as_str()] {
        assert!(mark.owner_keys().iter().any(|key| Some(key.as_str()) == owner_key(text)), "{text}");
    }
    assert_eq!(owner_key("no mark"), None);
}
