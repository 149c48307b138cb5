//! Who changed what: one entry for every write, newest first.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::{
    call::RoutedCall,
    page::Paging,
    reply::{Refusal, Reply, Success, to_text},
    state::State,
};

const KEPT: usize = 50_000;

/// One change.
#[derive(Clone, Debug)]
pub(crate) struct AuditEntry {
    pub(crate) at: String,
    pub(crate) account: String,
    pub(crate) zone: String,
    pub(crate) action: &'static str,
    pub(crate) resource: &'static str,
    pub(crate) resource_id: String,
    pub(crate) email: String,
    pub(crate) interface: &'static str,
}

/// All changes that are still remembered.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    entries: VecDeque<(u64, AuditEntry)>,
    next: u64,
}

impl Audit {
    pub(crate) fn add(&mut self, entry: AuditEntry) {
        self.entries.push_back((self.next, entry));
        self.next += 1;
        if self.entries.len() > KEPT {
            self.entries.pop_front();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

fn show((number, entry): &(u64, AuditEntry)) -> Value {
    json!({
        "id": format!("00000000-0000-4000-a000-{number:012x}"),
        "action": {"result": true, "type": entry.action},
        "actor": {"id": "f6b5de0326bb5182b8a4840ee01ec774", "email": entry.email, "ip": "198.51.100.1", "type": "user"},
        "interface": entry.interface,
        "metadata": {"zone_name": entry.zone},
        "newValue": "", "oldValue": "",
        "owner": {"id": entry.account},
        "resource": {"id": entry.resource_id, "type": entry.resource},
        "when": entry.at,
    })
}

const PAGING: Paging = Paging::Pages { default: 100, min: 1, max: 1000 };
const PARAMETERS: [&str; 12] = [
    "id",
    "action.type",
    "actor.email",
    "actor.ip",
    "before",
    "since",
    "direction",
    "export",
    "hide_user_logs",
    "page",
    "per_page",
    "zone.name",
];

/// `GET /accounts/{account_id}/audit_logs`
pub(crate) fn list(state: &mut State, call: &RoutedCall) -> Reply {
    if let Some((name, _)) = call.query.iter().find(|(name, _)| !PARAMETERS.contains(&name.as_str())) {
        return Err(Refusal::bad(1003, format!("Unknown query parameter \"{name}\".")));
    }
    let page = PAGING.read(call, state.options.largest_page)?;
    let account = call.param("account_id");
    let is = |name, value: &str| call.query_one(name).is_none_or(|wanted| wanted == value);
    let fits = |entry: &AuditEntry| {
        entry.account == account
            && is("action.type", entry.action)
            && is("actor.email", &entry.email)
            && is("zone.name", &entry.zone)
            && call.query_one("since").is_none_or(|since| entry.at.as_str() >= since)
            && call.query_one("before").is_none_or(|before| entry.at.as_str() < before)
    };
    let mut found: Vec<_> = state.audit.entries.iter().filter(|(_, entry)| fits(entry)).collect();
    if call.query_one("direction") != Some("asc") {
        found.reverse();
    }
    let (shown, info) = page.cut(found);
    let shown: Vec<Value> = shown.into_iter().map(show).collect();
    Ok(Success { status: 200, result: to_text(&shown), info: Some(info) })
}
