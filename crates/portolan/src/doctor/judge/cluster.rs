//! What was seen of a cluster → findings. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{count, some_of};
use crate::doctor::check::{
    CLUSTER, DEFINITIONS, DEPLOYMENTS, GATEWAY_API, LEADER, OLDER_OPERATOR, RBAC, ROUTES, TENANTS,
};
use crate::doctor::definition::DefinitionState;
use crate::doctor::facts::{Cluster, Deployment, Inside, Lease, Observation, Rights, Whose};
use crate::doctor::finding::{CheckResult, Finding};

const SUBJECT: &str = "cluster";
/// An API server that takes longer slows everything down.
const SLOW: Duration = Duration::from_secs(2);
/// How many missing things are named.
const NAMED: usize = 8;

pub(super) fn judge(cluster: &Cluster) -> Vec<Finding> {
    let mut findings = vec![reachable(cluster)];
    if let Some(inside) = &cluster.inside {
        findings.push(definitions(inside));
        findings.push(gateway_api(&inside.routes_served));
        findings.push(rbac(&inside.rights));
        findings.extend(leaders(inside, cluster.now));
        findings.extend(deployments(inside));
        findings.push(tenants(&inside.tenants));
        findings.extend(routes(inside));
    }
    findings
}

fn reachable(cluster: &Cluster) -> Finding {
    let place = &cluster.place;
    match &cluster.version {
        Err(why) => Finding::new(&CLUSTER, SUBJECT, CheckResult::Failed, why.clone()),
        Ok((version, latency)) => {
            let verdict = if *latency > SLOW { CheckResult::Warning } else { CheckResult::Ok };
            let message = format!("{place} is {version} and answers in {} ms", latency.as_millis());
            Finding::new(&CLUSTER, SUBJECT, verdict, message)
        }
    }
}

fn definitions(inside: &Inside) -> Finding {
    let mut wrong = Vec::new();
    let mut unknown = Vec::new();
    for definition in &inside.definitions {
        let name = &definition.name;
        match &definition.state {
            DefinitionState::Current => {}
            DefinitionState::Missing => wrong.push(format!("{name} is missing")),
            DefinitionState::Differs(place) => wrong.push(format!("{name} is of another version ({place})")),
            DefinitionState::NotEstablished(why) => wrong.push(format!("{name} is not served yet: {why}")),
            DefinitionState::NotKnown(why) => unknown.push(why.as_str()),
        }
    }
    let all = inside.definitions.len();
    match (wrong.is_empty(), unknown.first()) {
        (false, _) => Finding::new(&DEFINITIONS, SUBJECT, CheckResult::Failed, wrong.join("; ")),
        (true, Some(why)) => Finding::new(&DEFINITIONS, SUBJECT, CheckResult::NotKnown, *why),
        (true, None) => {
            let message = format!("{} of this version", count(all, "definition"));
            Finding::new(&DEFINITIONS, SUBJECT, CheckResult::Ok, message)
        }
    }
}

fn gateway_api(served: &Observation<bool>) -> Finding {
    let (verdict, message) = match served {
        Ok(true) => (CheckResult::Ok, "HTTPRoute is served in v1"),
        Ok(false) => (CheckResult::Failed, "HTTPRoute is not served in v1"),
        Err(why) => (CheckResult::NotKnown, why.as_str()),
    };
    Finding::new(&GATEWAY_API, SUBJECT, verdict, message)
}

fn rbac(rights: &Rights) -> Finding {
    let Rights { role, whose, asked, missing } = rights;
    match missing {
        Err(why) => Finding::new(&RBAC, SUBJECT, CheckResult::NotKnown, why.clone()),
        Ok(missing) if missing.is_empty() => {
            let message = format!("{whose} may do all {asked} things that the role {role} needs");
            Finding::new(&RBAC, SUBJECT, CheckResult::Ok, message)
        }
        Ok(missing) => {
            let message = format!("for the role {role}, {whose} may not: {}", some_of(missing, NAMED));
            Finding::new(&RBAC, SUBJECT, CheckResult::Failed, message)
        }
    }
}

fn leaders(inside: &Inside, now: Timestamp) -> Vec<Finding> {
    let found = |verdict, message: String| Finding::new(&LEADER, SUBJECT, verdict, message);
    match &inside.leases {
        Err(why) => vec![found(CheckResult::NotKnown, why.clone())],
        Ok(leases) if leases.is_empty() => {
            let message = format!(
                "there is no lease in {}: no process has led yet, or the operator runs without election",
                inside.operator_namespace
            );
            vec![found(CheckResult::NotKnown, message)]
        }
        Ok(leases) => leases.iter().map(|lease| leader(lease, now)).collect(),
    }
}

