//! Records through the whole API.

use bytes::Bytes;
use http::Request;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use crate::{Options, Simulator};

struct Lab {
    simulator: Simulator,
    zone: String,
}

fn lab(plan: &str) -> Lab {
    let simulator = Simulator::new(Options { rate_limit: None, ..Options::default() });
    let account = simulator.add_account("Lab");
    let zone = simulator.add_zone("example.com", &account, plan).unwrap();
    Lab { simulator, zone }
}

impl Lab {
    async fn send(&self, method: &str, below: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder()
            .method(method)
            .uri(format!("/client/v4/zones/{}/dns_records{below}", self.zone))
            .header("authorization", "Bearer t")
            .body(body)
            .unwrap();
        let response = self.simulator.answer(request).await.unwrap();
        (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
    }

    async fn create(&self, body: Value) -> Value {
        let (status, answer) = self.send("POST", "", body.clone()).await;
        assert_eq!(status, 200, "{body} → {answer}");
        answer["result"].clone()
    }

    async fn refused(&self, method: &str, below: &str, body: Value) -> u64 {
        let (status, answer) = self.send(method, below, body.clone()).await;
        assert!(status >= 400 && answer["success"] == false, "{body} → {answer}");
        let error = &answer["errors"][0];
        error["error_chain"][0]["code"].as_u64().or(error["code"].as_u64()).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let records = self.simulator.objects("dns_records", &self.zone);
        records.iter().map(|record| record["name"].as_str().unwrap().to_owned()).collect()
    }
}

fn a(name: &str, content: &str) -> Value {
    json!({"type": "A", "name": name, "content": content, "ttl": 300})
}

#[tokio::test]
async fn a_record_comes_back_as_the_service_writes_it() {
    let lab = lab("pro");

    let body = json!({"type": "A", "name": "WWW", "content": "192.0.2.1", "ttl": 300, "proxied": true, "comment": "c"});
    let record = lab.create(body).await;

    assert_eq!(record["name"], "www.example.com");
    assert_eq!((&record["ttl"], &record["proxied"], &record["proxiable"]), (&json!(1), &json!(true), &json!(true)));
    assert_eq!((&record["meta"], &record["settings"], &record["tags"]), (&json!({}), &json!({}), &json!([])));
    assert_eq!(record["comment_modified_on"], record["created_on"]);
    assert_eq!(lab.send("GET", &format!("/{}", record["id"].as_str().unwrap()), json!(null)).await.1["result"], record);
}

#[tokio::test]
async fn every_type_can_be_made_and_bad_values_of_each_are_refused() {
    let lab = lab("pro");
    let good = [
        json!({"type": "A", "content": "192.0.2.1"}),
        json!({"type": "AAAA", "content": "2001:db8::1"}),
        json!({"type": "TXT", "content": "hello"}),
        json!({"type": "MX", "content": "mail.example.com", "priority": 10}),
        json!({"type": "NS", "content": "ns1.example.net", "name": "sub"}),
        json!({"type": "PTR", "content": "host.example.net"}),
        json!({"type": "OPENPGPKEY", "content": "aGVsbG8="}),
        json!({"type": "CNAME", "content": "t.example.net", "name": "alias"}),
        json!({"type": "CAA", "data": {"flags": 0, "tag": "issue", "value": "letsencrypt.org"}}),
        json!({"type": "CERT", "data": {"type": 9, "key_tag": 1, "algorithm": 1, "certificate": "aGk="}}),
        json!({"type": "DNSKEY", "data": {"flags": 257, "protocol": 3, "algorithm": 13, "public_key": "aGk="}}),
        json!({"type": "DS", "data": {"key_tag": 1, "algorithm": 13, "digest_type": 2, "digest": "ab12"}}),
        json!({"type": "HTTPS", "data": {"priority": 1, "target": ".", "value": "alpn=\"h3\""}}),
        json!({"type": "SVCB", "data": {"priority": 1, "target": "x.example.net"}}),
        json!({"type": "LOC", "data": {"lat_degrees": 37, "lat_minutes": 46, "lat_seconds": 46.5, "lat_direction": "N",
            "long_degrees": 122, "long_minutes": 23, "long_seconds": 35, "long_direction": "W", "altitude": 0, "size": 100,
            "precision_horz": 0, "precision_vert": 0}}),
        json!({"type": "NAPTR", "data": {"order": 1, "preference": 2, "flags": "U", "service": "E2U+sip",
            "regex": "!^.*$!sip:a@example.com!", "replacement": "."}}),
        json!({"type": "SMIMEA", "data": {"usage": 3, "selector": 0, "matching_type": 1, "certificate": "ab12"}}),
        json!({"type": "TLSA", "data": {"usage": 3, "selector": 0, "matching_type": 1, "certificate": "ab12"}}),
        json!({"type": "SRV", "name": "_sip._tcp", "data": {"priority": 5, "weight": 0, "port": 5060, "target": "sip.example.com"}}),
        json!({"type": "SSHFP", "data": {"algorithm": 2, "type": 1, "fingerprint": "ab12"}}),
        json!({"type": "URI", "priority": 10, "data": {"weight": 1, "target": "http://example.com/"}}),
    ];
    assert_eq!(good.len(), super::TYPE_NAMES.len());

    for mut body in good {
        let kind = body["type"].as_str().unwrap().to_owned();
        if body.get("name").is_none() {
            body["name"] = json!(format!("{}-host", kind.to_lowercase()));
        }
        let record = lab.create(body.clone()).await;
        assert!(!record["content"].as_str().unwrap().is_empty(), "{kind}");

        let mut wrong = body.clone();
        wrong["name"] = json!("other");
        match body.get("data") {
            Some(_) => wrong["data"] = json!({"nonsense": 1}),
            None => wrong["content"] = json!(""),
        }
        assert!(lab.refused("POST", "", wrong).await >= 9000, "{kind}");
        assert_eq!(lab.refused("POST", "", body).await, if kind == "CNAME" { 81053 } else { 81058 }, "{kind}");
    }
}

#[tokio::test]
async fn fields_are_checked_as_the_zones_plan_says() {
    let lab = lab("free");
    let with = |name: &str, value: Value| {
        let mut body = a("x", "192.0.2.1");
        body[name] = value;
        body
    };

    assert_eq!(lab.refused("POST", "", with("ttl", json!(59))).await, 9021);
    assert_eq!(lab.refused("POST", "", with("ttl", json!(86_401))).await, 9021);
    assert_eq!(lab.refused("POST", "", with("comment", json!("c".repeat(101)))).await, 9313);
    assert_eq!(lab.refused("POST", "", with("tags", json!(["a:b"]))).await, 9300);
    assert_eq!(lab.refused("POST", "", with("priority", json!(1))).await, 9207);
    assert_eq!(lab.refused("POST", "", with("data", json!({}))).await, 9207);
    assert_eq!(lab.refused("POST", "", with("zone_id", json!("z"))).await, 9207);
    assert_eq!(lab.refused("POST", "", with("settings", json!({"flatten_cname": true}))).await, 9207);
    assert_eq!(lab.refused("POST", "", with("content", json!("10.0.0.300"))).await, 9005);
    let mut private = with("content", json!("10.0.0.3"));
    private["proxied"] = json!(true);
    assert_eq!(lab.refused("POST", "", private).await, 9003);
    let text = json!({"type": "TXT", "name": "x", "content": "x", "proxied": true});
    assert_eq!(lab.refused("POST", "", text).await, 9004);
    let own = json!({"type": "CNAME", "name": "x", "content": "x.example.com"});
    assert_eq!(lab.refused("POST", "", own).await, 9039);
    assert_eq!(lab.refused("POST", "", json!({"type": "MX", "name": "x", "content": "m.example.com"})).await, 9100);
    assert!(lab.names().is_empty());
}

#[tokio::test]
async fn names_are_shared_only_by_types_that_go_together() {
    let lab = lab("free");
    lab.create(a("host", "192.0.2.1")).await;
    lab.create(a("host", "192.0.2.2")).await;
    lab.create(json!({"type": "TXT", "name": "host", "content": "x"})).await;
    lab.create(json!({"type": "CNAME", "name": "alias", "content": "host.example.com"})).await;
    lab.create(json!({"type": "NS", "name": "sub", "content": "ns.example.net"})).await;

    assert_eq!(
        lab.refused("POST", "", json!({"type": "CNAME", "name": "host", "content": "a.example.net"})).await,
        81053
    );
    assert_eq!(lab.refused("POST", "", a("alias", "192.0.2.1")).await, 81054);
    assert_eq!(lab.refused("POST", "", a("sub", "192.0.2.1")).await, 81056);
    assert_eq!(lab.refused("POST", "", json!({"type": "TXT", "name": "sub", "content": "x"})).await, 81056);
    assert_eq!(lab.refused("POST", "", a("host", "192.0.2.1")).await, 81058);
    let slower = json!({"type": "A", "name": "host", "content": "192.0.2.1", "ttl": 3600});
    assert_eq!(lab.refused("POST", "", slower).await, 81057, "the same content with other settings");
    assert_eq!(
        lab.refused("POST", "", json!({"type": "NS", "name": "host", "content": "ns.example.net"})).await,
        81053
    );
}

#[tokio::test]
async fn patch_keeps_what_put_drops() {
    let lab = lab("free");
    let mut body = a("www", "192.0.2.1");
    body["comment"] = json!("mine");
    let record = lab.create(body).await;
    let path = format!("/{}", record["id"].as_str().unwrap());

    let (_, patched) = lab.send("PATCH", &path, json!({"content": "192.0.2.2"})).await;
    assert_eq!(patched["result"]["comment"], "mine");
    assert_eq!(patched["result"]["content"], "192.0.2.2");
    let (_, put) = lab.send("PUT", &path, a("www", "192.0.2.3")).await;
    assert_eq!(put["result"]["comment"], json!(null));
    let (_, typed) = lab.send("PATCH", &path, json!({"type": "MX", "content": "m.example.com", "priority": 1})).await;
    assert_eq!(typed["result"]["type"], "MX");
    assert_eq!(lab.refused("PUT", &path, json!({"content": "192.0.2.3"})).await, 9207);
    assert_eq!(lab.refused("PATCH", "/00000000000000000000000000000000", json!({})).await, 81044);
    assert_eq!(lab.refused("PATCH", "/nonsense", json!({})).await, 7003);
}

#[tokio::test]
async fn a_free_zone_is_full_at_two_hundred_records() {
    let lab = lab("free");
    for number in 0..200 {
        lab.simulator.put("dns_records", &lab.zone, a(&format!("n{number}"), "192.0.2.1")).unwrap();
    }

    assert_eq!(lab.refused("POST", "", a("one-more", "192.0.2.1")).await, 81045);
    assert_eq!(lab.refused("POST", "/batch", json!({"posts": [a("one-more", "192.0.2.1")]})).await, 81045);
}

#[tokio::test]
async fn a_batch_runs_in_its_own_order() {
    let lab = lab("free");
    let old = lab.create(a("www", "192.0.2.1")).await;
    let kept = lab.create(a("kept", "192.0.2.1")).await;

    let cname = json!({"type": "CNAME", "name": "www", "content": "kept.example.com"});
    let body = json!({
        "posts": [cname], "deletes": [{"id": old["id"]}],
        "patches": [{"id": kept["id"], "content": "192.0.2.9"}],
    });
    let (status, answer) = lab.send("POST", "/batch", body).await;

    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["result"]["deletes"][0]["id"], old["id"]);
    assert_eq!(answer["result"]["patches"][0]["content"], "192.0.2.9");
    assert_eq!(answer["result"]["posts"][0]["type"], "CNAME");
    assert_eq!(answer["result"]["puts"], json!(null));
}

