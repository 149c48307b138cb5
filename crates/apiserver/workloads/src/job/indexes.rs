//! Completion indexes as Kubernetes writes them, `0-2,5`, and sets of them.

use std::fmt;

/// Indexes as ordered ranges with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<(i64, i64)>);

impl Indexes {
    /// Those below the number of completions. What cannot be read is left out.
    pub(super) fn parse(text: &str, completions: i64) -> Self {
        let mut found = Self::default();
        for range in text.split(',').filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) else { continue };
            if first >= completions {
                break;
            }
            found.append((first, last.min(completions - 1)));
        }
        found
    }

    /// Adds a range that does not start before those that are there.
    fn append(&mut self, (first, last): (i64, i64)) {
        match self.0.last_mut() {
            Some(end) if first <= end.1 + 1 => end.1 = end.1.max(last),
            _ => self.0.push((first, last)),
        }
    }

    pub(super) fn merge(&self, other: &Self) -> Self {
        let mut ranges: Vec<(i64, i64)> = self.0.iter().chain(&other.0).copied().collect();
        ranges.sort_unstable();
        let mut merged = Self::default();
        for range in ranges {
            merged.append(range);
        }
        merged
    }

    pub(super) fn with(&self, more: impl IntoIterator<Item = i64>) -> Self {
        self.merge(&more.into_iter().collect())
    }

    pub(super) fn has(&self, index: i64) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&index))
    }

    pub(super) fn total(&self) -> i64 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many are in both.
    pub(super) fn shared(&self, other: &Self) -> i64 {
        let overlap = |a: &(i64, i64), b: &(i64, i64)| (a.1.min(b.1) - a.0.max(b.0) + 1).max(0);
        self.0.iter().map(|a| other.0.iter().map(|b| overlap(a, b)).sum::<i64>()).sum()
    }
}

impl FromIterator<i64> for Indexes {
    fn from_iter<T: IntoIterator<Item = i64>>(indexes: T) -> Self {
        let mut sorted: Vec<i64> = indexes.into_iter().collect();
        sorted.sort_unstable();
        let mut found = Self::default();
        for index in sorted {
            found.append((index, index));
        }
        found
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (first, last)) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str(",")?;
            }
            match last - first {
                0 => write!(f, "{first}")?,
                1 => write!(f, "{first},{last}")?,
                _ => write!(f, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_neighbours_are_listed_and_more_are_a_range() {
        let text = |indexes: &[i64]| indexes.iter().copied().collect::<Indexes>().to_string();

        assert_eq!(text(&[]), "");
        assert_eq!(text(&[4]), "4");
        assert_eq!(text(&[1, 0]), "0,1");
        assert_eq!(text(&[3, 1, 2, 7, 9, 8, 5]), "1-3,5,7-9");
    }

    #[test]
    fn indexes_beyond_the_completions_are_forgotten() {
        assert_eq!(Indexes::parse("0-2,5,7-9", 6).to_string(), "0-2,5");
        assert_eq!(Indexes::parse("0-9", 4).to_string(), "0-3");
        assert_eq!(Indexes::parse("x,2", 4).to_string(), "2");
    }

    proptest! {
        #[test]
        fn text_reads_back_as_the_same_set(indexes in prop::collection::btree_set(0..40_i64, 0..40)) {
            let set: Indexes = indexes.iter().copied().collect();

            prop_assert_eq!(&Indexes::parse(&set.to_string(), 40), &set);
            prop_assert_eq!(set.total(), i64::try_from(indexes.len()).unwrap());
            for index in 0..40 {
                prop_assert_eq!(set.has(index), indexes.contains(&index));
            }
        }
    }
}
