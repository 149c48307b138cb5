//! A question and the table of Services → the answer, or that another server knows.

use std::net::Ipv4Addr;

use super::CLUSTER_DOMAIN;
use super::message::{RecordContent, RecordKind, ReplyCode, ResolverRecord, ResolverReply, kinds};
use super::name::{AskedName, asked_name, dashed_name};
use crate::network::service::{EndpointFacts, ServiceName, ServicePort, ServiceSort};
use crate::network::table::ServiceTable;

/// How long answers may be kept, in seconds: as `CoreDNS` does it.
const SECONDS: u32 = 5;
/// Aliases of aliases that are followed.
const MOST_ALIASES: usize = 8;
/// The version of the specification that is followed.
const VERSION: &str = "1.1.0";

/// What becomes of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameAnswer {
    /// It is answered.
    Reply(ResolverReply),
    /// It is answered by an alias, and another server knows the addresses of what it leads to.
    Alias {
        /// The answer so far.
        reply: ResolverReply,
        /// What it leads to.
        target: String,
    },
    /// Another server knows.
    Elsewhere,
}

/// What there is at a name.
enum Found {
    /// Records; of the sort that was asked for, there may be none.
    Records { answers: Vec<ResolverRecord>, additional: Vec<ResolverRecord> },
    /// The name is another one.
    Alias { target: String },
    /// No such name.
    Nothing,
    /// Not ours.
    Elsewhere,
}

impl Found {
    fn only(answers: Vec<ResolverRecord>) -> Self {
        Self::Records { answers, additional: Vec::new() }
    }

    fn empty() -> Self {
        Self::only(Vec::new())
    }
}

/// The answer to a question.
pub fn answer(table: &ServiceTable, name: &str, kind: RecordKind) -> NameAnswer {
    let mut aliases = Vec::new();
    let mut asked = name.to_owned();
    loop {
        match found(table, &asked, kind) {
            Found::Records { answers, additional } => {
                let answers = [aliases, answers].concat();
                return NameAnswer::Reply(reply(ReplyCode::NoError, answers, additional));
            }
            Found::Nothing => return NameAnswer::Reply(reply(ReplyCode::NoName, aliases, Vec::new())),
            Found::Elsewhere if aliases.is_empty() => return NameAnswer::Elsewhere,
            Found::Elsewhere => {
                let reply = reply(ReplyCode::NoError, aliases, Vec::new());
                return NameAnswer::Alias { reply, target: asked };
            }
            Found::Alias { target } => {
                aliases.push(record(&asked, RecordContent::Cname(target.clone())));
                if kind == kinds::CNAME || aliases.len() >= MOST_ALIASES {
                    return NameAnswer::Reply(reply(ReplyCode::NoError, aliases, Vec::new()));
                }
                asked = target;
            }
        }
    }
}

fn reply(code: ReplyCode, answers: Vec<ResolverRecord>, additional: Vec<ResolverRecord>) -> ResolverReply {
    // Who finds nothing may keep that for as long as the zone says (RFC 2308).
    let zone = RecordContent::Soa { zone: CLUSTER_DOMAIN.to_owned() };
    let authority = if answers.is_empty() { vec![record(CLUSTER_DOMAIN, zone)] } else { Vec::new() };
    ResolverReply { code, answers, authority, additional }
}

fn record(name: &str, content: RecordContent) -> ResolverRecord {
    ResolverRecord { name: name.to_owned(), seconds: SECONDS, content }
}

fn found(table: &ServiceTable, name: &str, kind: RecordKind) -> Found {
    match asked_name(name) {
        AskedName::Elsewhere => Found::Elsewhere,
        AskedName::Zone if name == CLUSTER_DOMAIN && is_asked(kind, kinds::SOA) => {
            Found::only(vec![record(name, RecordContent::Soa { zone: CLUSTER_DOMAIN.to_owned() })])
        }
        AskedName::Zone => Found::empty(),
        AskedName::Version => of_kind(kind, kinds::TXT, name, || vec![RecordContent::Txt(VERSION.to_owned())]),
        AskedName::Namespace { namespace } if table.has_namespace(namespace) => Found::empty(),
        AskedName::Unknown | AskedName::Namespace { .. } => Found::Nothing,
        AskedName::Pod { address } => of_kind(kind, kinds::A, name, || vec![RecordContent::A(address)]),
        AskedName::Address { address } => of_address(table, name, kind, address),
        AskedName::Service { namespace, service } => of_service(table, name, kind, &service_name(namespace, service)),
        AskedName::Endpoint { namespace, service, endpoint } => {
            of_endpoint(table, name, kind, &service_name(namespace, service), endpoint)
        }
        AskedName::Port { namespace, service, port, transport } => {
            of_port(table, name, kind, &service_name(namespace, service), (port, transport))
        }
    }
}

fn service_name(namespace: &str, name: &str) -> ServiceName {
    ServiceName { namespace: namespace.to_owned(), name: name.to_owned() }
}

fn is_asked(kind: RecordKind, sort: RecordKind) -> bool {
    kind == sort || kind == kinds::ANY
}

/// A name that has records of one sort.
fn of_kind(kind: RecordKind, sort: RecordKind, name: &str, contents: impl FnOnce() -> Vec<RecordContent>) -> Found {
    if !is_asked(kind, sort) {
        return Found::empty();
    }
    Found::only(contents().into_iter().map(|content| record(name, content)).collect())
}

