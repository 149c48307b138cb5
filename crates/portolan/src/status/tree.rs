//! Objects → credentials, with their domains, networks and tunnels; domains with their records, networks with their routes.

use std::collections::BTreeMap;

use portolan_cloudflare::kinds;
use portolan_cloudflare::shown::{Shown, ShownLevel, ShownText};
use portolan_core::reasons::DELETION_BUDGET_EXCEEDED;
use serde::Serialize;

use super::pods::PodsBranch;
use super::tenants::{self, NamesByHealth, Tenant};
use crate::health_view::{Health, HealthView};
use crate::zerotrust::Facts;

/// Everything there is, and how it is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tree {
    /// The cluster's address.
    pub(crate) server: String,
    /// Whether the kinds are installed at all.
    pub(crate) installed: bool,
    /// How many objects are how.
    pub(crate) summary: Summary,
    /// Accounts by the credentials that reach them.
    pub(crate) credentials: Vec<Account>,
    /// What belongs to none of them.
    pub(crate) unassigned: Branch,
    /// Tenants with the names that are published with them.
    pub(crate) tenants: Vec<Tenant>,
    /// Names of routes whose tenant is not known.
    pub(crate) names: NamesByHealth,
    /// Objects of the jobs that have no place of their own above.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) jobs: Vec<JobObjects>,
    /// Pods of the embedded API, where they run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pods: Option<PodsBranch>,
    /// Requests left in the API's window, by credential, where the metrics could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) budget: Option<BTreeMap<String, i64>>,
}

/// The objects of a job, one by one.
#[derive(Debug, Serialize)]
pub(crate) struct JobObjects {
    /// The job's name.
    pub(crate) job: &'static str,
    /// Its objects; what each is about is its kind.
    pub(crate) objects: Vec<Leaf>,
}

/// How many objects are how.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    pub(crate) objects: usize,
    pub(crate) ready: usize,
    pub(crate) pending: usize,
    pub(crate) deleting: usize,
    pub(crate) not_ready: usize,
}

/// A `CloudflareCredentials` and what is reached with it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the objects' own fields")]
pub(crate) struct Account {
    #[serde(flatten)]
    pub(crate) state: NamedHealth,
    pub(crate) account_id: String,
    pub(crate) is_default: bool,
    #[serde(flatten)]
    /// Deletions that wait for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<HeldDeletions>,
    pub(crate) branch: Branch,
}

/// What hangs on an account.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Branch {
    pub(crate) domains: Vec<Domain>,
    pub(crate) networks: Vec<NetworkTree>,
    /// Routes of networks that no object stands for.
    pub(crate) routes: Vec<Leaf>,
    /// What else stands right below the account, by the lists that kinds say: `tunnels`.
    #[serde(flatten)]
    pub(crate) lists: BTreeMap<&'static str, Vec<Leaf>>,
    /// Records of zones that no object stands for.
    pub(crate) records: RecordsByHealth,
}

impl Default for Branch {
    /// Every list is there, also where nothing is in it.
    fn default() -> Self {
        let lists = kinds::table().into_iter().map(|row| row.shown.list).filter(|list| !list.is_empty());
        Self {
            domains: Vec::new(),
            networks: Vec::new(),
            routes: Vec::new(),
            lists: lists.map(|list| (list, Vec::new())).collect(),
            records: RecordsByHealth::default(),
        }
    }
}

/// A `CloudflareDomain` and its records.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the objects' own fields")]
pub(crate) struct Domain {
    #[serde(flatten)]
    pub(crate) state: NamedHealth,
    pub(crate) domain: String,
    pub(crate) zone_id: String,
    pub(crate) records: RecordsByHealth,
    /// Deletions that wait for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<HeldDeletions>,
}

/// Records by their state, and each one that is not well.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordsByHealth {
    pub(crate) total: usize,
    pub(crate) by_state: BTreeMap<String, usize>,
    pub(crate) unwell: Vec<Leaf>,
}

/// A `VirtualNetwork` and its routes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NetworkTree {
    #[serde(flatten)]
    pub(crate) state: NamedHealth,
    pub(crate) network_id: String,
    pub(crate) routes: Vec<Leaf>,
}

/// Any object with a line of its own.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Leaf {
    #[serde(flatten)]
    pub(crate) state: NamedHealth,
    /// What it is about: `A www.example.com`, `10.0.0.0/8 through home`.
    pub(crate) about: String,
    /// What it is, before its name.
    #[serde(skip)]
    pub(crate) sort: String,
}

/// Name and health.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct NamedHealth {
    pub(crate) name: String,
    pub(crate) health: Health,
    /// Reason and message where it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

/// Deletions that wait for a person.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct HeldDeletions {
    pub(crate) message: String,
    /// What the annotation must say.
    pub(crate) digest: String,
    /// A command that releases them.
    pub(crate) release: String,
}

