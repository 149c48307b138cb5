//! A seed → namespaces, roles of both kinds, aggregated roles and bindings of both kinds, and the users in them.

use serde_json::{Value, json};

use super::draw::Draw;

const GROUP: &str = "rbac.authorization.k8s.io";
const ROOT: &str = "/apis/rbac.authorization.k8s.io/v1";

pub(super) const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
pub(super) const GROUPS: [&str; 3] = ["", "apps", "example.com"];
pub(super) const RESOURCES: [&str; 8] =
    ["pods", "configmaps", "secrets", "deployments", "nodes", "namespaces", "services", "widgets"];
pub(super) const SUBRESOURCES: [&str; 4] = ["status", "log", "scale", "exec"];
pub(super) const NAMES: [&str; 3] = ["a", "b", "c"];
pub(super) const PATHS: [&str; 8] =
    ["/healthz", "/healthz/ping", "/livez", "/version", "/metrics", "/x/y", "/x/y/z", "/api"];
const URLS: [&str; 8] = ["/healthz", "/healthz/*", "/metrics", "/x/*", "/x/y", "/x/y*", "*", "/version"];

/// A set and everyone who asks.
pub(super) struct RoleSet {
    pub(super) id: String,
    pub(super) namespaces: Vec<String>,
    /// Where to post what, in order.
    pub(super) objects: Vec<(String, Value)>,
    pub(super) users: Vec<Asker>,
}

/// Someone to act as.
#[derive(Clone, Debug)]
pub(super) struct Asker {
    pub(super) name: String,
    pub(super) groups: Vec<String>,
}

impl RoleSet {
    pub(super) fn draw(draw: &mut Draw, id: &str) -> Self {
        let namespaces = vec![format!("{id}-n1"), format!("{id}-n2")];
        let users = users(draw, id, &namespaces);
        let mut set = Self { id: id.to_owned(), namespaces, objects: Vec::new(), users };
        for name in set.namespaces.clone() {
            set.add("/api/v1/namespaces", json!({"metadata": {"name": name}}));
        }
        let cluster_roles = set.draw_cluster_roles(draw);
        for namespace in set.namespaces.clone() {
            set.draw_roles(draw, &namespace, &cluster_roles);
        }
        set.draw_cluster_bindings(draw, &cluster_roles);
        set
    }

    fn add(&mut self, path: &str, object: Value) {
        self.objects.push((path.to_owned(), object));
    }

    /// Plain ones with labels, and some that gather others by them.
    fn draw_cluster_roles(&mut self, draw: &mut Draw) -> Vec<String> {
        let mut names = Vec::new();
        for index in 0..draw.number(2, 5) {
            let name = format!("{}-c{index}", self.id);
            let rules: Vec<Value> = (0..draw.number(0, 3)).map(|_| cluster_rule(draw)).collect();
            let labels = json!({self.label(): draw.one(&["x", "y", "z"])});
            self.add(
                &format!("{ROOT}/clusterroles"),
                json!({"metadata": {"name": name, "labels": labels}, "rules": rules}),
            );
            names.push(name);
        }
        for index in 0..draw.number(0, 2) {
            let name = format!("{}-s{index}", self.id);
            let mut selectors: Vec<Value> = (0..draw.number(1, 2)).map(|_| self.selector(draw)).collect();
            selectors.push(json!({"matchLabels": {self.mark(): "last"}}));
            let role = json!({"metadata": {"name": name}, "aggregationRule": {"clusterRoleSelectors": selectors}});
            self.add(&format!("{ROOT}/clusterroles"), role);
            names.push(name);
        }
        names
    }

    /// The label of the role that every aggregated one takes in.
    fn mark(&self) -> String {
        format!("{}/mark", self.id)
    }

    /// Where to post a role that every aggregated one takes in: those that have it have all that were made before.
    pub(super) fn last_part(&self) -> (String, Value) {
        let metadata = json!({"name": format!("{}-last", self.id), "labels": {self.mark(): "last"}});
        (format!("{ROOT}/clusterroles"), json!({"metadata": metadata, "rules": [marks()]}))
    }

    /// The paths of the aggregated roles.
    pub(super) fn aggregated(&self) -> Vec<String> {
        let roles = self.objects.iter().filter(|(_, object)| object.get("aggregationRule").is_some());
        roles.filter_map(|(path, role)| Some(format!("{path}/{}", role["metadata"]["name"].as_str()?))).collect()
    }

    /// One more of each kind, where to post it, and the reviews that allow once a server knows them: then it knows all.
    pub(super) fn last_ones(&self) -> (Vec<(String, Value)>, Vec<Value>) {
        let (user, namespace) = (format!("{}-last", self.id), self.namespaces[1].as_str());
        let subjects = [json!({"kind": "User", "apiGroup": GROUP, "name": user})];
        let (local, role) = (format!("{ROOT}/namespaces/{namespace}"), format!("{}-very-last", self.id));
        let named = |name: &str| json!({"metadata": {"name": name}, "rules": [marks()]});
        let objects = vec![
            (format!("{ROOT}/clusterroles"), named(&role)),
            (format!("{ROOT}/clusterrolebindings"), binding(&role, "ClusterRole", &role, &subjects)),
            (format!("{local}/roles"), named("last")),
            (format!("{local}/rolebindings"), binding("last", "Role", "last", &[local_user(&user)])),
        ];
        let review = |user: String, namespace: &str| {
            let asked = json!({"verb": "get", "group": "", "resource": MARKS, "namespace": namespace});
            json!({"spec": {"user": user, "resourceAttributes": asked}})
        };
        (objects, vec![review(user.clone(), ""), review(format!("{user}-local"), namespace)])
    }

