//! Generated files: published `OpenAPI` documents → the data that crates embed; types → their reference.

mod reference;
mod schemas;

use std::path::{Path, PathBuf};

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
    /// Write the reference of the kinds from their definitions.
    Reference {
        /// Change nothing; fail where the committed page differs.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> Result<()> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    match Arguments::parse().task {
        Task::Generate { openapi, check } => {
            let wanted = schemas::generate(&openapi)?;
            bring_up_to_date(&root.join("crates/local/builtin/data/schemas.json"), &wanted, check, "make generate")
        }
        Task::Reference { check } => reference::pages().into_iter().try_for_each(|(name, page)| {
            bring_up_to_date(&root.join("docs/reference").join(name), &page, check, "make reference")
        }),
    }
}

/// Writes a file that differs, or only says so.
fn bring_up_to_date(target: &Path, wanted: &str, check: bool, command: &str) -> Result<()> {
    let there = std::fs::read_to_string(target).unwrap_or_default();
    if there == wanted {
        println!("{} is up to date", target.display());
    } else if check {
        bail!("{} is out of date: run `{command}`", target.display());
    } else {
        target.parent().map(std::fs::create_dir_all).transpose()?;
        std::fs::write(target, wanted)?;
        println!("Wrote {} ({} bytes)", target.display(), wanted.len());
    }
    Ok(())
}
