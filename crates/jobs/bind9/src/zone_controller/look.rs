//! A server, asked how a zone is there → its state, and what is wrong where it cannot be told.
//!
//! A secondary that stands is asked for the serial alone; commands tell more, and are for servers that zones are written to.

use std::sync::Arc;

use portolan_bind9_model::instance_status::PodState;
use portolan_bind9_model::zone_plan::ZoneState;
use portolan_bind9_wire::{DnsError, DomainName, ResponseCode, RndcError, RndcRefusal, TypeCode, ZoneRole};

use crate::zone_controller::apex::ApexThere;
use crate::zone_controller::links::ServerLink;

/// How a zone is on a pod.
pub(crate) struct ZoneSight {
    pub(crate) pod: PodState,
    pub(crate) state: ZoneState,
    /// The client that was answered; none where none was.
    pub(crate) link: Option<Arc<ServerLink>>,
    /// What is wrong.
    pub(crate) error: Option<String>,
}

impl ZoneSight {
    /// Nothing can be told of a pod.
    pub(crate) fn none(pod: PodState, why: impl Into<String>) -> Self {
        Self { pod, state: ZoneState::Unknown, link: None, error: Some(why.into()) }
    }
}

/// Asks by command: for servers that a zone is, was or might be written to.
pub(crate) async fn by_command(pod: PodState, links: Vec<Arc<ServerLink>>, zone: &DomainName) -> ZoneSight {
    let mut refused = "it has no address yet".to_owned();
    for link in links {
        match state_by_command(&link, zone).await {
            Ok(state) => return ZoneSight { pod, state, link: Some(link), error: None },
            Err(error @ RndcError::KeyRefused { .. }) => refused = error.to_string(),
            Err(error) => return ZoneSight::none(pod, error.to_string()),
        }
    }
    ZoneSight::none(pod, refused)
}

async fn state_by_command(link: &ServerLink, zone: &DomainName) -> Result<ZoneState, RndcError> {
    let (role, serial) = match link.control.zone_status(zone).await {
        Ok(status) => (status.role, status.serial.map(|serial| serial.0)),
        Err(error) => match error.refusal() {
            Some(RndcRefusal::ZoneNotFound) => return Ok(ZoneState::Absent),
            Some(RndcRefusal::NotLoaded) => (None, None),
            _ => return Err(error),
        },
    };
    if let (Some(ZoneRole::Primary), Some(serial)) = (&role, serial) {
        return Ok(ZoneState::Open(serial));
    }
    let shown = match link.control.show_zone(zone).await {
        Ok(shown) => shown,
        // It is not one that was added by command.
        Err(error) if error.refusal().is_some() => return Ok(ZoneState::Following(serial)),
        Err(error) => return Err(error),
    };
    Ok(match () {
        () if shown.contains("type primary") || shown.contains("type master") => ZoneState::Broken,
        () if shown.contains("notify no;") => ZoneState::Seeding(serial),
        () => ZoneState::Following(serial),
    })
}

/// Asks for the serial alone: for servers that follow.
pub(crate) async fn by_serial(pod: PodState, links: Vec<Arc<ServerLink>>, zone: &DomainName) -> ZoneSight {
    let mut refused = "it has no address yet".to_owned();
    for link in links {
        let state = match link.dns.soa(zone).await {
            Ok(soa) => ZoneState::Following(Some(soa.serial.0)),
            // It has the zone, and nothing to answer with.
            Err(DnsError::Code { code: ResponseCode::SERVFAIL, .. }) => ZoneState::Following(None),
            Err(
                DnsError::Code { code: ResponseCode::REFUSED | ResponseCode::NOTAUTH, .. } | DnsError::NotServed { .. },
            ) => ZoneState::Absent,
            Err(error @ DnsError::Signature { .. }) => {
                refused = error.to_string();
                continue;
            }
            Err(error) => return ZoneSight::none(pod, error.to_string()),
        };
        return ZoneSight { pod, state, link: Some(link), error: None };
    }
    ZoneSight::none(pod, refused)
}

/// What stands at a zone's apex: SOA and NS records, and addresses of the name servers that lie in it, there or wanted.
pub(crate) async fn apex_there(
    link: &ServerLink,
    zone: &DomainName,
    wanted: impl IntoIterator<Item = DomainName>,
) -> Result<ApexThere, DnsError> {
    let soa = link.dns.query(zone, TypeCode::SOA).await?;
    let not_served = || DnsError::NotServed { server: link.dns.server(), asked: format!("asking for {zone} SOA") };
    let record = soa.records.into_iter().find(|one| one.kind == TypeCode::SOA).ok_or_else(not_served)?;
    let soa = portolan_bind9_wire::Soa::read(&record.data).map_err(|_| not_served())?;
    let mut records: Vec<_> = answered(link, zone, TypeCode::NS).await?;
    let targets = records.iter().filter_map(|one| one.data.target(TypeCode::NS));
    let mut hosts: Vec<DomainName> = targets.chain(wanted).map(|host| host.canonical()).collect();
    hosts.retain(|host| host.is_in(zone));
    hosts.sort();
    hosts.dedup();
    for host in &hosts {
        for kind in [TypeCode::A, TypeCode::AAAA] {
            records.extend(answered(link, host, kind).await?);
        }
    }
    Ok(ApexThere { soa, soa_ttl: record.ttl, records })
}

async fn answered(
    link: &ServerLink,
    name: &DomainName,
    kind: TypeCode,
) -> Result<Vec<portolan_bind9_wire::ResourceRecord>, DnsError> {
    let answer = link.dns.query(name, kind).await?;
    Ok(answer.records.into_iter().filter(|one| one.kind == kind && one.name == *name).collect())
}
