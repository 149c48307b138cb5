//! The objects of a cluster → a tree of accounts, zones, networks, tenants and names with their health.

mod render;
mod tenants;
mod tree;

use crate::failure::Outcome;
use crate::jobs::JobName;
use crate::kinds::Kinds;
use crate::seen::{self, GROUP};
use crate::server::Server;
use crate::zerotrust::Facts;

pub(crate) use render::render;
pub(crate) use tree::Tree;

/// Reads everything the tree is made of.
pub(crate) async fn read(server: &Server, operator_namespace: &str) -> Outcome<Tree> {
    let kinds = Kinds::discover(server).await?;
    let objects = seen::all(server, &kinds, GROUP, |_| true).await?;
    let installed = JobName::ALL.into_iter().any(|job| job.is_installed(&kinds));
    let mut tree = tree::build(server.address(), &objects, installed);
    if JobName::Zerotrust.is_installed(&kinds) {
        tree.add_tenants(&Facts::read(server, operator_namespace).await?);
    }
    Ok(tree)
}
