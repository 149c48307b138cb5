//! `format.dns1123Label().validate(self.name)`: `optional.none()`, or a list of what is wrong.

use cel::common::types::{CelList, CelOptional, CelString};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};

use super::opaque::opaque;
use crate::format::{StringFormat, is_request_uri};
use crate::{go, names};

/// A format by its name.
#[derive(Clone, Copy, Debug)]
struct Named {
    name: &'static str,
    check: fn(&str) -> Vec<String>,
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

opaque!(Named, NAMED, "kubernetes.NamedFormat");

const FORMATS: [Named; 13] = [
    Named { name: "dns1123Label", check: names::dns1123_label },
    Named { name: "dns1123Subdomain", check: names::dns1123_subdomain },
    Named { name: "dns1035Label", check: names::dns1035_label },
    Named { name: "qualifiedName", check: names::qualified_name },
    Named { name: "dns1123LabelPrefix", check: |text| names::dns1123_label(&unmasked(text)) },
    Named { name: "dns1123SubdomainPrefix", check: |text| names::dns1123_subdomain(&unmasked(text)) },
    Named { name: "dns1035LabelPrefix", check: |text| names::dns1035_label(&unmasked(text)) },
    Named { name: "labelValue", check: names::label_value },
    Named { name: "uri", check: uri },
    Named { name: "uuid", check: |text| simple(StringFormat::Uuid, text, "does not match the UUID format") },
    Named { name: "byte", check: |text| simple(StringFormat::Byte, text, "invalid base64") },
    Named { name: "date", check: |text| simple(StringFormat::Date, text, "invalid date") },
    Named { name: "datetime", check: |text| simple(StringFormat::DateTime, text, "invalid datetime") },
];

/// A prefix may end in a dash.
fn unmasked(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if text.len() > 1 => format!("{rest}a"),
        _ => text.to_owned(),
    }
}

fn uri(text: &str) -> Vec<String> {
    if is_request_uri(text) {
        return Vec::new();
    }
    vec![format!("parse {}: invalid URI for request", go::quote(text))]
}

fn simple(format: StringFormat, text: &str, why: &str) -> Vec<String> {
    if format.accepts(text) { Vec::new() } else { vec![why.to_owned()] }
}

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn named: (CelString<'_>) -> CelOptional<'_>, name = "format.named")?;
    add_member_overload!(env, fn validate: (Named, CelString<'_>) -> CelOptional<'_>)?;
    macro_rules! constants {
        ($($index:literal),*) => {
            $(env.add_overload(&format!("format.{}", FORMATS[$index].name), FORMATS[$index].name, vec![], constant::<$index>)?;)*
        };
    }
    constants!(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    Ok(())
}

fn constant<'b, 'v, const INDEX: usize>(_: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    Ok(CowVal::owned(FORMATS[INDEX]))
}

fn named(name: &CelString<'_>) -> CelOptional<'static> {
    let found = FORMATS.iter().find(|format| format.name == name.inner());
    found.map_or_else(CelOptional::none, |format| CelOptional::of(Box::new(*format)))
}

fn validate(this: &Named, text: &CelString<'_>) -> CelOptional<'static> {
    let wrong = (this.check)(text.inner());
    if wrong.is_empty() {
        return CelOptional::none();
    }
    let wrong: Vec<Box<dyn Val>> =
        wrong.into_iter().map(|why| Box::new(CelString::from(why)) as Box<dyn Val>).collect();
    CelOptional::of(Box::new(CelList::from(wrong)))
}
