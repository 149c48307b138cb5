//! Choices from a seed.

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// The same seed makes the same choices.
pub(super) struct Draw(StdRng);

impl Draw {
    pub(super) fn of(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// A number from `least` to `most`.
    pub(super) fn number(&mut self, least: usize, most: usize) -> usize {
        self.0.random_range(least..=most)
    }

    /// True so many times in a hundred.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.number(1, 100) <= percent
    }

    /// One of them.
    pub(super) fn one<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.number(0, items.len() - 1)]
    }

    /// One of them.
    pub(super) fn any<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.number(0, items.len() - 1)]
    }

    /// One or more of them, each once.
    pub(super) fn some(&mut self, items: &[&str], most: usize) -> Vec<String> {
        let mut chosen: Vec<String> = Vec::new();
        for _ in 0..self.number(1, most) {
            let item = self.one(items).to_owned();
            if !chosen.contains(&item) {
                chosen.push(item);
            }
        }
        chosen
    }
}
