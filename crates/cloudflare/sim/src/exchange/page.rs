//! Which part of a list is shown.

use serde_json::{Value, json};

use crate::{call::RoutedCall, reply::Refusal};

/// How a collection is listed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Paging {
    /// By `page` and `per_page`.
    Pages { default: u64, min: u64, max: u64 },
    /// Always whole.
    Single,
}

/// The part that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    number: u64,
    size: Option<u64>,
}

impl Paging {
    /// `largest` is where pages are cut off without a word.
    pub(crate) fn read(self, call: &RoutedCall, largest: Option<u64>) -> Result<Page, Refusal> {
        let Self::Pages { default, min, max } = self else {
            return Ok(Page { number: 1, size: None });
        };
        let number = number(call, "page")?.unwrap_or(1);
        let size = self::number(call, "per_page")?.unwrap_or(default);
        if number < 1 {
            return Err(Refusal::bad(1003, "Invalid page: must be 1 or more."));
        }
        let size = largest.map_or(size, |largest| size.min(largest));
        if !(min..=max).contains(&size) {
            let message = format!("Invalid per_page: must be between {min} and {max}.");
            return Err(Refusal::bad(1003, message));
        }
        Ok(Page { number, size: Some(size) })
    }
}

/// Numbers may come as `50` or, from some clients, as `50.0`.
fn number(call: &RoutedCall, name: &str) -> Result<Option<u64>, Refusal> {
    let Some(text) = call.query_one(name) else { return Ok(None) };
    let whole = text.strip_suffix(".0").unwrap_or(text);
    whole.parse().map(Some).map_err(|_| Refusal::bad(1003, format!("Invalid {name}: must be a number.")))
}

impl Page {
    /// The part of `all` on this page, and the `result_info` that goes with it.
    pub(crate) fn cut<T>(self, all: Vec<T>) -> (Vec<T>, Value) {
        let total = all.len() as u64;
        let Some(size) = self.size else {
            let info = json!({"page": 1, "per_page": total, "count": total, "total_count": total, "total_pages": 1});
            return (all, info);
        };
        let start = usize::try_from((self.number - 1).saturating_mul(size)).unwrap_or(usize::MAX);
        let shown: Vec<T> = all.into_iter().skip(start).take(usize::try_from(size).unwrap_or(usize::MAX)).collect();
        let info = json!({
            "page": self.number, "per_page": size, "count": shown.len(),
            "total_count": total, "total_pages": total.div_ceil(size),
        });
        (shown, info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_is_short_and_the_one_after_it_empty() {
        let page = |number| Page { number, size: Some(4) }.cut((1..=10).collect::<Vec<_>>());

        let (shown, info) = page(3);
        assert_eq!(shown, [9, 10]);
        assert_eq!(info["total_pages"], 3);
        assert_eq!(info["count"], 2);
        assert!(page(4).0.is_empty());
    }
}
