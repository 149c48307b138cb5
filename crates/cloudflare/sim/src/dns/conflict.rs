//! Records that cannot be in a zone together.

use serde_json::Value;

use crate::{
    reply::Refusal,
    store::{Rows, id_of, text},
};

const SEE: &str = "For more details, refer to \
                   <https://developers.cloudflare.com/dns/manage-dns-records/troubleshooting/records-with-same-name/>.";

/// Refuses a record that does not go with one of the same name.
pub(super) fn check(rows: Option<&Rows>, value: &Value, zone: &str) -> Result<(), Refusal> {
    let name = text(value, "name");
    let apex = name == zone;
    let others = rows.into_iter().flat_map(|rows| rows.by_key(name));
    for other in others.filter(|other| id_of(other) != id_of(value)) {
        match (text(value, "type"), text(other, "type")) {
            ("CNAME", "A" | "AAAA" | "CNAME") => {
                let message = format!("An A, AAAA, or CNAME record with that host already exists. {SEE}");
                return Err(Refusal::bad(81053, message));
            }
            ("A" | "AAAA", "CNAME") => {
                return Err(Refusal::bad(81054, format!("A CNAME record with that host already exists. {SEE}")));
            }
            // A name that is delegated has nothing beside its name servers but the keys that sign them.
            (kind, "NS") if !apex && !matches!(kind, "NS" | "DS") => {
                return Err(Refusal::bad(81056, format!("NS records with that host already exist. {SEE}")));
            }
            ("NS", kind) if !apex && !matches!(kind, "NS" | "DS") => {
                let message = format!("An A, AAAA, or CNAME record with that host already exists. {SEE}");
                return Err(Refusal::bad(81053, message));
            }
            _ if same(value, other, &["type", "content", "priority", "ttl", "proxied"]) => {
                return Err(Refusal::bad(81058, "An identical record already exists."));
            }
            // The same content with other settings: <https://github.com/certbot/certbot/pull/10725> tells the two apart.
            _ if same(value, other, &["type", "content", "priority"]) => {
                return Err(Refusal::bad(81057, "The record already exists."));
            }
            _ => {}
        }
    }
    Ok(())
}

fn same(value: &Value, other: &Value, members: &[&str]) -> bool {
    members.iter().all(|name| value.get(name) == other.get(name))
}
