//! `url("https://example.com:80/a").getHost()`.

use std::collections::{BTreeMap, HashMap};

use cel::common::types::{CelBool, CelList, CelMap, CelMapKey, CelString};
use cel::common::value::Val;
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};

use super::failure;
use super::opaque::opaque;
use crate::go;
use crate::url::Url;

#[derive(Clone, Debug, PartialEq)]
struct CelUrl(Url);

opaque!(CelUrl, ADDRESS, "kubernetes.URL");

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn url: (CelString<'_>) -> Result<CelUrl>, name = "url")?;
    add_overload!(env, fn is_url: (CelString<'_>) -> CelBool, name = "isURL")?;
    add_member_overload!(env, fn get_scheme: (CelUrl) -> CelString<'_>)?;
    add_member_overload!(env, fn get_host: (CelUrl) -> CelString<'_>)?;
    add_member_overload!(env, fn get_hostname: (CelUrl) -> CelString<'_>)?;
    add_member_overload!(env, fn get_port: (CelUrl) -> CelString<'_>)?;
    add_member_overload!(env, fn get_escaped_path: (CelUrl) -> CelString<'_>)?;
    add_member_overload!(env, fn get_query: (CelUrl) -> CelMap<'_>)?;
    Ok(())
}

fn url(text: &CelString<'_>) -> Result<CelUrl, ExecutionError> {
    let text = text.inner();
    let whole = Url::parse_request(text).ok_or_else(|| {
        failure(format!(
            "URL parse error during conversion from string: parse {}: invalid URI for request",
            go::quote(text)
        ))
    })?;
    // A fragment belongs to neither path nor query.
    let without_fragment = text.split_once('#').and_then(|(text, _)| Url::parse_request(text));
    Ok(CelUrl(without_fragment.unwrap_or(whole)))
}

fn is_url(text: &CelString<'_>) -> CelBool {
    Url::parse_request(text.inner()).is_some().into()
}

fn get_scheme(this: &CelUrl) -> CelString<'static> {
    this.0.scheme.clone().into()
}

fn get_host(this: &CelUrl) -> CelString<'static> {
    this.0.host.clone().into()
}

fn get_hostname(this: &CelUrl) -> CelString<'static> {
    this.0.hostname().to_owned().into()
}

fn get_port(this: &CelUrl) -> CelString<'static> {
    this.0.port().to_owned().into()
}

fn get_escaped_path(this: &CelUrl) -> CelString<'static> {
    this.0.escaped_path.clone().into()
}

fn get_query(this: &CelUrl) -> CelMap<'static> {
    let mut values: BTreeMap<String, Vec<Box<dyn Val>>> = BTreeMap::new();
    for (key, value) in this.0.query_pairs() {
        values.entry(key).or_default().push(Box::new(CelString::from(value)));
    }
    let entries: HashMap<CelMapKey<'static>, Box<dyn Val>> = values
        .into_iter()
        .map(|(key, values)| (CelMapKey::from(key), Box::new(CelList::from(values)) as Box<dyn Val>))
        .collect();
    CelMap::from(entries)
}
