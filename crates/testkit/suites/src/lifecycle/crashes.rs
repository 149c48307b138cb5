//! Crashes at every step of creating, changing, deleting and adopting.

use futures::future::LocalBoxFuture;

use crate::crash::{Tried, at_every_step};
use crate::manifests::annotated;
use crate::sample::Owned;
use crate::world::{Builder, World};

/// What the operator is doing when it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Making something.
    Create,
    /// Changing it.
    Update,
    /// Replacing it.
    Replace,
    /// Deleting it.
    Delete,
    /// Taking over what somebody made.
    Adopt,
    /// Giving it back.
    Release,
}

/// Everything that crashes are tried in.
pub const ACTS: [Act; 6] = [Act::Create, Act::Update, Act::Replace, Act::Delete, Act::Adopt, Act::Release];

/// Kills the operator before and after every step of an act; nothing is tried where the sample has no such act.
pub async fn crash_points(builder: &Builder, sample: &Owned, act: Act) -> Option<Tried> {
    if act == Act::Replace && sample.replace.is_none() {
        return None;
    }
    let name = format!("{act:?} of {}", sample.label);
    let prepare = async |world: &World| prepare(world, sample, act).await;
    let perform = async |world: &World| perform(world, sample, act).await;
    Some(at_every_step(&name, builder, prepare, perform).await)
}

fn prepare<'a>(world: &'a World, sample: &'a Owned, act: Act) -> LocalBoxFuture<'a, ()> {
    Box::pin(async move {
        if matches!(act, Act::Adopt | Act::Release) {
            let twin = sample.other_twin.unwrap_or(sample.twin);
            world.cloudflare.plant(sample.collection, &twin(world));
        }
        if matches!(act, Act::Update | Act::Replace | Act::Delete | Act::Release) {
            world.cluster.apply(&adopting(sample)).await;
            world.until_ready(&sample.id(), "True/Synced").await;
        }
    })
}

fn perform<'a>(world: &'a World, sample: &'a Owned, act: Act) -> LocalBoxFuture<'a, ()> {
    Box::pin(async move {
        let mut manifest = adopting(sample);
        match act {
            Act::Create | Act::Adopt => {}
            Act::Update => (sample.change)(&mut manifest["spec"]),
            Act::Replace => sample.replace.iter().for_each(|replace| replace(&mut manifest["spec"])),
            Act::Delete | Act::Release => return world.cluster.delete(&sample.id()).await,
        }
        world.cluster.apply(&manifest).await;
    })
}

fn adopting(sample: &Owned) -> serde_json::Value {
    annotated((sample.manifest)(), "cloudflare-operator.io/adopt", "true")
}
