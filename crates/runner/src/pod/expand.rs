//! `$(VAR)` in commands, arguments and values of variables → text, as `third_party/forked/golang/expansion/expand.go` has it.

/// The text with its references replaced. `$$` is a dollar; a name without a value and an opened reference stay as they are.
pub fn expanded<'a>(text: &str, value_of: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        done.push_str(&rest[..at]);
        rest = reference(&rest[at + 1..], &mut done, &value_of);
    }
    done + rest
}

/// What follows a dollar: writes what it stands for, and gives back what is left.
fn reference<'t, 'a>(after: &'t str, done: &mut String, value_of: &impl Fn(&str) -> Option<&'a str>) -> &'t str {
    if let Some(rest) = after.strip_prefix('$') {
        done.push('$');
        return rest;
    }
    if let Some((name, rest)) = after.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
        match value_of(name) {
            Some(value) => done.push_str(value),
            None => done.extend(["$(", name, ")"]),
        }
        return rest;
    }
    done.push('$');
    after
}

#[cfg(test)]
mod tests {
    use super::expanded;

    fn of(text: &str) -> String {
        expanded(text, |name| match name {
            "A" => Some("one"),
            "EMPTY" => Some(""),
            "REF" => Some("$(A)"),
            _ => None,
        })
    }

    #[test]
    fn references_are_replaced_once_and_what_they_bring_is_not_read_again() {
        assert_eq!(of("$(A)-$(A) $(EMPTY)."), "one-one .");
        assert_eq!(of("$(REF)"), "$(A)");
    }

    #[test]
    fn unknown_names_stay_as_they_were_written() {
        assert_eq!(of("$(NONE) $(A B) $()"), "$(NONE) $(A B) $()");
    }

    #[test]
    fn two_dollars_are_one_and_keep_what_follows_from_being_read() {
        assert_eq!(of("$$(A) $$$(A) $$$$"), "$(A) $one $$");
    }

    #[test]
    fn dollars_that_begin_nothing_are_dollars() {
        assert_eq!(of("$A costs 5$ or $(A"), "$A costs 5$ or $(A");
    }
}
