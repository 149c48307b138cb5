//! A whole collection, page by page. A page that fails fails the listing: there are no partial results.

use serde_json::Value;

use crate::collection::{Collection, Page, Paging};
use crate::envelope::PageInfo;
use crate::error::{ApiError, Effect, ErrorClass};
use crate::governor::Lane;
use crate::sender::Sender;

/// More pages than this are an API that does not end.
const MOST_PAGES: u32 = 20_000;
/// Listings in a row that may be thrown away because the collection changed under them.
const PASSES: u32 = 3;
/// A page size that every collection grants.
const SMALL_PAGE: u32 = 50;

/// What follows a page.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Done,
    Page(Page),
}

/// Lists everything. If the total changes between the first and the last page, objects may have moved over a page's edge
/// unseen, so the listing starts again.
pub(crate) async fn all(
    sender: &Sender,
    lane: Lane,
    collection: &Collection,
    scope: &str,
) -> Result<Vec<Value>, ApiError> {
    let mut pass = 1;
    loop {
        let (items, steady) = once(sender, lane, collection, scope).await?;
        if steady || pass == PASSES {
            return Ok(items);
        }
        pass += 1;
    }
}

async fn once(
    sender: &Sender,
    lane: Lane,
    collection: &Collection,
    scope: &str,
) -> Result<(Vec<Value>, bool), ApiError> {
    let mut items: Vec<Value> = Vec::new();
    let mut page = Page { number: 1, per_page: collection.per_page, cursor: None };
    let mut total = None;
    loop {
        let answer = match sender.answer(lane, &collection.list(scope, &page)).await {
            Err(error) if too_large(&error, &page) => {
                page.per_page = SMALL_PAGE;
                continue;
            }
            answer => answer?,
        };
        let found = take(collection, answer.result)?;
        if repeats(&items, &found) {
            return Ok((items, true));
        }
        let count = found.len();
        items.extend(found);
        let first_total = *total.get_or_insert(answer.info.total_count);
        match next(collection.paging, &page, &answer.info, count, items.len()) {
            Next::Page(following) if following.number <= MOST_PAGES => page = following,
            Next::Page(_) => return Err(ApiError::transient("the listing does not end", Effect::None)),
            Next::Done => return Ok((items, page.number == 1 || first_total == answer.info.total_count)),
        }
    }
}

/// The first page is refused: the collection may grant smaller ones only.
fn too_large(error: &ApiError, page: &Page) -> bool {
    error.class == ErrorClass::Validation && page.number == 1 && page.per_page > SMALL_PAGE
}

fn take(collection: &Collection, result: Value) -> Result<Vec<Value>, ApiError> {
    let list = match (collection.list_in, result) {
        (Some(member), Value::Object(mut object)) => object.remove(member).unwrap_or(Value::Null),
        (_, other) => other,
    };
    match list {
        Value::Array(items) => Ok(items),
        Value::Null => Ok(Vec::new()),
        _ => Err(ApiError::transient(format!("the listing of {} is not a list", collection.name), Effect::None)),
    }
}

/// The API does not know pages and answers the same again.
fn repeats(items: &[Value], found: &[Value]) -> bool {
    match (items.first(), found.first()) {
        (Some(first), Some(again)) => first.get("id").is_some() && first.get("id") == again.get("id"),
        _ => false,
    }
}

fn next(paging: Paging, page: &Page, info: &PageInfo, count: usize, so_far: usize) -> Next {
    let following = |cursor| Next::Page(Page { number: page.number + 1, cursor, ..page.clone() });
    match (paging, info.next_cursor()) {
        (Paging::Single, _) => Next::Done,
        (Paging::Cursor, Some(cursor)) if page.cursor.as_deref() != Some(cursor) => following(Some(cursor.to_owned())),
        (Paging::Cursor, _) => Next::Done,
        (Paging::Pages, _) if count == 0 || is_last(page, info, count, so_far) => Next::Done,
        (Paging::Pages, _) => following(None),
    }
}

fn is_last(page: &Page, info: &PageInfo, count: usize, so_far: usize) -> bool {
    let count = count as u64;
    match (info.total_pages, info.total_count) {
        (Some(pages), _) if pages > 0 => u64::from(page.number) >= pages,
        (_, Some(total)) if total > 0 => so_far as u64 >= total,
        _ => count < info.per_page.filter(|size| *size > 0).unwrap_or(u64::from(page.per_page)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u32) -> Page {
        Page { number, per_page: 100, cursor: None }
    }

    fn is_done(info: &PageInfo, number: u32, count: usize, so_far: usize) -> bool {
        next(Paging::Pages, &page(number), info, count, so_far) == Next::Done
    }

    #[test]
    fn the_number_of_pages_ends_a_listing() {
        let info = PageInfo { total_pages: Some(3), ..PageInfo::default() };

        assert!(!is_done(&info, 2, 100, 200));
        assert!(is_done(&info, 3, 100, 300));
    }

    #[test]
    fn a_smaller_page_than_asked_for_goes_on_by_the_total() {
        let info = PageInfo { per_page: Some(20), total_count: Some(50), ..PageInfo::default() };

        assert!(!is_done(&info, 2, 20, 40));
        assert!(is_done(&info, 3, 10, 50));
    }

    #[test]
    fn a_smaller_page_than_asked_for_goes_on_by_its_own_size() {
        let info = PageInfo { per_page: Some(20), ..PageInfo::default() };

        assert!(!is_done(&info, 1, 20, 20));
        assert!(is_done(&info, 2, 19, 39));
    }

    #[test]
    fn without_any_information_a_short_page_is_the_last() {
        assert!(!is_done(&PageInfo::default(), 1, 100, 100));
        assert!(is_done(&PageInfo::default(), 2, 99, 199));
        assert!(is_done(&PageInfo { total_pages: Some(9), ..PageInfo::default() }, 2, 0, 100));
    }

    #[test]
    fn cursors_are_followed_until_there_is_none_or_the_same() {
        let info = |cursor: &str| PageInfo { cursor: Some(cursor.to_owned()), ..PageInfo::default() };
        let at = |cursor: &str| Page { cursor: Some(cursor.to_owned()), ..page(2) };

        assert_eq!(next(Paging::Cursor, &at("a"), &info("b"), 9, 9), Next::Page(Page { number: 3, ..at("b") }));
        assert_eq!(next(Paging::Cursor, &at("b"), &info("b"), 9, 9), Next::Done);
        assert_eq!(next(Paging::Cursor, &at("b"), &info(""), 9, 9), Next::Done);
    }
}