fn of_service(table: &ServiceTable, name: &str, kind: RecordKind, service: &ServiceName) -> Found {
    match table.facts(service).map(|facts| &facts.sort) {
        None => Found::Nothing,
        Some(ServiceSort::Alias { target }) => Found::Alias { target: target.clone() },
        Some(ServiceSort::Addressed { address }) => of_kind(kind, kinds::A, name, || vec![RecordContent::A(*address)]),
        Some(ServiceSort::Headless) => {
            let addresses = addresses(table, service, |_, _| true);
            // Without endpoints the name is not there (§2.4.1 of the specification).
            if addresses.is_empty() {
                return Found::Nothing;
            }
            of_kind(kind, kinds::A, name, || addresses.into_iter().map(RecordContent::A).collect())
        }
    }
}

/// The addresses of a Service's endpoints, each once.
fn addresses(
    table: &ServiceTable,
    service: &ServiceName,
    wanted: impl Fn(&EndpointFacts, Ipv4Addr) -> bool,
) -> Vec<Ipv4Addr> {
    let all = table
        .named_endpoints(service)
        .flat_map(|(endpoint, _)| endpoint.addresses.iter().map(move |one| (endpoint, *one)));
    let mut found: Vec<Ipv4Addr> = all.filter(|(endpoint, one)| wanted(endpoint, *one)).map(|(_, one)| one).collect();
    found.sort();
    found.dedup();
    found
}

/// What an endpoint is called below its Service.
fn endpoint_name(endpoint: &EndpointFacts, address: Ipv4Addr) -> String {
    endpoint.hostname.clone().unwrap_or_else(|| dashed_name(address))
}

fn of_endpoint(table: &ServiceTable, name: &str, kind: RecordKind, service: &ServiceName, endpoint: &str) -> Found {
    let addresses = addresses(table, service, |one, address| endpoint_name(one, address) == endpoint);
    if addresses.is_empty() {
        return Found::Nothing;
    }
    of_kind(kind, kinds::A, name, || addresses.into_iter().map(RecordContent::A).collect())
}

fn full_name(service: &ServiceName) -> String {
    format!("{}.{}.svc.{CLUSTER_DOMAIN}", service.name, service.namespace)
}

fn of_port(
    table: &ServiceTable,
    name: &str,
    kind: RecordKind,
    service: &ServiceName,
    (port, transport): (&str, &str),
) -> Found {
    let Some(facts) = table.facts(service) else { return Found::Nothing };
    let is_it = |one: &&ServicePort| one.name == port && one.transport.label() == transport;
    let hosts = match &facts.sort {
        ServiceSort::Alias { .. } => return Found::Nothing,
        ServiceSort::Addressed { address } => {
            facts.ports.iter().filter(is_it).map(|one| (full_name(service), *address, one.port)).collect()
        }
        ServiceSort::Headless => headless_hosts(table, service, (port, transport)),
    };
    if hosts.is_empty() {
        return Found::Nothing;
    }
    if !is_asked(kind, kinds::SRV) {
        return Found::empty();
    }
    // Who serves a port has an equal share of it.
    let weight = u16::try_from(100 / hosts.len().min(100)).unwrap_or(1);
    let srv = |(target, _, port): &(String, Ipv4Addr, u16)| {
        record(name, RecordContent::Srv { weight, port: *port, target: target.clone() })
    };
    let answers = hosts.iter().map(srv).collect();
    let mut additional: Vec<ResolverRecord> =
        hosts.into_iter().map(|(target, address, _)| record(&target, RecordContent::A(address))).collect();
    additional.dedup();
    Found::Records { answers, additional }
}

/// Name, address and port of each endpoint that serves a port.
fn headless_hosts(
    table: &ServiceTable,
    service: &ServiceName,
    (port, transport): (&str, &str),
) -> Vec<(String, Ipv4Addr, u16)> {
    let mut hosts = Vec::new();
    for (endpoint, slice) in table.named_endpoints(service) {
        let ports = slice.ports.iter().filter(|one| one.name == port && one.transport.label() == transport);
        for number in ports.map(|one| one.port) {
            let host = |address: &Ipv4Addr| {
                (format!("{}.{}", endpoint_name(endpoint, *address), full_name(service)), *address, number)
            };
            hosts.extend(endpoint.addresses.iter().map(host));
        }
    }
    hosts.sort();
    hosts.dedup();
    hosts
}

/// The names of an address: a Service's, or those of the endpoints of headless Services that have names of their own.
fn of_address(table: &ServiceTable, name: &str, kind: RecordKind, address: Ipv4Addr) -> Found {
    let mut names: Vec<String> = table.service_at(address).map(full_name).into_iter().collect();
    let named = table
        .headless_at(address)
        .into_iter()
        .filter_map(|(service, endpoint)| Some(format!("{}.{}", endpoint.hostname.as_ref()?, full_name(service))));
    names.extend(named);
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Found::Nothing;
    }
    of_kind(kind, kinds::PTR, name, || names.into_iter().map(RecordContent::Ptr).collect())
}

/// A name as processes of pods write it → the address that a client would use: the Service's own, or the first of its endpoints.
/// None where it is no name of a Service, or nobody serves it.
pub fn address_of_name(table: &ServiceTable, name: &str) -> Option<Ipv4Addr> {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    // Names that leave the end away, as a pod's search list completes them.
    ["", ".cluster.local", ".svc.cluster.local"].iter().find_map(|end| {
        let NameAnswer::Reply(reply) = answer(table, &format!("{name}{end}"), kinds::A) else { return None };
        reply.answers.iter().find_map(|record| match record.content {
            RecordContent::A(address) => Some(address),
            _ => None,
        })
    })
}

#[cfg(test)]
mod tests;
