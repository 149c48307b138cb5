//! A name is published while somebody else writes in the same zone, with the same credential: one listing, one batch.

use portolan_cloudflare_api::objects::DnsRecord;
use portolan_cloudflare_api::{Freshness, Item, Lane, Op, collections};
use serde_json::{Value, from_value, json};

use crate::support::{World, ZONE};

/// A record as the kinds of the other job write it.
fn record(name: &str) -> DnsRecord {
    from_value(
        json!({ "type": "A", "name": name, "content": "192.0.2.1", "comment": "[managed:DNSRecord/apps/www#0]" }),
    )
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn both_jobs_list_a_zone_once_and_write_in_one_batch() {
    let mut world = World::new().await;
    let desired = world.plain("a.x.com");
    let zone = world.client.records(&collections::DNS_RECORDS, ZONE);
    let expected = zone.expect();
    let other_job = async {
        zone.refresh(Lane::Change, Freshness::Any).await.unwrap();
        while zone.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        drop(expected);
        zone.write(Lane::Change, vec![Op::Create(record("www.x.com").create_body())]).await.unwrap();
    };

    let (ended, ()) = tokio::join!(world.run(Some(&desired), None), other_job);

    let published = ended.applied().footprint.cname_record_id.unwrap();
    let lines = world.take_lines();
    let of_zone: Vec<&String> = lines.iter().filter(|line| line.contains("/dns_records")).collect();
    assert_eq!(of_zone, ["GET /dns_records", "POST /dns_records/batch"]);
    let here = |name: &str| zone.with(|records| records.by_key(name).map(|entry| entry.id.clone()).collect::<Vec<_>>());
    assert_eq!(here("a.x.com").iter().filter(|id| **id == published).count(), 1, "each sees what the other wrote");
    assert_eq!(here("www.x.com").len(), 1);
    assert_eq!(world.sim.object("dns_records", &here("www.x.com")[0]).unwrap()["type"], Value::from("A"));
}
