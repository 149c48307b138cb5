//! How fast a real `named` takes what is sent to it, with nothing between but these clients: a line of JSON for each measurement.
//!
//! `cargo run --release -p portolan-bind9-wire --example measure [COUNT]`
//!
//! - `records`: a bare sender of updates, by records in a message and messages on the way. What sends records for a user is compared
//!   with it.
//! - `seeded`: zones that are complete before they are open, fetched from our responder by one server; until all are open.
//! - `zones`: the hand-tuned pair: zones by command and one update each on the primary, a catalog for the secondary; until both serve
//!   all of them.

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt;
use portolan_bind9_wire::{
    CatalogMember, DnsClient, DomainName, HmacAlgorithm, HmacKey, Nameserver, RecordData, ResourceRecord,
    ResponderLimits, RndcClient, SeedResponder, SeedTable, Seeding, Serial, ServerLimits, Soa, TransferBounds,
    TypeCode, ZoneApex, ZoneChange, ZoneSeed, ZoneUpdate, batches, catalog_changes, catalog_records, soa_of_all,
};
use portolan_named_fixture::{NamedConfiguration, NamedServer};

type Outcome<T> = Result<T, Box<dyn Error>>;

const SECRET: &str = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I=";
const SEED: &str = "$TTL 300\n@ SOA invalid. invalid. 1 3600 600 604800 60\n@ NS invalid.\n";
/// Of the tuned pair: no waits and no quotas that are meant for the open Internet.
const TUNED: &str = "allow-transfer { key xfer; }; allow-notify { key xfer; }; transfers-out 200; transfers-in 50; transfers-per-ns 50; \
                     serial-query-rate 1000; notify-rate 1000; startup-notify-rate 1000; tcp-clients 500;";

#[tokio::main]
async fn main() -> Outcome<()> {
    let count: u32 = std::env::args().nth(1).map_or(Ok(20_000), |count| count.parse())?;
    if count == 0 {
        return seeded(200).await;
    }
    for (most, pipelined) in [
        (1, 1),
        (1, 16),
        (100, 1),
        (100, 4),
        (250, 1),
        (250, 4),
        (500, 1),
        (500, 4),
        (500, 16),
        (1_000, 1),
        (usize::MAX, 1),
    ] {
        records(if most == 1 { count.min(2_000) } else { count }, most, pipelined).await?;
    }
    seeded(200).await?;
    zones(200, None).await?;
    zones(200, Some(16)).await
}

fn key() -> Outcome<HmacKey> {
    Ok(HmacKey::new("xfer", HmacAlgorithm::Sha256, SECRET)?)
}

fn base() -> NamedConfiguration {
    NamedConfiguration::default()
        .with_key("xfer", "hmac-sha256", SECRET)
        .with_options(TUNED)
        .with_file("seed.zone", SEED)
}

async fn records(count: u32, most: usize, pipelined: usize) -> Outcome<()> {
    let zone = DomainName::parse("bench.example")?;
    let configuration = base().with_statements(
        "zone \"bench.example\" { type primary; file \"seed.zone\"; allow-update { key xfer; }; serial-update-method unixtime; };",
    );
    let server = NamedServer::start(configuration).ok_or("there is no named")?;
    let dns = DnsClient::new(server.dns(), Some(key()?), ServerLimits { pipelined, ..ServerLimits::default() });
    let groups = (0..count).map(|number| {
        let name = zone.child(&format!("host-{number}")).unwrap_or_else(|_| zone.clone());
        let data = RecordData::a((0x0a00_0000 + number).into());
        vec![ZoneChange::Add(ResourceRecord { name, kind: TypeCode::A, ttl: 300, data })]
    });
    let updates = batches(zone.clone(), &key()?, most, groups).collect::<Result<Vec<_>, _>>()?;
    let started = Instant::now();
    for result in dns.update_all(&updates).await {
        result?;
    }
    let took = started.elapsed();
    let read = Instant::now();
    let contents = dns.contents(&zone, TransferBounds::default()).await?;
    let (read, there) = (read.elapsed(), contents.records.len());
    let rate = f64::from(count) / took.as_secs_f64();
    println!(
        "{{\"measured\": \"records\", \"records\": {count}, \"messages\": {}, \"pipelined\": {pipelined}, \"ms\": {}, \"per_second\": {rate:.0}, \
         \"axfr_records\": {there}, \"axfr_ms\": {}}}",
        updates.len(),
        took.as_millis(),
        read.as_millis()
    );
    Ok(())
}

