//! [`Footprint`] ↔ one entry for each thing that is ours, wherever it is. What stands where the name now is makes up the
//! footprint itself; everything else is a former place.

use portolan_publication::{Footprint, Former, Part};

use std::collections::BTreeSet;

/// Where a name is, or is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ZoneAndTunnel {
    pub(crate) account_id: Option<String>,
    pub(crate) hostname: Option<String>,
    pub(crate) tunnel_id: Option<String>,
    pub(crate) zone_id: Option<String>,
}

/// A rule of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleHeld {
    pub(crate) tunnel_id: String,
    pub(crate) hostname: String,
    pub(crate) adopted: bool,
}

/// The two types of records that we make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    Cname,
    Address,
}

/// A record of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeld {
    pub(crate) zone_id: String,
    pub(crate) hostname: String,
    pub(crate) id: String,
    pub(crate) kind: RecordKind,
    pub(crate) ip: Option<String>,
    pub(crate) adopted: bool,
}

/// The application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AppHeld {
    pub(crate) id: String,
    /// The name it stands for; none where nobody recorded it.
    pub(crate) hostname: Option<String>,
    pub(crate) policy_ids: Vec<String>,
    pub(crate) adopted: bool,
}

/// The service token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenHeld {
    pub(crate) id: String,
    pub(crate) client_id: Option<String>,
    pub(crate) rotation: Option<String>,
    pub(crate) adopted: bool,
}

/// A redirect rule of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RedirectHeld {
    pub(crate) zone_id: String,
    pub(crate) hostname: String,
    pub(crate) ruleset_id: String,
    pub(crate) rule_id: String,
    pub(crate) adopted: bool,
}

/// Everything that is ours for a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inventory {
    pub(crate) rules: Vec<RuleHeld>,
    pub(crate) records: Vec<RecordHeld>,
    pub(crate) redirects: Vec<RedirectHeld>,
    pub(crate) app: Option<AppHeld>,
    /// Applications of names that were left while the new one was already protected by another.
    pub(crate) old_apps: Vec<AppHeld>,
    pub(crate) reusable: Vec<String>,
    pub(crate) token: Option<TokenHeld>,
    /// Why there is no redirect.
    pub(crate) redirect_refusal: Option<String>,
}

impl Inventory {
    /// What a footprint says.
    pub(crate) fn read(footprint: &Footprint) -> Self {
        portolan_core::waypoint!();
        let own = Former {
            hostname: footprint.hostname.clone().unwrap_or_default(),
            tunnel_id: footprint.tunnel_id.clone().filter(|_| footprint.has_rule),
            zone_id: footprint.zone_id.clone(),
            cname_record_id: footprint.cname_record_id.clone(),
            dns_record_id: footprint.dns_record_id.clone(),
            ..Former::default()
        };
        let mut inventory = Self::default();
        let of = |part| footprint.is_adopted(part);
        inventory.add(own.clone(), (of(Part::Rule), of(Part::Record)), footprint.dns_record_ip.clone());
        let redirect = Former {
            tunnel_id: None,
            cname_record_id: None,
            dns_record_id: None,
            redirect_rule_id: footprint.redirect_rule_id.clone(),
            redirect_ruleset_id: footprint.redirect_ruleset_id.clone(),
            adopted: of(Part::Redirect),
            ..own
        };
        for former in std::iter::once(redirect).chain(footprint.former.iter().cloned()) {
            let adopted = (former.adopted, former.adopted);
            inventory.add(former, adopted, None);
        }
        inventory.app = footprint.access_app_id.clone().map(|id| AppHeld {
            id,
            hostname: footprint.app_hostname.clone().or_else(|| footprint.hostname.clone()),
            policy_ids: footprint.access_policy_ids.clone(),
            adopted: of(Part::App),
        });
        inventory.reusable.clone_from(&footprint.reusable_policy_ids);
        inventory.redirect_refusal.clone_from(&footprint.redirect_refusal);
        inventory.token = footprint.service_token_id.clone().map(|id| TokenHeld {
            id,
            client_id: footprint.service_token_client_id.clone(),
            rotation: footprint.service_token_rotation.clone(),
            adopted: of(Part::Token),
        });
        inventory
    }

