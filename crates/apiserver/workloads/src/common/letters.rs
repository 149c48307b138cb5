//! A number or other text → letters that are safe in names, as Kubernetes writes hashes.

/// Letters and digits that make no words.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A letter for each byte.
pub(crate) fn safe_letters(text: &str) -> String {
    text.bytes().map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()])).collect()
}