/// The flow of `src/responder/mod.rs` for many zones at once, over one control channel.
async fn seeded(count: usize) -> Outcome<()> {
    let server = NamedServer::start(base()).ok_or("there is no named")?;
    let (name, algorithm, secret) = NamedConfiguration::control_key();
    let rndc =
        RndcClient::new(server.control(), HmacKey::new(name, algorithm.parse()?, secret)?, ServerLimits::default());
    let table = SeedTable::new();
    let responder = SeedResponder::bind(([127, 0, 0, 1], 0).into(), table.clone(), ResponderLimits::default()).await?;
    let from = responder.address()?;
    let serving = tokio::spawn(responder.serve());
    let zones =
        (0..count).map(|number| DomainName::parse(&format!("zone{number}.example"))).collect::<Result<Vec<_>, _>>()?;

    let started = Instant::now();
    let all = zones.iter().map(|zone| {
        let (table, rndc, from) = (&table, &rndc, from);
        async move {
            let seed = table.insert(zone.clone(), seed(zone)?);
            let primaries = format!("{} port {} key xfer;", from.ip(), from.port());
            let closed = format!(
                "{{ type secondary; file \"{zone}db\"; allow-query {{ none; }}; primaries {{ {primaries} }}; }}"
            );
            let open =
                format!("{{ type primary; file \"{zone}db\"; masterfile-format raw; allow-update {{ key xfer; }}; }}");
            let seeding = Seeding { zone, closed: &closed, open: &open, seed: &seed, limit: Duration::from_secs(60) };
            rndc.open_seeded(seeding).await.map_err(Into::<Box<dyn Error>>::into)
        }
    });
    futures::future::join_all(all).await.into_iter().collect::<Outcome<()>>()?;
    let open = started.elapsed();
    let served = until_served(&server, &zones, started).await?;
    serving.abort();
    println!(
        "{{\"measured\": \"seeded\", \"zones\": {count}, \"open_ms\": {}, \"served_ms\": {}}}",
        open.as_millis(),
        served.as_millis()
    );
    Ok(())
}

fn seed(zone: &DomainName) -> Outcome<ZoneSeed> {
    let host = zone.child("ns1")?;
    let (primary, mailbox) = (host.clone(), zone.child("hostmaster")?);
    let soa =
        Soa { primary, mailbox, serial: Serial(2), refresh: 3_600, retry: 600, expire: 604_800, negative_ttl: 60 };
    let nameservers = vec![Nameserver { host, addresses: vec!["192.0.2.53".parse()?] }];
    let records = ZoneApex { zone: zone.clone(), soa: soa.clone(), ttl: 300, nameservers }.records()?;
    Ok(ZoneSeed::new(soa, 300, key()?, move || records.clone().into_iter()))
}

