//! A namespace that nobody trusts tries to use what is others': their tokens, zones, tunnels, names, Secrets and Services,
//! and what protects the cluster. Each try is refused with a reason, and nothing is written to Cloudflare for it.

use portolan_testkit_suites::manifests::{CANARY, ZONE_ID, namespace};
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::manifests::{PREFIX, in_namespace, load_balancer, reference_grant};
use portolan_testkit_suites::zerotrust::{self as z, ACCOUNT, RouteManifest, template, tenant, token_secret};
use portolan_testkit_suites::{World, tell};
use serde_json::{Value, json};

use super::publish;

const OTHERS_TUNNEL: &str = "22222222-2222-3333-4444-555555555555";
const API_SERVER: &str = "127.78.0.1";

/// One try: what is applied, and the reason that must answer it. The route is the last object.
struct Attempt {
    what: &'static str,
    objects: Vec<Value>,
    reason: &'static str,
}

fn attempt(what: &'static str, objects: impl IntoIterator<Item = Value>, reason: &'static str) -> Attempt {
    Attempt { what, objects: objects.into_iter().collect(), reason }
}

/// A route of the untrusted namespace.
fn route(hostname: &str) -> RouteManifest {
    RouteManifest::to("try", hostname).within("sandbox")
}

/// One that uses the tenant that serves the namespace within limits.
fn limited() -> RouteManifest {
    route("try.sandbox.example.com").with("tenant", "shared/limited").allowing("me@example.com")
}

/// One that uses the tenant that serves all namespaces.
fn everybodys(hostname: &str) -> RouteManifest {
    route(hostname).with("tenant", "everybody")
}

fn to(origin: &str) -> Value {
    limited().with("origin.url", origin).into()
}

fn own_template(name: &str, spec: Value) -> Value {
    in_namespace(template(name, spec), "sandbox")
}

fn own_tenant(secret: &str) -> Value {
    let mut own = in_namespace(tenant("own"), "sandbox");
    own["spec"]["credentialRef"]["name"] = json!(secret);
    own
}

/// Tries with tenants that do not serve the namespace.
fn with_tenants_of_others() -> Vec<Attempt> {
    let hint = || json!({ "tenantRef": "default/prod" });
    let plain = || route("try.example.com");
    vec![
        attempt(
            "another namespace's tenant by annotation",
            [plain().with("tenant", "default/prod").into()],
            "NamespaceNotAllowed",
        ),
        attempt(
            "another namespace's tenant by an own template",
            [own_template("mine", hint()), plain().with("template", "mine").into()],
            "NamespaceNotAllowed",
        ),
        attempt(
            "another namespace's tenant by an own template for all",
            [own_template("default", hint()), plain().into()],
            "NamespaceNotAllowed",
        ),
        attempt(
            "another namespace's tenant by its bare name",
            [plain().with("tenant", "prod").into()],
            "TenantNotFound",
        ),
        attempt("no tenant at all", [plain().into()], "TenantNotFound"),
        attempt(
            "a tenant of its own with another's Secret by name",
            [own_tenant("cloudflare-api-token"), plain().into()],
            "CredentialNotFound",
        ),
    ]
}

/// Tries with names, tunnels and protection that are not its own.
fn with_names_of_others() -> Vec<Attempt> {
    let named = |hostname: &str| Value::from(limited().with("hostname", hostname));
    vec![
        attempt("a name that the tenant does not list", [named("login.example.com")], "HostnameNotAllowed"),
        attempt("a wildcard over everybody's names", [named("*.example.com")], "HostnameNotAllowed"),
        attempt("a name that only ends alike", [named("evilsandbox.example.com")], "HostnameNotAllowed"),
        attempt("the name above the listed ones", [named("sandbox.example.com")], "HostnameNotAllowed"),
        attempt("another's published name", [everybodys("shop.example.com").into()], "HostnameConflict"),
        attempt(
            "another's published name in another spelling",
            [everybodys("SHOP.Example.com.").into()],
            "HostnameConflict",
        ),
        attempt("somebody's record", [everybodys("www.example.com").into()], "DNSRecordConflict"),
        attempt(
            "somebody's record, taken over",
            [everybodys("www.example.com").with("adopt", "true").into()],
            "AdoptionNotAllowed",
        ),
        attempt(
            "somebody's application, taken over by its id",
            [limited().with("adopt", "true").with("accessAppId", "shops-application").into()],
            "AdoptionNotAllowed",
        ),
        attempt("another tunnel", [limited().with("tunnelId", OTHERS_TUNNEL).into()], "TunnelNotAllowed"),
        attempt(
            "a name without the protection that the tenant demands",
            [limited().with("access.enabled", "false").without("accessApp").into()],
            "AccessRequired",
        ),
        attempt(
            "the same by an own base template",
            [
                own_template("base-limited", json!({ "accessApplication": { "enabled": false } })),
                route("try.sandbox.example.com").with("tenant", "shared/limited").into(),
            ],
            "AccessRequired",
        ),
        attempt(
            "a token's Secret in the place of one that is there",
            [
                token_secret("sandbox", "try-cfzt-service-token", "precious"),
                limited().with("serviceToken", "true").into(),
            ],
            "SecretConflict",
        ),
    ]
}

