//! Published names as a cluster has them: tenants, templates, routes, tasks and states, read once → how each route stands, and
//! the story of a name.

mod facts;
mod lines;
mod route;
mod story;

use futures::future::BoxFuture;
use portolan_core::Problem;
use portolan_engine::{NameAnswer, NameQuestion, NameTeller};

pub use facts::Facts;
pub use route::{RouteHealth, RouteView};

/// What the job tells of a hostname.
pub(crate) const NAMES: NameTeller = NameTeller {
    asker: "route",
    askers: "routes",
    hint: "annotate an HTTPRoute with cfzt.cloudflare.com/enabled: \"true\" and cfzt.cloudflare.com/hostname",
    tell,
};

fn tell(question: NameQuestion<'_>) -> BoxFuture<'_, Result<NameAnswer, Problem>> {
    Box::pin(async move {
        let facts = Facts::read(question.client, question.namespace).await?;
        let mut stories = story::about(&facts, question.hostname);
        for story in &mut stories {
            story.look_for_secret(question.client).await;
        }
        let known = facts.views().iter().map(RouteView::hostname).collect();
        Ok(NameAnswer { stories: stories.iter().map(lines::told).collect(), known })
    })
}