    fn add(&mut self, place: Former, (rule_adopted, record_adopted): (bool, bool), ip: Option<String>) {
        let hostname = place.hostname;
        if let Some(id) = place.access_app_id {
            let (hostname, adopted) = (Some(hostname.clone()), place.adopted);
            self.old_apps.push(AppHeld { id, hostname, policy_ids: Vec::new(), adopted });
        }
        if let Some(tunnel_id) = place.tunnel_id {
            self.rules.push(RuleHeld { tunnel_id, hostname: hostname.clone(), adopted: rule_adopted });
        }
        let Some(zone_id) = place.zone_id else { return };
        let kinds = [(place.cname_record_id, RecordKind::Cname), (place.dns_record_id, RecordKind::Address)];
        for (id, kind) in kinds.into_iter().filter_map(|(id, kind)| Some((id?, kind))) {
            let ip = ip.clone().filter(|_| kind == RecordKind::Address);
            let held = RecordHeld {
                zone_id: zone_id.clone(),
                hostname: hostname.clone(),
                id,
                kind,
                ip,
                adopted: record_adopted,
            };
            self.records.push(held);
        }
        if let (Some(rule_id), Some(ruleset_id)) = (place.redirect_rule_id, place.redirect_ruleset_id) {
            self.redirects.push(RedirectHeld { zone_id, hostname, ruleset_id, rule_id, adopted: place.adopted });
        }
    }

    /// The footprint of a name that is at `place`.
    pub(crate) fn footprint(&self, place: &ZoneAndTunnel) -> Footprint {
        let mut footprint = Footprint {
            account_id: place.account_id.clone(),
            hostname: place.hostname.clone(),
            tunnel_id: place.tunnel_id.clone(),
            zone_id: place.zone_id.clone(),
            reusable_policy_ids: self.reusable.clone(),
            redirect_refusal: self.redirect_refusal.clone(),
            ..Footprint::default()
        };
        self.rules.iter().for_each(|held| add_rule(&mut footprint, held));
        self.records.iter().for_each(|held| add_record(&mut footprint, held));
        self.redirects.iter().for_each(|held| add_redirect(&mut footprint, held));
        if let Some(app) = &self.app {
            footprint.access_app_id = Some(app.id.clone());
            footprint.app_hostname = app.hostname.clone().filter(|name| Some(name) != footprint.hostname.as_ref());
            footprint.take(Part::App, app.adopted);
        }
        footprint.former.extend(self.old_apps.iter().map(|app| Former {
            hostname: app.hostname.clone().unwrap_or_default(),
            access_app_id: Some(app.id.clone()),
            adopted: app.adopted,
            ..Former::default()
        }));
        footprint.access_policy_ids = self.policy_ids();
        if let Some(token) = &self.token {
            footprint.service_token_id = Some(token.id.clone());
            footprint.service_token_client_id.clone_from(&token.client_id);
            footprint.service_token_rotation.clone_from(&token.rotation);
            footprint.take(Part::Token, token.adopted);
        }
        footprint
    }

    /// Our policies of the application, inline or reusable; reusable ones also while nothing links them.
    fn policy_ids(&self) -> Vec<String> {
        let of_app = self.app.iter().flat_map(|app| &app.policy_ids);
        let mut seen = BTreeSet::new();
        of_app.chain(&self.reusable).filter(|id| seen.insert(id.as_str())).cloned().collect()
    }

    /// The names at which something of ours stands.
    pub(crate) fn hostnames(&self) -> BTreeSet<&str> {
        let rules = self.rules.iter().map(|held| held.hostname.as_str());
        let records = self.records.iter().map(|held| held.hostname.as_str());
        rules.chain(records).collect()
    }

    /// Whether requests for a name can arrive.
    pub(crate) fn publishes(&self, hostname: &str) -> bool {
        self.hostnames().contains(hostname)
    }
}