#[tokio::test]
async fn a_refused_batch_changes_nothing_and_says_where_it_stopped() {
    let lab = lab("free");
    let record = lab.create(a("www", "192.0.2.1")).await;
    let before = lab.simulator.state();

    let body = json!({
        "deletes": [{"id": record["id"]}], "posts": [a("new", "192.0.2.1"), a("bad", "not an address")],
    });
    let (status, answer) = lab.send("POST", "/batch", body).await;

    assert_eq!((status, &answer["errors"][0]["code"]), (400, &json!(9005)));
    assert_eq!(answer["errors"][0]["source"]["pointer"], "/posts/1");
    assert_eq!(lab.simulator.state(), before);
}

#[tokio::test]
async fn a_batch_has_a_limit_and_a_form() {
    let lab = lab("free");
    let posts: Vec<Value> = (0..201).map(|number| a(&format!("n{number}"), "192.0.2.1")).collect();

    assert_eq!(lab.refused("POST", "/batch", json!({"posts": posts})).await, 9208);
    assert_eq!(lab.refused("POST", "/batch", json!({"post": []})).await, 9207);
    assert_eq!(lab.refused("POST", "/batch", json!({"deletes": [{}]})).await, 9207);
    assert_eq!(lab.refused("POST", "/batch", json!({"patches": [{"id": "0".repeat(32)}]})).await, 81044);
}

