//! Makes in the simulator what objects take for granted, each thing once.

use portolan_cloudflare_sim::{Grant, Simulator};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::wanted::{WantedAtCloudflare, WantedTunnel, WantedZone};

/// Zones are made on the plan with the fewest limits: the simulator stands for whatever account is meant.
const PLAN: &str = "enterprise";

/// Makes what is missing and says what that was, a phrase for each thing.
pub(crate) fn seed(simulator: &Simulator, wanted: &WantedAtCloudflare) -> Vec<String> {
    let mut made = Vec::new();
    for (id, name) in &wanted.accounts {
        if simulator.object("accounts", id).is_none() {
            let name = if name.is_empty() { "Simulated" } else { name.as_str() };
            simulator.add_account_with_id(id, name);
            made.push(format!("account {id}"));
        }
    }
    for (name, zone) in &wanted.zones {
        match add_zone(simulator, name, zone) {
            Ok(true) => made.push(format!("zone {name}")),
            Ok(false) => {}
            Err(error) => made.push(format!("no zone {name}, because the simulator refused it ({error})")),
        }
    }
    made.extend(wanted.tunnels.iter().filter_map(|tunnel| add_tunnel(simulator, tunnel)));
    made.extend(seed_credentials(simulator, wanted));
    made
}

fn add_zone(simulator: &Simulator, name: &str, zone: &WantedZone) -> Result<bool, String> {
    let zones = simulator.objects("zones", "");
    if let Some(found) = zones.iter().find(|found| found["name"] == name) {
        let is_same = found["account"]["id"] == zone.account.as_str()
            && zone.id.as_ref().is_none_or(|id| found["id"] == id.as_str());
        if is_same || !is_untouched(simulator, found) {
            return Ok(false);
        }
        simulator.remove("zones", found["id"].as_str().unwrap_or_default());
    }
    match &zone.id {
        Some(id) => simulator.add_zone_with_id(id, name, &zone.account, PLAN)?,
        None => drop(simulator.add_zone(name, &zone.account, PLAN)?),
    }
    Ok(true)
}

/// Makes a tunnel unless it is there, and says so.
fn add_tunnel(simulator: &Simulator, tunnel: &WantedTunnel) -> Option<String> {
    let is_meant = |found: &Value| match &tunnel.id {
        Some(id) => found["id"] == id.as_str(),
        None => found["name"] == tunnel.name.as_str() && found["deleted_at"].is_null(),
    };
    if simulator.objects("cfd_tunnel", &tunnel.account).iter().any(is_meant) {
        return None;
    }
    let mut object = json!({"name": tunnel.name, "config_src": "cloudflare"});
    if let Some(id) = &tunnel.id {
        object["id"] = json!(id);
    }
    Some(match simulator.put("cfd_tunnel", &tunnel.account, object) {
        Ok(_) => format!("tunnel {}", tunnel.name),
        Err(error) => format!("no tunnel {}, because the simulator refused it ({error})", tunnel.name),
    })
}

/// A zone without records can be made again elsewhere.
fn is_untouched(simulator: &Simulator, zone: &Value) -> bool {
    simulator.objects("dns_records", zone["id"].as_str().unwrap_or_default()).is_empty()
}

fn seed_credentials(simulator: &Simulator, wanted: &WantedAtCloudflare) -> Option<String> {
    for token in &wanted.tokens {
        simulator.add_token(token.expose_secret(), Grant::all());
    }
    for (email, key) in &wanted.keys {
        simulator.add_key(email, key.expose_secret(), Grant::all().email(email));
    }
    match wanted.tokens.len() + wanted.keys.len() {
        0 => None,
        1 => Some("a token".to_owned()),
        count => Some(format!("{count} tokens")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use portolan_cloudflare_sim::Options;

    use super::*;

    fn wanted(account: &str) -> WantedAtCloudflare {
        WantedAtCloudflare {
            accounts: BTreeMap::from([(account.to_owned(), "Ours".to_owned())]),
            zones: BTreeMap::from([("example.com".to_owned(), WantedZone { id: None, account: account.to_owned() })]),
            ..WantedAtCloudflare::default()
        }
    }

    #[test]
    fn everything_is_made_once() {
        let simulator = Simulator::new(Options::default());

        assert_eq!(seed(&simulator, &wanted("a1")), ["account a1", "zone example.com"]);
        assert!(seed(&simulator, &wanted("a1")).is_empty());
    }

    #[test]
    fn tunnels_are_made_once_with_the_id_that_objects_know() {
        let simulator = Simulator::new(Options::default());
        let tunnel = |id: Option<&str>, name: &str| WantedTunnel {
            account: "a1".to_owned(),
            id: id.map(str::to_owned),
            name: name.to_owned(),
        };
        let id = "11111111-2222-3333-4444-555555555555";
        let mut wanted = wanted("a1");
        wanted.tunnels = [tunnel(Some(id), "home"), tunnel(None, "office")].into();

        assert_eq!(seed(&simulator, &wanted)[2..], ["tunnel office", "tunnel home"]);
        assert!(seed(&simulator, &wanted).is_empty());
        assert!(simulator.object("cfd_tunnel", id).is_some());
    }

    #[test]
    fn a_zone_without_records_moves_to_the_account_that_is_meant() {
        let simulator = Simulator::new(Options::default());
        simulator.seed_example();

        seed(&simulator, &wanted("a1"));

        let zones = simulator.objects("zones", "");
        let zone = zones.iter().find(|zone| zone["name"] == "example.com").unwrap();
        assert_eq!(zone["account"]["id"], "a1");
    }

    #[test]
    fn a_zone_with_records_stays_where_it_is() {
        let simulator = Simulator::new(Options::default());
        simulator.seed_example();
        let record = serde_json::json!({"type": "A", "name": "www.example.com", "content": "192.0.2.1", "ttl": 1});
        simulator.put("dns_records", "00000000000000000000000000000001", record).unwrap();

        assert_eq!(seed(&simulator, &wanted("a1")), ["account a1"]);
    }
}