/// Tries to lead to Services and machines of others.
fn to_services_of_others() -> Vec<Attempt> {
    let backend = |backend: Value| Value::from(limited().backend(backend));
    let dns =
        json!({ "dnsOnly": { "enabled": true, "ingressServiceRef": { "name": "ingress", "namespace": "default" } } });
    let mut several = Value::from(limited());
    several["spec"]["rules"] = json!([
        { "matches": [{ "path": { "type": "PathPrefix", "value": "/admin" } }], "backendRefs": [{ "name": "admin", "port": 9000 }] },
        { "backendRefs": [{ "name": "web", "port": 80, "weight": 90 }, { "name": "canary", "port": 80, "weight": 10 }] },
    ]);
    vec![
        attempt("a Service of another namespace", [to("http://db.default.svc:5432")], "RefNotPermitted"),
        attempt(
            "a dashboard of the cluster",
            [to("https://dashboard.kube-system.svc.cluster.local:443")],
            "RefNotPermitted",
        ),
        attempt("a pod behind another's Service", [to("http://db-0.db.default.svc:5432")], "RefNotPermitted"),
        attempt("a Service by its short name", [to("http://db.default:5432")], "OriginNotAllowed"),
        attempt("a Service beside cloudflared", [to("http://metrics:2000")], "OriginNotAllowed"),
        attempt("cloudflared's own machine", [to("http://localhost:2000")], "OriginNotAllowed"),
        attempt("an address of the network", [to("ssh://10.1.2.3:22")], "OriginNotAllowed"),
        attempt(
            "a machine elsewhere that looks like an own Service",
            [to("http://web.sandbox.svc.evil.example.net")],
            "OriginNotAllowed",
        ),
        attempt(
            "a backend of another namespace",
            [backend(json!({ "name": "db", "namespace": "default", "port": 5432 }))],
            "RefNotPermitted",
        ),
        attempt(
            "the same with a grant that it gives itself",
            [
                reference_grant("sandbox", "sandbox"),
                backend(json!({ "name": "db", "namespace": "default", "port": 5432 })),
            ],
            "RefNotPermitted",
        ),
        attempt(
            "an origin of others in an own base template",
            [
                own_template("base-limited", json!({ "originService": { "url": "http://db.default.svc:5432" } })),
                limited().into(),
            ],
            "RefNotPermitted",
        ),
        attempt(
            "the address of another namespace's Service",
            [own_template("lan", dns), everybodys("lan.example.com").with("template", "lan").into()],
            "RefNotPermitted",
        ),
        attempt(
            "a record to any address",
            [everybodys("lan.example.com").with("dnsOnly.enabled", "true").with("dnsIp", "203.0.113.66").into()],
            "OriginNotAllowed",
        ),
        attempt(
            "whatever stands behind a shared gateway",
            [everybodys("lan.example.com").with("origin.httpHostHeader", "grafana.internal").into()],
            "OriginNotAllowed",
        ),
        attempt("one rule's backend for all requests", [several], "RouteTooComplex"),
    ]
}

