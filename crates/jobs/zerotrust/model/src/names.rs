//! Names and labels of what is made for a route: short enough, and never the same for two routes.
//!
//! The plain name `cfzt-{namespace}-{name}` is ambiguous: (`a-b`, `c`) and (`a`, `b-c`) share it. It is kept, since users
//! know it, wherever no other route has it; else the name carries a hash of the route.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use portolan_core::ObjectKey;
use sha2::{Digest, Sha256};

/// Characters in the name of an object.
const LONGEST_NAME: usize = 253;
/// Characters in the value of a label.
const LONGEST_LABEL: usize = 63;

/// The two names that an object for a route may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteObjectNames {
    /// The plain one; none where it would be too long.
    pub plain: Option<String>,
    /// The one with a hash.
    pub hashed: String,
}

impl RouteObjectNames {
    /// Names of a route's state, and of its task.
    pub fn of_route(route: &ObjectKey) -> Self {
        Self::with("cfzt-", route)
    }

    /// Names of the task that takes down what stands for a route.
    pub fn of_deletion(route: &ObjectKey) -> Self {
        Self::with("cfzt-delete-", route)
    }

    fn with(prefix: &str, route: &ObjectKey) -> Self {
        let namespace = route.namespace.as_deref().unwrap_or_default();
        let plain = format!("{prefix}{namespace}-{}", route.name);
        let hashed = hashed(&plain, &route.to_string(), LONGEST_NAME);
        Self { plain: Some(plain).filter(|plain| plain.len() <= LONGEST_NAME), hashed }
    }

    /// The name to use. `user` tells whether an object of that name exists, and whether it is this route's.
    pub fn choose(&self, user: impl Fn(&str) -> User) -> &str {
        let plain = self.plain.as_deref().map(|plain| (plain, user(plain)));
        match (plain, user(&self.hashed)) {
            (Some((plain, User::Ours)), _) | (Some((plain, User::Nobody)), User::Nobody | User::Other) => plain,
            (Some((_, User::Nobody | User::Other)) | None, _) => &self.hashed,
        }
    }

    /// Both names, the plain one first.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.plain.as_deref().into_iter().chain([self.hashed.as_str()])
    }
}

/// Whose an object of some name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// There is none.
    Nobody,
    /// It is this route's.
    Ours,
    /// It is another route's.
    Other,
}

/// Name of the Secret with a route's token credentials, in the route's namespace.
pub fn token_secret(route: &ObjectKey) -> String {
    const SUFFIX: &str = "-cfzt-service-token";
    let plain = format!("{}{SUFFIX}", route.name);
    if plain.len() <= LONGEST_NAME {
        return plain;
    }
    let room = LONGEST_NAME - SUFFIX.len();
    format!("{}{SUFFIX}", hashed(&route.name, &route.to_string(), room))
}

/// Name of the Secret in which new credentials are handed over, beside the task.
pub fn handover_secret(task: &str) -> String {
    const SUFFIX: &str = "-credentials";
    let plain = format!("{task}{SUFFIX}");
    if plain.len() <= LONGEST_NAME {
        plain
    } else {
        format!("{}{SUFFIX}", hashed(task, task, LONGEST_NAME - SUFFIX.len()))
    }
}

/// A text as the value of a label: as it is where it fits, else shortened and with a hash. Only an index, not the truth.
pub fn label(text: &str) -> String {
    if text.len() <= LONGEST_LABEL { text.to_owned() } else { hashed(text, text, LONGEST_LABEL) }
}

/// The beginning of a text, a hyphen, and a hash of what it stands for: `longest` characters at most.
fn hashed(text: &str, identity: &str, longest: usize) -> String {
    let hash = &digest(identity)[..8];
    let room = longest - hash.len() - 1;
    let beginning: String = text.chars().take(room).collect();
    format!("{}-{hash}", beginning.trim_end_matches(['-', '.', '_']))
}

/// SHA-256 of a text, in hexadecimal digits.
pub(crate) fn digest(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("a String takes everything");
        digits
    })
}

