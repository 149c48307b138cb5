//! Every command on a real server: what it does, and how a refusal is told apart from others.

use portolan_bind9_wire::{
    DnsClient, DsDigest, JournalFile, RndcClient, RndcCommand, RndcError, RndcRefusal, Serial, ServerLimits, TypeCode,
    ZoneFiles, ZoneRole, ZoneUpdate, says_the_same,
};
use portolan_core::Class;
use portolan_named_fixture::{NamedConfiguration, programs};

use crate::support::{SECRET, add, configuration, control_key, dns, eventually, key, name, rndc, server, values};

const PRIMARY: &str = "{ type primary; file \"seed.zone\"; allow-update { key update; }; }";

fn refusal(result: Result<(), RndcError>) -> RndcRefusal {
    let error = result.unwrap_err();
    error.refusal().unwrap_or_else(|| panic!("{error}"))
}

#[tokio::test]
async fn a_zone_is_made_looked_at_changed_and_taken_away() {
    let Some(server) = server() else { return };
    let rndc = rndc(&server);
    let zone = name("new.example");

    let status = rndc.status().await.unwrap();
    assert!(status.version.starts_with("9."), "{status:?}");
    assert!(status.booted.is_some() && status.configured.is_some());

    rndc.add_zone(&zone, PRIMARY).await.unwrap();
    assert_eq!(rndc.status().await.unwrap().zones, status.zones + 1);
    assert_eq!(values(server.dns(), "ns1.new.example", TypeCode::A).await, ["192.0.2.53"]);
    let shown = rndc.show_zone(&zone).await.unwrap();
    assert!(shown.contains("type primary") && shown.contains("allow-update"), "{shown}");
    let status = rndc.zone_status(&zone).await.unwrap();
    assert_eq!((status.role, status.serial), (Some(ZoneRole::Primary), Some(Serial(1))));
    assert!(
        status.is_dynamic
            && status.is_from_command
            && !status.is_frozen
            && !status.is_signed
            && status.loaded.is_some()
    );

    rndc.modify_zone(&zone, "{ type primary; file \"seed.zone\"; allow-update { none; }; }").await.unwrap();
    assert!(!rndc.show_zone(&zone).await.unwrap().contains("key \"update\""));
    rndc.delete_zone(&zone, ZoneFiles::Keep).await.unwrap();
    assert_eq!(refusal(rndc.show_zone(&zone).await.map(drop)), RndcRefusal::ZoneNotFound);
    assert!(server.folder().join("seed.zone").exists());
    rndc.add_zone(&zone, PRIMARY).await.unwrap();
    rndc.delete_zone(&zone, ZoneFiles::Remove).await.unwrap();
    // named removes the files a little later.
    eventually("the zone's file is gone", || async { (!server.folder().join("seed.zone").exists()).then_some(()) })
        .await;
}

