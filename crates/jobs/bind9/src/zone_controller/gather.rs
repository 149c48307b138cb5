//! Reads what planning a zone needs: who is to have it, by the mirrored objects; and how it is there, by the servers themselves.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;
use portolan_bind9_model::contents::contents;
use portolan_bind9_model::discovery::{
    ClusterMeant, RivalZone, ServerCandidate, ZoneServers, claimed_name, duplicate_message, elders, servers,
};
use portolan_bind9_model::finding::{Weight, sentence};
use portolan_bind9_model::instance_status::PodState;
use portolan_bind9_model::kinds::reference::InstanceReferenceWithStatus;
use portolan_bind9_model::kinds::{DNSZone, ServerRole};
use portolan_bind9_model::phases::ZonePhase;
use portolan_bind9_model::zone_plan::{ZoneState, ZoneView};
use portolan_bind9_model::zone_status::ServerFacts;
use portolan_bind9_model::{names, reasons, serial, validate};
use portolan_bind9_wire::{DomainName, Serial};
use portolan_core::{ObjectKey, Problem};

use crate::shared::Bind9Context;
use crate::zone_controller::ZoneController;
use crate::zone_controller::apex::{apex, changes};
use crate::zone_controller::catalogs::CatalogOf;
use crate::zone_controller::inputs::ZoneInputs;
use crate::zone_controller::links::ServerLink;
use crate::zone_controller::look::{ZoneSight, apex_there, by_command, by_serial};

/// The server that a zone was written to last, by its status.
pub(crate) fn written_so_far(zone: &DNSZone) -> Option<ObjectKey> {
    let name = &zone.status.as_ref()?.primaries.first()?.instance;
    let (namespace, name) = name.split_once('/')?;
    Some(ObjectKey::namespaced(namespace, name))
}

impl Bind9Context {
    /// The instances of a zone.
    pub(crate) fn servers_of(&self, zone: &DNSZone, candidates: &[ServerCandidate]) -> ZoneServers {
        servers(zone, &self.meant(zone), candidates, written_so_far(zone).as_ref())
    }

    pub(crate) fn candidates(&self) -> Vec<ServerCandidate> {
        self.instances.iter().map(|one| self.candidate(&one)).collect()
    }

    fn meant(&self, zone: &DNSZone) -> ClusterMeant {
        let Some(name) = zone.spec.cluster_ref.clone() else { return ClusterMeant::Nothing };
        let cluster = ObjectKey { namespace: zone.metadata.namespace.clone(), name: name.clone() };
        match (self.clusters.get(&cluster), self.providers.get(&ObjectKey::cluster(name))) {
            (Some(_), _) => ClusterMeant::Cluster,
            (None, Some(_)) => ClusterMeant::Provider,
            (None, None) => ClusterMeant::Nothing,
        }
    }

    /// A zone as others see it. One that is on its way out keeps its name until it is gone from its servers.
    fn rival(&self, zone: &DNSZone, candidates: &[ServerCandidate]) -> RivalZone {
        RivalZone {
            key: zone.key(),
            created: zone.metadata.creation_timestamp.as_ref().map(|time| time.0),
            servers: self.servers_of(zone, candidates).all(),
            leaving: false,
        }
    }

    /// The older zones of its name that keep a zone from being served, and the servers that are theirs.
    fn elders_of(&self, zone: &DNSZone, candidates: &[ServerCandidate]) -> (Vec<ObjectKey>, BTreeSet<ObjectKey>) {
        let Some(name) = claimed_name(&zone.spec) else { return (Vec::new(), BTreeSet::new()) };
        let others = self.zones.iter().filter(|one| claimed_name(&one.spec).as_ref() == Some(&name));
        let rivals: Vec<RivalZone> = others.map(|one| self.rival(&one, candidates)).collect();
        let older = elders(&self.rival(zone, candidates), &rivals);
        let theirs = rivals.into_iter().filter(|one| older.contains(&one.key)).flat_map(|one| one.servers).collect();
        (older, theirs)
    }

    /// All zones that a follower is to have from a writer.
    pub(crate) fn zones_followed(&self, writer: &ObjectKey, follower: &ObjectKey) -> Vec<DomainName> {
        let candidates = self.candidates();
        let is_followed = |zone: &Arc<DNSZone>| {
            let servers = self.servers_of(zone, &candidates);
            zone.metadata.deletion_timestamp.is_none()
                && servers.writer.as_ref() == Some(writer)
                && servers.followers().any(|one| one == follower)
                && self.elders_of(zone, &candidates).0.is_empty()
        };
        let all = self.zones.iter().filter(is_followed);
        all.filter_map(|zone| DomainName::parse(claimed_name(&zone.spec)?.as_str()).ok()).collect()
    }
}

