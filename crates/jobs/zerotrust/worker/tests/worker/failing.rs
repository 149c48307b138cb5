//! What a task that fails says, and when it is tried again.

use std::time::Duration;

use portolan_cloudflare_sim::{Effect, Fault};
use portolan_zerotrust_model::Phase;
use serde_json::json;

use crate::world::{ACCOUNT, TOKEN, World, protected, task, with};

/// So many seconds after its change a Secret that a task waits for was looked at.
const SEEN: u64 = 4;
const APPS: &str = "/accounts/{account_id}/access/apps";
const CONFIGURATION: &str = "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/configurations";

#[tokio::test(start_paused = true)]
async fn scenario_47_two_failures_and_then_success_are_success_without_failed() {
    let world = World::start().await;
    world.simulator.fault(Fault::on("PUT", CONFIGURATION, Effect::status(500)).times(2));
    world.simulator.fault(Fault::on("POST", APPS, Effect::status(500)).times(2));

    let status = world.carry(&protected(task("web"))).await;

    assert_eq!((status.phase, status.attempts), (Some(Phase::Completed), Some(1)), "{status:?}");
    assert_eq!((world.apps().len(), world.records().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn scenario_47_a_refused_request_is_sent_once_and_the_task_says_what_cloudflare_said() {
    let world = World::start().await;
    world.simulator.fault(Fault::on("POST", APPS, Effect::status(400)));

    let status = world.carry(&protected(task("web"))).await;
    world.after(1800).await;

    assert_eq!(status.phase, Some(Phase::Failed), "{status:?}");
    let message = status.message.unwrap();
    assert!(message.starts_with("CloudflareAPIError: "), "{message}");
    assert!(message.contains("1004") && message.contains("Bad request"), "{message}");
    assert_eq!(status.next_attempt_time, None);
    assert_eq!(world.writes(), ["POST access/apps → 400"]);
    assert_eq!((world.rules(), world.records()), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn scenario_48_an_access_api_that_fails_leaves_nothing_published_and_the_task_is_tried_again() {
    let world = World::start().await;
    world.simulator.fault(Fault::on("*", APPS, Effect::status(503)));

    let status = world.carry(&protected(task("web"))).await;

    assert_eq!(status.phase, Some(Phase::Failed), "{status:?}");
    assert!(status.next_attempt_time.is_some());
    assert_eq!((world.rules(), world.records()), (vec![], vec![]));

    world.simulator.clear_faults();
    world.after(60).await;

    let status = world.status("cfzt-shop-web").await;
    assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
    assert_eq!((world.apps().len(), world.rules().len(), world.records().len()), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn transient_failures_are_tried_again_without_end_and_ever_more_slowly() {
    let world = World::start().await;
    world.simulator.fault(Fault::on("*", CONFIGURATION, Effect::status(503)));

    world.carry(&task("web")).await;
    world.after(4 * 3600).await;
    let early = world.status("cfzt-shop-web").await.attempts.unwrap();
    world.after(4 * 3600).await;
    let late = world.status("cfzt-shop-web").await.attempts.unwrap();

    assert!((17..25).contains(&early), "{early}");
    assert!((14..18).contains(&(late - early)), "a try about every quarter of an hour: {}", late - early);
}

#[tokio::test(start_paused = true)]
async fn scenario_46_a_rate_limit_pauses_one_credential_and_the_task_succeeds_later() {
    let world = World::start().await;
    let limited = Fault::on("*", "/", Effect::status(429)).retry_after(Duration::from_secs(30)).times(1);
    world.simulator.fault(limited);
    let begun = tokio::time::Instant::now();

    let status = world.carry(&task("web")).await;

    assert_eq!((status.phase, status.attempts), (Some(Phase::Completed), Some(1)), "{status:?}");
    let requests = world.simulator.take_requests();
    let first = requests[0].at_ms;
    let others = requests.iter().map(|request| request.at_ms - first).filter(|after| *after > 0);
    assert!(others.min().is_some_and(|pause| pause >= 30_000), "{requests:?}");
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn scenario_21_a_missing_secret_is_said_and_its_coming_lets_the_task_run_within_seconds() {
    let world = World::start().await;
    world.delete_secret("cloudflare-api-token").await;
    world.settle().await;

    let status = world.carry(&task("web")).await;

    assert_eq!(status.phase, Some(Phase::Failed), "{status:?}");
    assert!(status.message.unwrap().starts_with("CredentialNotFound: Secret default/cloudflare-api-token not found"));

    world.put_secret("cloudflare-api-token", json!({ "other": "x" })).await;
    world.after(SEEN).await;
    let message = world.status("cfzt-shop-web").await.message.unwrap();
    assert!(message.starts_with("CredentialKeyMissing: "), "{message}");

    world.put_secret("cloudflare-api-token", json!({ "token": TOKEN })).await;
    world.after(SEEN).await;
    assert_eq!(world.phase("cfzt-shop-web").await, Phase::Completed);
}

#[tokio::test(start_paused = true)]
async fn scenario_22_a_refused_token_is_tried_every_five_minutes_and_a_new_one_within_seconds() {
    let world = World::start().await;
    world.put_secret("cloudflare-api-token", json!({ "token": "revoked" })).await;
    world.settle().await;

    let status = world.carry(&task("web")).await;
    let message = status.message.clone().unwrap();
    assert!(message.starts_with("CredentialInvalid: "), "{message}");
    let calls = world.requests().len();
    world.after(3600).await;
    assert!(world.requests().len() <= calls * 14, "no storm");

    world.put_secret("cloudflare-api-token", json!({ "token": TOKEN })).await;
    world.after(SEEN).await;
    assert_eq!(world.phase("cfzt-shop-web").await, Phase::Completed);
}

#[tokio::test(start_paused = true)]
async fn scenario_27_a_missing_group_publishes_nothing_and_its_coming_is_seen_within_seconds() {
    let world = World::start().await;
    let wanted = with(task("web"), json!({ "accessApp": { "enabled": true, "allowGroups": ["Engineering"] } }));

    let status = world.carry(&wanted).await;

    let message = status.message.unwrap();
    assert!(message.starts_with("GroupNotFound: ") && message.contains("Engineering"), "{message}");
    assert_eq!(world.writes(), Vec::<String>::new());

    world.after(4).await;
    world.requests();
    world.after(1).await;
    assert_eq!(world.requests(), ["GET access/groups"], "only what is missing is looked for again");

    let group = json!({ "name": "Engineering", "include": [{ "email_domain": { "domain": "example.com" } }] });
    world.simulator.put("access_groups", ACCOUNT, group).unwrap();
    world.after(11).await;

    assert_eq!(world.phase("cfzt-shop-web").await, Phase::Completed);
    assert_eq!((world.apps().len(), world.rules().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_spec_that_cannot_be_read_fails_once_and_alone() {
    let world = World::start().await;
    let mut bad = task("bad");
    bad.spec.hostname = Some("https://x.y/".to_owned());
    world.create(&bad).await;

    let status = world.carry(&task("web")).await;

    assert_eq!(status.phase, Some(Phase::Completed));
    let bad = world.status("cfzt-shop-bad").await;
    assert_eq!((bad.phase, bad.attempts, bad.next_attempt_time), (Some(Phase::Failed), Some(1), None));
}

#[tokio::test(start_paused = true)]
async fn a_corrected_spec_runs_at_once_and_counts_its_attempts_anew() {
    let world = World::start().await;
    let mut bad = task("web");
    bad.spec.hostname = Some("not a name".to_owned());
    world.carry(&bad).await;

    world.edit("cfzt-shop-web", json!({ "hostname": "web.example.com" })).await;
    world.settle().await;

    let status = world.status("cfzt-shop-web").await;
    assert_eq!((status.phase, status.attempts), (Some(Phase::Completed), Some(1)), "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_corrected_while_the_wrong_one_is_refused_is_tried_within_seconds() {
    let world = World::start().await;
    world.put_secret("cloudflare-api-token", json!({ "token": "revoked" })).await;
    world.settle().await;
    world.simulator.set_latency(Duration::from_secs(2));
    world.create(&task("web")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;

    world.put_secret("cloudflare-api-token", json!({ "token": TOKEN })).await;
    world.after(30).await;

    assert_eq!(world.phase("cfzt-shop-web").await, Phase::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_exchanged_while_everything_is_well_is_used_for_the_next_name() {
    let world = World::start().await;
    world.carry(&task("web")).await;
    world.simulator.add_token("exchanged", portolan_cloudflare_sim::Grant::all());
    world.simulator.revoke_token(TOKEN);

    world.put_secret("cloudflare-api-token", json!({ "token": "exchanged" })).await;
    world.after(SEEN + 2).await;
    let status = world.carry(&task("next")).await;

    assert_eq!((status.phase, status.attempts), (Some(Phase::Completed), Some(1)), "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_starts_anew_tries_what_failed_for_its_credential_once_and_then_waits() {
    let mut world = World::start().await;
    world.put_secret("cloudflare-api-token", json!({ "token": "revoked" })).await;
    world.carry(&task("web")).await;
    world.kill("w1").await;
    world.requests();

    world.run(portolan_zerotrust_worker::Settings::new("w1", "2").alone());
    world.after(240).await;

    assert_eq!(world.status("cfzt-shop-web").await.attempts, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_new_credential_is_tried_though_another_worker_fails_with_the_old_one_meanwhile() {
    let world = World::start().await;
    world.put_secret("cloudflare-api-token", json!({ "token": "revoked" })).await;
    world.carry(&task("web")).await;
    world.requests();
    world.simulator.set_latency(Duration::from_secs(2));

    world.put_secret("cloudflare-api-token", json!({ "token": TOKEN })).await;
    world.until(async || !world.requests().is_empty()).await;
    world.patch_status("cfzt-shop-web", json!({ "attempts": 2 })).await;
    world.after(60).await;

    let status = world.status("cfzt-shop-web").await;
    assert_eq!((status.phase, status.attempts), (Some(Phase::Completed), Some(3)), "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn no_secret_is_looked_at_while_no_task_waits_for_one() {
    let world = World::start().await;
    world.carry(&task("web")).await;
    let asked = world.secret_requests();

    world.after(3600).await;

    assert_eq!(world.secret_requests(), asked);
    assert_eq!(asked, ["/api/v1/namespaces/default/secrets/cloudflare-api-token"], "read once, by its name");
}
