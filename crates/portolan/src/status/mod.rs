//! The objects of a cluster → a tree of accounts, zones and networks with their health.

mod render;
mod tree;

use crate::failure::Outcome;
use crate::kinds::Kinds;
use crate::seen::{self, GROUP};
use crate::server::Server;

pub(crate) use render::render;
pub(crate) use tree::Tree;

/// Reads everything the tree is made of.
pub(crate) async fn read(server: &Server) -> Outcome<Tree> {
    let kinds = Kinds::discover(server).await?;
    let objects = seen::all(server, &kinds, GROUP, |_| true).await?;
    Ok(tree::build(server.address(), &objects, !kinds.in_group(GROUP).is_empty()))
}
