//! A collection of the API as data, and the requests that list, read and write it. Pure.

use std::marker::PhantomData;
use std::ops::Deref;

use http::Method;
use serde_json::Value;

use crate::call::request::Request;

/// What a collection belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `/accounts/{account_id}/…`
    Account,
    /// `/zones/{zone_id}/…`
    Zone,
    /// The API's root: the scope's id is not used.
    Root,
}

/// How a listing goes on after its first answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paging {
    /// `page` and `per_page`.
    Pages,
    /// `cursor` and `per_page`.
    Cursor,
    /// One answer holds everything.
    Single,
    /// There is one object, always: the answer itself. It has no id of its own and is known by its scope's.
    Document,
}

/// The method that changes an existing object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Only the fields given.
    Patch,
    /// The whole object.
    Put,
}

/// A collection that takes many operations in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Path template of the call.
    pub template: &'static str,
    /// Operations that every plan may send in a call.
    pub max: usize,
}

/// The permission of a token that grants a collection, as the dashboard names it: to look, and to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenPermission {
    /// To look.
    pub read: &'static str,
    /// To look and to change.
    pub edit: &'static str,
}

/// A permission by its name without the level: `token_permission!("Zone · DNS")`.
#[macro_export]
macro_rules! token_permission {
    ($name:literal) => {
        $crate::TokenPermission { read: concat!($name, " · Read"), edit: concat!($name, " · Edit") }
    };
}

/// A collection of remote objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Short name, unique among collections.
    pub name: &'static str,
    /// What it belongs to.
    pub scope: Scope,
    /// Path below the scope.
    pub path: &'static str,
    /// Path template of the collection; made by [`collection!`](macro@crate::collection).
    pub template: &'static str,
    /// Path template of one object.
    pub item_template: &'static str,
    /// Largest page that the API grants.
    pub per_page: u32,
    /// How a listing goes on.
    pub paging: Paging,
    /// How an object is changed.
    pub update: Verb,
    /// Parameters of every listing.
    pub list_query: &'static [(&'static str, &'static str)],
    /// Member of `result` that holds the list, where `result` is not the list itself.
    pub list_in: Option<&'static str>,
    /// How to send many operations at once.
    pub batch: Option<Batch>,
    /// The API refuses a second object with the same natural key, so a create needs no fresh snapshot.
    pub refuses_duplicates: bool,
    /// Bodies or answers carry secrets.
    pub masked: bool,
    /// What a token must be allowed.
    pub permission: TokenPermission,
}

/// A collection, and what is kept of its objects: who asks for the one gets the other, so no two callers keep two things.
#[derive(Debug)]
pub struct TypedCollection<T> {
    collection: Collection,
    kept: PhantomData<fn() -> T>,
}

impl<T> TypedCollection<T> {
    /// A collection whose objects are kept as `T`; one for each collection.
    pub const fn of(collection: Collection) -> Self {
        Self { collection, kept: PhantomData }
    }

    /// The collection alone, for tables.
    pub const fn untyped(&self) -> &Collection {
        &self.collection
    }
}

impl<T> Deref for TypedCollection<T> {
    type Target = Collection;

    fn deref(&self) -> &Collection {
        &self.collection
    }
}

/// Which part of a listing is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// From 1.
    pub number: u32,
    /// Objects wanted.
    pub per_page: u32,
    /// Where to go on, in listings with cursors.
    pub cursor: Option<String>,
}

/// The common values of a collection: [`Account`](Scope::Account), [`Zone`](Scope::Zone) or [`Root`](Scope::Root), a name
/// and a path. Other fields follow with struct update syntax.
#[macro_export]
macro_rules! collection {
    (Account, $name:literal, $path:literal) => {
        $crate::collection!(@ $crate::Scope::Account, $name, $path, "/accounts/{account_id}/")
    };
    (Zone, $name:literal, $path:literal) => {
        $crate::collection!(@ $crate::Scope::Zone, $name, $path, "/zones/{zone_id}/")
    };
    (Root, $name:literal, $path:literal) => {
        $crate::collection!(@ $crate::Scope::Root, $name, $path, "/")
    };
    (@ $scope:expr, $name:literal, $path:literal, $prefix:literal) => {
        $crate::Collection {
            name: $name,
            scope: $scope,
            path: $path,
            template: concat!($prefix, $path),
            item_template: concat!($prefix, $path, "/{id}"),
            per_page: 50,
            paging: $crate::Paging::Pages,
            update: $crate::Verb::Patch,
            list_query: &[],
            list_in: None,
            batch: None,
            refuses_duplicates: false,
            masked: false,
            permission: $crate::token_permission!(""),
        }
    };
}

impl Collection {
    /// One page of the listing.
    pub fn list(&self, scope_id: &str, page: &Page) -> Request {
        let mut request = self.request(Method::GET, self.template, scope_id, None);
        for (name, value) in self.list_query {
            request = request.with_query(name, *value);
        }
        match (self.paging, &page.cursor) {
            (Paging::Single | Paging::Document, _) => request,
            (Paging::Pages, _) => {
                request.with_query("page", page.number.to_string()).with_query("per_page", page.per_page.to_string())
            }
            (Paging::Cursor, None) => request.with_query("per_page", page.per_page.to_string()),
            (Paging::Cursor, Some(cursor)) => {
                request.with_query("per_page", page.per_page.to_string()).with_query("cursor", cursor.clone())
            }
        }
    }

    /// Reads one object.
    pub fn get(&self, scope_id: &str, id: &str) -> Request {
        self.object(Method::GET, scope_id, id)
    }

    /// Creates an object.
    pub fn create(&self, scope_id: &str, body: &Value) -> Request {
        self.request(Method::POST, self.template, scope_id, None).with_body(body.clone())
    }

    /// Changes an object by the collection's own verb.
    pub fn update(&self, scope_id: &str, id: &str, body: &Value) -> Request {
        let method = match self.update {
            Verb::Patch => Method::PATCH,
            Verb::Put => Method::PUT,
        };
        self.object(method, scope_id, id).with_body(body.clone())
    }

    /// Deletes an object.
    pub fn delete(&self, scope_id: &str, id: &str, query: &[(String, String)]) -> Request {
        let mut request = self.object(Method::DELETE, scope_id, id);
        request.query.extend_from_slice(query);
        request
    }

    /// An object of an answer, with the id that it is known by.
    pub(crate) fn identified(&self, mut object: Value, scope_id: &str) -> Value {
        if self.paging == Paging::Document
            && let Some(members) = object.as_object_mut()
        {
            members.insert("id".to_owned(), Value::from(scope_id));
        }
        object
    }

    fn object(&self, method: Method, scope_id: &str, id: &str) -> Request {
        match self.paging {
            Paging::Document => self.request(method, self.template, scope_id, None),
            Paging::Pages | Paging::Cursor | Paging::Single => {
                self.request(method, self.item_template, scope_id, Some(id))
            }
        }
    }

    fn request(&self, method: Method, template: &'static str, scope_id: &str, id: Option<&str>) -> Request {
        let scope = match self.scope {
            Scope::Account | Scope::Zone => Some(scope_id),
            Scope::Root => None,
        };
        let segments: Vec<&str> = scope.into_iter().chain(id).collect();
        Request { masked: self.masked, ..Request::new(method, template, &segments) }
    }
}