#[tokio::test]
async fn every_refusal_has_its_class() {
    let Some(server) = server() else { return };
    let rndc = rndc(&server);
    let (there, none, secondary) = (name("example.com"), name("none.example"), name("s.example"));
    let bad = "$TTL 300\n@ SOA ns1 hostmaster 1 3600 600 604800 60\n@ NS ns1\n";
    std::fs::write(server.folder().join("bad.zone"), bad).unwrap();
    std::fs::write(server.folder().join("broken.zone"), "$TTL 300\n@ SOA ns1 (\n").unwrap();

    let add = |configuration: &'static str| {
        let rndc = &rndc;
        async move { refusal(rndc.add_zone(&name("x.example"), configuration).await) }
    };
    assert_eq!(add("{ type primary; file \"none.zone\"; }").await, RndcRefusal::FileNotFound);
    assert_eq!(add("{ type primary; file \"bad.zone\"; }").await, RndcRefusal::BadZone);
    assert_eq!(add("{ type primary; file \"broken.zone\"; }").await, RndcRefusal::BadZone);
    assert_eq!(add("{ type primary; fil \"seed.zone\"; }").await, RndcRefusal::BadConfiguration);
    assert_eq!(
        add("{ type primary; file \"seed.zone\"; dnssec-policy none-such; }").await,
        RndcRefusal::BadConfiguration
    );
    assert_eq!(
        add("{ type primary; file \"seed.zone\"; allow-update { none-such; }; }").await,
        RndcRefusal::BadConfiguration
    );
    assert_eq!(add("{ type primary; file \"seed.zone\"").await, RndcRefusal::BadConfiguration);
    // Nothing of all that is left behind.
    rndc.add_zone(&name("x.example"), PRIMARY).await.unwrap();
    assert_eq!(refusal(rndc.add_zone(&name("X.Example"), PRIMARY).await), RndcRefusal::AlreadyExists);
    assert_eq!(refusal(rndc.add_zone(&there, PRIMARY).await), RndcRefusal::AlreadyExists);

    for command in [
        RndcCommand::ModifyZone(none.clone(), PRIMARY.into()),
        RndcCommand::DeleteZone(none.clone(), ZoneFiles::Keep),
        RndcCommand::ShowZone(none.clone()),
        RndcCommand::ZoneStatus(none.clone()),
        RndcCommand::Retransfer(none.clone()),
        RndcCommand::Notify(none.clone()),
        RndcCommand::Refresh(none.clone()),
        RndcCommand::Sync(none.clone(), JournalFile::Keep),
        RndcCommand::Freeze(none.clone()),
        RndcCommand::Thaw(none.clone()),
        RndcCommand::DnssecStatus(none.clone()),
        RndcCommand::DnssecRollover(none.clone(), 1),
    ] {
        let error = rndc.call(&command).await.unwrap_err();
        assert_eq!(error.refusal(), Some(RndcRefusal::ZoneNotFound), "{error}");
        assert_eq!(error.class(), Class::Waiting);
    }

    rndc.add_zone(&secondary, "{ type secondary; primaries { 127.0.0.1 port 1; }; file \"s.db\"; }").await.unwrap();
    assert_eq!(refusal(rndc.zone_status(&secondary).await.map(drop)), RndcRefusal::NotLoaded);
    assert_eq!(refusal(rndc.freeze(&secondary).await), RndcRefusal::WrongKind);
    assert_eq!(refusal(rndc.refresh(&there).await), RndcRefusal::WrongKind);
    assert_eq!(refusal(rndc.retransfer(&there).await), RndcRefusal::WrongKind);
    rndc.refresh(&secondary).await.unwrap();
    rndc.retransfer(&secondary).await.unwrap();
    rndc.notify(&there).await.unwrap();
}

#[tokio::test]
async fn a_frozen_zone_is_in_its_file_and_takes_no_updates_until_it_is_thawed() {
    let Some(server) = server() else { return };
    let (rndc, dns) = (rndc(&server), dns(&server));
    let zone = name("example.com");
    dns.update(&ZoneUpdate::new(zone.clone(), vec![add("www.example.com", TypeCode::A, "192.0.2.1")])).await.unwrap();
    let file = server.folder().join("example.zone");
    let journal = server.folder().join("example.zone.jnl");
    assert!(journal.exists() && !std::fs::read_to_string(&file).unwrap().contains("www"));

    rndc.freeze(&zone).await.unwrap();
    assert!(rndc.zone_status(&zone).await.unwrap().is_frozen);
    assert_eq!(refusal(rndc.freeze(&zone).await), RndcRefusal::AlreadyFrozen);
    let written = |text: &'static str| {
        let file = file.clone();
        async move { std::fs::read_to_string(file).unwrap().contains(text).then_some(()) }
    };
    // Tried on 9.18.49: the file is written a little after the answer.
    eventually("the zone is in its file", || written("www")).await;
    let refused =
        dns.update(&ZoneUpdate::new(zone.clone(), vec![add("b.example.com", TypeCode::A, "192.0.2.1")])).await;
    assert!(refused.is_err());
    rndc.thaw(&zone).await.unwrap();
    eventually("it takes updates again", || async {
        dns.update(&ZoneUpdate::new(zone.clone(), vec![add("b.example.com", TypeCode::A, "192.0.2.1")])).await.ok()
    })
    .await;

    rndc.sync(&zone, JournalFile::Remove).await.unwrap();
    eventually("all of the zone is in its file", || written("b\t")).await;
    eventually("the journal is gone", || async { (!journal.exists()).then_some(()) }).await;
}

