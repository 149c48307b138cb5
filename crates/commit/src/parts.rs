//! A group and how it is sent → every source's fate: where the group is refused, in parts, until the bad source is alone.

use crate::queue::Source;

/// How a group is sent.
pub trait Attempt {
    /// What is sent.
    type Source: Source;

    /// Those of a group that may go now; the others are told why they may not.
    fn admit(&self, group: Vec<Self::Source>) -> Vec<Self::Source> {
        group
    }

    /// Sends a group and tells everybody whose fate is known. Answers the groups that are to be sent again, the last one first.
    fn attempt(&mut self, group: Vec<Self::Source>) -> impl Future<Output = Vec<Vec<Self::Source>>> + Send;
}

/// Sends a group, in as many parts as its refusals ask for.
pub async fn in_parts<A: Attempt>(attempt: &mut A, group: Vec<A::Source>) {
    let mut groups = vec![group];
    while let Some(group) = groups.pop() {
        let group = attempt.admit(still_allowed(group));
        if !group.is_empty() {
            groups.extend(attempt.attempt(group).await);
        }
    }
}

/// The sources without those that may not be written any more, who are told so.
pub fn still_allowed<S: Source>(group: Vec<S>) -> Vec<S> {
    let (allowed, late): (Vec<_>, Vec<_>) = group.into_iter().partition(Source::may_go);
    late.into_iter().for_each(Source::lapse);
    allowed
}

/// The sources that a refusal blames go alone, the rest together; without blame, in halves. The last group is sent first.
/// `blamed` counts in sizes, through the whole group.
pub fn split<S: Source>(group: Vec<S>, blamed: &[usize]) -> Vec<Vec<S>> {
    let (guilty, rest) = part(group, blamed);
    if guilty.is_empty() || (rest.is_empty() && guilty.len() > 1) {
        let mut first = if guilty.is_empty() { rest } else { guilty };
        let second = first.split_off(first.len().div_ceil(2));
        return [second, first].into_iter().filter(|half| !half.is_empty()).collect();
    }
    let alone = guilty.into_iter().rev().map(|source| vec![source]);
    let together = (!rest.is_empty()).then_some(rest);
    alone.chain(together).collect()
}

/// Sources that something blamed belongs to, and the others.
fn part<S: Source>(group: Vec<S>, blamed: &[usize]) -> (Vec<S>, Vec<S>) {
    let mut start = 0;
    group.into_iter().partition(|source| {
        let range = start..start + source.size();
        start = range.end;
        blamed.iter().any(|index| range.contains(index))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Edit, Fate, named, names};

    fn shown(groups: &[Vec<Edit>]) -> Vec<Vec<&str>> {
        groups.iter().map(|group| names(group)).collect()
    }

    fn five() -> Vec<Edit> {
        ["a", "b", "c", "d", "e"].map(named).into()
    }

    #[test]
    fn without_blame_a_group_goes_in_halves_the_first_one_first() {
        assert_eq!(shown(&split(five(), &[])), [vec!["d", "e"], vec!["a", "b", "c"]]);
    }

    #[test]
    fn who_is_blamed_goes_alone_after_the_rest() {
        assert_eq!(shown(&split(five(), &[1, 3])), [vec!["d"], vec!["b"], vec!["a", "c", "e"]]);
    }

    #[test]
    fn blame_of_everybody_blames_nobody() {
        assert_eq!(shown(&split(five(), &[0, 1, 2, 3, 4])), [vec!["d", "e"], vec!["a", "b", "c"]]);
    }

    #[test]
    fn blame_counts_in_sizes() {
        let group = vec![named("a").of_size(3), named("b").of_size(2), named("c")];

        assert_eq!(shown(&split(group, &[4])), [vec!["b"], vec!["a", "c"]]);
    }

    /// Refuses every group that holds a bad source.
    #[derive(Default)]
    struct Strict {
        sent: Vec<Vec<String>>,
    }

    impl Attempt for Strict {
        type Source = Edit;

        async fn attempt(&mut self, group: Vec<Edit>) -> Vec<Vec<Edit>> {
            self.sent.push(group.iter().map(|edit| edit.name.clone()).collect());
            let is_refused = group.iter().any(|edit| edit.name == "bad");
            if is_refused && group.len() > 1 {
                return split(group, &[]);
            }
            for edit in group {
                edit.tell(if is_refused { "refused" } else { "written" });
            }
            Vec::new()
        }
    }

    #[tokio::test]
    async fn a_bad_source_fails_alone_and_everybody_is_told() {
        let group = ["a", "b", "bad", "c", "d"].map(named);
        let fates: Vec<Fate> = group.iter().map(Edit::fate).collect();
        let mut strict = Strict::default();

        in_parts(&mut strict, group.into()).await;

        let told: Vec<_> = fates.iter().map(|fate| fate.told().unwrap()).collect();
        assert_eq!(told, ["written", "written", "refused", "written", "written"]);
        assert_eq!(strict.sent.len(), 5, "{:?}", strict.sent);
    }

    #[tokio::test]
    async fn who_may_not_go_any_more_is_not_sent_again() {
        let group = ["late", "bad"].map(named);
        let fates: Vec<Fate> = group.iter().map(Edit::fate).collect();
        group[0].forbid();
        let mut strict = Strict::default();

        in_parts(&mut strict, group.into()).await;

        assert_eq!(fates.iter().map(|fate| fate.told().unwrap()).collect::<Vec<_>>(), ["lapsed", "refused"]);
        assert_eq!(strict.sent, [["bad"]]);
    }
}
