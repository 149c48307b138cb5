//! Ids and secrets from a seeded source, in Cloudflare's two forms.

use rand::{Rng, SeedableRng, rngs::StdRng};

/// How a collection's ids look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdForm {
    /// 32 lower-case hex digits.
    Hex,
    /// A UUID, version 4.
    Uuid,
}

impl IdForm {
    /// Whether a path segment could be such an id at all.
    pub(crate) fn fits(self, text: &str) -> bool {
        let hex = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        match self {
            Self::Hex => text.len() == 32 && hex(text),
            Self::Uuid => {
                let lengths: Vec<usize> = text.split('-').map(str::len).collect();
                lengths == [8, 4, 4, 4, 12] && text.split('-').all(hex)
            }
        }
    }
}

/// The one source of randomness.
#[derive(Debug)]
pub(crate) struct Ids(StdRng);

impl Ids {
    pub(crate) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    pub(crate) fn next(&mut self, form: IdForm) -> String {
        let number: u128 = self.0.random();
        let hex = format!("{number:032x}");
        match form {
            IdForm::Hex => hex,
            IdForm::Uuid => {
                format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
            }
        }
    }

    pub(crate) fn bytes(&mut self) -> [u8; 32] {
        self.0.random()
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.0.random::<f64>() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_form_they_are_recognised_by() {
        let mut ids = Ids::new(7);

        for form in [IdForm::Hex, IdForm::Uuid] {
            let id = ids.next(form);
            assert!(form.fits(&id), "{id}");
        }
        assert!(!IdForm::Hex.fits("not-an-id") && !IdForm::Uuid.fits("not-an-id"));
    }

    #[test]
    fn the_same_seed_gives_the_same_ids() {
        assert_eq!(Ids::new(3).next(IdForm::Uuid), Ids::new(3).next(IdForm::Uuid));
        assert_ne!(Ids::new(3).next(IdForm::Uuid), Ids::new(4).next(IdForm::Uuid));
    }
}
