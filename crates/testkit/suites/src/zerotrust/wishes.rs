//! Which names must be protected, moment by moment: from what their users wished, and from what was seen since.
//!
//! A name that was never public must be protected before it is published. One that its users had public before may
//! stay so until the first protection for it stands: from then on it must never be without. Deleting ends no duty:
//! it goes with the last rule and record.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What its users wish for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameWish {
    /// Published for those whom a policy lets in.
    Protected,
    /// Published, but nobody is let in: an application without a policy is enough.
    Closed,
    /// Published for everybody.
    Public,
    /// Not published any more.
    Gone,
}

/// What is known of something that stands at Cloudflare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownObject {
    /// It is so.
    Yes,
    /// It is not so.
    No,
    /// An answer was lost.
    Perhaps,
}

/// A name at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Whether a rule or a record stands for it.
    pub published: KnownObject,
    /// Whether an application stands for it.
    pub app: KnownObject,
    /// Whether that application has a policy.
    pub policy: KnownObject,
    /// Whether this very moment wrote an application for it.
    pub just_written: bool,
    /// Whether this very moment wrote a rule or a record for it, long after somebody else took its application.
    pub just_published: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Duty {
    /// Its users want it public.
    None,
    /// It was public, and its first protection is on the way.
    Awaited,
    /// It may not stand without an application.
    App,
    /// It may not stand without an application and a policy.
    Policy,
    /// Somebody else took its protection away: what stands may stand, nothing may be published anew.
    Lost,
}

/// All names that somebody wished something for.
#[derive(Clone, Debug, Default)]
pub struct Duties {
    names: BTreeMap<String, (Duty, NameWish)>,
    /// Names that were public and are not known to be protected since.
    loose: BTreeSet<String>,
}

/// A name that stood open though it had to be protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposed {
    /// The name.
    pub hostname: String,
    /// What was missing.
    pub missing: &'static str,
    /// After what it was seen.
    pub after: String,
}

impl fmt::Display for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} stood without its {} after {}", self.hostname, self.missing, self.after)
    }
}

impl Duties {
    /// Users wish something else from now on.
    pub fn wish(&mut self, hostname: &str, wish: NameWish) {
        let before = self.names.get(hostname).map(|(duty, _)| *duty);
        if wish == NameWish::Public {
            self.loose.insert(hostname.to_owned());
        }
        let duty = match (wish, before) {
            (NameWish::Public, _) => Duty::None,
            (NameWish::Gone, before) => before.unwrap_or(Duty::None),
            (NameWish::Closed | NameWish::Protected, Some(Duty::None | Duty::Awaited)) => Duty::Awaited,
            (_, Some(Duty::Lost)) => Duty::Lost,
            (NameWish::Closed, _) | (NameWish::Protected, Some(Duty::App)) => Duty::App,
            (NameWish::Protected, None | Some(Duty::Policy)) => Duty::Policy,
        };
        // A name that nobody published yet owes nothing to the past.
        let duty = if before.is_none() && wish == NameWish::Gone { return } else { duty };
        self.names.insert(hostname.to_owned(), (duty, wish));
    }

    /// Names that may not stand open now.
    pub fn owed(&self) -> impl Iterator<Item = &str> {
        self.names
            .iter()
            .filter(|(_, (duty, _))| matches!(duty, Duty::App | Duty::Policy))
            .map(|(name, _)| name.as_str())
    }

    /// All names that were ever wished for.
    pub fn names(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }

    /// A name was looked at; says what it lacks.
    pub fn see(&mut self, hostname: &str, sight: Sight) -> Option<&'static str> {
        let (duty, wish) = self.names.get_mut(hostname)?;
        // What stands of an earlier protection may still go on behalf of a wish that came between.
        let first = matches!(*duty, Duty::Awaited | Duty::Lost) && sight.just_written;
        if (first || *duty == Duty::App) && sight.protects(*wish) {
            *duty = owed_for(*wish);
        }
        match (*duty, sight) {
            (Duty::App | Duty::Policy, Sight { published: KnownObject::Yes, app: KnownObject::No, .. })
            | (Duty::Lost, Sight { just_published: true, app: KnownObject::No, .. }) => Some("application"),
            (Duty::Policy, Sight { published: KnownObject::Yes, policy: KnownObject::No, .. }) => Some("policy"),
            _ => None,
        }
    }

    /// Somebody else took the protection away: the name may stand as it does until it is protected anew.
    pub fn forgive(&mut self, hostname: &str) {
        if let Some((duty, _)) = self.names.get_mut(hostname) {
            *duty = match *duty {
                Duty::App | Duty::Policy | Duty::Lost => Duty::Lost,
                other => other,
            };
        }
    }

    /// Whether a name must be closed whatever others do to its application: it never was public, or it was seen
    /// protected when nothing was on the way.
    pub fn is_walled(&self, hostname: &str) -> bool {
        !self.loose.contains(hostname)
    }

    /// Nothing is on the way any more: what is awaited and not open owes its protection from now on.
    pub fn rest(&mut self, sight: impl Fn(&str) -> Sight) {
        for (name, (duty, wish)) in &mut self.names {
            let sight = sight(name);
            let safe = sight.published == KnownObject::No || sight.protects(*wish);
            if *duty == Duty::Awaited && *wish != NameWish::Gone && safe {
                *duty = owed_for(*wish);
            }
            if matches!(duty, Duty::App | Duty::Policy) && safe {
                self.loose.remove(name);
            }
        }
    }
}

