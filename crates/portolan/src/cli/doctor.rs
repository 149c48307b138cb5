//! `portolan doctor`: whether everything is there that is needed, and what to do where it is not.

use std::process::ExitCode;
use std::sync::Arc;

use portolan_cloudflare_api::{Credential, HttpTransport};
use portolan_core::job::JobRole;
use portolan_core::{Hostname, ObjectKey, ZoneName};
use portolan_zerotrust::Role;

use super::{OutputForm, print};
use crate::cloudflare::Cloudflare;
use crate::colour::Colours;
use crate::doctor;
use crate::doctor::gather::cloudflare::{self, WantedPermissions, WriteProbes};
use crate::doctor::gather::{cluster, tenants};
use crate::doctor::{Account, AskedOf, Facts, NameFacts, RightsSubject, Secret, TokenNeeds};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::pods_page;
use crate::server::ConnectArgs;
use crate::urls::Urls;
use crate::zerotrust::{self, NamespaceArgs};

/// Arguments of `portolan doctor`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Looks at the cluster (definitions, rights, leader, Deployments), at each tenant (Secret, token, its \
    permissions one by one,\ntunnel, budget) and at each name (zone, certificate). Whether a token may change things is tried by \
    deleting objects that\ncannot exist; --read-only leaves that out. With --token-env a token is looked at alone, without a \
    cluster.\nExit codes: 0 nothing failed, 1 something did."
)]
pub(crate) struct Args {
    /// Look at one tenant only
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = key, conflicts_with = "token_env")]
    tenant: Option<ObjectKey>,

    /// Look at one name only, whether a route asks for it or not
    #[arg(long, value_name = "NAME", value_parser = hostname)]
    hostname: Option<Hostname>,

    /// Whose rights in the cluster are needed
    #[arg(long, value_name = "all|manager|kube_worker|cloudflare_worker", default_value = "all", value_parser = role)]
    role: &'static JobRole,

    /// Ask for the rights of this service account, not for one's own; its namespace is the operator's where not given
    #[arg(long, value_name = "[NAMESPACE/]NAME", conflicts_with = "token_env")]
    service_account: Option<String>,

    /// Send nothing but reads to Cloudflare: whether the token may change things stays unknown
    #[arg(long)]
    read_only: bool,

    /// Tell what every check means and what to do where it fails, and look at nothing
    #[arg(long)]
    list: bool,

    /// How to show it
    #[arg(short, long, value_enum, default_value = "text")]
    output: OutputForm,

    /// Address of the Cloudflare API; by default that of `portolan up`, the environment's, or Cloudflare's own
    #[arg(long, value_name = "live|URL", value_parser = Cloudflare::parse)]
    cloudflare: Option<Cloudflare>,

    #[command(flatten)]
    token: TokenArgs,

    #[command(flatten)]
    namespace: NamespaceArgs,

    #[command(flatten)]
    connect: ConnectArgs,
}

/// A token without a cluster.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "A token alone, without a cluster")]
struct TokenArgs {
    /// Environment variable that holds the token
    #[arg(long, value_name = "VARIABLE", requires = "account")]
    token_env: Option<String>,

    /// The account's id
    #[arg(long, value_name = "ID", requires = "token_env")]
    account: Option<String>,

    /// A zone that the token is for
    #[arg(long, value_name = "NAME", requires = "token_env", value_parser = zone)]
    zone: Option<ZoneName>,

    /// The tunnel that names are to be published through
    #[arg(long, value_name = "ID", requires = "token_env")]
    tunnel: Option<String>,
}

fn key(text: &str) -> Result<ObjectKey, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok(ObjectKey::namespaced(namespace, name))
        }
        _ => Err("write the tenant's namespace and name, as default/prod".to_owned()),
    }
}

fn hostname(text: &str) -> Result<Hostname, String> {
    portolan_zerotrust::model::hostname(text).map_err(|problem| problem.message)
}

fn zone(text: &str) -> Result<ZoneName, String> {
    ZoneName::parse(text).map_err(|error| error.to_string())
}

fn role(text: &str) -> Result<&'static JobRole, String> {
    let role = Role::parse(text).and_then(|role| portolan_zerotrust::JOB.sheet.role(role.as_str()));
    role.ok_or_else(|| "write all, manager, kube_worker or cloudflare_worker".to_owned())
}

