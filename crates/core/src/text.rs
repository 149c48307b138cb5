//! Small pieces of text that messages are made of.

use std::{borrow::Cow, fmt::Display};

/// The first `max` characters of a text.
pub fn truncate(text: &str, max: usize) -> &str {
    text.char_indices().nth(max).map_or(text, |(end, _)| &text[..end])
}

/// A text of at most `max` characters; where something was cut off it ends in `…`.
pub fn shorten(text: &str, max: usize) -> Cow<'_, str> {
    if truncate(text, max).len() == text.len() {
        return Cow::Borrowed(text);
    }
    match max {
        0 => Cow::Borrowed(""),
        _ => Cow::Owned(format!("{}…", truncate(text, max - 1).trim_end())),
    }
}

/// A list in a sentence: `a`, `a and b`, `a, b and c`.
pub fn join_and<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    join(items, "and")
}

/// A choice in a sentence: `a`, `a or b`, `a, b or c`.
pub fn join_or<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    join(items, "or")
}

/// The first `max` items in a sentence, and how many more there are: `a, b and 7 more`.
pub fn join_some<T: Display>(items: impl IntoIterator<Item = T>, max: usize) -> String {
    let mut shown: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    let more = shown.len().saturating_sub(max);
    if more > 0 {
        shown.truncate(max);
        shown.push(format!("{more} more"));
    }
    join_and(shown)
}

/// A number with its noun: `1 record`, `2 records`.
pub fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// The text without characters that move a terminal's cursor, break a line or turn the direction of writing.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.contains(misleads) { Cow::Owned(text.replace(misleads, "\u{fffd}")) } else { Cow::Borrowed(text) }
}

fn misleads(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

/// How many single-letter edits lie between two words, whatever their case.
pub fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.to_lowercase().chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, with) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *with);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

fn join<T: Display>(items: impl IntoIterator<Item = T>, word: &str) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    match items.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} {word} {last}", rest.join(", ")),
    }
}

/// An error and its causes, each said once.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_near_by_the_letters_that_differ() {
        assert_eq!(distance("acess.enabled", "access.enabled"), 1);
        assert_eq!(distance("access.Enabled", "access.enabled"), 0);
        assert_eq!((distance("", "abc"), distance("abc", "")), (3, 3));
    }

    #[test]
    fn lists_read_as_a_sentence() {
        assert_eq!(join_and(Vec::<&str>::new()), "");
        assert_eq!(join_and(["a"]), "a");
        assert_eq!(join_and(["a", "b"]), "a and b");
        assert_eq!(join_or(["a", "b", "c"]), "a, b or c");
    }

    #[test]
    fn a_long_list_says_how_many_more_there_are() {
        assert_eq!(join_some(1..=9, 2), "1, 2 and 7 more");
        assert_eq!(join_some(1..=2, 2), "1 and 2");
    }

    #[test]
    fn one_thing_is_not_plural() {
        assert_eq!((count(1, "record"), count(0, "record")), ("1 record".to_owned(), "0 records".to_owned()));
    }

    #[test]
    fn cut_texts_show_that_they_were_cut() {
        assert_eq!(shorten("bücher und mehr", 8), "bücher…");
        assert_eq!(shorten("bücher", 6), "bücher");
        assert_eq!(shorten("bücher", 0), "");
    }

    #[test]
    fn characters_that_mislead_are_replaced() {
        assert_eq!(printable("moc.\u{202e}elpmaxe\u{2028}"), "moc.\u{fffd}elpmaxe\u{fffd}");
        assert_eq!(printable("a\u{1b}[2Jb\n\u{9b}c"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c");
        assert!(matches!(printable("ü"), Cow::Borrowed("ü")));
    }

    proptest! {
        #[test]
        fn a_truncated_text_is_the_longest_beginning_that_fits(text in "\\PC{0,40}", max in 0usize..50) {
            let cut = truncate(&text, max);

            prop_assert!(text.starts_with(cut));
            prop_assert_eq!(cut.chars().count(), max.min(text.chars().count()));
        }

        #[test]
        fn a_shortened_text_is_never_longer_than_asked(text in "\\PC{0,40}", max in 0usize..50) {
            prop_assert!(shorten(&text, max).chars().count() <= max);
        }
    }
}
