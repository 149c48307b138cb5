//! A whole collection, page by page. A page that fails fails the listing: there are no partial results.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::budget::limiter::Permit;
use crate::budget::priority::SharedPriority;
use crate::call::envelope::PageInfo;
use crate::call::error::{ApiError, Effect, ErrorClass};
use crate::call::options::CallOptions;
use crate::call::sender::{Exit, Sender};
use crate::collection::{Collection, Page, Paging};

/// More pages than this are an API that does not end.
const MOST_PAGES: u32 = 20_000;
/// Listings in a row that may be thrown away because the collection changed under them.
const PASSES: u32 = 3;
/// A page size that every collection grants.
const SMALL_PAGE: u32 = 50;

/// What a listing keeps of each object.
pub(crate) trait Element: DeserializeOwned + Send {
    /// The object's id, if it has one.
    fn id(&self) -> Option<&str>;
}

impl Element for Value {
    fn id(&self) -> Option<&str> {
        self.get("id")?.as_str()
    }
}

/// The `result` of a page: the list, read object by object, or an object that holds it.
enum Listed<E> {
    List(Vec<E>),
    Nested(Map<String, Value>),
}

impl<E> Default for Listed<E> {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl<E: Element> Listed<E> {
    fn take(self, collection: &Collection, scope: &str) -> Result<Vec<E>, ApiError> {
        let wrong = || ApiError::transient(format!("the listing of {} is not a list", collection.name), Effect::None);
        match (self, collection.list_in) {
            (Self::List(items), _) => Ok(items),
            (Self::Nested(mut object), Some(member)) => {
                serde_json::from_value(object.remove(member).unwrap_or_else(|| Value::Array(Vec::new())))
                    .map_err(|_| wrong())
            }
            (Self::Nested(object), None) if collection.paging == Paging::Document => {
                let object = collection.identified(Value::Object(object), scope);
                Ok(vec![serde_json::from_value(object).map_err(|_| wrong())?])
            }
            (Self::Nested(_), None) => Err(wrong()),
        }
    }
}

impl<'de, E: Element> Deserialize<'de> for Listed<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<E>(PhantomData<E>);

        impl<'de, E: Element> Visitor<'de> for Either<E> {
            type Value = Listed<E>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of objects, or an object that holds one")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Listed<E>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Listed::List)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Listed<E>, A::Error> {
                Map::deserialize(MapAccessDeserializer::new(map)).map(Listed::Nested)
            }
        }

        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// What follows a page.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Done,
    Page(Page),
}

/// Lists everything.
pub(crate) async fn all<E: Element>(
    sender: &Sender,
    permit: Option<Permit>,
    options: (CallOptions, &SharedPriority),
    collection: &Collection,
    scope: &str,
) -> Result<Vec<E>, ApiError> {
    // Of endless pages none is too many.
    Ok(up_to(sender, permit, options, (collection, scope), u64::MAX).await?.unwrap_or_default())
}

/// Lists everything, or nothing where the first answer tells of more than so many pages. If the total changes between the
/// first and the last page, objects may have moved over a page's edge unseen, so the listing starts again. `permit` is a
/// turn that was waited for before; each further page waits for its own with `priority`.
pub(crate) async fn up_to<E: Element>(
    sender: &Sender,
    mut permit: Option<Permit>,
    (options, priority): (CallOptions, &SharedPriority),
    (collection, scope): (&Collection, &str),
    pages: u64,
) -> Result<Option<Vec<E>>, ApiError> {
    portolan_core::waypoint!();
    let mut pass = 1;
    loop {
        let listed = once(sender, permit.take(), (options, priority), (collection, scope), pages).await?;
        match listed {
            Some((_, false)) if pass < PASSES => pass += 1,
            listed => return Ok(listed.map(|(items, _)| items)),
        }
    }
}

async fn once<E: Element>(
    sender: &Sender,
    mut permit: Option<Permit>,
    (options, priority): (CallOptions, &SharedPriority),
    (collection, scope): (&Collection, &str),
    pages: u64,
) -> Result<Option<(Vec<E>, bool)>, ApiError> {
    let mut items: Vec<E> = Vec::new();
    let mut page = Page { number: 1, per_page: collection.per_page, cursor: None };
    let mut total = None;
    loop {
        let request = collection.list(scope, &page);
        let (lane, permit) = match permit.take() {
            Some(permit) => (options.lane, permit),
            None => priority.permit(sender, options.lane).await?,
        };
        let answer = match sender.answer::<Listed<E>>(Some(permit), options.in_lane(lane), Exit::FREE, &request).await {
            Err(error) if too_large(&error, &page) => {
                page.per_page = SMALL_PAGE;
                continue;
            }
            answer => answer?,
        };
        if answer.info.total_pages.is_some_and(|total| total > pages) {
            return Ok(None);
        }
        let found = answer.result.take(collection, scope)?;
        if repeats(&items, &found) {
            return Ok(Some((items, true)));
        }
        let count = found.len();
        items.extend(found);
        let first_total = *total.get_or_insert(answer.info.total_count);
        match next(collection.paging, &page, &answer.info, count, items.len()) {
            Next::Page(following) if following.number <= MOST_PAGES => page = following,
            Next::Page(_) => return Err(ApiError::transient("the listing does not end", Effect::None)),
            Next::Done => return Ok(Some((items, page.number == 1 || first_total == answer.info.total_count))),
        }
    }
}

/// The first page is refused: the collection may grant smaller ones only.
fn too_large(error: &ApiError, page: &Page) -> bool {
    error.class == ErrorClass::Validation && page.number == 1 && page.per_page > SMALL_PAGE
}

/// The API does not know pages and answers the same again.
fn repeats<E: Element>(items: &[E], found: &[E]) -> bool {
    match (items.first().and_then(E::id), found.first().and_then(E::id)) {
        (Some(first), Some(again)) => first == again,
        _ => false,
    }
}

fn next(paging: Paging, page: &Page, info: &PageInfo, count: usize, so_far: usize) -> Next {
    let following = |cursor| Next::Page(Page { number: page.number + 1, cursor, ..page.clone() });
    match (paging, info.next_cursor()) {
        (Paging::Cursor, Some(cursor)) if page.cursor.as_deref() != Some(cursor) => following(Some(cursor.to_owned())),
        (Paging::Single | Paging::Document | Paging::Cursor, _) => Next::Done,
        (Paging::Pages, _) if count == 0 || is_last(page, info, count, so_far) => Next::Done,
        (Paging::Pages, _) => following(None),
    }
}

/// An answer that says nothing about its place may hold fewer objects than were asked for and still not be the last: only
/// an empty or repeated one is.
fn is_last(page: &Page, info: &PageInfo, count: usize, so_far: usize) -> bool {
    match (info.total_pages, info.total_count, info.per_page) {
        (Some(pages), _, _) if pages > 0 => u64::from(page.number) >= pages,
        (_, Some(total), _) if total > 0 => so_far as u64 >= total,
        (_, _, Some(size)) => (count as u64) < size,
        _ => false,
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
    fn without_any_information_only_an_empty_page_is_the_last() {
        assert!(!is_done(&PageInfo::default(), 2, 99, 199));
        assert!(is_done(&PageInfo::default(), 3, 0, 199));
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