/// Keys as one text.
pub fn joined<'a>(keys: impl IntoIterator<Item = &'a ObjectKey>) -> String {
    keys.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The keys that [`joined`] made one text of; what is none is passed over.
pub fn keys(text: &str) -> BTreeSet<ObjectKey> {
    let parts = text.split(',').filter_map(|part| part.trim().split_once('/'));
    parts.map(|(namespace, name)| ObjectKey::namespaced(namespace, name)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::namespaced(namespace, name)
    }

    #[test]
    fn names_are_those_that_users_know() {
        let route = key("default", "simple-app");

        assert_eq!(RouteObjectNames::of_route(&route).plain.as_deref(), Some("cfzt-default-simple-app"));
        assert_eq!(RouteObjectNames::of_deletion(&route).plain.as_deref(), Some("cfzt-delete-default-simple-app"));
        assert_eq!(token_secret(&route), "simple-app-cfzt-service-token");
        assert_eq!(label("simple-app"), "simple-app");
    }

    #[test]
    fn scenario_31_two_routes_with_one_plain_name_have_two_names() {
        let (first, second) =
            (RouteObjectNames::of_route(&key("a-b", "c")), RouteObjectNames::of_route(&key("a", "b-c")));
        assert_eq!(first.plain, second.plain);

        let chosen_first = first.choose(|_| User::Nobody).to_owned();
        let chosen_second = second.choose(|name| if name == chosen_first { User::Other } else { User::Nobody });

        assert_eq!(chosen_first, "cfzt-a-b-c");
        assert_ne!(chosen_second, chosen_first);
        assert!(chosen_second.starts_with("cfzt-a-b-c-"));
    }

    #[test]
    fn scenario_31_a_route_in_namespace_delete_is_not_taken_for_a_deletion() {
        let (route, deletion) =
            (RouteObjectNames::of_route(&key("delete", "a-b")), RouteObjectNames::of_deletion(&key("a", "b")));

        assert_eq!(route.plain, deletion.plain);
        assert_ne!(route.hashed, deletion.hashed);
    }

    #[test]
    fn an_object_that_exists_keeps_its_name() {
        let names = RouteObjectNames::of_route(&key("a", "b-c"));
        let hashed = |name: &str| if name == names.hashed { User::Ours } else { User::Nobody };

        assert_eq!(names.choose(hashed), names.hashed);
        assert_eq!(names.choose(|_| User::Ours), "cfzt-a-b-c");
        assert_eq!(names.choose(|_| User::Other), names.hashed);
    }

    #[test]
    fn scenario_32_a_route_with_the_longest_name_has_valid_names_and_labels() {
        let route = key(&"n".repeat(63), &"r".repeat(253));
        let names = RouteObjectNames::of_route(&route);

        assert_eq!((names.plain.as_ref(), names.hashed.len()), (None, 253));
        assert_eq!(token_secret(&route).len(), 253);
        assert!(token_secret(&route).ends_with("-cfzt-service-token"));
        assert_eq!(label(&route.name).len(), 63);
        assert_eq!(handover_secret(&names.hashed).len(), 253);
    }

    fn valid(name: &str, longest: usize) -> bool {
        let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        name.len() <= longest && name.chars().all(inside) && edge(name.chars().next()) && edge(name.chars().last())
    }

    proptest! {
        #[test]
        fn all_names_are_valid(namespace in "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name in "[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?") {
            let route = key(&namespace, &name);
            for names in [RouteObjectNames::of_route(&route), RouteObjectNames::of_deletion(&route)] {
                for name in names.all() {
                    prop_assert!(valid(name, 253), "{name}");
                    prop_assert!(valid(&handover_secret(name), 253));
                }
            }
            prop_assert!(valid(&token_secret(&route), 253));
            prop_assert!(valid(&label(&name), 63));
        }

        #[test]
        fn different_routes_have_different_hashed_names(a in "[a-z]{1,3}-[a-z]{1,3}", b in "[a-z]{1,3}", c in "[a-z]{1,3}", d in "[a-z]{1,3}-[a-z]{1,3}") {
            let (first, second) = (key(&a, &b), key(&c, &d));

            prop_assert_eq!(RouteObjectNames::of_route(&first).hashed == RouteObjectNames::of_route(&second).hashed, first == second);
        }
    }
}