fn owed_for(wish: NameWish) -> Duty {
    if wish == NameWish::Closed { Duty::App } else { Duty::Policy }
}

impl Sight {
    fn protects(self, wish: NameWish) -> bool {
        self.app == KnownObject::Yes && (self.policy == KnownObject::Yes || wish == NameWish::Closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Sight = Sight {
        published: KnownObject::Yes,
        app: KnownObject::No,
        policy: KnownObject::No,
        just_written: false,
        just_published: false,
    };
    const SAFE: Sight = Sight {
        published: KnownObject::Yes,
        app: KnownObject::Yes,
        policy: KnownObject::Yes,
        just_written: true,
        just_published: false,
    };
    const HIDDEN: Sight = Sight {
        published: KnownObject::No,
        app: KnownObject::No,
        policy: KnownObject::No,
        just_written: false,
        just_published: false,
    };

    fn wished(wishes: &[NameWish]) -> Duties {
        let mut duties = Duties::default();
        for wish in wishes {
            duties.wish("a", *wish);
        }
        duties
    }

    #[test]
    fn a_new_protected_name_may_never_stand_open() {
        let mut duties = wished(&[NameWish::Protected]);

        assert_eq!(duties.see("a", HIDDEN), None);
        assert_eq!(duties.see("a", OPEN), Some("application"));
        assert_eq!(duties.see("a", Sight { policy: KnownObject::No, ..SAFE }), Some("policy"));
        assert_eq!(duties.see("a", Sight { app: KnownObject::Perhaps, policy: KnownObject::Perhaps, ..OPEN }), None);
    }

    #[test]
    fn a_public_name_may_stand_open_until_its_first_protection() {
        let mut duties = wished(&[NameWish::Public, NameWish::Protected]);

        assert_eq!(duties.see("a", OPEN), None);
        assert_eq!(duties.see("a", SAFE), None);
        assert_eq!(duties.see("a", OPEN), Some("application"));
    }

    #[test]
    fn what_stands_of_an_earlier_protection_is_not_the_first_of_the_new_one() {
        let mut duties = wished(&[NameWish::Protected, NameWish::Public, NameWish::Protected]);

        assert_eq!(duties.see("a", Sight { just_written: false, ..SAFE }), None);
        assert_eq!(duties.see("a", OPEN), None, "the wish between is still carried out");
        assert_eq!(duties.see("a", SAFE), None);

        assert_eq!(duties.see("a", OPEN), Some("application"));
    }

    #[test]
    fn deleting_ends_no_duty_and_wishing_it_public_does() {
        assert_eq!(wished(&[NameWish::Protected, NameWish::Gone]).see("a", OPEN), Some("application"));
        assert_eq!(wished(&[NameWish::Protected, NameWish::Public]).see("a", OPEN), None);
        assert_eq!(wished(&[NameWish::Public, NameWish::Gone]).see("a", OPEN), None);
    }

    #[test]
    fn at_rest_an_awaited_name_that_is_not_published_owes_its_protection() {
        let mut duties = wished(&[NameWish::Public, NameWish::Protected]);

        duties.rest(|_| OPEN);
        assert_eq!(duties.see("a", OPEN), None);
        duties.rest(|_| HIDDEN);

        assert_eq!(duties.see("a", OPEN), Some("application"));
    }

    #[test]
    fn what_somebody_else_took_away_is_forgiven_until_it_is_back() {
        let mut duties = wished(&[NameWish::Protected]);

        duties.forgive("a");
        assert_eq!(duties.see("a", OPEN), None);
        assert_eq!(duties.see("a", SAFE), None);

        assert_eq!(duties.see("a", OPEN), Some("application"));
    }

    #[test]
    fn what_somebody_else_took_away_is_not_published_anew() {
        let mut duties = wished(&[NameWish::Protected]);
        duties.forgive("a");

        assert_eq!(duties.see("a", Sight { just_published: true, ..OPEN }), Some("application"));
        assert_eq!(duties.see("a", SAFE), None);
        assert_eq!(duties.see("a", OPEN), Some("application"), "protected anew, it owes as before");
    }

    #[test]
    fn a_name_is_walled_unless_it_was_public_and_nothing_rested_since() {
        assert!(wished(&[NameWish::Protected, NameWish::Gone]).is_walled("a"));
        let mut duties = wished(&[NameWish::Public, NameWish::Protected]);
        assert!(!duties.is_walled("a"));

        duties.rest(|_| SAFE);

        assert!(duties.is_walled("a"));
    }

    #[test]
    fn a_closed_name_needs_an_application_and_no_policy() {
        let mut duties = wished(&[NameWish::Closed]);

        assert_eq!(duties.see("a", Sight { policy: KnownObject::No, ..SAFE }), None);
        assert_eq!(duties.see("a", OPEN), Some("application"));
    }
}