    /// Roles of other sets have other labels.
    fn label(&self) -> String {
        format!("{}/part", self.id)
    }

    fn selector(&self, draw: &mut Draw) -> Value {
        let (label, value) = (self.label(), draw.one(&["x", "y", "z"]));
        match draw.number(0, 2) {
            0 => json!({"matchLabels": {label: value}}),
            1 => json!({"matchExpressions": [{"key": label, "operator": "In", "values": [value, "y"]}]}),
            _ => json!({"matchExpressions": [
                {"key": label, "operator": "Exists"}, {"key": label, "operator": "NotIn", "values": [value]},
            ]}),
        }
    }

    fn draw_roles(&mut self, draw: &mut Draw, namespace: &str, cluster_roles: &[String]) {
        let root = format!("{ROOT}/namespaces/{namespace}");
        let mut roles: Vec<(&str, String)> = cluster_roles.iter().map(|name| ("ClusterRole", name.clone())).collect();
        for index in 0..draw.number(1, 3) {
            let name = format!("r{index}");
            let rules: Vec<Value> = (0..draw.number(0, 3)).map(|_| rule(draw)).collect();
            self.add(&format!("{root}/roles"), json!({"metadata": {"name": name}, "rules": rules}));
            roles.push(("Role", name));
        }
        if draw.chance(25) {
            roles.push(("Role", "gone".to_owned()));
        }
        for index in 0..draw.number(1, 4) {
            let (kind, name) = draw.any(&roles).clone();
            let subjects: Vec<Value> = (0..draw.number(1, 3)).map(|_| self.subject(draw, namespace)).collect();
            self.add(&format!("{root}/rolebindings"), binding(&format!("b{index}"), kind, &name, &subjects));
        }
    }

    fn draw_cluster_bindings(&mut self, draw: &mut Draw, cluster_roles: &[String]) {
        let mut roles = cluster_roles.to_vec();
        if draw.chance(25) {
            roles.push(format!("{}-gone", self.id));
        }
        for index in 0..draw.number(1, 3) {
            let role = draw.any(&roles).clone();
            let subjects: Vec<Value> = (0..draw.number(1, 2)).map(|_| self.subject(draw, "")).collect();
            let name = format!("{}-b{index}", self.id);
            self.add(&format!("{ROOT}/clusterrolebindings"), binding(&name, "ClusterRole", &role, &subjects));
        }
    }

    /// A user, a group or a service account; one of the binding's own namespace may leave the namespace out.
    fn subject(&self, draw: &mut Draw, namespace: &str) -> Value {
        match draw.number(0, 2) {
            0 => json!({"kind": "User", "apiGroup": GROUP, "name": draw.any(&self.users).name}),
            1 => json!({"kind": "Group", "apiGroup": GROUP, "name": group(&self.id, draw)}),
            _ if draw.chance(30) && !namespace.is_empty() => json!({"kind": "ServiceAccount", "name": "sa1"}),
            _ => {
                let name = draw.one(&["sa1", "sa2"]);
                json!({"kind": "ServiceAccount", "name": name, "namespace": draw.any(&self.namespaces)})
            }
        }
    }
}

/// A resource that nothing else names.
pub(super) const MARKS: &str = "marks";

fn marks() -> Value {
    json!({"verbs": ["get"], "apiGroups": [""], "resources": [MARKS]})
}

fn local_user(user: &str) -> Value {
    json!({"kind": "User", "apiGroup": GROUP, "name": format!("{user}-local")})
}

fn users(draw: &mut Draw, id: &str, namespaces: &[String]) -> Vec<Asker> {
    let mut users: Vec<Asker> = (0..4)
        .map(|index| {
            let groups = (0..draw.number(0, 2)).map(|_| group(id, draw)).collect();
            Asker { name: format!("{id}-u{index}"), groups }
        })
        .collect();
    for namespace in namespaces {
        for account in ["sa1", "sa2"] {
            let name = format!("system:serviceaccount:{namespace}:{account}");
            users.push(Asker { name, groups: Vec::new() });
        }
    }
    users
}

fn group(id: &str, draw: &mut Draw) -> String {
    format!("{id}-g{}", draw.number(0, 2))
}

fn cluster_rule(draw: &mut Draw) -> Value {
    if draw.chance(30) {
        return json!({"verbs": verbs(draw), "nonResourceURLs": draw.some(&URLS, 3)});
    }
    rule(draw)
}

fn rule(draw: &mut Draw) -> Value {
    let resources: Vec<String> = (0..draw.number(1, 3)).map(|_| resource(draw)).collect();
    let groups = if draw.chance(20) { vec!["*".to_owned()] } else { draw.some(&GROUPS, 2) };
    let mut rule = json!({"verbs": verbs(draw), "apiGroups": groups, "resources": resources});
    if draw.chance(25) {
        rule["resourceNames"] = json!(draw.some(&NAMES, 2));
    }
    rule
}

fn verbs(draw: &mut Draw) -> Vec<String> {
    if draw.chance(15) { vec!["*".to_owned()] } else { draw.some(&VERBS, 4) }
}

fn resource(draw: &mut Draw) -> String {
    match draw.number(0, 9) {
        0 => "*".to_owned(),
        1 => format!("*/{}", draw.one(&SUBRESOURCES)),
        2 | 3 => format!("{}/{}", draw.one(&RESOURCES), draw.one(&SUBRESOURCES)),
        _ => draw.one(&RESOURCES).to_owned(),
    }
}

fn binding(name: &str, kind: &str, role: &str, subjects: &[Value]) -> Value {
    json!({
        "metadata": {"name": name}, "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role}, "subjects": subjects,
    })
}
