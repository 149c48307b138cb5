//! `portolan status`: what there is, and how it is.

use super::{OutputForm, print};
use crate::colour::Colours;
use crate::failure::Outcome;
use crate::output;
use crate::server::ConnectArgs;
use crate::urls::Urls;
use crate::zerotrust::NamespaceArgs;
use crate::{jobs, pods_page, prometheus_text, status};

/// Arguments of `portolan status`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// How to show it
    #[arg(short, long, value_enum, default_value = "text")]
    output: OutputForm,

    /// Metrics of the running operator, for the API budget that is left; left out where it does not answer
    #[arg(long, value_name = "URL")]
    metrics: Option<String>,

    #[command(flatten)]
    zerotrust: NamespaceArgs,

    #[command(flatten)]
    connect: ConnectArgs,
}

/// Prints the tree.
pub(crate) async fn run(args: Args) -> Outcome {
    let server = args.connect.server().await?;
    let mut tree = status::read(&server, jobs::ALL, &args.zerotrust.operator_namespace).await?;
    let urls = Urls::beside(&args.connect, server.address());
    let page = match urls.as_ref().and_then(|urls| urls.pods.as_deref()) {
        Some(url) => pods_page::read(url).await,
        None => None,
    };
    if let Some(page) = page {
        status::add_pods(&mut tree, &server, &page).await?;
    }
    let metrics = args.metrics.or_else(|| urls?.metrics);
    if let Some(url) = metrics {
        tree.budget = prometheus_text::budgets(&url).await;
    }
    let text = match args.output {
        OutputForm::Text => status::render(&tree, Colours::for_stdout()),
        OutputForm::Json => output::json_text(&serde_json::to_value(&tree).expect("trees are plain JSON"))?,
    };
    print(&text);
    Ok(())
}
