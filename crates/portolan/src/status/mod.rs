//! The objects of a cluster → a tree of accounts, zones, networks, tenants and names with their health.

mod pods;
mod render;
mod tenants;
mod tree;

use portolan_engine::JobDefinition;

use crate::failure::Outcome;
use crate::health_view::{self, GROUP};
use crate::jobs::is_installed;
use crate::kinds::Kinds;
use crate::pods_page::PodsPage;
use crate::server::Server;
use crate::workloads;
use crate::zerotrust::{self, Facts};

pub(crate) use render::render;
pub(crate) use tree::Tree;

/// Reads everything the tree is made of: what jobs publish, and the objects of those that have no place of their own in it.
pub(crate) async fn read(server: &Server, jobs: &[&JobDefinition], operator_namespace: &str) -> Outcome<Tree> {
    let kinds = Kinds::discover(server).await?;
    let objects = health_view::all(server, &kinds, GROUP, |_| true).await?;
    let installed: Vec<&&JobDefinition> = jobs.iter().filter(|job| is_installed(job, &kinds)).collect();
    let mut tree = tree::build(server.address(), &objects, !installed.is_empty());
    for job in installed {
        match job.sheet.group {
            GROUP => {}
            zerotrust::GROUP => tree.add_tenants(&Facts::read(server, operator_namespace).await?),
            group => tree.add_job(job.sheet.name, &health_view::all(server, &kinds, group, |_| true).await?),
        }
    }
    Ok(tree)
}

/// Adds the pods of a server that runs them itself, with what they use.
pub(crate) async fn add_pods(tree: &mut Tree, server: &Server, page: &PodsPage) -> Outcome {
    tree.pods = Some(pods::PodsBranch::of(&workloads::pods(server).await?, page));
    Ok(())
}