/// Tries to lead to what protects the cluster.
fn to_what_protects_the_cluster() -> Vec<Attempt> {
    let api = json!({ "originService": { "url": "https://kubernetes.default.svc" } });
    let mut all: Vec<Attempt> = [
        ("any address that a visitor names", "bastion"),
        ("the same by SOCKS", "socks-proxy"),
        ("a socket of the node", "unix:/var/run/docker.sock"),
        ("a socket of the node by TLS", "unix+tls:/run/containerd.sock"),
        ("the node's credentials", "http://169.254.169.254"),
        ("the same as one number", "http://2852039166"),
        ("the same in hexadecimal digits", "http://0xa9.0xfe.0xa9.0xfe"),
        ("the same in octal digits", "http://0251.0376.0251.0376"),
        ("the same as an IPv6 address", "http://[::ffff:a9fe:a9fe]:80"),
        ("the same by a pod's name", "http://169-254-169-254.sandbox.pod.cluster.local"),
        ("the same behind a user's name", "http://web.sandbox.svc@169.254.169.254"),
        ("a link-local machine", "http://[fe80::1%25eth0]:8080"),
        ("a cloud's metadata by name", "http://Metadata.Google.Internal."),
        ("the API server", "https://kubernetes.default.svc:443"),
        ("the API server by its whole name", "https://KUBERNETES.default.svc.cluster.local."),
        ("the API server by its address", "tcp://127.78.0.1:443"),
        ("the API server by its address as a number", "tcp://0x7f4e0001:443"),
    ]
    .into_iter()
    .map(|(what, origin)| attempt(what, [to(origin)], "OriginRefused"))
    .collect();
    all.push(attempt(
        "an origin that can be read in two ways",
        [to("http://web.sandbox.svc\\@169.254.169.254")],
        "OriginUnresolved",
    ));
    all.push(attempt(
        "the API server by an own template",
        [own_template("api", api), limited().with("template", "api").into()],
        "OriginRefused",
    ));
    all.push(attempt(
        "the API server as a backend",
        [limited().backend(json!({ "name": "kubernetes", "namespace": "default", "port": 443 })).into()],
        "OriginRefused",
    ));
    all
}

/// Others' world: a published, protected name, a record by hand, and tenants that serve the namespace within limits.
async fn world_of_others() -> World {
    let world = z::world().start().await;
    z::add_tunnel(&world, ACCOUNT, OTHERS_TUNNEL, "office");
    let record = json!({ "type": "CNAME", "name": "www.example.com", "content": "by-hand.example.net", "ttl": 1, "proxied": true });
    world.cloudflare.plant_in("dns_records", ZONE_ID, &record);
    world.cloudflare.keep_seeded();
    for name in ["sandbox", "shared"] {
        world.cluster.apply(&namespace(name)).await;
    }
    let mut limits = in_namespace(tenant("limited"), "shared");
    limits["spec"]["defaults"] = json!({ "sessionDuration": "1h" });
    limits["spec"]["allowedNamespaces"] = json!(["sandbox"]);
    limits["spec"]["allowedHostnames"] = json!(["*.sandbox.example.com"]);
    limits["spec"]["requireAccess"] = json!(true);
    let everybody = in_namespace(tenant("everybody"), z::OPERATOR_NAMESPACE);
    for (place, tenant) in [("shared", limits), (z::OPERATOR_NAMESPACE, everybody)] {
        world.cluster.apply(&token_secret(place, "cloudflare-api-token", CANARY)).await;
        world.cluster.apply(&tenant).await;
    }
    furnish_services(&world).await;
    publish(&world, RouteManifest::to("shop", "shop.example.com").allowing("owner@example.com").with("tenant", "prod"))
        .await;
    world.forget();
    world
}

async fn furnish_services(world: &World) {
    let api_server = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "kubernetes", "namespace": "default" },
        "spec": { "clusterIP": API_SERVER, "ports": [{ "name": "https", "port": 443, "protocol": "TCP" }] },
    });
    if world.cluster.get("Service/default/kubernetes").await.is_none() {
        world.cluster.apply(&api_server).await;
    }
    world.cluster.apply(&load_balancer("default", "ingress")).await;
    let address = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.168.7.3" }] } } });
    world.cluster.patch_status("Service/default/ingress", &address).await;
}

/// What is others' stands as it stood: protected, and open to its owner.
fn assert_unharmed(world: &World, what: &str) {
    let shop = world.name("shop.example.com");
    assert!(!shop.is_public() && shop.lets_in("owner@example.com") && !shop.lets_in("me@example.com"), "{what}");
    assert_eq!(world.writes(), [""; 0], "{what}: nothing is written to Cloudflare");
}

