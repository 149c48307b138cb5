//! What was seen of an account by one token → findings. Pure.

use jiff::{SignedDuration, Timestamp};
use portolan_cloudflare_api::Budget;

use super::count;
use crate::doctor::check::{BUDGET, CLOCK, CLOUDFLARE, CONNECTIONS, SECRET, TOKEN, TUNNEL, ZERO_TRUST};
use crate::doctor::facts::{
    Account, Api, AskedOf, Edits, Observation, Probed, Secret, TokenFacts, TokenNeeds, TunnelFacts, is_spent,
};
use crate::doctor::finding::{CheckResult, Finding};
use crate::doctor::permission::{PermissionNeed, PermissionScope, ProbeAnswer};

/// A token that ends sooner is warned of.
const SOON: SignedDuration = SignedDuration::from_hours(14 * 24);
/// Clocks that differ by more are warned of.
const SKEW: SignedDuration = SignedDuration::from_secs(30);
/// A budget of which less than one part in this many is left is warned of.
const LITTLE: u32 = 4;

pub(super) fn judge(account: &Account) -> Vec<Finding> {
    let mut findings = vec![secret(account)];
    let Some(api) = &account.api else { return findings };
    findings.push(reachable(account, api));
    if matches!(api.token, TokenFacts::Unreached(_)) {
        return findings;
    }
    findings.push(token(account, api));
    if api.token.is_active() {
        findings.push(zero_trust(account, &api.probes));
        // What cannot be tried for want of Zero Trust is told once.
        let tried = api.probes.iter().filter(|probed| probed.read != Some(ProbeAnswer::NotEnabled));
        findings.extend(tried.map(|probed| permission(account, probed)));
        findings.extend(api.tunnels.iter().flat_map(|(id, tunnel)| self::tunnel(account, id, tunnel)));
    }
    findings.push(budget(account, api.budget));
    findings.push(clock(account, api.ahead));
    findings
}

fn secret(account: &Account) -> Finding {
    let (verdict, message) = match &account.secret {
        Secret::Found(place) => (CheckResult::Ok, place),
        Secret::Missing(why) => (CheckResult::Failed, why),
        Secret::Unreadable(why) => (CheckResult::NotKnown, why),
    };
    Finding::new(&SECRET, &account.subject, verdict, message.clone())
}

fn reachable(account: &Account, api: &Api) -> Finding {
    match &api.token {
        TokenFacts::Unreached(why) => Finding::new(&CLOUDFLARE, &account.subject, CheckResult::Failed, why.clone()),
        TokenFacts::Known { .. } | TokenFacts::Refused(_) => {
            let message = format!("answers in {} ms", api.latency.as_millis());
            Finding::new(&CLOUDFLARE, &account.subject, CheckResult::Ok, message)
        }
    }
}

fn token(account: &Account, api: &Api) -> Finding {
    let found = |verdict, message: String| Finding::new(&TOKEN, &account.subject, verdict, message);
    match &api.token {
        TokenFacts::Refused(why) | TokenFacts::Unreached(why) => {
            found(CheckResult::Failed, format!("Cloudflare does not know the token: {why}"))
        }
        TokenFacts::Known { status, .. } if status != "active" => {
            found(CheckResult::Failed, format!("the token is {status}"))
        }
        TokenFacts::Known { expires: None, .. } => found(CheckResult::Ok, "active, and does not end".to_owned()),
        TokenFacts::Known { expires: Some(end), .. } => {
            found(until(*end, api.now), format!("active, and ends {end:.0}"))
        }
    }
}

fn until(end: Timestamp, now: Timestamp) -> CheckResult {
    if end.duration_since(now) < SOON { CheckResult::Warning } else { CheckResult::Ok }
}

/// Whether the account has Access at all, by what it answered to the probes of permissions for it.
fn zero_trust(account: &Account, probes: &[Probed]) -> Finding {
    let answers: Vec<&ProbeAnswer> = probes
        .iter()
        .filter(|probed| probed.permission.is_of_access())
        .filter_map(|probed| probed.read.as_ref())
        .collect();
    let (verdict, message) = if answers.contains(&&ProbeAnswer::NotEnabled) {
        (CheckResult::Failed, format!("account {} has no Zero Trust organisation, and so no Access", account.id))
    } else if answers.contains(&&ProbeAnswer::Granted) {
        (CheckResult::Ok, "the account has Access".to_owned())
    } else {
        (CheckResult::NotKnown, "the token sees nothing of Access".to_owned())
    };
    Finding::new(&ZERO_TRUST, &account.subject, verdict, message)
}

