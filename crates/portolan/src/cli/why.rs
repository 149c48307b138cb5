//! `portolan why`: why a name answers as it does.

use super::{OutputForm, print};
use crate::colour::Colours;
use crate::failure::Outcome;
use crate::server::ConnectArgs;
use crate::urls::Urls;
use crate::zerotrust::NamespaceArgs;
use crate::{jobs, output, why};

/// Arguments of `portolan why`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Shows the route, its tenant and templates, every setting with the layer that said it, the task, what stands \
    at\nCloudflare and the last error. Beside `portolan up`, the simulated edge is asked what it would answer."
)]
pub(crate) struct Args {
    /// The name
    #[arg(value_name = "HOSTNAME")]
    hostname: String,

    /// How to show it
    #[arg(short, long, value_enum, default_value = "text")]
    output: OutputForm,

    #[command(flatten)]
    namespace: NamespaceArgs,

    #[command(flatten)]
    connect: ConnectArgs,
}

/// Prints the story of a name.
pub(crate) async fn run(args: Args) -> Outcome {
    let server = args.connect.server().await?;
    let edge = Urls::beside(&args.connect, server.address()).and_then(|urls| urls.edge);
    let namespace = &args.namespace.operator_namespace;
    let told = why::tell(&server, jobs::ALL, namespace, &args.hostname, edge.as_deref()).await?;
    let text = match args.output {
        OutputForm::Text => why::render(&told, Colours::for_stdout()),
        OutputForm::Json => output::json_text(&told.to_json())?,
    };
    print(&text);
    Ok(())
}
