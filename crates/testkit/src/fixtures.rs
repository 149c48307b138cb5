//! What every world begins with: definitions, namespaces, rights, and what its job has at Cloudflare and in the cluster.

use crate::prepared;
use crate::world::World;

/// Makes everything that the world's job needs; at Cloudflare unless another world has it there already.
pub(crate) async fn furnish(world: &World, plan: &str, beside: bool) {
    let (job, simulator) = (world.job(), &world.cloudflare.simulator);
    if world.is_shared() {
        world.cluster.install_definitions().await;
        world.cluster.clear().await;
        prepared::furnish(&world.cluster, job, world.is_apart()).await;
    }
    if !beside {
        (job.seed)(simulator, plan);
    }
    for object in (job.objects)(simulator) {
        world.cluster.apply(&object).await;
    }
}