/// Tries one thing and takes it back. Answers what the route was told.
async fn refused(world: &World, attempt: &Attempt) -> Vec<String> {
    for object in &attempt.objects {
        world.cluster.apply(object).await;
    }
    world.settle().await;
    let told = world.cluster.told("HTTPRoute/sandbox/try").await;
    assert_unharmed(world, attempt.what);
    assert!(!world.name("try.sandbox.example.com").is_published(), "{}", attempt.what);
    assert!(world.tasks().await.iter().all(|task| task["status"]["phase"] == "Failed"), "{}", attempt.what);
    for object in attempt.objects.iter().rev() {
        world.cluster.delete(&portolan_testkit_suites::manifests::id(object)).await;
    }
    world.settle().await;
    assert_unharmed(world, attempt.what);
    told
}

#[tokio::test(start_paused = true)]
async fn finding_12_an_untrusted_namespace_gets_nothing_that_is_others() {
    let world = world_of_others().await;
    let attempts: Vec<Attempt> =
        [with_tenants_of_others(), with_names_of_others(), to_services_of_others(), to_what_protects_the_cluster()]
            .into_iter()
            .flatten()
            .collect();
    let mut answered = 0;
    let mut seen = 0;
    let mut open = Vec::new();
    for attempt in &attempts {
        let all = refused(&world, attempt).await;
        let (told, before) = (all[seen.min(all.len())..].to_vec(), all.len());
        seen = before;
        if told.iter().any(|event| event.starts_with(&format!("{}:", attempt.reason))) {
            answered += 1;
        } else {
            open.push(format!("{}: wanted {}, got {told:?}", attempt.what, attempt.reason));
        }
        assert!(told.iter().all(|event| !event.contains("default/shop")), "{}: {told:?}", attempt.what);
    }

    tell(&format!("untrusted: {answered} of {} attempts refused", attempts.len()));
    assert!(open.is_empty() && attempts.len() >= 30, "{open:#?}");
    publish(&world, limited().with("hostname", "mine.sandbox.example.com")).await;
    assert!(world.name("mine.sandbox.example.com").lets_in("me@example.com"), "what is its own it gets");
    world.assert_sound("untrusted").await;
}

#[tokio::test(start_paused = true)]
async fn ux_h6_a_developer_of_one_namespace_cannot_put_an_internal_service_on_the_internet() {
    let world = world_of_others().await;
    let elsewhere = |origin: &str| route("try.example.com").with("tenant", "default/prod").with("origin.url", origin);
    let mut attempts: Vec<Attempt> = [
        "http://kubernetes-dashboard.kube-system.svc:443",
        "http://169.254.169.254/",
        "unix:/var/run/docker.sock",
        "ssh://x:22",
        "hello_world",
        "http_status:200",
    ]
    .map(|origin| attempt("another namespace's tenant", [elsewhere(origin).into()], "NamespaceNotAllowed"))
    .into();
    let backend = json!({ "name": "secret-admin", "namespace": "kube-system", "port": 443 });
    attempts.push(attempt("a backend nobody granted", [limited().backend(backend).into()], "RefNotPermitted"));
    let open = limited().with("access.enabled", "false").without("accessApp");
    attempts.push(attempt("open where the tenant demands protection", [open.into()], "AccessRequired"));

    let mut seen = 0;
    for attempt in &attempts {
        let all = refused(&world, attempt).await;
        let told = all[seen.min(all.len())..].to_vec();
        seen = all.len();
        assert!(told.iter().any(|event| event.starts_with(attempt.reason)), "{}: {told:?}", attempt.what);
    }
}