impl ZoneController {
    pub(crate) async fn look(&self, zone: &DNSZone) -> Result<ZoneInputs, Problem> {
        let candidates = self.shared.candidates();
        let now = (self.shared.context.clock)();
        let mut inputs = ZoneInputs { now: Some(now), ..ZoneInputs::default() };
        let Some(name) = claimed_name(&zone.spec).and_then(|name| DomainName::parse(name.as_str()).ok()) else {
            inputs.refusal = refusal_of(zone, &mut inputs);
            return Ok(inputs);
        };
        inputs.name = Some(name.clone());
        let is_leaving = zone.metadata.deletion_timestamp.is_some();
        let (older, theirs) = self.shared.elders_of(zone, &candidates);
        let servers = self.shared.servers_of(zone, &candidates);
        inputs.refusal = refusal_of(zone, &mut inputs);
        if !older.is_empty() {
            inputs.refusal = Some(ZonePhase::Duplicate { message: duplicate_message(&zone.spec.zone_name, &older) });
        } else if let Some(message) = servers.lack(zone) {
            inputs.refusal = Some(ZonePhase::NoInstances { message });
        }
        if is_leaving || matches!(inputs.refusal, Some(ZonePhase::Duplicate { .. } | ZonePhase::NoInstances { .. })) {
            inputs.facts.servers = ZoneServers { denied: servers.denied, ..ZoneServers::default() };
        } else {
            inputs.facts.servers = servers;
        }
        let stay = inputs.facts.servers.all();
        let status = zone.status.clone().unwrap_or_default();
        let had = status.bind9_instances.iter().map(InstanceReferenceWithStatus::key);
        inputs.facts.leaving = had.filter(|key| !stay.contains(key) && !theirs.contains(key)).collect();
        // A zone that cannot be served as it is written now is served as it was.
        if matches!(inputs.refusal, Some(ZonePhase::Invalid { .. })) && !is_leaving {
            return Ok(inputs);
        }
        self.look_at_servers(&name, &candidates, &mut inputs).await;
        self.look_at_catalogs(&name, &candidates, &mut inputs).await;
        forget_those_without(&mut inputs);
        self.look_at_contents(zone, &name, &mut inputs).await?;
        self.look_at_lateness(zone, &mut inputs);
        inputs.repeated = self.memory.repeated(&zone.key(), &inputs.steps());
        Ok(inputs)
    }

    /// How the zone is on every server that is to have it, or had it.
    async fn look_at_servers(&self, name: &DomainName, candidates: &[ServerCandidate], inputs: &mut ZoneInputs) {
        let facts = &inputs.facts;
        let asked: BTreeSet<ObjectKey> = facts.servers.all().into_iter().chain(facts.leaving.iter().cloned()).collect();
        let looks = asked.into_iter().map(|server| async move {
            let follows = facts.servers.secondaries.contains(&server);
            let seen = self.look_at_server(name, &server, candidates, follows).await;
            (server, seen)
        });
        let seen = join_all(looks).await;
        let mut view = ZoneView::default();
        for (server, sights) in seen {
            let state = together(&sights);
            inputs.links.insert(server.clone(), sights.iter().filter_map(|one| one.link.clone()).collect());
            if inputs.facts.servers.writer.as_ref() == Some(&server) {
                view.writer = Some((server.clone(), state));
            } else if inputs.facts.leaving.contains(&server) {
                view.leaving.insert(server.clone(), state);
            } else {
                view.followers.insert(server.clone(), state);
            }
            inputs.facts.found.insert(server, told(&sights, state));
        }
        inputs.view = view;
    }

