//! A request's path and query → what is asked for.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::status::ApiError;

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestRoute {
    /// `/`: every path that is served.
    Root,
    /// `/healthz`, `/livez`, `/readyz` and what is below them.
    Health,
    /// `/version`.
    Version,
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    GroupVersion(String, String),
    /// `/openapi/v2`, `/openapi/v3`, or a document below it.
    OpenApi,
    /// An object or a collection.
    Resource(RequestTarget),
    /// Anything else.
    Unknown,
}

/// An object, a collection or a subresource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestTarget {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    /// Empty for all namespaces and for kinds without one.
    pub(crate) namespace: String,
    /// Empty for the collection.
    pub(crate) name: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
    /// The path began with `watch/`.
    pub(crate) legacy_watch: bool,
}

/// Finds what a path leads to.
pub(crate) fn route(path: &str) -> RequestRoute {
    let decoded: Cow<'_, str> = percent_decode_str(path).decode_utf8_lossy();
    let inner = decoded.trim_matches('/');
    if inner.contains("//") {
        return RequestRoute::Unknown;
    }
    let parts: Vec<&str> = inner.split('/').filter(|p| !p.is_empty()).collect();
    match parts.as_slice() {
        [] => RequestRoute::Root,
        ["healthz" | "livez" | "readyz", ..] => RequestRoute::Health,
        ["version"] => RequestRoute::Version,
        ["openapi", "v2"] | ["openapi", "v3", ..] => RequestRoute::OpenApi,
        ["api"] => RequestRoute::CoreVersions,
        ["api", version] => RequestRoute::GroupVersion(String::new(), (*version).to_owned()),
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis"] => RequestRoute::Groups,
        ["apis", group] => RequestRoute::Group((*group).to_owned()),
        ["apis", group, version] => RequestRoute::GroupVersion((*group).to_owned(), (*version).to_owned()),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        _ => RequestRoute::Unknown,
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> RequestRoute {
    let (legacy_watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        _ => (false, rest),
    };
    let own = |s: &str| s.to_owned();
    let target = RequestTarget { group: own(group), version: own(version), legacy_watch, ..RequestTarget::default() };
    let target = match rest {
        // The namespace itself and its subresources.
        ["namespaces", name] if group.is_empty() => {
            RequestTarget { plural: own("namespaces"), name: own(name), ..target }
        }
        ["namespaces", name, sub @ ("status" | "finalize")] if group.is_empty() => {
            RequestTarget { plural: own("namespaces"), name: own(name), subresource: own(sub), ..target }
        }
        ["namespaces", namespace, plural, below @ ..] => {
            RequestTarget { namespace: own(namespace), ..below_plural(target, plural, below) }
        }
        [plural, below @ ..] => below_plural(target, plural, below),
        [] => return RequestRoute::Unknown,
    };
    RequestRoute::Resource(target)
}

fn below_plural(target: RequestTarget, plural: &str, below: &[&str]) -> RequestTarget {
    let name = below.first().copied().unwrap_or_default().to_owned();
    let subresource = below.get(1..).map(|s| s.join("/")).unwrap_or_default();
    RequestTarget { plural: plural.to_owned(), name, subresource, ..target }
}

/// A query string, decoded, in its order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let decode = |part: &str| {
            let spaced = part.replace('+', " ");
            percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
        };
        let pairs = text
            .split('&')
            .filter(|p| !p.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(key, value)| (decode(key), decode(value)))
            .collect();
        Self { pairs }
    }

    /// The first value of a parameter; empty where it is absent.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.find(name).unwrap_or_default()
    }

    /// The first value of a parameter.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Every value of a parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A whole number; an error where it is none.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let bad = |text: &str| ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"));
        self.find(name).filter(|t| !t.is_empty()).map(|text| text.parse().map_err(|_| bad(text))).transpose()
    }

    /// A flag as Kubernetes reads it: present without a value is true, `0` and `false` are false.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.find(name).is_some_and(|value| !matches!(value, "0" | "false" | "False" | "FALSE"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> RequestTarget {
        match route(path) {
            RequestRoute::Resource(target) => target,
            other => panic!("{path} leads to {other:?}"),
        }
    }

    #[test]
    fn paths_lead_to_objects_collections_and_subresources() {
        let one = target("/apis/apps/v1/namespaces/web/deployments/a/status");
        assert_eq!((one.namespace.as_str(), one.name.as_str(), one.subresource.as_str()), ("web", "a", "status"));
        let namespace = target("/api/v1/namespaces/web");
        assert_eq!((namespace.plural.as_str(), namespace.name.as_str()), ("namespaces", "web"));
        let all = target("/api/v1/configmaps");
        assert_eq!((all.namespace.as_str(), all.name.as_str()), ("", ""));
        assert!(target("/api/v1/watch/namespaces/web/pods").legacy_watch);
        assert_eq!(target("/api/v1/namespaces/web/finalize").subresource, "finalize");
    }

    #[test]
    fn queries_are_decoded() {
        let query = Query::parse("labelSelector=a%3Db%2Cc&watch&limit=5&dryRun=All&dryRun=x&pretty=0&q=a+b");

        assert_eq!(query.get("labelSelector"), "a=b,c");
        assert!(query.flag("watch"));
        assert!(!query.flag("pretty"));
        assert_eq!(query.get("q"), "a b");
        assert_eq!(query.all("dryRun").collect::<Vec<_>>(), ["All", "x"]);
    }
}