/// `in_parallel` is how many zones' updates are on the way at once; commands go over one connection in any case.
async fn zones(count: usize, in_parallel: Option<usize>) -> Outcome<()> {
    let catalog = DomainName::parse("catalog.bench")?;
    let nobody = DomainName::parse("invalid")?;
    let soa = Soa {
        primary: nobody.clone(),
        mailbox: nobody,
        serial: Serial(1),
        refresh: 60,
        retry: 10,
        expire: 604_800,
        negative_ttl: 60,
    };
    let file =
        catalog_records(&catalog, &soa, &[]).iter().fold(String::new(), |file, record| file + &format!("{record}\n"));
    let slots = (0..count)
        .fold(base().with_file("catalog.zone", &file), |all, slot| all.with_file(&format!("slot{slot}.zone"), SEED));
    let primary = NamedServer::start(slots).ok_or("there is no named")?;
    let from = format!("{} port {} key xfer;", primary.dns().ip(), primary.dns().port());
    let secondary = base().with_options(&format!(
        "catalog-zones {{ zone \"catalog.bench\" default-primaries {{ {from} }} in-memory no zone-directory \".\" min-update-interval 1; }};"
    ));
    let secondary = secondary.with_statements(&format!(
        "zone \"catalog.bench\" {{ type secondary; file \"catalog.db\"; primaries {{ {from} }}; }};"
    ));
    let secondary = NamedServer::start(secondary).ok_or("there is no named")?;
    let to = format!("{} port {} key xfer;", secondary.dns().ip(), secondary.dns().port());
    let statement = |file: &str| {
        format!(
            "{{ type primary; file \"{file}\"; allow-update {{ key xfer; }}; also-notify {{ {to} }}; notify explicit; notify-delay 0; serial-update-method unixtime; }};"
        )
    };
    let (name, algorithm, secret) = NamedConfiguration::control_key();
    let rndc =
        RndcClient::new(primary.control(), HmacKey::new(name, algorithm.parse()?, secret)?, ServerLimits::default());
    let dns = Arc::new(DnsClient::new(
        primary.dns(),
        Some(key()?),
        ServerLimits { under_way: in_parallel.unwrap_or(1), ..ServerLimits::default() },
    ));
    rndc.add_zone(&catalog, &statement("catalog.zone")).await?;
    let zones =
        (0..count).map(|number| DomainName::parse(&format!("zone{number}.example"))).collect::<Result<Vec<_>, _>>()?;

    let started = Instant::now();
    for (slot, zone) in zones.iter().enumerate() {
        rndc.add_zone(zone, &statement(&format!("slot{slot}.zone"))).await?;
    }
    let added = started.elapsed();
    let contents = zones.iter().map(|zone| {
        let (dns, update) = (Arc::clone(&dns), first_update(zone));
        async move { dns.update(&update?).await.map_err(Into::<Box<dyn Error>>::into) }
    });
    let results: Vec<Outcome<()>> =
        futures::stream::iter(contents).buffer_unordered(in_parallel.unwrap_or(1)).collect().await;
    results.into_iter().collect::<Outcome<()>>()?;
    let filled = started.elapsed();
    let members: Vec<_> = zones.iter().cloned().map(CatalogMember::new).collect();
    let changes = catalog_changes(&catalog, &[], &members).concat();
    dns.update(&ZoneUpdate::new(catalog.clone(), changes)).await?;
    let served = until_served(&secondary, &zones, started).await?;
    println!(
        "{{\"measured\": \"zones\", \"zones\": {count}, \"in_parallel\": {}, \"added_ms\": {}, \"filled_ms\": {}, \"served_by_both_ms\": {}, \
         \"added_per_second\": {:.0}}}",
        in_parallel.unwrap_or(1),
        added.as_millis(),
        filled.as_millis(),
        served.as_millis(),
        f64::from(u32::try_from(count)?) / added.as_secs_f64()
    );
    Ok(())
}

/// All that a zone has, in one message: the server that is nobody goes.
fn first_update(zone: &DomainName) -> Outcome<ZoneUpdate> {
    let host = zone.child("ns1")?;
    let (primary, mailbox) = (host.clone(), zone.child("hostmaster")?);
    let soa =
        Soa { primary, mailbox, serial: Serial(2), refresh: 3_600, retry: 600, expire: 604_800, negative_ttl: 60 };
    let record =
        |name: &DomainName, kind, data| ZoneChange::Add(ResourceRecord { name: name.clone(), kind, ttl: 300, data });
    let nobody = RecordData::name(&DomainName::parse("invalid")?);
    Ok(ZoneUpdate::new(
        zone.clone(),
        vec![
            record(zone, TypeCode::SOA, soa.to_data()),
            record(&host, TypeCode::A, RecordData::parse(TypeCode::A, "192.0.2.53")?),
            record(zone, TypeCode::NS, RecordData::name(&host)),
            ZoneChange::Delete(zone.clone(), TypeCode::NS, nobody),
        ],
    ))
}

async fn until_served(server: &NamedServer, zones: &[DomainName], started: Instant) -> Outcome<Duration> {
    let asking =
        Arc::new(DnsClient::new(server.dns(), None, ServerLimits { under_way: 64, ..ServerLimits::default() }));
    let mut left: Vec<DomainName> = zones.to_vec();
    while !left.is_empty() {
        if started.elapsed() > Duration::from_secs(120) {
            return Err(format!("{} zones are not served after two minutes", left.len()).into());
        }
        let asked = left.drain(..).map(|zone| (Arc::clone(&asking), zone));
        let answers: Vec<_> = soa_of_all(asked, 64).collect().await;
        left = answers.into_iter().filter(|(_, _, soa)| soa.is_err()).map(|(_, zone, _)| zone).collect();
        if !left.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(started.elapsed())
}
