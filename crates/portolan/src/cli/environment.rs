//! The flags of `portolan run` → `docs/reference/environment.md`, which a test compares with them.
//!
//! `PORTOLAN_WRITE_DOCS=1 cargo test -p portolan --bin portolan environment` writes the page.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Arg, CommandFactory as _};

use super::Cli;

/// Which processes look at a variable.
#[derive(Clone, Copy)]
enum Who {
    Every,
    Manager,
    Routes,
    Worker,
    Cloudflare,
    OtherJob,
}

impl Who {
    fn text(self) -> &'static str {
        match self {
            Self::Every => "every",
            Self::Manager => "manager",
            Self::Routes => "kube_worker",
            Self::Worker => "cloudflare_worker",
            Self::Cloudflare => "kube_worker, cloudflare_worker",
            Self::OtherJob => "the cloudflare job",
        }
    }
}

/// Variables that are not read by way of a flag: name, default, meaning.
const OTHERS: [(&str, &str, &str, Who); 7] = [
    ("KUBECONFIG", "the pod's own cluster", "kubeconfig of the cluster; `--kubeconfig` wins", Who::Every),
    (
        "CLOUDFLARE_API_BASE",
        "Cloudflare's own",
        "root of the Cloudflare API, as `https://…/client/v4`",
        Who::Cloudflare,
    ),
    (
        "CLOUDFLARE_API_BASE_URL",
        "",
        "the same under the name of the cloudflare job's older operator; it wins where both are set",
        Who::Cloudflare,
    ),
    (
        "LOG_LEVEL",
        "INFO",
        "`DEBUG`, `INFO`, `WARNING`, `ERROR`, or a list such as `info,portolan_engine=debug`; a tenant's `spec.logLevel` wins for its own work",
        Who::Every,
    ),
    ("LOG_FORMAT", "text", "`text` or `json`; `--log` wins", Who::Every),
    ("NO_COLOR", "", "any value: text logs without colours", Who::Every),
    (
        "PORTOLAN_POD_ADDRESS",
        "",
        "the pod's address, where `portolan up` runs this process as a pod: `:8080` and the like mean that one",
        Who::Every,
    ),
];

/// Who looks at the variables of flags.
const READERS: [(&str, Who); 17] = [
    ("ROLE", Who::Every),
    ("OPERATOR_NAMESPACE", Who::Every),
    ("POD_NAME", Who::Every),
    ("POD_NAMESPACE", Who::OtherJob),
    ("METRICS_ADDR", Who::Every),
    ("HEALTH_ADDR", Who::Every),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", Who::Every),
    ("WATCH_NAMESPACES", Who::Routes),
    ("POLL_INTERVAL_SECONDS", Who::Routes),
    ("DRIFT_RESYNC_SECONDS", Who::Routes),
    ("ALLOW_ORIGINS", Who::Routes),
    ("CFZT_NO_FINALIZERS", Who::Routes),
    ("TASK_LEASE_SECONDS", Who::Worker),
    ("OWNER_ID", Who::Cloudflare),
    ("CLOUDFLARE_LIMITS", Who::Cloudflare),
    ("KUBE_WORKER_SERVICE_ACCOUNT", Who::Manager),
    ("CLOUDFLARE_WORKER_SERVICE_ACCOUNT", Who::Manager),
];

const HEAD: &str = "# Environment of `portolan run`

Every variable is the default of a flag, where there is one: the flag wins. A variable without a value counts as unset.
The last column says which roles of the zerotrust job look at it; the role `all` looks at every one.

| variable | flag | default | meaning | read by |
|---|---|---|---|---|
";

const FOOT: &str = "
## Roles

`ROLE` (or `--role`) says which part of the zerotrust job a process does; hyphens count as underscores.

| role | what it does | lease |
|---|---|---|
| `all`, also where `ROLE` is unset or empty | everything, in one process | `cloudflare-zero-trust-operator` |
| `manager` | keeps the operator's own Deployments in shape | `cloudflare-zero-trust-manager` |
| `kube_worker` | turns routes into tasks, and results into Secrets, states and annotations | `cloudflare-zero-trust-operator` |
| `cloudflare_worker` | carries tasks out at Cloudflare; any number of them share the tasks by claims | none |

An unknown role counts as `manager`, with a warning, as it did in the older operator. There an unset role was `manager` too: a
Deployment of one process does everything now, and needs no change.

In a role other than `all` only the zerotrust job runs, whatever definitions the cluster has, unless `--controllers` names others.
The leases are in the operator's namespace (`OPERATOR_NAMESPACE`); the cloudflare job's own is in `POD_NAMESPACE`.
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    let command = Cli::command();
    let run = command.find_subcommand("run").expect("the command is there");
    let mut rows: Vec<String> = run.get_arguments().filter_map(row).collect();
    rows.extend(OTHERS.map(|(name, default, meaning, who)| line(name, "", default, meaning, who)));
    rows.sort();
    page.extend(rows);
    page + FOOT
}

fn row(argument: &Arg) -> Option<String> {
    let name = argument.get_env()?.to_str()?;
    let who = READERS.iter().find(|(known, _)| *known == name).map(|(_, who)| *who);
    let who = who.unwrap_or_else(|| panic!("say in READERS which roles look at {name}"));
    let flag = format!("`--{}`", argument.get_long()?);
    let defaults = argument.get_default_values().iter().map(|value| value.to_string_lossy());
    let default = defaults.collect::<Vec<_>>().join(",");
    let meaning = argument.get_help().map(ToString::to_string).unwrap_or_default();
    Some(line(name, &flag, &default, &meaning, who))
}

fn line(name: &str, flag: &str, default: &str, meaning: &str, who: Who) -> String {
    let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
    let mut line = String::new();
    writeln!(line, "| `{name}` | {flag} | {default} | {} | {} |", meaning.replace('|', "\\|"), who.text())
        .expect("text can be written");
    line
}

#[test]
fn the_page_of_environment_variables_is_as_the_flags_are() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/environment.md");
    if std::env::var_os("PORTOLAN_WRITE_DOCS").is_some() {
        std::fs::write(&path, page()).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();

    assert!(
        written == page(),
        "docs/reference/environment.md is out of date: run PORTOLAN_WRITE_DOCS=1 cargo test -p portolan --bin portolan environment"
    );
}
