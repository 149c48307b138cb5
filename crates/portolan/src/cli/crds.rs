//! `portolan crds`: the definitions of Portolan's own kinds, printed or installed.

use super::print;
use crate::definitions;
use crate::failure::Outcome;
use crate::output;
use crate::server::ConnectArgs;

/// Arguments of `portolan crds`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Install them, in the place of older ones; nothing is printed
    #[arg(long)]
    apply: bool,

    #[command(flatten)]
    connect: ConnectArgs,
}

/// Prints them, or installs them.
pub(crate) async fn run(args: Args) -> Outcome {
    if args.apply {
        let server = args.connect.server_anywhere().await?;
        definitions::install(&server).await?;
        return definitions::replace(&server, &definitions::objects()).await;
    }
    for definition in definitions::objects() {
        print(&format!("---\n{}", output::yaml_text(&definition)?));
    }
    Ok(())
}
