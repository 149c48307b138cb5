//! The two ways of looking for a name that stands open: each finds planted violations, and neither cries wolf.

use std::time::Duration;

use portolan_cloudflare_sim::credential_id;
use portolan_testkit_suites::World;
use portolan_testkit_suites::manifests::ZONE_ID;
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::edge_monitor::EdgeMonitor;
use portolan_testkit_suites::zerotrust::wishes::NameWish;
use portolan_testkit_suites::zerotrust::{self as z, ACCOUNT, ORIGIN, SOMEBODY, TUNNEL};
use serde_json::{Value, json};

const NAME: &str = "app.example.com";

fn configurations() -> String {
    format!("accounts/{ACCOUNT}/cfd_tunnel/{TUNNEL}/configurations")
}

fn wall() -> Value {
    json!({ "access": { "required": true, "teamName": "example", "audTag": ["of an application"] } })
}

/// An operator without care, in a world where nobody else is at work.
struct Careless {
    world: World,
    monitor: EdgeMonitor,
    app: String,
    record: String,
}

impl Careless {
    async fn at_work(wish: NameWish) -> Self {
        let world = z::world().asleep().start().await;
        let monitor = EdgeMonitor::post_late(&world);
        monitor.wish(&world, NAME, wish);
        Self { world, monitor, app: String::new(), record: String::new() }
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        self.world.misbehave(method, path, &body).await
    }

    async fn rules(&self, names: &[&str]) {
        self.rules_with(names, &Value::Null).await;
    }

    /// Rules that let nobody pass who did not pass the application.
    async fn rules_asking(&self, names: &[&str]) {
        let app = self.world.cloudflare.simulator.object("access_apps", &self.app).unwrap_or_default();
        let tag = if app["aud"].is_string() { app["aud"].clone() } else { json!("of an application that is gone") };
        let access = json!({ "access": { "required": true, "teamName": "example", "audTag": [tag] } });
        self.rules_with(names, &access).await;
    }

    async fn rules_with(&self, names: &[&str], settings: &Value) {
        let document = Self::document(names, settings);
        self.ask("PUT", &configurations(), document).await;
    }

    fn document(names: &[&str], settings: &Value) -> Value {
        let mut config = z::foreign_config();
        for name in names {
            let mut rule = json!({ "hostname": name, "service": ORIGIN });
            if !settings.is_null() {
                rule["originRequest"] = settings.clone();
            }
            config["ingress"].as_array_mut().expect("there are rules").insert(0, rule);
        }
        json!({ "config": config })
    }

    /// A name as it should be published, in an account where another cluster works too; which read the document then.
    async fn beside_another_cluster(settings: &Value) -> Self {
        let mut careless = Self::at_work(NameWish::Protected).await;
        careless.monitor.neighbour(&careless.world, &credential_id(SOMEBODY));
        careless.app(NAME, true).await;
        careless.rules_with(&[NAME], settings).await;
        careless.record(NAME).await;
        careless.ask_as_neighbour("GET", Value::Null).await;
        careless
    }

    async fn ask_as_neighbour(&self, method: &str, body: Value) {
        self.world.misbehave_as(SOMEBODY, method, &configurations(), &body).await;
    }

    async fn withdraw(&self) {
        self.unrecord().await;
        self.rules(&[]).await;
        self.unapp().await;
        assert_eq!(self.found(), (0, 0), "withdrawn in the right order");
    }

    async fn record(&mut self, name: &str) {
        let body = json!({ "type": "CNAME", "name": name, "content": format!("{TUNNEL}.cfargotunnel.com"), "ttl": 1, "proxied": true });
        let made = self.ask("POST", &format!("zones/{ZONE_ID}/dns_records"), body).await;
        made["id"].as_str().unwrap_or_default().clone_into(&mut self.record);
    }

    async fn record_by_batch(&mut self, name: &str) {
        let post = json!({ "type": "CNAME", "name": name, "content": format!("{TUNNEL}.cfargotunnel.com"), "ttl": 1, "proxied": true });
        let made = self.ask("POST", &format!("zones/{ZONE_ID}/dns_records/batch"), json!({ "posts": [post] })).await;
        made["posts"][0]["id"].as_str().unwrap_or_default().clone_into(&mut self.record);
    }

    async fn unrecord(&self) {
        self.ask("DELETE", &format!("zones/{ZONE_ID}/dns_records/{}", self.record), Value::Null).await;
    }