fn permission(account: &Account, probed: &Probed) -> Finding {
    let check = &probed.permission.check;
    let (verdict, message) = match (&probed.read, &probed.write) {
        (None, _) => (CheckResult::NotKnown, "there is no zone to try it on".to_owned()),
        (Some(ProbeAnswer::NotEnabled), _) | (_, Some(ProbeAnswer::NotEnabled)) => {
            (CheckResult::NotKnown, "cannot be tried while the account has no Zero Trust".to_owned())
        }
        (Some(ProbeAnswer::Refused(why)), _) => missing(account, probed, &format!("may not look: {why}")),
        (Some(ProbeAnswer::Unknown(why)), _) | (_, Some(ProbeAnswer::Unknown(why))) => {
            (CheckResult::NotKnown, why.clone())
        }
        (_, Some(ProbeAnswer::Refused(why))) => missing(account, probed, &format!("may look, and not change: {why}")),
        (Some(ProbeAnswer::Granted), None) if probed.edits == Edits::Yes => {
            (CheckResult::NotKnown, format!("may look{}; whether it may change was not tried", on(probed)))
        }
        (Some(ProbeAnswer::Granted), _) => (CheckResult::Ok, format!("granted{}", on(probed))),
    };
    let finding = Finding::new(check, &account.subject, verdict, message);
    match &finding.next {
        Some(next) => {
            let next = format!("{next}: {}", probed.permission.name);
            finding.next(next)
        }
        None => finding,
    }
}

fn on(probed: &Probed) -> String {
    probed.zone.as_ref().map_or_else(String::new, |zone| format!(" on zone {zone}"))
}

/// The verdict on a permission that is not there, by whether anybody needs it.
fn missing(account: &Account, probed: &Probed, how: &str) -> (CheckResult, String) {
    let (name, on) = (probed.permission.name, on(probed));
    let all = match probed.permission.scope {
        PermissionScope::Account => format!("; check too that account {} is among the token's resources", account.id),
        PermissionScope::Zone => "; check too that the zone is among the token's resources".to_owned(),
    };
    let message = format!("the token lacks {name}{on}: it {how}{all}");
    match unneeded(probed.permission.need, account.needs, account.zone_id.as_deref(), probed) {
        Some(why) => (CheckResult::Warning, format!("{message}; {why}")),
        None => (CheckResult::Failed, message),
    }
}

/// Why a permission can be done without here.
fn unneeded(need: PermissionNeed, needs: TokenNeeds, zone_id: Option<&str>, probed: &Probed) -> Option<&'static str> {
    let lists_zones = probed.permission.check.id == "permission-zone";
    match need {
        PermissionNeed::Groups if needs.groups == AskedOf::No => Some("no route lets a group pass by its name"),
        PermissionNeed::Redirects if needs.redirects == AskedOf::No => Some("no route asks for a redirect"),
        PermissionNeed::Always if lists_zones && zone_id.is_some() => Some("the tenant's zoneId stands in"),
        PermissionNeed::Always | PermissionNeed::Groups | PermissionNeed::Redirects => None,
    }
}

fn tunnel(account: &Account, id: &str, tunnel: &Observation<Option<TunnelFacts>>) -> Vec<Finding> {
    let found = |verdict, message: String| Finding::new(&TUNNEL, &account.subject, verdict, message);
    let tunnel = match tunnel {
        Err(why) => return vec![found(CheckResult::NotKnown, format!("tunnel {id}: {why}"))],
        Ok(Some(tunnel)) if !tunnel.deleted => tunnel,
        Ok(_) => {
            let message = format!("tunnel {id} does not exist in account {}", account.id);
            return vec![found(CheckResult::Failed, message)];
        }
    };
    let TunnelFacts { name, config_src, .. } = tunnel;
    if config_src.as_deref() == Some("local") {
        let message = format!("tunnel {name} ({id}) takes its configuration from a file beside cloudflared");
        return vec![found(CheckResult::Failed, message)];
    }
    vec![found(CheckResult::Ok, format!("tunnel {name} ({id}) is managed at Cloudflare")), connected(account, tunnel)]
}

fn connected(account: &Account, tunnel: &TunnelFacts) -> Finding {
    let TunnelFacts { name, status, connections, .. } = tunnel;
    let verdict = if status == "healthy" { CheckResult::Ok } else { CheckResult::Warning };
    let message = format!("tunnel {name} is {status}, with {}", count(*connections, "connection"));
    Finding::new(&CONNECTIONS, &account.subject, verdict, message)
}

fn budget(account: &Account, budget: Budget) -> Finding {
    let Budget { limit, left, resets_in } = budget;
    let verdict = match left {
        _ if is_spent(budget) => CheckResult::Failed,
        left if left < limit / LITTLE => CheckResult::Warning,
        _ => CheckResult::Ok,
    };
    let message = format!("{left} of {limit} requests are left for the next {} s", resets_in.as_secs());
    Finding::new(&BUDGET, &account.subject, verdict, message)
}

fn clock(account: &Account, ahead: Option<SignedDuration>) -> Finding {
    let found = |verdict, message: String| Finding::new(&CLOCK, &account.subject, verdict, message);
    match ahead {
        None => found(CheckResult::NotKnown, "the API does not tell the time".to_owned()),
        Some(ahead) if ahead.abs() <= SKEW => {
            found(CheckResult::Ok, format!("within {} s of Cloudflare's", ahead.abs().as_secs() + 1))
        }
        Some(ahead) => {
            let side = if ahead.is_positive() { "behind" } else { "ahead of" };
            found(CheckResult::Warning, format!("{} s {side} Cloudflare's", ahead.abs().as_secs()))
        }
    }
}