fn add_rule(footprint: &mut Footprint, held: &RuleHeld) {
    if footprint.is_at(&held.hostname) && footprint.tunnel_id.as_ref() == Some(&held.tunnel_id) && !footprint.has_rule {
        footprint.has_rule = true;
        footprint.take(Part::Rule, held.adopted);
        return;
    }
    footprint.former.push(Former {
        hostname: held.hostname.clone(),
        tunnel_id: Some(held.tunnel_id.clone()),
        adopted: held.adopted,
        ..Former::default()
    });
}

fn add_record(footprint: &mut Footprint, held: &RecordHeld) {
    let here = footprint.is_at(&held.hostname) && footprint.zone_id.as_ref() == Some(&held.zone_id);
    let slot = match held.kind {
        RecordKind::Cname => &mut footprint.cname_record_id,
        RecordKind::Address => &mut footprint.dns_record_id,
    };
    if here && slot.is_none() {
        *slot = Some(held.id.clone());
        if held.kind == RecordKind::Address {
            footprint.dns_record_ip.clone_from(&held.ip);
        }
        footprint.take(Part::Record, held.adopted);
        return;
    }
    let mut former = Former {
        hostname: held.hostname.clone(),
        zone_id: Some(held.zone_id.clone()),
        adopted: held.adopted,
        ..Former::default()
    };
    match held.kind {
        RecordKind::Cname => former.cname_record_id = Some(held.id.clone()),
        RecordKind::Address => former.dns_record_id = Some(held.id.clone()),
    }
    footprint.former.push(former);
}

fn add_redirect(footprint: &mut Footprint, held: &RedirectHeld) {
    let here = footprint.is_at(&held.hostname) && footprint.zone_id.as_ref() == Some(&held.zone_id);
    if here && footprint.redirect_rule_id.is_none() {
        footprint.redirect_rule_id = Some(held.rule_id.clone());
        footprint.redirect_ruleset_id = Some(held.ruleset_id.clone());
        footprint.take(Part::Redirect, held.adopted);
        return;
    }
    footprint.former.push(Former {
        hostname: held.hostname.clone(),
        zone_id: Some(held.zone_id.clone()),
        redirect_rule_id: Some(held.rule_id.clone()),
        redirect_ruleset_id: Some(held.ruleset_id.clone()),
        adopted: held.adopted,
        ..Former::default()
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "nearly every field is optional")]
    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn place(hostname: &str, tunnel: &str, zone: &str) -> ZoneAndTunnel {
        ZoneAndTunnel {
            account_id: some("acc"),
            hostname: some(hostname),
            tunnel_id: some(tunnel),
            zone_id: some(zone),
        }
    }

    fn footprint() -> Footprint {
        Footprint {
            account_id: some("acc"),
            hostname: some("a.x.com"),
            tunnel_id: some("t1"),
            zone_id: some("z1"),
            has_rule: true,
            cname_record_id: some("r1"),
            access_app_id: some("app"),
            access_policy_ids: vec!["p1".to_owned()],
            service_token_id: some("tok"),
            redirect_rule_id: some("rr"),
            redirect_ruleset_id: some("rs"),
            adopted: [Part::Record].into(),
            ..Footprint::default()
        }
    }

    #[test]
    fn a_footprint_that_is_read_and_written_at_its_own_place_is_the_same() {
        let footprint = footprint();

        assert_eq!(Inventory::read(&footprint).footprint(&place("a.x.com", "t1", "z1")), footprint);
    }

    #[test]
    fn nothing_is_forgotten_when_the_name_moves_and_all_is_found_again_when_it_moves_back() {
        let there = Inventory::read(&footprint()).footprint(&place("b.x.com", "t2", "z2"));

        assert!(!there.is_published());
        assert_eq!((there.former.len(), there.app_hostname.as_deref()), (3, Some("a.x.com")));
        assert_eq!(Inventory::read(&there).footprint(&place("a.x.com", "t1", "z1")), footprint());
    }
}