impl NamedHealth {
    pub(super) fn of(seen: &HealthView) -> Self {
        let health = seen.health();
        Self { name: seen.key(), health, why: (health != Health::Ready).then(|| seen.reason()) }
    }
}

/// Builds the tree, by what the kinds say that their objects belong to.
pub(crate) fn build(server: &str, objects: &[HealthView], installed: bool) -> Tree {
    let of = |belongs: fn(&Shown) -> bool| belonging(objects, belongs);
    let credentials: Vec<&HealthView> =
        of(|shown| shown.opens == Some(ShownLevel::Account)).into_iter().map(|(seen, _)| seen).collect();
    let mut accounts: Vec<Account> = credentials.iter().map(|seen| account(seen)).collect();
    let mut unassigned = Branch::default();
    let mut zones = Zones::default();
    for (seen, _) in of(|shown| shown.opens == Some(ShownLevel::Zone)) {
        let place = owner(seen, &credentials);
        let branch = branch_of(&mut accounts, &mut unassigned, place);
        zones.add(seen, place, branch.domains.len());
        branch.domains.push(domain(seen));
    }
    for (seen, _) in of(|shown| shown.opens == Some(ShownLevel::Network)) {
        let place = owner(seen, &credentials);
        branch_of(&mut accounts, &mut unassigned, place).networks.push(network(seen));
    }
    for (seen, shown) in of(|shown| shown.under == Some(ShownLevel::Network)) {
        let place = owner(seen, &credentials);
        place_in_network(seen, leaf(seen, &shown), branch_of(&mut accounts, &mut unassigned, place));
    }
    for (seen, shown) in of(|shown| shown.under == Some(ShownLevel::Account) && shown.opens.is_none()) {
        let place = owner(seen, &credentials);
        branch_of(&mut accounts, &mut unassigned, place).add(shown.list, leaf(seen, &shown));
    }
    for (seen, shown) in of(|shown| shown.under == Some(ShownLevel::Zone)) {
        let (place, domain) = match zones.of_record(seen) {
            Some((place, domain)) => (place, Some(domain)),
            None => (owner(seen, &credentials), None),
        };
        let branch = branch_of(&mut accounts, &mut unassigned, place);
        let records = match domain.and_then(|at| branch.domains.get_mut(at)) {
            Some(domain) => &mut domain.records,
            None => &mut branch.records,
        };
        records.add(seen, &shown);
    }
    Tree {
        server: server.to_owned(),
        installed,
        summary: summary(objects),
        credentials: accounts,
        unassigned,
        tenants: Vec::new(),
        names: NamesByHealth::default(),
        jobs: Vec::new(),
        pods: None,
        budget: None,
    }
}

/// The objects of the kinds of which this is said, each with what is shown of it.
fn belonging(objects: &[HealthView], belongs: fn(&Shown) -> bool) -> Vec<(&HealthView, Shown)> {
    let rows = kinds::table().into_iter().filter(|row| belongs(&row.shown));
    rows.flat_map(|row| objects.iter().filter(move |seen| seen.kind == row.kind).map(move |seen| (seen, row.shown)))
        .collect()
}

impl Tree {
    /// Adds what the zerotrust job has.
    pub(super) fn add_tenants(&mut self, facts: &Facts) {
        let (tenants, names, seen) = tenants::read(facts);
        (self.tenants, self.names) = (tenants, names);
        self.summary.add(&seen);
    }

    /// Adds the objects of a job.
    pub(super) fn add_job(&mut self, job: &'static str, objects: &[HealthView]) {
        let leaf =
            |seen: &HealthView| Leaf { state: NamedHealth::of(seen), about: seen.kind.clone(), sort: String::new() };
        self.jobs.push(JobObjects { job, objects: objects.iter().map(leaf).collect() });
        self.summary.add(objects);
    }
}

/// Where objects name their credentials.
const CREDENTIALS: ShownText = ShownText::At(&["/spec/credentialsRef/name", "/spec/cloudflare/credentialsRef/name"]);

/// Which of the credentials an object uses: the one it names, else the default.
fn owner(seen: &HealthView, credentials: &[&HealthView]) -> Option<usize> {
    match CREDENTIALS.of(&seen.object).as_str() {
        "" => credentials.iter().position(|one| one.object["spec"]["isDefault"] == true),
        name => credentials.iter().position(|one| one.name() == name),
    }
}

fn branch_of<'a>(accounts: &'a mut [Account], unassigned: &'a mut Branch, place: Option<usize>) -> &'a mut Branch {
    match place.and_then(|at| accounts.get_mut(at)) {
        Some(account) => &mut account.branch,
        None => unassigned,
    }
}

fn account(seen: &HealthView) -> Account {
    Account {
        state: NamedHealth::of(seen),
        account_id: seen.text("/spec/accountId").to_owned(),
        is_default: seen.object["spec"]["isDefault"] == true,
        held: held(seen),
        branch: Branch::default(),
    }
}