#[tokio::test]
async fn lists_are_filtered_ordered_and_paged() {
    let lab = lab("free");
    for number in 0..12 {
        lab.create(a(&format!("n{number:02}"), &format!("192.0.2.{number}"))).await;
    }
    let list = async |query: &str| lab.send("GET", &format!("?{query}"), json!(null)).await.1;

    let page = list("per_page=5&page=3").await;
    assert_eq!(page["result"].as_array().unwrap().len(), 2);
    assert_eq!(page["result_info"], json!({"page": 3, "per_page": 5, "count": 2, "total_count": 12, "total_pages": 3}));
    assert_eq!(list("name.exact=N03.example.com").await["result_info"]["count"], 1);
    assert_eq!(list("name.startswith=n1").await["result_info"]["count"], 2);
    assert_eq!(list("match=any&name=n01.example.com&content=192.0.2.2").await["result_info"]["count"], 2);
    assert_eq!(list("type=TXT").await["result_info"]["count"], 0);
    assert_eq!(list("order=name&direction=desc&per_page=1").await["result"][0]["name"], "n11.example.com");
    assert_eq!(lab.refused("GET", "?nmae=x", json!(null)).await, 1003);
    assert_eq!(lab.refused("GET", "?per_page=0", json!(null)).await, 1003);
}

