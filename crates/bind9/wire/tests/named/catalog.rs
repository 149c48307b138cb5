//! A catalog of zones (RFC 9432) on two real servers: what comes into it is served by the secondary, what goes is not.

use portolan_bind9_wire::{
    CatalogMember, DnsClient, Serial, ServerLimits, Soa, TransferBounds, ZoneUpdate, catalog_changes, catalog_members,
    catalog_records,
};
use portolan_named_fixture::{NamedConfiguration, NamedServer};

use crate::support::{SECRET, configuration, dns, eventually, name, rndc};

#[tokio::test]
async fn a_zone_is_served_by_the_secondary_while_the_catalog_has_it() {
    let catalog = name("catalog.bindy");
    let nobody = name("invalid");
    let soa = Soa {
        primary: nobody.clone(),
        mailbox: nobody,
        serial: Serial(1),
        refresh: 60,
        retry: 10,
        expire: 604_800,
        negative_ttl: 60,
    };
    let file: String =
        catalog_records(&catalog, &soa, &[]).iter().fold(String::new(), |file, record| file + &format!("{record}\n"));
    let Some(primary) = NamedServer::start(
        configuration().with_options("notify explicit; notify-delay 0;").with_file("catalog.zone", &file),
    ) else {
        return;
    };
    let at = format!("{} port {} key update;", primary.dns().ip(), primary.dns().port());
    let Some(secondary) = NamedServer::start(
        NamedConfiguration::default()
            .with_key("update", "hmac-sha256", SECRET)
            .with_options("allow-notify { key update; }; serial-query-rate 1000;")
            .with_options(&format!(
                "catalog-zones {{ zone \"catalog.bindy\" default-primaries {{ {at} }} in-memory no zone-directory \".\" min-update-interval 1; }};"
            ))
            .with_statements(&format!("zone \"catalog.bindy\" {{ type secondary; file \"catalog.db\"; primaries {{ {at} }}; }};")),
    ) else {
        return;
    };
    let (control, updates) = (rndc(&primary), dns(&primary));
    let told = format!("also-notify {{ {} port {} key update; }};", secondary.dns().ip(), secondary.dns().port());
    let zone = name("member.example");
    let statement = |file: &str| format!("{{ type primary; file \"{file}\"; allow-update {{ key update; }}; {told} }}");
    control.add_zone(&catalog, &statement("catalog.zone")).await.unwrap();
    control.add_zone(&zone, &statement("seed.zone")).await.unwrap();
    let answers = DnsClient::new(secondary.dns(), None, ServerLimits::default());
    assert!(answers.soa(&zone).await.is_err());
    eventually("the secondary has the catalog", || async { answers.soa(&catalog).await.ok() }).await;

    let members = [CatalogMember::new(zone.clone())];
    let add = catalog_changes(&catalog, &[], &members).concat();
    updates.update(&ZoneUpdate::new(catalog.clone(), add)).await.unwrap();

    eventually("the secondary serves the member", || async { answers.soa(&zone).await.ok() }).await;
    let there = updates.contents(&catalog, TransferBounds::default()).await.unwrap();
    assert_eq!(catalog_members(&catalog, &there.records), members);

    let remove = catalog_changes(&catalog, &members, &[]).concat();
    updates.update(&ZoneUpdate::new(catalog.clone(), remove)).await.unwrap();

    eventually("the secondary has forgotten the member", || async { answers.soa(&zone).await.is_err().then_some(()) })
        .await;
    let there = updates.contents(&catalog, TransferBounds::default()).await.unwrap();
    assert_eq!(catalog_members(&catalog, &there.records), []);
}
