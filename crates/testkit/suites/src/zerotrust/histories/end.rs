//! Whether everything is as the users last said.

use serde_json::{Value, json};

use super::SECOND_TUNNEL;
use super::wanted::{RouteWish, Users};
use crate::world::World;
use crate::zerotrust::RouteWorld as _;
use crate::zerotrust::{TUNNEL, rules};

/// What is not as it should be in the end.
pub(in crate::zerotrust) async fn unfinished(world: &World, users: &Users) -> Vec<String> {
    let mut found = Vec::new();
    let claims = users.claims();
    for (hostname, claims) in &claims {
        match claims.as_slice() {
            [(number, asked)] => found.extend(difference(world, users, *number, asked).await),
            several => found.extend(nobodys(world, users, hostname, several).await),
        }
    }
    // A route that lost its new name to another keeps the one it had.
    let losers: Vec<usize> = claims.values().filter(|all| all.len() > 1).flatten().map(|(number, _)| *number).collect();
    let kept = |name: &str| losers.iter().any(|loser| is_of_route(name, *loser));
    found.extend(extra(world, |name| claims.contains_key(name) || kept(name)));
    for tenant in world.cluster.list("CloudflareZeroTrustTenant").await {
        let ready = crate::cluster::ready_of(&tenant);
        let partly = ready == "False/PartialFailure" && !losers.is_empty();
        if ready != "True/ReconcileSuccess" && !partly {
            found.push(format!("tenant {} is {ready}", tenant["metadata"]["name"]));
        }
    }
    found.extend(world.tasks().await.iter().map(|task| format!("a task: {}", task["status"])));
    for route in world.cluster.list("HTTPRoute").await {
        if !route["metadata"]["deletionTimestamp"].is_null() {
            found.push(format!("{} is still going", route["metadata"]["name"]));
        }
    }
    found
}

/// Of several routes that want a name one has it: the name is as that one says.
async fn nobodys(world: &World, users: &Users, hostname: &str, claims: &[(usize, &RouteWish)]) -> Option<String> {
    let mut differences = Vec::new();
    for (number, asked) in claims {
        differences.push(difference(world, users, *number, asked).await?);
    }
    Some(format!("{hostname} is as none of those want it who do: {}", differences.join("; ")))
}

/// Whether a name is one that only this route ever asks for: `r1.…`, `r1-….…`, `g1.…`, `*.w1.…`.
fn is_of_route(name: &str, number: usize) -> bool {
    let label = name.trim_start_matches("*.");
    ["r", "g", "w"]
        .iter()
        .any(|letter| label.strip_prefix(&format!("{letter}{number}")).is_some_and(|rest| rest.starts_with(['.', '-'])))
}

/// Names that stand though nobody wants them.
fn extra(world: &World, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let records = world.cloudflare.all("dns_records").into_iter().map(|one| one["name"].clone());
    let apps = world.cloudflare.all("access_apps").into_iter().map(|one| one["domain"].clone());
    let names = records.chain(apps).filter_map(|name| name.as_str().map(str::to_owned));
    names
        .filter(|name| !name.starts_with("theirs") && !is_wanted(name))
        .map(|name| format!("{name} still stands"))
        .collect()
}

async fn difference(world: &World, users: &Users, number: usize, asked: &RouteWish) -> Option<String> {
    let name = world.name(&asked.hostname);
    let who = format!("r{number} ({})", asked.hostname);
    let records = name.records();
    let [record] = records.as_slice() else { return Some(format!("{who}: {} records", records.len())) };
    if asked.direct {
        let right = record["type"] == "A" && name.apps().is_empty() && record["content"] == "10.9.8.7";
        return (!right).then(|| format!("{who}: not an address alone"));
    }
    let tunnel = if asked.tenant == "second" { SECOND_TUNNEL } else { TUNNEL };
    let origin = users.origin_of(asked);
    if record["content"] != format!("{tunnel}.cfargotunnel.com") {
        return Some(format!("{who}: points to {}", record["content"]));
    }
    let walled: Vec<bool> = rules(world, tunnel, &asked.hostname).iter().map(is_walled).collect();
    if walled.iter().any(|walled| *walled != users.emails(asked).is_some()) {
        return Some(format!("{who}: rules that ask for the application: {walled:?}"));
    }
    let rules: Vec<Value> = rules(world, tunnel, &asked.hostname).into_iter().map(unwalled).collect();
    if rules != [json!({ "hostname": asked.hostname, "service": origin })] {
        return Some(format!("{who}: rules {rules:?} instead of {origin}"));
    }
    protection(world, users, number, asked).await.map(|what| format!("{who}: {what}"))
}

async fn protection(world: &World, users: &Users, number: usize, asked: &RouteWish) -> Option<String> {
    let visited = asked.hostname.replacen('*', "a", 1);
    let name = world.name(&visited);
    let Some(emails) = users.emails(asked) else {
        return (!name.is_public()).then(|| "is not public".to_owned());
    };
    if name.is_public() {
        return Some("is public".to_owned());
    }
    for email in ["ann@example.com", "bob@example.com", "cy@example.com", "guest@example.com", "anybody@example.com"] {
        let wanted =
            emails.contains(&email) || (emails.contains(&"anybody@example.com") && email.ends_with("@example.com"));
        if name.lets_in(email) != wanted {
            return Some(format!("{email} should be {}", if wanted { "let in" } else { "kept out" }));
        }
    }
    let opens = name.opens_with_token_of(&format!("{}/r{number}", asked.namespace())).await;
    (opens != asked.token).then(|| format!("the token should {}open it", if asked.token { "" } else { "not " }))
}

/// Whether a rule lets nobody pass who did not pass Access.
fn is_walled(rule: &Value) -> bool {
    rule["originRequest"]["access"]["required"] == true
}

/// A rule without what it asks of Access.
pub(in crate::zerotrust) fn unwalled(mut rule: Value) -> Value {
    if let Some(settings) = rule["originRequest"].as_object_mut() {
        settings.remove("access");
    }
    if rule["originRequest"].as_object().is_none_or(serde_json::Map::is_empty)
        && let Some(members) = rule.as_object_mut()
    {
        members.remove("originRequest");
    }
    rule
}