#[tokio::test(start_paused = true)]
async fn finding_12_forged_results_labels_tasks_and_states_move_nothing() {
    let world = world_of_others().await;
    let app = world.name("shop.example.com").app()["id"].as_str().unwrap_or_default().to_owned();
    let record = world.name("shop.example.com").record()["id"].as_str().unwrap_or_default().to_owned();
    let task = json!({
        "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareTask",
        "metadata": { "name": "cfzt-default-shop", "namespace": "sandbox" },
        "spec": {
            "action": "delete", "hostname": "shop.example.com", "accountId": ACCOUNT,
            "httprouteRef": { "name": "shop", "namespace": "default" },
            "credentialSecretRef": { "name": "cloudflare-api-token", "namespace": "default", "key": "token" },
        },
    });
    let state = world.state_of("shop").await.expect("it is kept");
    let state = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "cfzt-sandbox-try", "namespace": "sandbox",
            "labels": state["metadata"]["labels"] },
        "data": state["data"],
    });
    let mut forged = Value::from(
        limited().with("accessAppId", &app).with("cnameRecordId", &record).with("hostnameRouteId", "shop.example.com"),
    );
    forged["metadata"]["finalizers"] = json!(["cfzt.cloudflare.com/cleanup"]);
    forged["metadata"]["labels"] =
        json!({ format!("{PREFIX}httproute-namespace"): "default", format!("{PREFIX}httproute-name"): "shop" });
    let elsewhere = own_tenant("../../default/secrets/cloudflare-api-token");
    assert!(world.cluster.try_apply(&elsewhere).await.is_err(), "a Secret's name is no path");
    for object in [task, state, forged] {
        world.cluster.apply(&object).await;
    }
    world.settle().await;
    assert!(world.name("try.sandbox.example.com").lets_in("me@example.com"), "its own name is published");
    assert_ne!(world.output("sandbox/try", "accessAppId").await.as_deref(), Some(app.as_str()));

    world.cluster.delete("HTTPRoute/sandbox/try").await;
    world.cluster.delete("ConfigMap/sandbox/cfzt-sandbox-try").await;
    world.cluster.delete("CloudflareTask/sandbox/cfzt-default-shop").await;
    world.settle().await;

    assert!(world.name("try.sandbox.example.com").is_gone());
    let shop = world.name("shop.example.com");
    assert!(!shop.is_public() && shop.lets_in("owner@example.com"));
    assert_eq!((shop.app()["id"].as_str(), shop.record()["id"].as_str()), (Some(app.as_str()), Some(record.as_str())));
}

#[tokio::test(start_paused = true)]
async fn finding_12_a_name_that_stood_before_stays_and_is_told() {
    let world = world_of_others().await;
    let route = route("old.example.com").with("tenant", "default/prod").allowing("me@example.com");
    let mut serving = tenant("prod");
    serving["spec"]["allowedNamespaces"] = json!(["sandbox"]);
    world.cluster.apply(&serving).await;
    publish(&world, route.clone()).await;
    assert!(world.name("old.example.com").lets_in("me@example.com"));
    world.forget();

    world.cluster.apply(&tenant("prod")).await;
    world.settle().await;
    world.crash().await;
    world.restart().await;
    world.settle().await;

    let name = world.name("old.example.com");
    assert!(name.lets_in("me@example.com") && !name.is_public(), "what stood stays, protected");
    let told = world.cluster.told("HTTPRoute/sandbox/try").await;
    assert!(told.iter().any(|event| event.starts_with("NamespaceNotAllowed") && event.contains("allowedNamespaces")));
    assert_eq!(world.writes(), [""; 0]);
    publish(&world, route.with("hostname", "new.example.com")).await;
    assert!(world.name("new.example.com").is_gone() && world.name("old.example.com").lets_in("me@example.com"));
    world.cluster.delete("HTTPRoute/sandbox/try").await;
    world.settle().await;
    assert!(world.name("old.example.com").is_gone(), "and can be taken down");
}

#[tokio::test(start_paused = true)]
async fn finding_37_statuses_name_nothing_of_other_namespaces() {
    let world = world_of_others().await;
    let shared = in_namespace(template("web", json!({ "accessApplication": { "enabled": true } })), "shared");
    world.cluster.apply(&shared).await;
    publish(&world, limited().with("template", "web").with("access.allowGroups", "NoSuchGroup")).await;

    for id in ["CloudflareZeroTrustTenant/shared/limited", "CloudflareZeroTrustTemplate/shared/web"] {
        let status = world.cluster.get(id).await.expect("it is there")["status"].to_string();
        assert!(!status.contains("sandbox"), "{id}: {status}");
        assert!(status.contains("1 route of other namespaces"), "{id}: {status}");
    }
    let template = world.cluster.get("CloudflareZeroTrustTemplate/shared/web").await.expect("it is there");
    assert_eq!(template["status"]["usedByCount"], 1);
    world.cluster.delete("CloudflareZeroTrustTenant/shared/limited").await;
    world.settle().await;
    let status =
        world.cluster.get("CloudflareZeroTrustTenant/shared/limited").await.unwrap_or_default()["status"].to_string();
    assert!(!status.contains("sandbox"), "{status}");
}

#[tokio::test(start_paused = true)]
async fn finding_12_a_route_that_may_not_have_a_name_keeps_nobody_from_it() {
    let world = world_of_others().await;
    publish(&world, limited().with("hostname", "login.example.com")).await;

    publish(
        &world,
        RouteManifest::to("login", "login.example.com").allowing("owner@example.com").with("tenant", "prod"),
    )
    .await;

    assert!(world.name("login.example.com").lets_in("owner@example.com"), "the older claim was refused");
}
