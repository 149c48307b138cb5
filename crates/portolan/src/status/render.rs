//! A tree → text for a terminal.

use std::fmt::Write as _;

use super::pods::{PodLeaf, PodsBranch, mebibytes};
use super::tenants::{NamesByHealth, Tenant};
use super::tree::{
    Account, Branch, Domain, HeldDeletions, JobObjects, Leaf, NamedHealth, NetworkTree, RecordsByHealth, Tree,
};
use crate::colour::{Colours, Tone};
use crate::health_view::Health;

/// How many records of a zone, or names of a tenant, have a line of their own.
const RECORDS_SHOWN: usize = 10;

/// A line with lines below it.
struct TreeLine {
    text: String,
    below: Vec<TreeLine>,
}

impl TreeLine {
    fn leaf(text: impl Into<String>) -> Self {
        Self { text: text.into(), below: Vec::new() }
    }
}

/// The tree for people.
pub(crate) fn render(tree: &Tree, colours: Colours) -> String {
    let mut text = format!("{}\n", tree.server);
    if !tree.installed {
        text.push_str("Portolan's kinds are not installed here: portolan crds | kubectl apply --server-side -f -\n");
        return text;
    }
    let summary = &tree.summary;
    let counts = format!(
        "{} objects: {} ready, {} not ready, {} pending, {} being deleted",
        summary.objects, summary.ready, summary.not_ready, summary.pending, summary.deleting
    );
    line_to(&mut text, &counts);
    for (credential, left) in tree.budget.iter().flatten() {
        line_to(&mut text, &format!("API budget of credential {credential}: {left} requests left"));
    }
    let mut roots: Vec<TreeLine> = tree.credentials.iter().map(|account| account_node(account, colours)).collect();
    let unassigned = branch_nodes(&tree.unassigned, colours);
    if !unassigned.is_empty() {
        roots.push(TreeLine { text: "without known credentials".to_owned(), below: unassigned });
    }
    roots.extend(tree.tenants.iter().map(|tenant| tenant_node(tenant, colours)));
    if tree.names.total > 0 {
        roots.push(TreeLine { text: "without a known tenant".to_owned(), below: name_nodes(&tree.names, colours) });
    }
    roots.extend(tree.jobs.iter().map(|job| job_node(job, colours)));
    roots.extend(tree.pods.iter().filter(|pods| pods.total > 0).map(|pods| pods_node(pods, colours)));
    for root in &roots {
        text.push('\n');
        line_to(&mut text, &root.text);
        write_below(&mut text, root, "");
    }
    text
}

fn line_to(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}

fn write_below(text: &mut String, node: &TreeLine, indent: &str) {
    for (index, child) in node.below.iter().enumerate() {
        let is_last = index + 1 == node.below.len();
        let (branch, further) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        line_to(text, &format!("{indent}{branch}{}", child.text));
        write_below(text, child, &format!("{indent}{further}"));
    }
}

fn account_node(account: &Account, colours: Colours) -> TreeLine {
    let default = if account.is_default { ", default" } else { "" };
    let text = line(
        &format!("credentials {} (account {}{default})", account.state.name, account.account_id),
        &account.state,
        colours,
    );
    let mut below = branch_nodes(&account.branch, colours);
    below.extend(account.held.as_ref().map(|held| held_node(held, colours)));
    TreeLine { text, below }
}

fn tenant_node(tenant: &Tenant, colours: Colours) -> TreeLine {
    let what = format!("tenant {} (account {}, tunnel {})", tenant.state.name, tenant.account_id, tenant.tunnel_id);
    let mut below = name_nodes(&tenant.names, colours);
    let exposed = |message: &String| TreeLine::leaf(format!("{} {message}", colours.tone(Tone::Bad, "!")));
    below.extend(tenant.exposed.as_ref().map(exposed));
    below.extend(tenant.held.as_ref().map(|held| held_node(held, colours)));
    TreeLine { text: line(&what, &tenant.state, colours), below }
}

/// A job's objects, a line each: of many, those that are not Ready.
fn job_node(job: &JobObjects, colours: Colours) -> TreeLine {
    let many = job.objects.len() > RECORDS_SHOWN;
    let shown = job.objects.iter().filter(|object| !many || object.state.health != Health::Ready).take(RECORDS_SHOWN);
    let below = shown
        .map(|object| TreeLine::leaf(line(&format!("{} {}", object.about, object.state.name), &object.state, colours)));
    TreeLine { text: format!("job {} ({} objects)", job.job, job.objects.len()), below: below.collect() }
}

/// Few pods have a line each; of many, those that are not Ready and those that use most.
fn pods_node(pods: &PodsBranch, colours: Colours) -> TreeLine {
    let text = format!("pods: {} of {} ready, {}", pods.ready, pods.total, mebibytes(pods.memory_bytes));
    let mut shown: Vec<&PodLeaf> = pods.pods.iter().collect();
    if pods.total > RECORDS_SHOWN {
        shown.sort_by_key(|pod| (pod.state.health == Health::Ready, std::cmp::Reverse(pod.memory_bytes)));
    }
    let mut below: Vec<TreeLine> = shown.iter().take(RECORDS_SHOWN).map(|pod| pod_node(pod, colours)).collect();
    if shown.len() > RECORDS_SHOWN {
        below.push(TreeLine::leaf(format!("{} more (-o json lists all)", shown.len() - RECORDS_SHOWN)));
    }
    TreeLine { text, below }
}

fn pod_node(pod: &PodLeaf, colours: Colours) -> TreeLine {
    let mut what = format!("pod {}", pod.state.name);
    if let Some(used) = pod.used() {
        what = format!("{what} ({used})");
    } else if pod.simulated {
        what.push_str(" (simulated)");
    }
    TreeLine::leaf(line(&what, &pod.state, colours))
}

