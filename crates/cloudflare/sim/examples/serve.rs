//! Serves a simulator: `serve ADDRESS [RECORDING.jsonl [SEED.json]]`. Prints the base URL of the API.

use std::{env, error::Error, fs};

use portolan_cloudflare_sim::{Options, Simulator};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8787".to_owned());
    let options = Options { record: arguments.next().map(Into::into), ..Options::default() };
    let simulator = Simulator::open(options)?;
    match arguments.next() {
        Some(seed) => simulator.seed(serde_json::from_str(&fs::read_to_string(seed)?)?)?,
        None => simulator.seed_example(),
    }
    let running = simulator.serve(address).await?;
    println!("{}", running.base_url());
    tokio::signal::ctrl_c().await?;
    running.shutdown().await;
    Ok(())
}