    fn body(domain: &str, policies: bool) -> Value {
        let policy = json!({ "name": "allow", "decision": "allow", "precedence": 1, "include": [{ "email": { "email": "user@example.com" } }] });
        let policies = if policies { vec![policy] } else { Vec::new() };
        json!({ "name": "app", "domain": domain, "type": "self_hosted", "policies": policies })
    }

    async fn app(&mut self, domain: &str, policies: bool) {
        let made = self.ask("POST", &format!("accounts/{ACCOUNT}/access/apps"), Self::body(domain, policies)).await;
        made["id"].as_str().unwrap_or_default().clone_into(&mut self.app);
    }

    async fn change_app(&self, domain: &str, policies: bool) {
        self.ask("PUT", &format!("accounts/{ACCOUNT}/access/apps/{}", self.app), Self::body(domain, policies)).await;
    }

    async fn unapp(&self) {
        self.ask("DELETE", &format!("accounts/{ACCOUNT}/access/apps/{}", self.app), Value::Null).await;
    }

    /// What each way of looking found: by the log, and by the edge.
    fn found(&self) -> (usize, usize) {
        (self.monitor.seen_in_log(&self.world).len(), self.monitor.seen_at_edge().len())
    }

    /// What strangers saw at edges that hear of everything late, each in an order of its own.
    fn found_late(&self) -> usize {
        (0..50).map(|seed| self.monitor.seen_late(&self.world, seed).len()).sum()
    }

    /// A name whose rule asks for its application.
    async fn walled() -> Self {
        let mut careless = Self::at_work(NameWish::Protected).await;
        careless.app(NAME, true).await;
        careless.rules_asking(&[NAME]).await;
        careless.record(NAME).await;
        careless
    }

    #[track_caller]
    fn assert_found(&self) {
        let (log, edge) = self.found();
        assert!(log > 0, "the log tells");
        assert!(edge > 0, "the edge tells");
    }

    /// A name as it should be published.
    async fn published(wish: NameWish) -> Self {
        let mut careless = Self::at_work(wish).await;
        careless.app(NAME, true).await;
        careless.rules(&[NAME]).await;
        careless.record(NAME).await;
        assert_eq!(careless.found(), (0, 0), "so far all is well");
        careless
    }
}

#[tokio::test(start_paused = true)]
async fn publishing_and_withdrawing_in_the_right_order_is_no_violation() {
    let careless = Careless::published(NameWish::Protected).await;
    assert!(!careless.world.name(NAME).is_public() && careless.world.name(NAME).lets_in("user@example.com"));

    careless.monitor.wish(&careless.world, NAME, NameWish::Gone);
    careless.unrecord().await;
    careless.rules(&[]).await;
    careless.unapp().await;

    careless.monitor.assert_closed(&careless.world, "the right order");
    assert!(careless.monitor.questions() >= 6);
}

#[tokio::test(start_paused = true)]
async fn a_public_name_is_no_violation_until_it_was_protected() {
    let mut careless = Careless::at_work(NameWish::Public).await;
    careless.rules(&[NAME]).await;
    careless.record(NAME).await;
    careless.monitor.wish(&careless.world, NAME, NameWish::Protected);
    careless.app(NAME, true).await;
    assert_eq!(careless.found(), (0, 0));

    careless.unapp().await;

    careless.assert_found();
}

#[tokio::test(start_paused = true)]
async fn rule_and_record_before_the_application_are_found() {
    let mut careless = Careless::at_work(NameWish::Protected).await;

    careless.rules(&[NAME]).await;
    careless.record(NAME).await;
    careless.app(NAME, true).await;

    careless.assert_found();
}

#[tokio::test(start_paused = true)]
async fn a_rule_alone_before_the_application_is_found_in_the_log() {
    let mut careless = Careless::at_work(NameWish::Protected).await;

    careless.rules(&[NAME]).await;
    careless.app(NAME, true).await;

    assert_eq!(careless.found(), (1, 0), "without a record nobody finds the rule, but it stands");
}

#[tokio::test(start_paused = true)]
async fn a_record_by_batch_before_the_application_is_found() {
    let mut careless = Careless::at_work(NameWish::Protected).await;

    careless.record_by_batch(NAME).await;
    careless.app(NAME, true).await;
    careless.rules(&[NAME]).await;

    careless.assert_found();
}