fn domain(seen: &HealthView) -> Domain {
    Domain {
        state: NamedHealth::of(seen),
        domain: seen.text("/spec/domain").to_owned(),
        zone_id: zone_id(seen).to_owned(),
        records: RecordsByHealth::default(),
        held: held(seen),
    }
}

fn zone_id(domain: &HealthView) -> &str {
    match domain.text("/status/zoneId") {
        "" => domain.text("/spec/zoneId"),
        id => id,
    }
}

fn network(seen: &HealthView) -> NetworkTree {
    NetworkTree {
        state: NamedHealth::of(seen),
        network_id: seen.text("/status/virtualNetworkId").to_owned(),
        routes: Vec::new(),
    }
}

fn leaf(seen: &HealthView, shown: &Shown) -> Leaf {
    Leaf { state: NamedHealth::of(seen), about: shown.line.of(&seen.object), sort: shown.sort.of(&seen.object) }
}

impl Branch {
    fn add(&mut self, list: &'static str, leaf: Leaf) {
        if let Some(leaves) = self.lists.get_mut(list) {
            leaves.push(leaf);
        }
    }
}

fn place_in_network(seen: &HealthView, route: Leaf, branch: &mut Branch) {
    let (name, id) = (seen.text("/spec/virtualNetworkRef/name"), seen.text("/status/virtualNetworkId"));
    let is_in = |network: &&mut NetworkTree| {
        if name.is_empty() { !id.is_empty() && network.network_id == id } else { network.state.name == name }
    };
    match branch.networks.iter_mut().find(is_in) {
        Some(network) => network.routes.push(route),
        None => branch.routes.push(route),
    }
}

/// Which zone a record is in, by the zone's id or by its name.
#[derive(Default)]
struct Zones {
    by_id: BTreeMap<String, (Option<usize>, usize)>,
    by_name: BTreeMap<String, (Option<usize>, usize)>,
}

impl Zones {
    fn add(&mut self, domain: &HealthView, account: Option<usize>, index: usize) {
        let name = domain.text("/spec/domain").trim_end_matches('.').to_lowercase();
        self.by_name.insert(name, (account, index));
        if !zone_id(domain).is_empty() {
            self.by_id.insert(zone_id(domain).to_owned(), (account, index));
        }
    }

    fn of_record(&self, record: &HealthView) -> Option<(Option<usize>, usize)> {
        let ids = ["/status/zoneId", "/spec/cloudflare/zoneId"];
        let by_id = ids.iter().find_map(|pointer| self.by_id.get(record.text(pointer)));
        by_id.or_else(|| self.of_name(record.text("/spec/name"))).copied()
    }

    fn of_name(&self, name: &str) -> Option<&(Option<usize>, usize)> {
        let name = name.trim_end_matches('.').to_lowercase();
        let mut rest = name.as_str();
        loop {
            if let Some(found) = self.by_name.get(rest) {
                return Some(found);
            }
            rest = rest.split_once('.')?.1;
        }
    }
}

impl RecordsByHealth {
    fn add(&mut self, seen: &HealthView, shown: &Shown) {
        self.total += 1;
        let state = match seen.text("/status/state") {
            "" => seen.health().as_str(),
            state => state,
        };
        *self.by_state.entry(state.to_owned()).or_default() += 1;
        if seen.health() != Health::Ready {
            self.unwell.push(leaf(seen, shown));
        }
    }
}

/// Held deletions, from the condition that tells of them.
pub(super) fn held(seen: &HealthView) -> Option<HeldDeletions> {
    let conditions = seen.object["status"]["conditions"].as_array()?;
    let held = conditions
        .iter()
        .find(|condition| condition["reason"] == DELETION_BUDGET_EXCEEDED && condition["message"].is_string())?;
    let message = held["message"].as_str()?;
    let digest = message.split("release-deletions: \"").nth(1)?.split('"').next()?;
    let namespace = match seen.text("/metadata/namespace") {
        "" => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    let release = format!(
        "kubectl annotate {} {}{namespace} portolan.dev/release-deletions={digest} --overwrite",
        seen.kind.to_lowercase(),
        seen.name()
    );
    Some(HeldDeletions { message: message.to_owned(), digest: digest.to_owned(), release })
}

impl Summary {
    fn add(&mut self, objects: &[HealthView]) {
        self.objects += objects.len();
        for seen in objects {
            let count = match seen.health() {
                Health::Ready => &mut self.ready,
                Health::Pending => &mut self.pending,
                Health::Deleting => &mut self.deleting,
                Health::NotReady => &mut self.not_ready,
            };
            *count += 1;
        }
    }
}

fn summary(objects: &[HealthView]) -> Summary {
    let mut summary = Summary::default();
    summary.add(objects);
    summary
}

#[cfg(test)]
mod tests;