/// A batch of random operations on a few names, good and bad ones.
fn random_batch(random: &mut StdRng, ids: &[Value]) -> Value {
    let mut body = json!({});
    for step in ["deletes", "patches", "puts", "posts"] {
        let operations = (0..random.random_range(0..2)).map(|_| {
            let kind = ["A", "CNAME", "TXT"][random.random_range(0..3)];
            let content = ["192.0.2.1", "t.example.net", "192.0.2.2"][random.random_range(0..3)];
            let name = ["a", "b", "c"][random.random_range(0..3)];
            let id = if ids.is_empty() || random.random_bool(0.1) {
                json!("0".repeat(32))
            } else {
                ids[random.random_range(0..ids.len())].clone()
            };
            match step {
                "deletes" => json!({"id": id}),
                "patches" => json!({"id": id, "content": content}),
                "puts" => json!({"id": id, "type": kind, "name": name, "content": content}),
                _ => json!({"type": kind, "name": name, "content": content}),
            }
        });
        body[step] = operations.collect();
    }
    body
}

/// What an object is, without ids and times.
fn essence(lab: &Lab) -> Vec<String> {
    let records = lab.simulator.objects("dns_records", &lab.zone);
    records.iter().map(|record| format!("{} {} {}", record["type"], record["name"], record["content"])).collect()
}

#[tokio::test]
async fn a_batch_does_what_its_operations_do_one_by_one_or_nothing() {
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let (batched, single) = (lab("free"), lab("free"));
        for _ in 0..8 {
            let ids = |lab: &Lab| -> Vec<Value> {
                lab.simulator.objects("dns_records", &lab.zone).iter().map(|record| record["id"].clone()).collect()
            };
            let (before, batched_ids, single_ids) = (essence(&batched), ids(&batched), ids(&single));
            let body = random_batch(&mut random, &batched_ids);

            let (status, _) = batched.send("POST", "/batch", body.clone()).await;

            if status != 200 {
                refused += 1;
                assert_eq!(essence(&batched), before, "failing seed: {seed}");
                continue;
            }
            accepted += 1;
            for (step, method) in [("deletes", "DELETE"), ("patches", "PATCH"), ("puts", "PUT"), ("posts", "POST")] {
                for operation in body[step].as_array().unwrap() {
                    let mut operation = operation.clone();
                    let id = operation.as_object_mut().unwrap().remove("id");
                    let place = id.map(|id| batched_ids.iter().position(|known| *known == id).unwrap());
                    let path = place.map_or(String::new(), |place| format!("/{}", single_ids[place].as_str().unwrap()));
                    let (status, answer) = single.send(method, &path, operation).await;
                    assert_eq!(status, 200, "failing seed: {seed}: {answer}");
                }
            }
            assert_eq!(essence(&batched), essence(&single), "failing seed: {seed}");
        }
    }
    assert!(accepted > 100 && refused > 100, "{accepted} accepted, {refused} refused");
}
