//! An object → what people are told of it besides its health: what it belongs to, and in a few words what it is. Pure.

use serde_json::Value;

/// What is shown of the objects of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// What an object belongs to, where it belongs to something.
    pub under: Option<ShownLevel>,
    /// What others belong to because of it.
    pub opens: Option<ShownLevel>,
    /// The list that it stands in, of those that stand right below an account.
    pub list: &'static str,
    /// Of what sort it is: `A`, `network`.
    pub sort: ShownText,
    /// How it is called at Cloudflare.
    pub name: ShownText,
    /// Where it leads.
    pub content: ShownText,
    /// All of that in one line.
    pub line: ShownText,
}

/// What something can belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownLevel {
    /// An account, by the credentials that reach it.
    Account,
    /// A zone.
    Zone,
    /// A virtual network.
    Network,
}

/// How a word about an object is found.
#[derive(Clone, Copy, Debug)]
pub enum ShownText {
    /// It is always this.
    Is(&'static str),
    /// It stands at the first of these places that says something.
    At(&'static [&'static str]),
    /// It is made of what the object says.
    Of(fn(&Value) -> String),
}

impl ShownText {
    /// The word about an object.
    pub fn of(self, object: &Value) -> String {
        match self {
            Self::Is(text) => text.to_owned(),
            Self::At(places) => first(object, places).to_owned(),
            Self::Of(make) => make(object),
        }
    }
}

const NAME: ShownText = ShownText::At(&["/spec/name", "/metadata/name"]);

impl Shown {
    /// Something of an account that has nothing but a name.
    pub const fn named(sort: &'static str, list: &'static str) -> Self {
        Self {
            under: Some(ShownLevel::Account),
            opens: None,
            list,
            sort: ShownText::Is(sort),
            name: NAME,
            content: ShownText::Is(""),
            line: NAME,
        }
    }
}

/// Of credentials.
pub(crate) const CREDENTIALS: Shown =
    Shown { under: None, opens: Some(ShownLevel::Account), ..Shown::named("account", "") };

/// Of a domain.
pub(crate) const DOMAIN: Shown =
    Shown { opens: Some(ShownLevel::Zone), name: ShownText::At(&["/spec/domain"]), ..Shown::named("zone", "") };

/// Of a tunnel that exists.
pub(crate) const TUNNEL: Shown =
    Shown { line: ShownText::At(&["/status/tunnelId"]), ..Shown::named("tunnel", "tunnels") };

/// Of a virtual network.
pub(crate) const NETWORK: Shown = Shown { opens: Some(ShownLevel::Network), ..Shown::named("network", "") };

/// Of a route of a private network.
pub(crate) const ROUTE: Shown = Shown {
    under: Some(ShownLevel::Network),
    name: ShownText::At(&["/spec/network"]),
    content: ShownText::Of(|route| format!("tunnel {}", first(route, &["/status/tunnelName", "/spec/tunnelRef/name"]))),
    line: ShownText::Of(|route| {
        format!("{} through {}", first(route, &["/spec/network"]), first(route, &["/spec/tunnelRef/name"]))
    }),
    ..Shown::named("route", "")
};

/// Of a record.
pub(crate) const RECORD: Shown = Shown {
    under: Some(ShownLevel::Zone),
    sort: ShownText::At(&["/status/resolvedType", "/spec/type"]),
    content: ShownText::Of(content),
    name: ShownText::At(&["/spec/name"]),
    line: ShownText::Of(|record| {
        let sort = match first(record, &["/spec/type", "/status/resolvedType"]) {
            "" => "?",
            sort => sort,
        };
        format!("{sort} {}", first(record, &["/spec/name"]))
    }),
    ..Shown::named("record", "")
};

fn first<'a>(object: &'a Value, places: &[&str]) -> &'a str {
    let mut said = places.iter().filter_map(|place| object.pointer(place)?.as_str());
    said.find(|text| !text.is_empty()).unwrap_or_default()
}

/// Where a record leads; what it says in parts where it has no single text.
fn content(record: &Value) -> String {
    match first(record, &["/status/resolvedContent", "/spec/content"]) {
        "" => parts(&record["spec"]["data"]),
        content => content.to_owned(),
    }
}

/// `port 443, target sip.example.com`.
fn parts(data: &Value) -> String {
    let Some(fields) = data.as_object() else { return String::new() };
    let shown = fields.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name} {text}"),
        None => format!("{name} {value}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds;

    #[test]
    fn a_word_is_taken_from_the_first_place_that_says_something() {
        let network = json!({"metadata": {"name": "corp"}, "spec": {"name": ""}});

        assert_eq!(NETWORK.name.of(&network), "corp");
        assert_eq!(NETWORK.sort.of(&network), "network");
    }

    #[test]
    fn a_record_says_its_type_as_long_as_anybody_knows_it() {
        assert_eq!(RECORD.line.of(&json!({"spec": {"name": "www.example.com"}})), "? www.example.com");
        let resolved = json!({"spec": {"name": "www.example.com"}, "status": {"resolvedType": "AAAA"}});
        assert_eq!(RECORD.line.of(&resolved), "AAAA www.example.com");
    }

    #[test]
    fn whatever_a_kind_belongs_to_is_opened_by_another() {
        let table = kinds::table();
        for row in &table {
            let is_opened = |under| table.iter().any(|one| one.shown.opens == Some(under));
            assert!(row.shown.under.is_none_or(is_opened), "{}", row.kind);
            let is_leaf = row.shown.under == Some(ShownLevel::Account) && row.shown.opens.is_none();
            assert_eq!(
                is_leaf,
                !row.shown.list.is_empty(),
                "{} needs a list to stand in, or stands elsewhere",
                row.kind
            );
        }
    }
}