#[tokio::test(start_paused = true)]
async fn an_application_without_a_policy_is_found_in_the_log_and_lets_nobody_in() {
    let mut careless = Careless::at_work(NameWish::Protected).await;

    careless.app(NAME, false).await;
    careless.rules(&[NAME]).await;
    careless.record(NAME).await;

    let (log, edge) = careless.found();
    assert!(log > 0 && edge == 0, "nobody is let in, but no policy stands: {log} {edge}");
}

#[tokio::test(start_paused = true)]
async fn an_application_that_goes_before_the_record_is_found() {
    let careless = Careless::published(NameWish::Protected).await;
    careless.monitor.wish(&careless.world, NAME, NameWish::Gone);

    careless.unapp().await;
    careless.unrecord().await;
    careless.rules(&[]).await;

    careless.assert_found();
}

#[tokio::test(start_paused = true)]
async fn an_application_that_is_replaced_by_another_is_found() {
    let mut careless = Careless::published(NameWish::Protected).await;

    careless.unapp().await;
    careless.app(NAME, true).await;

    careless.assert_found();
}

#[tokio::test(start_paused = true)]
async fn an_application_that_is_pointed_elsewhere_too_early_is_found() {
    let careless = Careless::published(NameWish::Protected).await;
    careless.monitor.wish(&careless.world, NAME, NameWish::Gone);
    careless.monitor.wish(&careless.world, "new.example.com", NameWish::Protected);

    careless.change_app("new.example.com", true).await;
    careless.unrecord().await;
    careless.rules(&["new.example.com"]).await;

    careless.assert_found();
}