    async fn look_at_server(
        &self,
        name: &DomainName,
        server: &ObjectKey,
        candidates: &[ServerCandidate],
        follows: bool,
    ) -> Vec<ZoneSight> {
        let pods = self.shared.pods_of(server);
        let is_gone = !candidates.iter().any(|one| one.key == *server);
        let Some(ring) = self.shared.keys_of(server) else {
            let why = if is_gone { "its instance is gone" } else { "its keys are not known yet" };
            let state = if is_gone { ZoneState::Absent } else { ZoneState::Unknown };
            return vec![ZoneSight { state, ..ZoneSight::none(pods.into_iter().next().unwrap_or_default(), why) }];
        };
        if pods.is_empty() {
            let state = if is_gone { ZoneState::Absent } else { ZoneState::Unknown };
            return vec![ZoneSight { state, ..ZoneSight::none(PodState::default(), "it has no pod yet") }];
        }
        // Zones are written to one server. While pods are replaced there may be two for a moment.
        let several = candidates.iter().any(|one| one.key == *server && one.role == ServerRole::Secondary);
        let pods = if several {
            pods
        } else {
            pods.into_iter().max_by_key(|pod| (pod.address.is_some(), pod.name.clone())).into_iter().collect()
        };
        let looks = pods.into_iter().map(|pod| {
            let links = self.links.of(&pod, &ring);
            async move { if follows { by_serial(pod, links, name).await } else { by_command(pod, links, name).await } }
        });
        join_all(looks).await
    }

    /// Which followers have a catalog, and the zone in it.
    async fn look_at_catalogs(&self, name: &DomainName, candidates: &[ServerCandidate], inputs: &mut ZoneInputs) {
        let everybody: Vec<ObjectKey> = inputs.facts.found.keys().cloned().collect();
        if let Some((writer, ZoneState::Open(_))) = inputs.view.writer.clone()
            && let Some(link) = inputs.link(&writer).cloned()
        {
            for follower in everybody.iter().filter(|one| **one != writer) {
                let of = CatalogOf { link: &link, writer: &writer, follower };
                match self.catalogs.has(of, name).await {
                    Ok(Some(has)) => {
                        inputs.view.catalogs.insert(follower.clone());
                        if has {
                            inputs.view.members.insert(follower.clone());
                        }
                    }
                    Ok(None) => {}
                    Err(why) => note_error(inputs, follower, format!("its catalog cannot be read: {why}")),
                }
            }
        }
        let wrote =
            |server: &ObjectKey| candidates.iter().any(|one| one.key == *server && one.role == ServerRole::Primary);
        for former in inputs.facts.leaving.clone().iter().filter(|server| wrote(server)) {
            let Some(link) = inputs.link(former).cloned() else { continue };
            for follower in everybody.iter().filter(|one| *one != former) {
                let of = CatalogOf { link: &link, writer: former, follower };
                if let Ok(Some(true)) = self.catalogs.has(of, name).await {
                    inputs.stale.push((former.clone(), follower.clone()));
                }
            }
        }
    }

    /// Whether what the writer serves is what it is to serve. What was found so once is asked again only when the serial has moved.
    async fn look_at_contents(
        &self,
        zone: &DNSZone,
        name: &DomainName,
        inputs: &mut ZoneInputs,
    ) -> Result<(), Problem> {
        let status = zone.status.clone().unwrap_or_default();
        let mut seen: Vec<u32> = status.serial.and_then(|one| u32::try_from(one).ok()).into_iter().collect();
        seen.extend(inputs.facts.found.values().filter_map(|one| one.serial));
        if let Some((_, ZoneState::Seeding(Some(serial)))) = inputs.view.writer {
            seen.push(serial);
        }
        let asked = u32::try_from(zone.spec.soa_record.serial).unwrap_or_default();
        let unix = inputs.now.map_or(0, |now| u32::try_from(now.as_second()).unwrap_or(u32::MAX));
        inputs.view.seed_serial = serial::next(seen, asked, unix);
        inputs.view.content_stands = true;
        let (Some((writer, ZoneState::Open(serial))), Some(contents)) = (inputs.view.writer.clone(), &inputs.contents)
        else {
            return Ok(());
        };
        let Some(link) = inputs.link(&writer).cloned() else { return Ok(()) };
        if self.memory.stands(&zone.key(), contents, &link.start, serial) {
            return Ok(());
        }
        let wanted = apex(contents, inputs.view.seed_serial)?;
        let hosts: Vec<DomainName> = wanted.nameservers.iter().map(|one| one.host.clone()).collect();
        match apex_there(&link, name, hosts).await {
            Ok(there) => {
                let differs = changes(&wanted, &there)?;
                if differs.is_empty() && there.soa.serial == Serial(serial) {
                    self.memory.note_stands(&zone.key(), contents, &link.start, serial);
                }
                inputs.view.content_stands = differs.is_empty();
                inputs.changes = differs;
            }
            Err(error) => note_error(inputs, &writer, error.to_string()),
        }
        Ok(())
    }

