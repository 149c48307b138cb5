use serde_json::json;

use crate::fixture::{OPERATOR, Shelf, reason, route};

fn tenant_of(shelf: &Shelf, annotations: &[(&str, &str)]) -> String {
    shelf
        .select(&route(annotations))
        .map_or_else(|problem| problem.reason.to_owned(), |found| found.tenant.key().to_string())
}

#[test]
fn the_only_tenant_of_the_namespace_needs_no_name() {
    let shelf = Shelf::with_tenant(json!({})).and_tenant("other/x", json!({}));

    assert_eq!(tenant_of(&shelf, &[]), "default/prod");
}

#[test]
fn scenario_18_a_tenant_that_is_missing_is_waited_for() {
    let problem = Shelf::default().select(&route(&[])).unwrap_err();
    let named = Shelf::default().select(&route(&[("tenant", "prod")])).unwrap_err();

    assert_eq!((problem.class, problem.reason), (portolan_core::Class::Waiting, "TenantNotFound"));
    assert!(named.message.contains("default/prod or cloudflare-zero-trust/prod"), "{}", named.message);
}

#[test]
fn scenario_19_of_two_tenants_one_has_to_be_named() {
    let shelf = Shelf::with_tenant(json!({})).and_tenant("default/dev", json!({}));

    assert_eq!(tenant_of(&shelf, &[]), "TenantAmbiguous");
    assert_eq!(tenant_of(&shelf, &[("tenant", "dev")]), "default/dev");
    assert!(shelf.select(&route(&[])).unwrap_err().message.contains("name dev or prod"));
}

#[test]
fn scenario_20_of_tenants_with_one_name_the_routes_own_namespace_wins_then_the_operators() {
    let shelf = Shelf::default()
        .and_tenant("elsewhere/prod", json!({}))
        .and_tenant(&format!("{OPERATOR}/prod"), json!({}))
        .and_tenant("default/prod", json!({}));
    let without = Shelf { tenants: shelf.tenants[..2].to_vec(), ..Shelf::default() };

    assert_eq!(tenant_of(&shelf, &[("tenant", "prod")]), "default/prod");
    assert_eq!(tenant_of(&without, &[("tenant", "prod")]), format!("{OPERATOR}/prod"));
    assert_eq!(tenant_of(&shelf, &[("tenant", "elsewhere/prod")]), "elsewhere/prod");
    assert_eq!(tenant_of(&shelf, &[("tenant", "elsewhere/dev")]), "TenantNotFound");
}

#[test]
fn a_template_can_name_the_tenant_but_the_route_wins() {
    let shelf = Shelf::with_tenant(json!({}))
        .and_tenant("default/dev", json!({}))
        .and_template("default/web", json!({ "tenantRef": "dev" }))
        .and_template("default/default", json!({ "tenantRef": "default/prod" }));

    assert_eq!(tenant_of(&shelf, &[("template", "web")]), "default/dev");
    assert_eq!(tenant_of(&shelf, &[("template", "web"), ("tenant", "prod")]), "default/prod");
    assert_eq!(tenant_of(&shelf, &[]), "default/prod");
}

#[test]
fn a_tenant_may_choose_the_namespaces_that_it_serves() {
    let shelf = |allowed: serde_json::Value| {
        Shelf::default().and_tenant("shared/prod", json!({ "allowedNamespaces": allowed }))
    };
    let named = [("tenant", "shared/prod")];

    assert_eq!(tenant_of(&shelf(json!(["default"])), &named), "shared/prod");
    assert_eq!(tenant_of(&shelf(json!(["team-a"])), &named), "TenantNotFound");
    assert_eq!(tenant_of(&shelf(json!([])), &named), "TenantNotFound");
    assert_eq!(tenant_of(&Shelf::with_tenant(json!({ "allowedNamespaces": [] })), &[]), "default/prod");
}

#[test]
fn scenario_11_the_default_template_is_used_where_there_is_one() {
    let shelf = Shelf::with_tenant(json!({}));
    assert!(shelf.select(&route(&[])).unwrap().template.is_none());

    let shelf = shelf.and_template("default/default", json!({}));
    assert_eq!(shelf.select(&route(&[])).unwrap().template.unwrap().key().name, "default");
}

#[test]
fn scenario_17_a_template_that_is_named_must_be_there() {
    let shelf = Shelf::with_tenant(json!({})).and_template("default/default", json!({}));

    let problem = shelf.select(&route(&[("template", "secure")])).unwrap_err();

    assert_eq!((problem.class, problem.reason), (portolan_core::Class::Waiting, "TemplateNotFound"));
    assert!(problem.message.contains("secure"));
    let tenant = crate::select_tenant(&route(&[("template", "secure")]), &shelf, OPERATOR).unwrap();
    assert_eq!(tenant.key().to_string(), "default/prod");
    assert_eq!(
        reason(shelf.and_template("default/secure", json!({})).select(&route(&[("template", "secure")]))),
        "fine"
    );
}

#[test]
fn templates_are_looked_for_with_the_route_then_the_tenant_then_the_operator() {
    let shelf = Shelf::default()
        .and_tenant("shared/prod", json!({}))
        .and_template(&format!("{OPERATOR}/web"), json!({}))
        .and_template(&format!("{OPERATOR}/base-prod"), json!({}))
        .and_template("shared/web", json!({}))
        .and_template("shared/only", json!({}))
        .and_template("default/web", json!({}));
    let found = |shelf: &Shelf, name: &str| {
        shelf
            .select(&route(&[("tenant", "shared/prod"), ("template", name)]))
            .unwrap()
            .template
            .unwrap()
            .key()
            .to_string()
    };

    assert_eq!(found(&shelf, "web"), "default/web");
    assert_eq!(found(&shelf, "only"), "shared/only");
    let without = Shelf { tenants: shelf.tenants.clone(), templates: shelf.templates[..2].to_vec() };
    assert_eq!(found(&without, "web"), format!("{OPERATOR}/web"));
    let base = without.select(&route(&[("tenant", "shared/prod")])).unwrap().base.unwrap();
    assert_eq!(base.key().to_string(), format!("{OPERATOR}/base-prod"));
}

#[test]
fn a_blank_annotation_names_nothing() {
    let shelf = Shelf::with_tenant(json!({}));

    assert_eq!(tenant_of(&shelf, &[("tenant", " "), ("template", "")]), "default/prod");
}
