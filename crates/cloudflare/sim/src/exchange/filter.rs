//! Query parameters of lists, and what they let through.

use serde_json::Value;

use crate::{
    call::RoutedCall,
    reply::Refusal,
    store::{StoredItem, is_deleted},
};

/// A parameter that a list understands. What is not listed is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filter {
    pub(crate) name: &'static str,
    pub(crate) test: Test,
}

/// What a parameter means. Members are named by dotted paths.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Test {
    /// The member is this text, number or boolean.
    Is(&'static str),
    /// As `Is`, whatever the case.
    Caseless(&'static str),
    Contains(&'static str),
    /// As `Contains`; as `Caseless` beside `exact=true`.
    Loosely(&'static str),
    StartsWith(&'static str),
    EndsWith(&'static str),
    /// The member has a value.
    Present(&'static str),
    Absent(&'static str),
    /// `true`: deleted objects alone; `false`: the others alone.
    Deleted,
    /// Anything else.
    Special(fn(&Value, &str) -> bool),
    /// Says how, not what.
    Manner,
}

pub(crate) const fn filter(name: &'static str, test: Test) -> Filter {
    Filter { name, test }
}

/// The member at a dotted path.
pub(crate) fn member<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, name| value.get(name))
}

fn plain(value: &Value, path: &str) -> String {
    match member(value, path) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

impl Test {
    fn lets_through(self, value: &Value, wanted: &str) -> bool {
        let lower = |path| plain(value, path).to_lowercase();
        let has = |path| !matches!(member(value, path), None | Some(Value::Null));
        match self {
            Self::Is(path) => plain(value, path) == wanted,
            Self::Caseless(path) => lower(path) == wanted.to_lowercase(),
            Self::Contains(path) | Self::Loosely(path) => lower(path).contains(&wanted.to_lowercase()),
            Self::StartsWith(path) => lower(path).starts_with(&wanted.to_lowercase()),
            Self::EndsWith(path) => lower(path).ends_with(&wanted.to_lowercase()),
            Self::Present(path) => has(path),
            Self::Absent(path) => !has(path),
            Self::Deleted => is_deleted(value) == (wanted == "true"),
            Self::Special(test) => test(value, wanted),
            Self::Manner => true,
        }
    }
}

const PAGES: [&str; 2] = ["page", "per_page"];

/// What a call asks to be listed, as a test of objects.
pub(crate) fn read<'a>(call: &'a RoutedCall, filters: &'a [Filter]) -> Result<impl Fn(&Value) -> bool + 'a, Refusal> {
    let mut wanted = Vec::new();
    for (name, value) in call.query.iter().filter(|(name, _)| !PAGES.contains(&name.as_str())) {
        let Some(filter) = filters.iter().find(|filter| filter.name == name) else {
            return Err(Refusal::bad(1003, format!("Unknown query parameter \"{name}\".")));
        };
        if matches!(filter.test, Test::Deleted) && !matches!(value.as_str(), "true" | "false") {
            return Err(Refusal::bad(1003, format!("Invalid {name}: must be true or false.")));
        }
        match filter.test {
            Test::Manner => {}
            Test::Loosely(path) if call.query_one("exact") == Some("true") => {
                wanted.push((Test::Caseless(path), value.as_str()));
            }
            test => wanted.push((test, value.as_str())),
        }
    }
    let any = call.query_one("match") == Some("any");
    Ok(move |value: &Value| {
        let mut tests = wanted.iter().map(|(test, wanted)| test.lets_through(value, wanted));
        wanted.is_empty() || if any { tests.any(|fits| fits) } else { tests.all(|fits| fits) }
    })
}

/// Sorts by the member that `order` names.
pub(crate) fn order(call: &RoutedCall, found: &mut [&StoredItem]) {
    let Some(order) = call.query_one("order") else { return };
    found.sort_by_cached_key(|stored| plain(&stored.value, order));
    if call.query_one("direction") == Some("desc") {
        found.reverse();
    }
}