    /// Which followers have been behind for too long. Those that do not answer are told of at once.
    fn look_at_lateness(&self, zone: &DNSZone, inputs: &mut ZoneInputs) {
        let Some((_, ZoneState::Open(written))) = inputs.view.writer else { return };
        let now = inputs.now.unwrap_or_default();
        for (follower, state) in inputs.view.followers.clone() {
            let stands = match state {
                ZoneState::Following(Some(theirs)) => !serial::is_newer(written, theirs),
                ZoneState::Unknown => true,
                _ => false,
            };
            let behind = self.memory.behind(&zone.key(), &follower, stands, now);
            if behind > crate::zone_controller::LATE {
                inputs.view.late.insert(follower.clone());
                let why = match state {
                    ZoneState::Following(Some(theirs)) => {
                        format!("it has serial {theirs}, and the writer has {written}")
                    }
                    _ => "it has not got the zone".to_owned(),
                };
                note_error(inputs, &follower, why);
            } else if !stands {
                inputs.waits = true;
            }
            if matches!(state, ZoneState::Following(Some(theirs)) if serial::is_newer(theirs, written)) {
                let why = format!("it has a serial that was never written: {state:?}; it gets the zone anew");
                note_error(inputs, &follower, why);
            }
        }
    }
}

/// Who was to lose the zone and has lost it, and is in no catalog with it, is shown no longer.
fn forget_those_without(inputs: &mut ZoneInputs) {
    let (view, stale) = (&inputs.view, &inputs.stale);
    inputs.facts.leaving.retain(|server| {
        let has = view.leaving.get(server) != Some(&ZoneState::Absent);
        has || view.members.contains(server) || stale.iter().any(|(_, follower)| follower == server)
    });
}

fn note_error(inputs: &mut ZoneInputs, server: &ObjectKey, why: String) {
    if let Some(facts) = inputs.facts.found.get_mut(server) {
        facts.error.get_or_insert(why);
    }
}

/// What no server could serve.
fn refusal_of(zone: &DNSZone, inputs: &mut ZoneInputs) -> Option<ZonePhase> {
    if let Some(message) = sentence(&validate::zone(&zone.spec), Weight::Refused) {
        return Some(ZonePhase::Invalid { reason: reasons::INVALID_SPEC, message });
    }
    match contents(&zone.spec, &BTreeSet::new()) {
        Ok(made) => inputs.contents = Some(made),
        Err(problem) => return Some(ZonePhase::Invalid { reason: problem.reason, message: problem.message }),
    }
    None
}

/// How a zone is on all pods of a server: as it is on the one that is worst off.
fn together(sights: &[ZoneSight]) -> ZoneState {
    let rank = |state: &ZoneState| match state {
        ZoneState::Unknown => 0,
        ZoneState::Broken => 1,
        ZoneState::Absent => 2,
        ZoneState::Seeding(_) => 3,
        ZoneState::Following(None) => 4,
        ZoneState::Open(_) | ZoneState::Following(Some(_)) => 5,
    };
    let worst = sights.iter().map(|one| one.state).min_by_key(rank).unwrap_or(ZoneState::Unknown);
    let oldest = |one: ZoneState, other: ZoneState| match (one, other) {
        (ZoneState::Following(Some(a)), ZoneState::Following(Some(b))) if serial::is_newer(a, b) => other,
        _ => one,
    };
    match worst {
        ZoneState::Following(Some(_)) => sights.iter().map(|one| one.state).fold(worst, oldest),
        other => other,
    }
}

fn told(sights: &[ZoneSight], state: ZoneState) -> ServerFacts {
    let first = sights.iter().find(|one| one.error.is_some()).or_else(|| sights.first());
    let pod = first.map(|one| &one.pod).filter(|pod| !pod.name.is_empty());
    ServerFacts {
        pod: pod.map(|pod| pod.name.clone()),
        address: pod.and_then(|pod| pod.address.clone()),
        serial: match state {
            ZoneState::Open(serial) | ZoneState::Following(Some(serial)) => Some(serial),
            _ => None,
        },
        error: first.and_then(|one| one.error.clone()),
    }
}

/// The serial that a follower has of the catalog that a writer has for it.
pub(crate) async fn catalog_serial(
    link: Option<&Arc<ServerLink>>,
    writer: &ObjectKey,
    follower: &ObjectKey,
) -> Option<u32> {
    let name = DomainName::parse(&names::catalog(writer, follower)).ok()?;
    Some(link?.dns.soa(&name).await.ok()?.serial.0)
}