fn leader(lease: &Lease, now: Timestamp) -> Finding {
    let name = &lease.name;
    let found = |verdict, message: String| Finding::new(&LEADER, SUBJECT, verdict, message);
    let (Some(holder), Some(renewed)) = (&lease.holder, lease.renewed) else {
        return found(CheckResult::Warning, format!("{name} is free: nobody leads"));
    };
    let silent = now.duration_since(renewed);
    let length = SignedDuration::try_from(lease.duration).unwrap_or(SignedDuration::MAX);
    if silent > length {
        let message = format!("{name} was last renewed {} s ago by {holder}: nobody leads", silent.as_secs());
        return found(CheckResult::Warning, message);
    }
    let since = lease.since.map_or_else(String::new, |since| format!(" since {since:.0}"));
    found(CheckResult::Ok, format!("{name} is held by {holder}{since}"))
}

fn deployments(inside: &Inside) -> Vec<Finding> {
    let all = match &inside.deployments {
        Err(why) => return vec![Finding::new(&DEPLOYMENTS, SUBJECT, CheckResult::NotKnown, why.clone())],
        Ok(all) => all,
    };
    let of = |whose| all.iter().filter(move |deployment: &&Deployment| deployment.whose == whose);
    let ours: Vec<&Deployment> = of(Whose::Ours).collect();
    let older: Vec<&Deployment> = of(Whose::Older).filter(|deployment| deployment.wanted > 0).collect();
    let mut findings: Vec<Finding> = ours.iter().map(|deployment| ready(deployment)).collect();
    if ours.is_empty() {
        let message =
            format!("there is none in {}: the operator runs elsewhere, or not at all", inside.operator_namespace);
        findings.push(Finding::new(&DEPLOYMENTS, SUBJECT, CheckResult::NotKnown, message));
    }
    findings.push(alone(&older));
    findings
}

fn ready(deployment: &Deployment) -> Finding {
    let Deployment { name, wanted, ready, .. } = deployment;
    let verdict = match (*wanted, *ready) {
        (0, _) => CheckResult::Warning,
        (wanted, ready) if ready < wanted => CheckResult::Failed,
        _ => CheckResult::Ok,
    };
    Finding::new(&DEPLOYMENTS, SUBJECT, verdict, format!("{name} has {ready} of {wanted} pods ready"))
}

fn alone(older: &[&Deployment]) -> Finding {
    if older.is_empty() {
        return Finding::new(&OLDER_OPERATOR, SUBJECT, CheckResult::Ok, "none is running");
    }
    let named: Vec<String> = older.iter().map(|one| format!("{} ({})", one.name, one.image)).collect();
    let message = format!("still running: {}", some_of(&named, NAMED));
    let commands: Vec<String> = older.iter().filter_map(|one| scale_down(&one.name)).collect();
    Finding::new(&OLDER_OPERATOR, SUBJECT, CheckResult::Failed, message).next(commands.join("; "))
}

fn scale_down(name: &str) -> Option<String> {
    let (namespace, name) = name.split_once('/')?;
    Some(format!("kubectl scale deployment {name} -n {namespace} --replicas=0"))
}

fn tenants(tenants: &Observation<usize>) -> Finding {
    let (verdict, message) = match tenants {
        Err(why) => (CheckResult::NotKnown, why.clone()),
        Ok(0) => (CheckResult::Warning, "there is none".to_owned()),
        Ok(number) => (CheckResult::Ok, format!("{} to look at", count(*number, "tenant"))),
    };
    Finding::new(&TENANTS, SUBJECT, verdict, message)
}

fn routes(inside: &Inside) -> Option<Finding> {
    inside.tenants.as_ref().ok()?;
    let strays = &inside.stray_routes;
    if strays.is_empty() {
        let message = format!("{} can be published", count(inside.enabled_routes, "enabled route"));
        return Some(Finding::new(&ROUTES, SUBJECT, CheckResult::Ok, message));
    }
    let named: Vec<String> = strays.iter().map(|(route, why)| format!("{route}: {why}")).collect();
    Some(Finding::new(&ROUTES, SUBJECT, CheckResult::Failed, some_of(&named, NAMED)))
}