/// Looks, judges and prints.
pub(crate) async fn run(args: Args) -> Outcome<ExitCode> {
    if args.list {
        print(&checks(args.output)?);
        return Ok(ExitCode::SUCCESS);
    }
    let facts = match &args.token.token_env {
        Some(variable) => alone(&args, variable).await?,
        None => in_cluster(&args).await?,
    };
    let report = doctor::judge(&facts);
    let text = match args.output {
        OutputForm::Text => doctor::render(&report, Colours::for_stdout()),
        OutputForm::Json => output::json_text(&report.to_json())?,
    };
    print(&text);
    Ok(if report.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn checks(form: OutputForm) -> Outcome<String> {
    match form {
        OutputForm::Text => Ok(doctor::explain(Colours::for_stdout())),
        OutputForm::Json => {
            output::json_text(&serde_json::to_value(doctor::check::all()).expect("texts are plain JSON"))
        }
    }
}

/// A token of the environment.
async fn alone(args: &Args, variable: &str) -> Outcome<Facts> {
    let token = std::env::var(variable).ok().filter(|token| !token.trim().is_empty()).ok_or_else(|| {
        Failure::new(format!("the environment variable {variable} holds no token"))
            .next(format!("put the API token there: read -rs {variable} && export {variable}"))
    })?;
    let names = args.hostname.iter().cloned().chain(args.token.zone.iter().map(ZoneName::apex));
    let wanted = WantedPermissions {
        account_id: args.token.account.clone().unwrap_or_default(),
        zone_id: None,
        tunnels: args.token.tunnel.iter().cloned().collect(),
        names: names.map(|hostname| NameFacts { hostname, at_the_edge: true }).collect(),
    };
    let api = api(args, None)?.ask(&Credential::token(&token), &wanted).await;
    let account = Account {
        subject: format!("token of ${variable}"),
        id: wanted.account_id,
        zone_id: None,
        needs: TokenNeeds { groups: AskedOf::Yes, redirects: AskedOf::No },
        secret: Secret::Found(format!("environment variable {variable}")),
        api: Some(api),
    };
    Ok(Facts { accounts: vec![account], ..Facts::default() })
}

/// A cluster, and all tokens that its tenants name.
async fn in_cluster(args: &Args) -> Outcome<Facts> {
    let server = match args.connect.server_anywhere().await {
        Ok(server) => server,
        Err(failure) => return Ok(without_cluster(failure.what())),
    };
    let question = cluster::ClusterQuestion {
        operator_namespace: args.namespace.operator_namespace.clone(),
        role: args.role,
        subject: subject(args),
    };
    let mut cluster = cluster::look(&server, &question).await;
    let mut accounts = Vec::new();
    if let Some(inside) = &mut cluster.inside {
        match zerotrust::Facts::read(&server, &args.namespace.operator_namespace).await {
            Ok(objects) => {
                tenants::note(&objects, inside);
                let choice = tenants::Choice { tenant: args.tenant.clone(), hostname: args.hostname.clone() };
                let own = Urls::beside(&args.connect, server.address()).map(|urls| urls.cloudflare);
                let cloudflare = api(args, own)?;
                for subject in tenants::subjects(&objects, &choice)? {
                    accounts.push(tenants::look(&server, &cloudflare, &subject).await);
                }
            }
            Err(failure) => inside.tenants = Err(failure.what().to_owned()),
        }
    }
    let runner = match Urls::beside(&args.connect, server.address()).and_then(|urls| urls.pods) {
        Some(url) => pods_page::read(&url).await.map(|page| page.runner),
        None => None,
    };
    Ok(Facts { cluster: Some(cluster), runner, accounts })
}

fn without_cluster(why: &str) -> Facts {
    Facts { cluster: Some(cluster::unreachable(why.to_owned())), ..Facts::default() }
}

fn subject(args: &Args) -> RightsSubject {
    match &args.service_account {
        None => RightsSubject::Own,
        Some(name) => {
            let (namespace, name) = name.split_once('/').unwrap_or((&args.namespace.operator_namespace, name));
            RightsSubject::ServiceAccount(namespace.to_owned(), name.to_owned())
        }
    }
}

/// The API that is asked; `own` is the one beside the cluster.
fn api(args: &Args, own: Option<String>) -> Outcome<cloudflare::Cloudflare> {
    let address = Cloudflare::address(args.cloudflare.as_ref(), || own)?;
    let writes = if args.read_only { WriteProbes::LeftOut } else { WriteProbes::Tried };
    let transport = HttpTransport::new()
        .map_err(|error| Failure::new(format!("cannot prepare connections to Cloudflare: {error}")))?;
    Ok(cloudflare::Cloudflare::at(&address, Arc::new(transport), writes))
}
