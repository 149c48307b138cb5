//! The table of checks: what each one asks, why it matters, and what to do where it fails.

use serde::Serialize;

use super::permission::PERMISSIONS;

/// One question about an installation.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    /// Its name, for programs; stable.
    #[serde(rename = "check")]
    pub(crate) id: &'static str,
    /// Its name, for people.
    pub(crate) title: &'static str,
    /// What it means that it is in order.
    pub(crate) meaning: &'static str,
    /// What to do where it is not.
    pub(crate) remedy: &'static str,
}

macro_rules! checks {
    ($($constant:ident = $id:literal, $title:literal, $meaning:literal, $remedy:literal;)+) => {
        $(pub(crate) static $constant: Check =
            Check { id: $id, title: $title, meaning: $meaning, remedy: $remedy };)+
        /// All but those of the permissions, in the order in which they are made.
        static PLAIN: &[&Check] = &[$(&$constant),+];
    };
}

checks! {
    CLUSTER = "cluster", "cluster reachable",
        "The API server of the kubeconfig answers, and in a time that controllers can work with.",
        "check the kubeconfig (--kubeconfig, $KUBECONFIG) and its context, and that the server runs";
    DEFINITIONS = "definitions", "definitions current",
        "The definitions (CRDs) of Portolan's kinds are installed, established, and those of this version. Older ones drop \
         fields that they do not know.",
        "install them: portolan crds | kubectl apply --server-side --force-conflicts -f -";
    GATEWAY_API = "gateway-api", "Gateway API",
        "The cluster serves HTTPRoute of the Gateway API in version v1.",
        "install the Gateway API's standard definitions, version 1.0 or later";
    RBAC = "rbac", "RBAC",
        "Whoever asks may do everything that the role needs, asked right by right with SelfSubjectAccessReviews. Run it as the \
         operator's ServiceAccount (in its pod, or with its kubeconfig), or name that account with --service-account.",
        "install the roles: portolan install --apply, or rbac.create=true in the chart";
    LEADER = "leader", "leader",
        "A living process holds the lease by which one process leads, so that routes are worked on.",
        "look at the pods of the operator and their log; a lease ends by itself 15 s after its holder";
    DEPLOYMENTS = "deployments", "Deployments ready",
        "The operator's Deployments have as many ready pods as they ask for.",
        "kubectl describe the Deployment and its pods in the operator's namespace";
    OLDER_OPERATOR = "older-operator", "no older operator beside",
        "No Deployment of an older operator for the same kinds runs: two operators undo each other's work.",
        "scale the older operator's Deployments to 0 before Portolan runs; docs/migration.md tells the order";
    PODS = "pods", "pods have users of their own",
        "The runner of `portolan up` is root, so that each pod is a user of its own, and pods reach their files where the data \
         directory is.",
        "run portolan up as root, with its data directory where everybody may pass through";
    PROGRAMS = "programs", "programs for pods",
        "The programs that stand for images of pods are on this machine. A pod whose image has none waits and says so.",
        "install the program, or start portolan up with --pods simulate";
    TENANTS = "tenants", "tenants",
        "There are tenants, and they can be read: without one nothing can be published.",
        "create a CloudflareZeroTrustTenant and the Secret that it names";
    ROUTES = "routes", "routes have tenants",
        "Every enabled route has a tenant, templates that exist and annotations that can be read.",
        "portolan why HOSTNAME tells what is wrong with one route";
    SECRET = "secret", "Secret with the token",
        "The Secret that the tenant names is in the tenant's namespace and has the key.",
        "create it: kubectl create secret generic NAME -n NAMESPACE --from-file=token=FILE";
    CLOUDFLARE = "cloudflare", "Cloudflare reachable",
        "The Cloudflare API answers.",
        "check the network, proxies and CLOUDFLARE_API_BASE";
    TOKEN = "token", "token valid",
        "Cloudflare knows the token, it is active, and it does not end within two weeks. A token of a user and one of an account \
         are verified at different addresses; both are tried.",
        "create a token in the dashboard (My Profile, API Tokens) and put it into the Secret; nothing needs a restart";
    ZERO_TRUST = "zero-trust", "Zero Trust enabled",
        "The account has a Zero Trust organisation. Without one there is no Access, and no name that asks for protection can be \
         published.",
        "open Zero Trust in the Cloudflare dashboard (https://one.dash.cloudflare.com) and choose a team name and a plan; \
         nothing needs a restart";
    TUNNEL = "tunnel", "tunnel usable",
        "The tunnel exists in the account and takes its configuration from Cloudflare, not from a file beside cloudflared.",
        "correct tunnelId, or migrate the tunnel to remote management in the dashboard";
    CONNECTIONS = "connections", "tunnel connected",
        "A cloudflared is connected to the tunnel. Without one names are published and answer with error 1033.",
        "run cloudflared with the tunnel's token, and look at its log";
    BUDGET = "budget", "API budget",
        "Enough requests are left in the window (1,200 in five minutes), which all tokens of a user and the dashboard share; a token of \
         an account has its own. Where a tenth or less is left, Portolan itself waits.",
        "wait until the window ends; give Portolan a token of the account, or of a user who does nothing else";
    CLOCK = "clock", "clock",
        "This machine's clock and Cloudflare's differ by less than half a minute. Leases and the ends of tokens go by the clock.",
        "let NTP set the clock of this machine and of the cluster's nodes";
    NAME_ZONE = "name-zone", "name in a zone",
        "A zone of the account that the token sees holds the name, and the zone is active. Without one the name gets no record \
         (DNSSkipped).",
        "add the zone to the account, or to the token's zone resources, or correct the hostname";
    CERTIFICATE = "certificate", "name covered by a certificate",
        "The edge has a certificate for the name. The universal one covers the zone's own name and one label below it; a name \
         further down fails in the browser (ERR_SSL_VERSION_OR_CIPHER_MISMATCH). Certificate packs are looked at where the \
         token may read them (Zone · SSL and Certificates · Read).",
        "use a name one label below the zone, or order an advanced certificate (Advanced Certificate Manager, Total TLS)";
}

/// All checks, in the order in which they are made.
pub(crate) fn all() -> Vec<&'static Check> {
    let (before, after) = PLAIN.split_at(PLAIN.iter().position(|check| **check == TUNNEL).unwrap_or(PLAIN.len()));
    let permissions = PERMISSIONS.iter().map(|permission| &permission.check);
    before.iter().copied().chain(permissions).chain(after.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_check_has_a_name_of_its_own_and_says_what_to_do() {
        let all = all();

        let ids: BTreeSet<&str> = all.iter().map(|check| check.id).collect();
        assert_eq!(ids.len(), all.len(), "an id stands twice");
        assert_eq!(all.len(), PLAIN.len() + PERMISSIONS.len(), "a check is missing");
        for check in all {
            assert!(!check.meaning.is_empty() && !check.remedy.is_empty(), "{}", check.id);
        }
    }
}
