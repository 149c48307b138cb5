//! `cargo xtask generate FOLDER`: published `OpenAPI` documents → the data that crates embed.

mod schemas;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Generates the committed data of other crates")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Reduce Kubernetes' `OpenAPI` v3 documents to the schemas of the built-in kinds.
    Generate {
        /// Folder of `*_openapi.json` files.
        openapi: PathBuf,
        /// Change nothing; fail where the committed file differs.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> Result<()> {
    let Task::Generate { openapi, check } = Arguments::parse().task;
    let target = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../local/builtin/data/schemas.json"));
    let wanted = schemas::generate(&openapi)?;
    let there = std::fs::read_to_string(&target).unwrap_or_default();
    if there == wanted {
        println!("{} is up to date", target.display());
    } else if check {
        bail!("{} is out of date: run `cargo run -p xtask -- generate {}`", target.display(), openapi.display());
    } else {
        std::fs::write(&target, &wanted)?;
        println!("Wrote {} ({} bytes)", target.display(), wanted.len());
    }
    Ok(())
}
