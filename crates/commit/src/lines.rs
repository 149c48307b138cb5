//! What all credentials of a process share of one document or one zone: its line of writers. It is gone when nobody uses it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Lines by the kind of what is written and its scope.
pub struct Lines<L> {
    known: Mutex<HashMap<(&'static str, String), Weak<L>>>,
}

impl<L> Default for Lines<L> {
    fn default() -> Self {
        Self { known: Mutex::default() }
    }
}

impl<L: Default> Lines<L> {
    /// The line of a thing: the same one for as long as somebody has it.
    pub fn of(&self, name: &'static str, scope: &str) -> Arc<L> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (name, scope.to_owned());
        if let Some(line) = known.get(&key).and_then(Weak::upgrade) {
            return line;
        }
        known.retain(|_, line| line.strong_count() > 0);
        let line = Arc::new(L::default());
        known.insert(key, Arc::downgrade(&line));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shared_while_it_is_used_and_forgotten_after() {
        let lines = Lines::<()>::default();
        let one = lines.of("dns_records", "z1");

        assert!(Arc::ptr_eq(&one, &lines.of("dns_records", "z1")));
        assert!(!Arc::ptr_eq(&one, &lines.of("dns_records", "z2")));
        drop(one);
        let _other = lines.of("dns_records", "z3");
        assert_eq!(lines.known.lock().unwrap().len(), 1);
    }
}