#[tokio::test]
async fn a_signed_zones_keys_are_shown_and_replaced() {
    let Some(server) = server() else { return };
    let rndc = rndc(&server);
    let zone = name("signed.example");
    rndc.add_zone(&zone, "{ type primary; file \"seed.zone\"; allow-update { key update; }; dnssec-policy default; }")
        .await
        .unwrap();

    let key =
        eventually("the zone has a key", || async { rndc.dnssec_status(&zone).await.unwrap().keys.into_iter().next() })
            .await;
    assert_eq!((&*key.algorithm, &*key.role), ("ECDSAP256SHA256", "CSK"));
    assert!(key.is_published && key.signs_keys && key.signs_zone, "{key:?}");
    assert!(key.states.contains(&("goal".into(), "omnipresent".into())), "{key:?}");
    assert_eq!(rndc.dnssec_status(&zone).await.unwrap().policy.as_deref(), Some("default"));
    eventually("the zone is signed", || async { rndc.zone_status(&zone).await.unwrap().is_signed.then_some(()) }).await;

    // Its DS record is the one that BIND's own tool makes of it.
    let dns = DnsClient::new(server.dns(), None, ServerLimits::default());
    let keys = dns.query(&zone, TypeCode::DNSKEY).await.unwrap();
    let there = keys.records.iter().find(|record| record.kind == TypeCode::DNSKEY).unwrap();
    assert!(there.data.is_entry_point() && there.data.key_tag() == key.tag);
    let file = server.folder().join("keys.txt");
    std::fs::write(&file, format!("{there}\n")).unwrap();
    let tool = std::process::Command::new(programs().unwrap().join("dnssec-dsfromkey"))
        .args(["-2", "-f"])
        .arg(&file)
        .arg("signed.example")
        .output()
        .unwrap();
    let ours = there.data.to_ds(&zone, DsDigest::Sha256).unwrap().to_text(TypeCode::DS);
    assert!(String::from_utf8_lossy(&tool.stdout).to_lowercase().contains(&ours), "{ours} {tool:?}");

    // The server says that no key matches, with the result of one that went well.
    assert_eq!(refusal(rndc.roll_key(&zone, key.tag.wrapping_add(1)).await), RndcRefusal::KeyNotFound);
    rndc.roll_key(&zone, key.tag).await.unwrap();
    eventually("there is a second key", || async {
        (rndc.dnssec_status(&zone).await.unwrap().keys.len() == 2).then_some(())
    })
    .await;
    assert_eq!(rndc.dnssec_status(&name("example.com")).await.unwrap().policy, None);
}

#[tokio::test]
async fn keys_are_replaced_with_both_valid_for_a_while_and_no_restart() {
    let Some(mut server) = server() else { return };
    let old = rndc(&server);
    let new_key = key("control-2", SECRET);
    let new = RndcClient::new(server.control(), new_key, ServerLimits::default());
    let booted = old.status().await.unwrap().booted;
    let refused = new.status().await.unwrap_err();
    assert!(matches!(refused, RndcError::KeyRefused { .. }), "{refused}");
    assert_eq!(refused.class(), Class::Denied);

    server.write_configuration(configuration().with_control_key("control-2", "hmac-sha256", SECRET));
    old.reconfigure().await.unwrap();

    // Both keys are taken at once; the old connection lives on.
    assert_eq!(old.status().await.unwrap().booted, booted);
    assert_eq!(new.status().await.unwrap().booted, booted);
    let names: Vec<_> = new.known_keys().await.unwrap().into_iter().map(|key| key.name.to_string()).collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("control")).count(), 2, "{names:?}");
}