#[tokio::test(start_paused = true)]
async fn a_new_name_that_is_published_before_its_application_is_pointed_to_it_is_found() {
    let mut careless = Careless::published(NameWish::Protected).await;
    careless.monitor.wish(&careless.world, "new.example.com", NameWish::Protected);

    careless.rules(&[NAME, "new.example.com"]).await;
    careless.record("new.example.com").await;
    careless.change_app("new.example.com", true).await;

    careless.assert_found();
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_published_though_its_application_was_refused_is_found() {
    let mut careless = Careless::at_work(NameWish::Protected).await;
    let effect = portolan_cloudflare_sim::Effect::status(500);
    careless.world.cloudflare.fault(portolan_cloudflare_sim::Fault::on("POST", "/access/apps", effect).times(1));

    careless.app(NAME, true).await;
    careless.rules(&[NAME]).await;
    careless.record(NAME).await;
    let (log, edge) = careless.found();
    assert_eq!(log, 0, "by the log the application may be there");
    assert!(edge > 0, "the edge knows better");
    careless.ask("GET", &format!("accounts/{ACCOUNT}/access/apps"), Value::Null).await;

    assert!(!careless.monitor.seen_in_log(&careless.world).is_empty(), "a list that shows everything tells");
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_unprotects_is_forgiven_until_we_protected_it_again() {
    let mut careless = Careless::published(NameWish::Protected).await;
    careless.world.cloudflare.remove("access_apps", &careless.app);
    careless.monitor.forgive(&careless.world, NAME);

    careless.rules(&[NAME]).await;
    assert_eq!(careless.found(), (0, 0), "not ours to answer for");
    careless.app(NAME, true).await;
    assert_eq!(careless.found(), (0, 0));
    careless.unapp().await;

    careless.assert_found();
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_published_anew_after_others_took_its_application_is_found() {
    let mut careless = Careless::published(NameWish::Protected).await;
    careless.unrecord().await;
    careless.world.cloudflare.remove("access_apps", &careless.app);
    careless.monitor.lost(&careless.world, NAME);
    careless.world.pass(Duration::from_secs(300)).await;

    careless.record(NAME).await;

    assert!(careless.found().0 > 0, "an application that went long ago protects nothing");
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_is_written_anew_after_others_took_the_application_is_found() {
    let careless = Careless::published(NameWish::Protected).await;
    careless.rules(&[]).await;
    careless.world.cloudflare.remove("access_apps", &careless.app);
    careless.monitor.lost(&careless.world, NAME);
    careless.world.pass(Duration::from_secs(300)).await;

    careless.rules(&[NAME]).await;

    assert!(careless.found().0 > 0);
}

#[tokio::test(start_paused = true)]
async fn an_application_that_others_take_leaves_a_name_open_at_the_edge_unless_its_rule_asks_for_it() {
    let careless = Careless::published(NameWish::Protected).await;
    careless.world.cloudflare.remove("access_apps", &careless.app);
    careless.monitor.lost(&careless.world, NAME);

    careless.rules(&[NAME]).await;

    assert!(careless.found().1 > 0, "nothing stands between strangers and the service");
    let careless = Careless::walled().await;
    careless.world.cloudflare.remove("access_apps", &careless.app);
    careless.monitor.lost(&careless.world, NAME);
    careless.rules_asking(&[NAME]).await;
    assert_eq!(careless.found(), (0, 0), "the rule lets nobody pass who did not pass Access");
}

#[tokio::test(start_paused = true)]
async fn a_name_whose_record_reaches_the_edge_before_its_application_is_found() {
    let careless = Careless::published(NameWish::Protected).await;
    assert!(careless.found_late() > 0, "in some order the record is there first");

    let careless = Careless::walled().await;
    assert_eq!(careless.found_late(), 0, "whatever arrives first, the rule asks for the application");
}

#[tokio::test(start_paused = true)]
async fn an_application_whose_end_reaches_the_edge_before_its_records_is_found() {
    let careless = Careless::walled().await;
    careless.monitor.wish(&careless.world, NAME, NameWish::Gone);
    careless.rules(&[NAME]).await;
    careless.unrecord().await;
    careless.rules(&[]).await;
    careless.unapp().await;

    assert_eq!(careless.found(), (0, 0), "in the order in which it was written all is well");
    assert!(careless.found_late() > 0, "a rule that asks no more stands at some edge without the application");
}

#[tokio::test(start_paused = true)]
async fn a_protected_wildcard_that_is_open_far_below_is_found() {
    let wildcard = "*.deep.example.com";
    let mut careless = Careless::at_work(NameWish::Gone).await;
    careless.monitor.wish(&careless.world, wildcard, NameWish::Protected);
    careless.app(wildcard, true).await;
    careless.rules(&[wildcard]).await;

    careless.record(wildcard).await;

    assert!(careless.found().1 > 0, "an application's wildcard covers one label");
}

#[tokio::test(start_paused = true)]
async fn of_two_clusters_with_one_name_each_may_withdraw_and_none_may_publish_it_open() {
    let mut careless = Careless::at_work(NameWish::Protected).await;
    careless.monitor.contested(&careless.world, NAME);
    careless.app(NAME, true).await;
    careless.rules_asking(&[NAME]).await;
    careless.record(NAME).await;
    careless.unapp().await;
    assert_eq!(careless.found(), (0, 0), "one cluster took what was its own, and the rule asks for it");
    careless.unrecord().await;
    careless.world.pass(Duration::from_secs(300)).await;

    careless.record(NAME).await;

    assert!(careless.found().0 > 0, "the other one publishes what nothing protects");
}

#[tokio::test(start_paused = true)]
async fn a_walled_rule_that_another_clusters_stale_write_brings_back_is_told_and_no_violation() {
    let careless = Careless::beside_another_cluster(&wall()).await;
    careless.withdraw().await;

    careless.ask_as_neighbour("PUT", Careless::document(&[NAME], &wall())).await;

    assert_eq!(careless.found(), (0, 0));
    assert_eq!(careless.monitor.revived(&careless.world), [NAME.to_owned()].into());
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_came_back_and_gets_a_record_is_found() {
    let mut careless = Careless::beside_another_cluster(&wall()).await;
    careless.withdraw().await;
    careless.ask_as_neighbour("PUT", Careless::document(&[NAME], &wall())).await;

    careless.record(NAME).await;

    assert!(careless.found().0 > 0);
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_comes_back_without_a_wall_is_found() {
    let careless = Careless::beside_another_cluster(&Value::Null).await;
    careless.withdraw().await;

    careless.ask_as_neighbour("PUT", Careless::document(&[NAME], &Value::Null)).await;

    assert!(careless.found().0 > 0);
    assert_eq!(
        careless.monitor.revived(&careless.world),
        [NAME.to_owned()].into(),
        "whose it was is known all the same"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_we_bring_back_ourselves_or_that_nobody_read_is_found() {
    let ours = Careless::beside_another_cluster(&wall()).await;
    ours.withdraw().await;
    ours.rules_with(&[NAME], &wall()).await;
    let unread = Careless::beside_another_cluster(&wall()).await;
    unread.withdraw().await;
    unread.ask_as_neighbour("GET", Value::Null).await;

    unread.ask_as_neighbour("PUT", Careless::document(&[NAME], &wall())).await;

    assert!(ours.found().0 > 0 && unread.found().0 > 0);
}
