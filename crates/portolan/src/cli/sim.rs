//! `portolan sim`: the Cloudflare simulator alone, until Ctrl-C or SIGTERM.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use portolan_cloudflare_sim::{Options, OriginAddress};

use super::print;
use crate::duration::duration;
use crate::failure::Outcome;
use crate::signals::Signals;
use crate::simulation::{EdgePlace, Simulation, read_seed};

/// Arguments of `portolan sim`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Everything is kept in memory and forgotten at the end. Without --seed there is one account with the \
    zones\nexample.com and example.org, and any token is accepted.\n\
    Admin: GET /admin/state, GET /admin/requests, POST /admin/reset, POST /admin/faults; GET / lists what is served."
)]
pub(crate) struct Args {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787")]
    listen: SocketAddr,

    /// Answer HTTP for published names at this address, as Cloudflare's edge would; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS")]
    edge: Option<SocketAddr>,

    /// Where the edge finds an origin that only a cluster knows by name, as traefik.traefik.svc=127.0.0.1:8000;
    /// `*=echo` answers in the place of all origins that are not named
    #[arg(long, value_name = "HOST=ADDRESS", requires = "edge")]
    edge_origin: Vec<OriginAddress>,

    /// Append every request to this file as a JSON line; secrets are masked
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Requests a token may make in a window, or `off`
    #[arg(long, value_name = "COUNT/DURATION", default_value = "1200/300s", value_parser = rate_limit)]
    rate_limit: RateLimit,

    /// How long an answer takes
    #[arg(long, value_name = "DURATION", default_value = "0ms", value_parser = duration)]
    latency: Duration,

    /// What is there at the start: accounts, zones with records, tokens, tunnels, networks, Access groups, as JSON or YAML
    #[arg(long, value_name = "FILE")]
    seed: Option<PathBuf>,
}

/// How many requests a token may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RateLimit(Option<(u32, Duration)>);

fn rate_limit(text: &str) -> Result<RateLimit, String> {
    if text == "off" {
        return Ok(RateLimit(None));
    }
    let unreadable = || "write a count and a window such as 1200/300s, or off".to_owned();
    let (count, window) = text.split_once('/').ok_or_else(unreadable)?;
    let count: u32 = count.parse().map_err(|_| unreadable())?;
    let window = duration(window).map_err(|_| unreadable())?;
    if count == 0 || window.is_zero() {
        return Err(unreadable());
    }
    Ok(RateLimit(Some((count, window))))
}

/// Serves until told to stop.
pub(crate) async fn run(args: Args) -> Outcome {
    let mut stop = Signals::listen()?;
    let seed = args.seed.as_deref().map(read_seed).transpose()?;
    let options = Options {
        latency: args.latency,
        rate_limit: args.rate_limit.0,
        record: args.record.clone(),
        ..Options::default()
    };
    let mut simulation = Simulation::start(options, args.listen, "--listen").await?;
    if let Some(address) = args.edge {
        simulation.start_edge(EdgePlace::Exactly(address), &args.edge_origin).await?;
    }
    simulation.begin(seed)?;
    print(&greeting(&simulation, &args));
    stop.asked().await;
    simulation.stop().await;
    Ok(())
}

fn greeting(simulation: &Simulation, args: &Args) -> String {
    let (url, page) = (simulation.base_url(), simulation.page());
    let zones: Vec<String> = simulation
        .simulator()
        .objects("zones", "")
        .iter()
        .map(|zone| {
            format!("{} ({})", zone["name"].as_str().unwrap_or_default(), zone["id"].as_str().unwrap_or_default())
        })
        .collect();
    let zones = if zones.is_empty() { "none".to_owned() } else { zones.join(", ") };
    let recording =
        args.record.as_ref().map_or_else(String::new, |file| format!("Requests go to {}\n", file.display()));
    let edge = simulation.edge_url().map_or_else(String::new, |url| {
        format!("Its edge at {url}\n  curl -i -H 'Host: www.example.com' {url}/   # asks for a published name\n")
    });
    format!(
        "Simulated Cloudflare API at {url}\n{edge}Zones: {zones}\n{recording}Try, in another terminal:\n  \
         curl -H 'Authorization: Bearer anything' {url}/zones\n  \
         export CLOUDFLARE_API_BASE_URL={url}   # makes portolan run and plan use it\n  \
         {page} lists what is served\nStop with Ctrl-C.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limit_is_a_count_in_a_window() {
        assert_eq!(rate_limit("1200/300s"), Ok(RateLimit(Some((1200, Duration::from_secs(300))))));
        assert_eq!(rate_limit("off"), Ok(RateLimit(None)));
        for bad in ["", "1200", "x/1s", "0/1s", "5/0s", "5/soon"] {
            assert!(rate_limit(bad).is_err(), "{bad}");
        }
    }
}
