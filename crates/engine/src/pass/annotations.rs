//! The annotations by which users steer single objects, under our prefix or one of an earlier operator.

use kube::api::ObjectMeta;

/// Where the annotations are read: under our prefix first, then under those of earlier operators, which the job names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steering {
    older: &'static [&'static str],
}

impl Steering {
    /// Our prefix.
    pub const PREFIX: &'static str = "portolan.dev/";

    /// These prefixes count besides ours.
    pub const fn with(older: &'static [&'static str]) -> Self {
        Self { older }
    }

    /// Whether an annotation is one of these.
    pub fn is_one(self, annotation: &str) -> bool {
        self.prefixes().any(|prefix| annotation.starts_with(prefix))
    }

    /// `paused: "true"`: nothing happens to the object until it is taken away.
    pub fn is_paused(self, meta: &ObjectMeta) -> bool {
        self.is_true(meta, "paused")
    }

    /// `adopt: "true"`: a remote object that exists already becomes this one's.
    pub fn is_adopting(self, meta: &ObjectMeta) -> bool {
        self.is_true(meta, "adopt")
    }

    /// `force-delete: "true"`: the object may go though its remote part can no longer be reached.
    pub fn is_forced(self, meta: &ObjectMeta) -> bool {
        self.is_true(meta, "force-delete")
    }

    /// `deletion-policy: Orphan`: the remote part stays when the object goes.
    pub fn is_orphaning(self, meta: &ObjectMeta) -> bool {
        self.value(meta, "deletion-policy").is_some_and(|policy| policy.trim().eq_ignore_ascii_case("orphan"))
    }

    /// `release-deletions: DIGEST`: the held deletions that this digest names may go.
    pub fn released_deletions(self, meta: &ObjectMeta) -> Option<&str> {
        self.value(meta, "release-deletions").map(str::trim).filter(|digest| !digest.is_empty())
    }

    fn prefixes(self) -> impl Iterator<Item = &'static str> {
        std::iter::once(Self::PREFIX).chain(self.older.iter().copied())
    }

    fn value<'a>(self, meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
        let annotations = meta.annotations.as_ref()?;
        self.prefixes().find_map(|prefix| annotations.get(&format!("{prefix}{name}"))).map(String::as_str)
    }

    fn is_true(self, meta: &ObjectMeta, name: &str) -> bool {
        self.value(meta, name).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEERING: Steering = Steering::with(&["older.example.com/"]);

    fn annotated(pairs: &[(&str, &str)]) -> ObjectMeta {
        let annotations = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        ObjectMeta { annotations: Some(annotations), ..ObjectMeta::default() }
    }

    #[test]
    fn both_prefixes_steer_and_ours_wins() {
        assert!(STEERING.is_paused(&annotated(&[("portolan.dev/paused", "true")])));
        assert!(STEERING.is_adopting(&annotated(&[("older.example.com/adopt", "True")])));
        let both = annotated(&[("portolan.dev/adopt", "false"), ("older.example.com/adopt", "true")]);
        assert!(!STEERING.is_adopting(&both));
    }

    #[test]
    fn nothing_is_steered_by_other_values_or_other_prefixes() {
        assert!(!STEERING.is_paused(&ObjectMeta::default()));
        assert!(!STEERING.is_forced(&annotated(&[("portolan.dev/force-delete", "yes")])));
        assert!(!STEERING.is_orphaning(&annotated(&[("example.com/deletion-policy", "Orphan")])));
        assert!(!Steering::default().is_adopting(&annotated(&[("older.example.com/adopt", "true")])));
    }

    #[test]
    fn an_annotation_is_one_of_these_by_its_prefix() {
        assert!(STEERING.is_one("portolan.dev/anything") && STEERING.is_one("older.example.com/anything"));
        assert!(!STEERING.is_one("kubectl.kubernetes.io/restartedAt"));
    }

    #[test]
    fn policies_and_digests_are_read_without_their_spaces() {
        assert!(STEERING.is_orphaning(&annotated(&[("older.example.com/deletion-policy", " orphan ")])));
        assert_eq!(
            STEERING.released_deletions(&annotated(&[("portolan.dev/release-deletions", " ab12 ")])),
            Some("ab12")
        );
        assert_eq!(STEERING.released_deletions(&annotated(&[("portolan.dev/release-deletions", " ")])), None);
    }
}
