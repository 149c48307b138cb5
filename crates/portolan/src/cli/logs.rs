//! `portolan logs`: what a pod's containers write.

use futures::AsyncReadExt as _;

use super::{NamespaceArgs, print_bytes};
use crate::failure::{Failure, Outcome};
use crate::kinds::segment;
use crate::server::ConnectArgs;

/// Arguments of `portolan logs`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  portolan logs web-0\n  portolan logs web-0 -c proxy -f\n  portolan logs web-0 --previous --tail 20"
)]
pub(crate) struct Args {
    /// Name of the pod, or pod/NAME
    #[arg(value_name = "POD")]
    pod: String,

    /// Which of its containers, where it has several
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,

    /// Go on showing what is written until the container ends, or until Ctrl-C
    #[arg(short, long)]
    follow: bool,

    /// What the container wrote before it was started the last time
    #[arg(short, long, conflicts_with = "follow")]
    previous: bool,

    /// Only the last lines
    #[arg(long, value_name = "LINES")]
    tail: Option<u32>,

    /// The time of each line before it
    #[arg(long)]
    timestamps: bool,

    #[command(flatten)]
    namespace: NamespaceArgs,

    #[command(flatten)]
    connect: ConnectArgs,
}

/// Prints it as it comes.
pub(crate) async fn run(args: Args) -> Outcome {
    let server = args.connect.server().await?;
    let namespace = args.namespace.namespace.as_deref().unwrap_or(server.default_namespace());
    let mut text = Box::pin(server.stream(&path(&args, namespace)).await?);
    let mut part = vec![0; 16 * 1024];
    loop {
        let read = tokio::select! {
            read = text.read(&mut part) => read,
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        let count = read.map_err(|error| {
            Failure::new(format!("the log broke off: {error}")).next("the server stopped; start the command again")
        })?;
        if count == 0 {
            return Ok(());
        }
        print_bytes(&part[..count]);
    }
}

fn path(args: &Args, namespace: &str) -> String {
    let pod = args.pod.strip_prefix("pod/").or_else(|| args.pod.strip_prefix("pods/")).unwrap_or(&args.pod);
    let mut query: Vec<String> =
        [("follow", args.follow), ("previous", args.previous), ("timestamps", args.timestamps)]
            .into_iter()
            .filter(|(_, wanted)| *wanted)
            .map(|(name, _)| format!("{name}=true"))
            .collect();
    query.extend(args.container.as_deref().map(|name| format!("container={}", segment(name))));
    query.extend(args.tail.map(|lines| format!("tailLines={lines}")));
    format!("/api/v1/namespaces/{}/pods/{}/log?{}", segment(namespace), segment(pod), query.join("&"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn path_of(line: &str) -> String {
        path(&Line::parse_from(format!("logs {line}").split(' ')).args, "harbour")
    }

    #[test]
    fn what_is_wanted_is_asked_for_as_kubectl_asks() {
        assert_eq!(path_of("web-0"), "/api/v1/namespaces/harbour/pods/web%2D0/log?");
        assert_eq!(
            path_of("pod/web-0 -f -c a --tail 5"),
            "/api/v1/namespaces/harbour/pods/web%2D0/log?follow=true&container=a&tailLines=5"
        );
        assert_eq!(path_of("web-0 --previous"), "/api/v1/namespaces/harbour/pods/web%2D0/log?previous=true");
    }
}
