//! Sending and listing against a scripted API under a paused clock.

use std::time::Duration;

use http::Method;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::call::error::{Effect, ErrorClass};
use crate::call::retry::RetryPolicy;
use crate::collection::Paging;
use crate::collections::{DNS_RECORDS, ZONES};
use crate::settings::Settings;
use crate::testing::{Answered, Scripted, answer, bad, broken, good, with_header};

fn get() -> Request {
    Request::get("/zones", &[])
}

fn post() -> Request {
    Request::new(Method::POST, "/zones", &[]).with_body(json!({"name": "example.com"}))
}

/// A page of objects with these ids.
fn page(ids: &[&str], info: Value) -> Answered {
    let objects: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
    answer(200, &json!({"success": true, "result": objects, "result_info": info}))
}

fn ids(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["id"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_request_is_signed_and_its_result_comes_back() {
    let api = Scripted::in_order([good(json!({"id": "z1"}))]);

    let result = api.client().send(Lane::Change, &get()).await.unwrap();

    assert_eq!(result["id"], "z1");
    assert_eq!(api.seen()[0].headers["authorization"], "Bearer t0ken-canary");
}

#[tokio::test(start_paused = true)]
async fn a_read_is_repeated_with_growing_pauses_until_it_works() {
    let api = Scripted::in_order([bad(500, 1), broken(true), bad(502, 1), good(json!(1))]);

    assert_eq!(api.client().send(Lane::Change, &get()).await.unwrap(), json!(1));

    let times: Vec<_> = api.seen().iter().map(|seen| seen.at).collect();
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    for (pause, most) in pauses.iter().zip([1, 2, 4]) {
        let most = Duration::from_secs(most);
        assert!((most / 2..=most).contains(pause), "{pauses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_that_never_works_ends_after_three_repeats() {
    let api = Scripted::in_order([bad(500, 1)]);

    let error = api.client().send(Lane::Change, &get()).await.unwrap_err();

    assert_eq!((error.class, error.effect), (ErrorClass::Transient, Effect::None));
    assert_eq!(api.seen().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_post_without_an_answer_is_sent_once_and_its_outcome_unknown() {
    for lost in [broken(true), bad(500, 1), answer(200, &json!(null))] {
        let api = Scripted::in_order([lost]);

        let error = api.client().send(Lane::Change, &post()).await.unwrap_err();

        assert_eq!((error.effect, api.seen().len()), (Effect::Unknown, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_post_that_never_left_is_sent_again() {
    let api = Scripted::in_order([broken(false), good(json!(1))]);

    api.client().send(Lane::Change, &post()).await.unwrap();

    assert_eq!(api.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_silent_api_is_given_up_after_the_timeout() {
    let api = Scripted::new(Duration::from_secs(3600), |_| good(json!(1)));
    let start = Instant::now();

    let error = api.client().send(Lane::Change, &post()).await.unwrap_err();

    assert_eq!((error.effect, start.elapsed()), (Effect::Unknown, Duration::from_secs(30)));
}

#[tokio::test(start_paused = true)]
async fn a_job_may_choose_not_to_repeat() {
    let api = Scripted::in_order([bad(500, 1)]);
    let client = api.client_with(Settings { retry: RetryPolicy::NONE, ..Settings::default() });

    client.send(Lane::Change, &get()).await.unwrap_err();

    assert_eq!(api.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_only_reads_sends_no_write() {
    let api = Scripted::in_order([good(json!(1))]);
    let client = api.client_with(Settings { read_only: true, ..Settings::default() });

    let error = client.send(Lane::Change, &post()).await.unwrap_err();
    client.send(Lane::Change, &get()).await.unwrap();

    assert_eq!((error.class, error.effect), (ErrorClass::Auth, Effect::None));
    assert_eq!(api.lines(), ["GET /zones"]);
}

#[tokio::test(start_paused = true)]
async fn no_error_shows_the_token() {
    let body = json!({"success": false, "errors": [{"code": 9109, "message": "bad token t0ken-canary"}]});
    let api = Scripted::in_order([answer(403, &body)]);

    let error = api.client().send(Lane::Change, &get()).await.unwrap_err();

    assert!(!format!("{error:?} {error} {:?}", error.problem("x")).contains("t0ken-canary"));
    assert!(error.message.contains("9109"));
}

#[tokio::test(start_paused = true)]
async fn a_pause_asked_for_by_a_server_error_is_kept() {
    let api = Scripted::in_order([with_header(bad(503, 1), "retry-after", "7"), good(json!(1))]);

    api.client().send(Lane::Change, &get()).await.unwrap();

    assert_eq!(api.seen()[1].at, Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn equal_credentials_share_a_client_and_its_handles() {
    let api = Scripted::in_order([good(json!(1))]);
    let clients = crate::testing::clients(Settings::default(), api);
    let client = |token| clients.client(&crate::Credential::token(token));
    let handle = |token| client(token).records(&crate::testing::RECORDS, "z1");

    assert!(Arc::ptr_eq(&handle("a"), &handle("a\n")));
    assert!(!Arc::ptr_eq(&handle("a"), &handle("b")));
    assert_eq!(clients.budgets().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_item_on_the_third_page_is_found() {
    let info = json!({"total_pages": 3, "total_count": 5, "per_page": 2});
    let api =
        Scripted::in_order([page(&["1", "2"], info.clone()), page(&["3", "4"], info.clone()), page(&["5"], info)]);

    let objects = api.client().list_all(Lane::Drift, &ZONES, "").await.unwrap();

    assert_eq!(ids(&objects), ["1", "2", "3", "4", "5"]);
    assert_eq!(api.lines(), [1, 2, 3].map(|number| format!("GET /zones?page={number}&per_page=50")));
}

#[tokio::test(start_paused = true)]
async fn cursors_are_followed_to_the_last_page() {
    static CURSORED: Collection = Collection {
        paging: Paging::Cursor,
        list_in: Some("buckets"),
        ..crate::collection!(Account, "buckets", "r2/buckets")
    };
    let nested = |id: &str, cursor: &str| {
        answer(200, &json!({"success": true, "result": {"buckets": [{"id": id}]}, "result_info": {"cursor": cursor}}))
    };
    let api = Scripted::in_order([nested("1", "a"), nested("2", "b"), nested("3", "")]);

    let objects = api.client().list_all(Lane::Drift, &CURSORED, "acc").await.unwrap();

    assert_eq!(ids(&objects), ["1", "2", "3"]);
    assert_eq!(api.lines()[2], "GET /accounts/acc/r2/buckets?per_page=50&cursor=b");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_fails_fails_the_listing() {
    let api = Scripted::in_order([page(&["1"], json!({"total_pages": 2})), bad(403, 10000)]);

    let error = api.client().list_all(Lane::Drift, &ZONES, "").await.unwrap_err();

    assert_eq!(error.class, ErrorClass::Auth);
}

#[tokio::test(start_paused = true)]
async fn an_api_that_ignores_pages_is_not_asked_for_ever() {
    let api = Scripted::in_order([page(&["1", "2"], json!({"per_page": 2}))]);

    let objects = api.client().list_all(Lane::Drift, &ZONES, "").await.unwrap();

    assert_eq!(ids(&objects), ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_listing_whose_total_changed_on_the_way_starts_again() {
    let info = |total| json!({"total_pages": 2, "total_count": total});
    let api = Scripted::in_order([
        page(&["1", "2"], info(4)),
        page(&["4"], info(3)),
        page(&["2", "3"], info(3)),
        page(&["4"], info(3)),
    ]);

    let objects = api.client().list_all(Lane::Drift, &ZONES, "").await.unwrap();

    assert_eq!(ids(&objects), ["2", "3", "4"]);
}

#[tokio::test(start_paused = true)]
async fn pages_that_are_too_large_are_asked_for_in_a_smaller_size() {
    let api = Scripted::in_order([bad(400, 1004), page(&["1"], json!({"total_pages": 1}))]);

    api.client().list_all(Lane::Drift, &DNS_RECORDS, "z1").await.unwrap();

    assert_eq!(api.lines()[1], "GET /zones/z1/dns_records?page=1&per_page=50");
}

/// A small zone with nearly as many records as it may have, as a listing of zones and the zone itself show it.
fn nearly_full(shown_in_listing: bool) -> Arc<Scripted> {
    let plan = json!({"legacy_id": "free"});
    let zone = move |plan: &Value| json!({"id": "z1", "name": "a.example", "plan": plan, "created_on": "2025-01-01"});
    Scripted::new(Duration::from_millis(1), move |seen| match seen.line.as_str() {
        "GET /zones/z1" => good(zone(&plan)),
        line if line.starts_with("GET /zones?") => {
            good(json!([zone(if shown_in_listing { &plan } else { &Value::Null })]))
        }
        _ => good((0..185).map(|n| crate::testing::record(&n.to_string(), &n.to_string(), "192.0.2.1")).collect()),
    })
}

/// How full the zone is found to be, and how often it itself was asked for.
async fn learnt(api: &Arc<Scripted>) -> (Option<crate::NearlyFull>, usize) {
    let client = api.client();
    let (zones, records) = (client.records(&ZONES, ""), client.records(&crate::testing::RECORDS, "z1"));
    zones.refresh(Lane::Change, Freshness::Any).await.unwrap();
    records.refresh(Lane::Change, Freshness::Any).await.unwrap();
    client.learn_limit(Lane::Change, &records).await;
    let asked = api.lines().iter().filter(|line| *line == "GET /zones/z1").count();
    (records.nearly_full(), asked)
}

#[tokio::test(start_paused = true)]
async fn a_zone_is_asked_for_its_plan_only_where_no_listing_showed_it() {
    let near = Some(crate::NearlyFull { used: 185, limit: 200 });

    assert_eq!(learnt(&nearly_full(true)).await, (near, 0));
    assert_eq!(learnt(&nearly_full(false)).await, (near, 1));
}

#[tokio::test(start_paused = true)]
async fn metrics_name_templates_and_lanes_and_no_ids_or_secrets() {
    let api = Scripted::in_order([bad(500, 1), good(json!({"id": "r1"}))]);
    let clients = crate::testing::clients(Settings::default(), api);
    let client = clients.client(&crate::Credential::token("t0ken-canary"));
    let mut registry = prometheus_client::registry::Registry::default();
    clients.metrics().register(&mut registry);

    client.send(Lane::Drift, &DNS_RECORDS.get("zone-id", "record-id")).await.unwrap();
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();

    let template = "template=\"/zones/{zone_id}/dns_records/{id}\",method=\"GET\"";
    assert!(text.contains(&format!("cloudflare_requests_total{{{template},status=\"500\"}} 1")), "{text}");
    assert!(text.contains(&format!("cloudflare_retries_total{{{template}}} 1")), "{text}");
    assert!(text.contains("cloudflare_limiter_wait_seconds_count{lane=\"drift\"} 2"), "{text}");
    assert!(text.contains(&format!("cloudflare_request_duration_seconds_count{{{template}}} 2")), "{text}");
    for metric in crate::METRICS {
        assert!(text.contains(&format!("# TYPE {} {}\n", metric.name, metric.shape.as_str())), "{text}");
    }
    for hidden in ["zone-id", "record-id", "t0ken-canary"] {
        assert!(!text.contains(hidden), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn another_policy_is_another_view_of_the_same_client() {
    let api = Scripted::in_order([bad(500, 1), good(json!([]))]);
    let clients = crate::testing::clients(Settings::default(), api.clone());
    let token = crate::Credential::token("a");
    let patient = clients.with_retry(RetryPolicy::PATIENT).client(&token).records(&crate::testing::RECORDS, "z1");
    let usual = clients.client(&token).records(&crate::testing::RECORDS, "z1");

    patient.refresh(Lane::Change, crate::Freshness::Any).await.unwrap();
    usual.refresh(Lane::Change, crate::Freshness::Any).await.unwrap();

    let times: Vec<_> = api.seen().iter().map(|seen| seen.at).collect();
    assert_eq!(times.len(), 2, "the snapshot is shared");
    assert!((5_000..=6_250).contains(&times[1].as_millis()), "{times:?}");
    assert_eq!(clients.budgets().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_pauses_its_own_credential_only() {
    let limited = Arc::new(Mutex::new(true));
    let api = Scripted::new(Duration::ZERO, move |seen| {
        let first = seen.headers["authorization"] == "Bearer a" && std::mem::take(&mut *limited.lock().unwrap());
        if first { with_header(bad(429, 971), "retry-after", "30") } else { good(json!(1)) }
    });
    let clients = crate::testing::clients(Settings::default(), api.clone());
    let client = |token| clients.client(&crate::Credential::token(token));
    let (one, other) = (client("a"), client("b"));

    let (request, late) = (get(), get());
    let (first, second) = tokio::join!(one.send(Lane::Change, &request), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        other.send(Lane::Change, &late).await
    });

    assert!(first.is_ok() && second.is_ok());
    let seconds: Vec<_> = api.seen().iter().map(|seen| seen.at.as_secs()).collect();
    assert_eq!(seconds, [0, 1, 30]);
}

#[tokio::test(start_paused = true)]
async fn a_reader_sends_no_write_and_sees_what_its_client_sees() {
    let body =
        json!({"success": true, "result": [{"id": "r1", "type": "A", "name": "x"}], "result_info": {"total_pages": 1}});
    let api = Scripted::in_order([answer(200, &body)]);
    let client = api.client();
    let reader = client.reader();
    let records = reader.records(&crate::testing::RECORDS, "z1");

    let refused = reader.get(Lane::Change, &post()).await.unwrap_err();
    records.refresh(Lane::Change, crate::Freshness::Any).await.unwrap();

    assert_eq!((refused.class, refused.effect), (ErrorClass::Auth, Effect::None));
    assert_eq!(client.records(&crate::testing::RECORDS, "z1").with(crate::Snapshot::len), 1);
    assert_eq!(api.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_request_is_told_in_the_span_of_whoever_asked_and_shows_no_secret() {
    use tracing::Instrument;
    let log = crate::testing::Log::default();
    let _guard = log.start();
    let api = Scripted::in_order([bad(500, 1), good(json!({"id": "s1", "client_secret": "canary-secret"}))]);
    let client = api.client();
    let token = crate::collections::SERVICE_TOKENS.update("acc", "s1", &json!({"secret": "canary-body"}));

    client.send(Lane::Change, &token).instrument(tracing::info_span!("work", tenant = "default/prod")).await.unwrap();

    let text = log.text();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("Asked Cloudflare")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    for part in [
        "tenant=\"default/prod\"",
        "method=\"PUT\"",
        "path=\"/accounts/acc/access/service_tokens/s1\"",
        "duration_ms=0",
    ] {
        assert!(lines.iter().all(|line| line.contains(part)), "{part} is missing: {text}");
    }
    assert!(lines[0].contains("status=500") && lines[1].contains("status=200"), "{text}");
    assert!(!text.contains("canary"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_group_of_writes_is_told_in_the_span_of_its_first_source() {
    use tracing::Instrument;
    let log = crate::testing::Log::default();
    let _guard = log.start();
    let api = Scripted::in_order([good(json!({"config": {}, "version": 1}))]);
    let document = api.client().document(&crate::document::TUNNEL_CONFIGURATION, "acc", "t1");
    let edit = |name: &'static str| {
        document.edit(Lane::Change, name, |_| {}).instrument(tracing::info_span!("work", tenant = name))
    };

    let (one, other) = tokio::join!(edit("first"), edit("second"));

    assert!(one.is_ok() && other.is_ok());
    let text = log.text();
    assert!(text.lines().any(|line| line.contains("Asked Cloudflare") && line.contains("tenant=\"first\"")), "{text}");
}