/// Few names have a line each; of many, those that are not Ready.
fn name_nodes(names: &NamesByHealth, colours: Colours) -> Vec<TreeLine> {
    if names.total == 0 {
        return Vec::new();
    }
    let healths: Vec<String> = names.by_health.iter().map(|(health, count)| format!("{count} {health}")).collect();
    let noun = if names.total == 1 { "name" } else { "names" };
    let counts = format!("{} {noun}, {} protected: {}", names.total, names.protected, healths.join(", "));
    let mut nodes = vec![TreeLine::leaf(counts)];
    let shown: Vec<&Leaf> = match names.total {
        0..=RECORDS_SHOWN => names.routes.iter().collect(),
        _ => names.unwell().collect(),
    };
    nodes.extend(shown.iter().take(RECORDS_SHOWN).map(|route| leaf_node("route", route, colours)));
    if shown.len() > RECORDS_SHOWN {
        nodes.push(TreeLine::leaf(format!(
            "{} more that are not Ready (-o json lists all)",
            shown.len() - RECORDS_SHOWN
        )));
    }
    nodes
}

fn branch_nodes(branch: &Branch, colours: Colours) -> Vec<TreeLine> {
    let mut nodes: Vec<TreeLine> = branch.domains.iter().map(|domain| domain_node(domain, colours)).collect();
    nodes.extend(branch.networks.iter().map(|network| network_node(network, colours)));
    let leaves = branch.routes.iter().chain(branch.lists.values().flatten());
    nodes.extend(leaves.map(|leaf| leaf_node(&leaf.sort, leaf, colours)));
    if branch.records.total > 0 {
        nodes.push(TreeLine { text: "in no known zone".to_owned(), below: record_nodes(&branch.records, colours) });
    }
    nodes
}

fn domain_node(domain: &Domain, colours: Colours) -> TreeLine {
    let zone = if domain.zone_id.is_empty() { "no zone yet".to_owned() } else { format!("zone {}", domain.zone_id) };
    let mut below = record_nodes(&domain.records, colours);
    below.extend(domain.held.as_ref().map(|held| held_node(held, colours)));
    TreeLine { text: line(&format!("{} ({zone})", domain.domain), &domain.state, colours), below }
}

/// Deletions that wait, with the command that lets them go.
fn held_node(held: &HeldDeletions, colours: Colours) -> TreeLine {
    let text = format!("{} {}", colours.tone(Tone::Bad, "held"), held.message);
    TreeLine { text, below: vec![TreeLine::leaf(format!("release them: {}", held.release))] }
}

fn record_nodes(records: &RecordsByHealth, colours: Colours) -> Vec<TreeLine> {
    if records.total == 0 {
        return Vec::new();
    }
    let states: Vec<String> = records.by_state.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let noun = if records.total == 1 { "record" } else { "records" };
    let mut nodes = vec![TreeLine::leaf(format!("{} {noun}: {}", records.total, states.join(", ")))];
    nodes.extend(records.unwell.iter().take(RECORDS_SHOWN).map(|record| leaf_node("record", record, colours)));
    let more = records.unwell.len().saturating_sub(RECORDS_SHOWN);
    if more > 0 {
        nodes.push(TreeLine::leaf(format!("{more} more that are not Ready (-o json lists all)")));
    }
    nodes
}

fn network_node(network: &NetworkTree, colours: Colours) -> TreeLine {
    let below = network.routes.iter().map(|route| leaf_node("route", route, colours)).collect();
    TreeLine { text: line(&format!("network {}", network.state.name), &network.state, colours), below }
}

fn leaf_node(noun: &str, leaf: &Leaf, colours: Colours) -> TreeLine {
    TreeLine::leaf(line(&format!("{noun} {} ({})", leaf.state.name, leaf.about), &leaf.state, colours))
}

fn line(what: &str, state: &NamedHealth, colours: Colours) -> String {
    let tone = match state.health {
        Health::Ready => Tone::Good,
        Health::Pending | Health::Deleting => Tone::Waiting,
        Health::NotReady => Tone::Bad,
    };
    let health = colours.tone(tone, state.health.as_str());
    match &state.why {
        Some(why) => format!("{what}: {health}, {why}"),
        None => format!("{what}: {health}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::health_view::HealthView;
    use crate::status::tree;

    #[test]
    fn a_tree_shows_zones_with_their_records_and_at_most_ten_that_are_not_ready() {
        let seen = |kind: &str, name: String, spec| HealthView {
            kind: kind.to_owned(),
            object: json!({"metadata": {"name": name}, "spec": spec}),
        };
        let mut objects = vec![
            seen("CloudflareCredentials", "main".into(), json!({"accountId": "a1", "isDefault": true})),
            seen("CloudflareDomain", "example".into(), json!({"domain": "example.com"})),
        ];
        let record = |number: usize| json!({"name": format!("r{number}.example.com"), "type": "A"});
        objects.extend((0..12).map(|number| seen("DNSRecord", format!("r{number}"), record(number))));

        let text = render(&tree::build("https://here", &objects, true), Colours::Off);

        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "14 objects: 0 ready, 0 not ready, 14 pending, 0 being deleted");
        assert!(lines[3].starts_with("credentials main (account a1, default): Pending"), "{text}");
        assert!(lines[4].starts_with("└─ example.com (no zone yet): Pending"), "{text}");
        assert_eq!(lines[5], "   ├─ 12 records: 12 Pending");
        assert!(lines[6].starts_with("   ├─ record r0 (A r0.example.com): Pending"), "{text}");
        assert_eq!(lines[16], "   └─ 2 more that are not Ready (-o json lists all)");
    }
}
