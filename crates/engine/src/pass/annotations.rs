//! The annotations by which users steer single objects, under our prefix or the older operator's.

use kube::api::ObjectMeta;

/// Prefixes under which the annotations are read; ours comes first.
const PREFIXES: [&str; 2] = ["portolan.dev/", "cloudflare-operator.io/"];

/// The value of a steering annotation.
fn steering<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    let annotations = meta.annotations.as_ref()?;
    PREFIXES.iter().find_map(|prefix| annotations.get(&format!("{prefix}{name}"))).map(String::as_str)
}

fn is_true(meta: &ObjectMeta, name: &str) -> bool {
    steering(meta, name).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

/// `paused: "true"`: nothing happens to the object until it is taken away.
pub fn is_paused(meta: &ObjectMeta) -> bool {
    is_true(meta, "paused")
}

/// `adopt: "true"`: a remote object that exists already becomes this one's.
pub fn is_adopting(meta: &ObjectMeta) -> bool {
    is_true(meta, "adopt")
}

/// `force-delete: "true"`: the object may go though its remote part can no longer be reached.
pub fn is_forced(meta: &ObjectMeta) -> bool {
    is_true(meta, "force-delete")
}

/// `deletion-policy: Orphan`: the remote part stays when the object goes.
pub fn is_orphaning(meta: &ObjectMeta) -> bool {
    steering(meta, "deletion-policy").is_some_and(|policy| policy.trim().eq_ignore_ascii_case("orphan"))
}

/// `release-deletions: DIGEST`: the held deletions that this digest names may go.
pub fn released_deletions(meta: &ObjectMeta) -> Option<&str> {
    steering(meta, "release-deletions").map(str::trim).filter(|digest| !digest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotated(pairs: &[(&str, &str)]) -> ObjectMeta {
        let annotations = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        ObjectMeta { annotations: Some(annotations), ..ObjectMeta::default() }
    }

    #[test]
    fn both_prefixes_steer_and_ours_wins() {
        assert!(is_paused(&annotated(&[("portolan.dev/paused", "true")])));
        assert!(is_adopting(&annotated(&[("cloudflare-operator.io/adopt", "True")])));
        let both = annotated(&[("portolan.dev/adopt", "false"), ("cloudflare-operator.io/adopt", "true")]);
        assert!(!is_adopting(&both));
    }

    #[test]
    fn nothing_is_steered_by_other_values_or_other_prefixes() {
        assert!(!is_paused(&ObjectMeta::default()));
        assert!(!is_forced(&annotated(&[("portolan.dev/force-delete", "yes")])));
        assert!(!is_orphaning(&annotated(&[("example.com/deletion-policy", "Orphan")])));
    }

    #[test]
    fn policies_and_digests_are_read_without_their_spaces() {
        assert!(is_orphaning(&annotated(&[("cloudflare-operator.io/deletion-policy", " orphan ")])));
        assert_eq!(released_deletions(&annotated(&[("portolan.dev/release-deletions", " ab12 ")])), Some("ab12"));
        assert_eq!(released_deletions(&annotated(&[("portolan.dev/release-deletions", " ")])), None);
    }
}
