//! A tree → text for a terminal.

use std::fmt::Write as _;

use super::tree::{Account, Branch, Domain, Leaf, Network, Records, State, Tree};
use crate::paint::{Paint, Tone};
use crate::seen::Health;

/// A line with lines below it.
struct Node {
    text: String,
    below: Vec<Node>,
}

impl Node {
    fn leaf(text: impl Into<String>) -> Self {
        Self { text: text.into(), below: Vec::new() }
    }
}

/// The tree for people.
pub(crate) fn render(tree: &Tree, paint: Paint) -> String {
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
    let mut roots: Vec<Node> = tree.credentials.iter().map(|account| account_node(account, paint)).collect();
    let unassigned = branch_nodes(&tree.unassigned, paint);
    if !unassigned.is_empty() {
        roots.push(Node { text: "without known credentials".to_owned(), below: unassigned });
    }
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

fn write_below(text: &mut String, node: &Node, indent: &str) {
    for (index, child) in node.below.iter().enumerate() {
        let is_last = index + 1 == node.below.len();
        let (branch, further) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        line_to(text, &format!("{indent}{branch}{}", child.text));
        write_below(text, child, &format!("{indent}{further}"));
    }
}

fn account_node(account: &Account, paint: Paint) -> Node {
    let default = if account.is_default { ", default" } else { "" };
    let text = line(
        &format!("credentials {} (account {}{default})", account.state.name, account.account_id),
        &account.state,
        paint,
    );
    Node { text, below: branch_nodes(&account.branch, paint) }
}

fn branch_nodes(branch: &Branch, paint: Paint) -> Vec<Node> {
    let mut nodes: Vec<Node> = branch.domains.iter().map(|domain| domain_node(domain, paint)).collect();
    nodes.extend(branch.networks.iter().map(|network| network_node(network, paint)));
    nodes.extend(branch.routes.iter().map(|route| leaf_node("route", route, paint)));
    nodes.extend(branch.tunnels.iter().map(|tunnel| leaf_node("tunnel", tunnel, paint)));
    if branch.records.total > 0 {
        nodes.push(Node { text: "in no known zone".to_owned(), below: record_nodes(&branch.records, paint) });
    }
    nodes
}

fn domain_node(domain: &Domain, paint: Paint) -> Node {
    let zone = if domain.zone_id.is_empty() { "no zone yet".to_owned() } else { format!("zone {}", domain.zone_id) };
    let mut below = record_nodes(&domain.records, paint);
    if let Some(held) = &domain.held {
        let text = format!("{} {}", paint.tone(Tone::Bad, "held"), held.message);
        below.push(Node { text, below: vec![Node::leaf(format!("release them: {}", held.release))] });
    }
    Node { text: line(&format!("{} ({zone})", domain.domain), &domain.state, paint), below }
}

fn record_nodes(records: &Records, paint: Paint) -> Vec<Node> {
    if records.total == 0 {
        return Vec::new();
    }
    let states: Vec<String> = records.by_state.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let noun = if records.total == 1 { "record" } else { "records" };
    let mut nodes = vec![Node::leaf(format!("{} {noun}: {}", records.total, states.join(", ")))];
    nodes.extend(records.unwell.iter().map(|record| leaf_node("record", record, paint)));
    nodes
}

fn network_node(network: &Network, paint: Paint) -> Node {
    let below = network.routes.iter().map(|route| leaf_node("route", route, paint)).collect();
    Node { text: line(&format!("network {}", network.state.name), &network.state, paint), below }
}

fn leaf_node(noun: &str, leaf: &Leaf, paint: Paint) -> Node {
    Node::leaf(line(&format!("{noun} {} ({})", leaf.state.name, leaf.about), &leaf.state, paint))
}

fn line(what: &str, state: &State, paint: Paint) -> String {
    let tone = match state.health {
        Health::Ready => Tone::Good,
        Health::Pending | Health::Deleting => Tone::Waiting,
        Health::NotReady => Tone::Bad,
    };
    let health = paint.tone(tone, state.health.as_str());
    match &state.why {
        Some(why) => format!("{what}: {health}, {why}"),
        None => format!("{what}: {health}"),
    }
}
