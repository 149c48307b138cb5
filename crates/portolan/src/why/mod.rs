//! `portolan why`: one name, told from its route to what answers for it.

mod render;
mod story;

use portolan_cloudflare_sim::DECISION_PATH;
use serde_json::Value;

use crate::failure::{Failure, Outcome};
use crate::server::Server;
use crate::zerotrust::Facts;

pub(crate) use render::render;
pub(crate) use story::Story;

/// Everything that is known of a name. `edge` is asked what it answers, where there is one.
pub(crate) async fn tell(server: &Server, facts: &Facts, hostname: &str, edge: Option<&str>) -> Outcome<Story> {
    let mut story = Story::of(facts, hostname);
    if story.routes.is_empty() {
        return Err(unknown(facts, hostname));
    }
    for route in &mut story.routes {
        route.look_for_secret(server).await;
    }
    if let Some(edge) = edge {
        story.edge = ask(edge, &story.hostname).await;
    }
    Ok(story)
}

fn unknown(facts: &Facts, hostname: &str) -> Failure {
    let names: Vec<String> = facts.views().iter().map(crate::zerotrust::RouteView::hostname).collect();
    let failure = Failure::new(format!("no route asks for {hostname}"));
    if names.is_empty() {
        return failure
            .next("annotate an HTTPRoute with cfzt.cloudflare.com/enabled: \"true\" and cfzt.cloudflare.com/hostname");
    }
    failure.next(format!("routes ask for {}", portolan_core::text::join_some(names, 10)))
}

/// What the edge would answer to somebody who is not logged in.
async fn ask(edge: &str, hostname: &str) -> Option<Value> {
    let host = hostname.strip_prefix("*.").map_or_else(|| hostname.to_owned(), |rest| format!("any.{rest}"));
    let client = reqwest::Client::builder().no_proxy().build().ok()?;
    let answer = client.get(format!("{edge}{DECISION_PATH}")).header("host", host).send().await.ok()?;
    answer.json().await.ok()
}