#[tokio::test]
async fn every_algorithm_signs_commands_and_a_wrong_secret_is_told_from_a_wrong_server() {
    let configuration = ["hmac-sha1", "hmac-sha224", "hmac-sha256", "hmac-sha384", "hmac-sha512"]
        .iter()
        .fold(NamedConfiguration::default(), |all, algorithm| {
            all.with_control_key(&format!("k-{algorithm}"), algorithm, SECRET)
        });
    let Some(server) = portolan_named_fixture::NamedServer::start(configuration) else { return };

    for algorithm in portolan_bind9_wire::HmacAlgorithm::ALL {
        let key = portolan_bind9_wire::HmacKey::new(&format!("k-{algorithm}"), algorithm, SECRET).unwrap();
        let rndc = RndcClient::new(server.control(), key, ServerLimits::default());
        rndc.status().await.unwrap_or_else(|error| panic!("{algorithm}: {error}"));
    }
    let wrong = RndcClient::new(server.control(), key("control", "d3Jvbmc="), ServerLimits::default());
    assert!(matches!(wrong.status().await, Err(RndcError::KeyRefused { .. })));
    // The DNS port closes the connection too, since what comes is no message to it.
    let elsewhere = RndcClient::new(server.dns(), control_key(), crate::support::impatient());
    assert!(elsewhere.status().await.is_err());
}

#[tokio::test]
async fn a_client_outlives_its_server() {
    let Some(mut server) = server() else { return };
    let rndc = rndc(&server);
    rndc.add_zone(&name("kept.example"), PRIMARY).await.unwrap();

    server.kill();
    let gone = rndc.status().await.unwrap_err();
    assert_eq!(gone.class(), Class::Transient, "{gone}");
    server.start_again();

    rndc.status().await.unwrap();
    // Zones made by command survive, in named's own database.
    assert!(rndc.show_zone(&name("kept.example")).await.unwrap().contains("primary"));
}

#[tokio::test]
async fn a_statement_is_shown_as_it_was_given() {
    let Some(server) = server() else { return };
    let rndc = rndc(&server);
    let zone = name("new.example");
    let statement = "{\n  type primary;\n  file \"seed.zone\";\n  allow-update { key update; };\n  allow-transfer { key \"update\"; 127.0.0.0/8; };\n  \
        also-notify { 127.0.0.1 port 5353 key update; };\n  notify explicit;\n  notify-delay 0;\n  serial-update-method unixtime;\n  \
        allow-query { !10.0.0.1; 10.0.0.0/8; 2001:DB8::/32; ::1; !key nobody; any; };\n  max-journal-size 10485760;\n}";
    rndc.add_zone(&zone, statement).await.unwrap();

    let shown = rndc.show_zone(&zone).await.unwrap();

    assert!(says_the_same(&shown, statement), "{shown}");
    assert!(!says_the_same(&shown, PRIMARY));
    rndc.modify_zone(&zone, PRIMARY).await.unwrap();
    assert!(says_the_same(&rndc.show_zone(&zone).await.unwrap(), PRIMARY));
}

#[tokio::test]
async fn a_statement_as_long_as_a_command_can_be_is_taken_and_a_longer_one_is_not_sent() {
    let Some(server) = server() else { return };
    let rndc = rndc(&server);
    let statement = |count: usize| {
        let addresses = (0..count)
            .fold(String::new(), |all, number| all + &format!("10.{}.{}.1; ", number / 250 + 1, number % 250 + 1));
        format!("{{ type primary; file \"seed.zone\"; allow-query {{ {addresses} }}; }}")
    };
    let longest = statement(2_500);
    assert!((29_000..31_000).contains(&longest.len()), "{}", longest.len());

    rndc.add_zone(&name("long.example"), &longest).await.unwrap();

    let shown = rndc.show_zone(&name("long.example")).await.unwrap();
    assert!(says_the_same(&shown, &longest), "{shown:.200}");
    let error = rndc.add_zone(&name("longer.example"), &statement(3_000)).await.unwrap_err();
    assert!(error.to_string().ends_with("was not asked, for a command has at most 31 KiB"), "{error}");
    assert_eq!(error.class(), Class::Invalid);
    rndc.status().await.unwrap();
}
