//! What a snapshot costs: a hundred thousand records, listed over many pages.

mod support;

use std::fmt::Write;

use portolan_cloudflare_api::{Freshness, Lane, Snapshot};
use support::Scripted;

const RECORDS: usize = 100_000;
const PAGE: usize = 5_000;

/// Resident memory of this process in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it here");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has resident memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number of KiB")
}

/// One page as the API writes it, with all the fields that fall away.
fn page(number: usize) -> String {
    let mut records = String::new();
    for index in (number - 1) * PAGE..number * PAGE {
        let comma = if records.is_empty() { "" } else { "," };
        write!(
            records,
            r#"{comma}{{"id":"{index:032x}","zone_id":"023e105f4ecef8ad9ca31a8372d0c353","zone_name":"example.com",
            "type":"A","name":"host-{index}.example.com","content":"192.0.2.1","proxiable":true,"proxied":false,"ttl":300,
            "settings":{{}},"meta":{{"auto_added":false}},"comment":"[managed:DNSRecord/shop/host-{index}#1a2b3c4d]","tags":[],
            "created_on":"2026-01-01T00:00:00Z","modified_on":"2026-01-01T00:00:00Z"}}"#
        )
        .expect("writing to a string never fails");
    }
    let pages = RECORDS / PAGE;
    format!(
        r#"{{"success":true,"errors":[],"messages":[],"result":[{records}],"result_info":{{"page":{number},"per_page":{PAGE},"total_pages":{pages},"count":{PAGE},"total_count":{RECORDS}}}}}"#
    )
}

#[tokio::test(start_paused = true)]
async fn a_record_costs_well_under_a_kibibyte() {
    let clients = Scripted::clients(|uri| {
        let number = uri.split("page=").nth(1).and_then(|rest| rest.split('&').next()).unwrap();
        page(number.parse().unwrap())
    });
    let client = clients.client(&portolan_cloudflare_api::Credential::token("t"));
    let remote = client.records(&support::RECORDS, "z1");
    drop(page(1));
    let before = resident();

    remote.refresh(Lane::Drift, Freshness::Any).await.unwrap();
    let each = (resident().saturating_sub(before)) * 1024 / RECORDS;

    println!("{each} bytes a record");
    assert_eq!(remote.with(Snapshot::len), RECORDS);
    assert!(each < 768, "{each} bytes a record");
}
