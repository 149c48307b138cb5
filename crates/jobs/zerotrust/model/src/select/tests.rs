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
        .and_tenant("elsewhere/prod", json!({ "allowedNamespaces": ["default"] }))
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
    assert_eq!(tenant_of(&shelf(json!(["team-a"])), &named), "NamespaceNotAllowed");
    assert_eq!(tenant_of(&shelf(json!([])), &named), "NamespaceNotAllowed");
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
        .and_tenant("shared/prod", json!({ "allowedNamespaces": ["*"] }))
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
    let without =
        Shelf { tenants: shelf.tenants.clone(), templates: shelf.templates[..2].to_vec(), ..Shelf::default() };
    assert_eq!(found(&without, "web"), format!("{OPERATOR}/web"));
    let base = without.select(&route(&[("tenant", "shared/prod")])).unwrap().base.unwrap();
    assert_eq!(base.key().to_string(), format!("{OPERATOR}/base-prod"));
}

#[test]
fn a_blank_annotation_names_nothing() {
    let shelf = Shelf::with_tenant(json!({}));

    assert_eq!(tenant_of(&shelf, &[("tenant", " "), ("template", "")]), "default/prod");
}

/// Whether what took part is still there, once the shelf is as it is.
fn after(shelf: &Shelf, annotations: &[(&str, &str)], took_part: &[&str]) -> Result<(), portolan_core::Problem> {
    let took_part = crate::names::keys(&took_part.join(","));
    let route = route(annotations);
    crate::still_there(&route, &shelf.select(&route)?, &took_part, shelf, OPERATOR)
}

#[test]
fn finding_2_a_template_that_took_part_and_is_gone_is_missed() {
    let shelf = Shelf::with_tenant(json!({}));
    let problem = after(&shelf, &[], &["default/base-prod"]).unwrap_err();

    assert_eq!((problem.class, problem.reason), (portolan_core::Class::Waiting, "TemplateNotFound"));
    assert!(problem.message.contains("default/base-prod") && problem.message.contains("none"), "{}", problem.message);
    assert_eq!(reason(after(&shelf, &[], &["default/default"])), "TemplateNotFound");
    assert_eq!(reason(after(&shelf, &[], &[])), "fine");
    for back in ["default/base-prod", "default/default"] {
        let shelf = Shelf::with_tenant(json!({})).and_template(back, json!({}));
        assert_eq!(reason(after(&shelf, &[], &[back])), "fine", "an empty one will do");
    }
}

#[test]
fn finding_2_a_weaker_template_elsewhere_does_not_take_the_place_of_one_that_is_gone() {
    for name in ["default", "base-prod", "web"] {
        let named = [("template", name)];
        let annotations = if name == "web" { &named[..] } else { &[] };
        let farther = format!("{OPERATOR}/{name}");
        let shelf = Shelf::with_tenant(json!({})).and_template(&farther, json!({}));
        assert_eq!(reason(after(&shelf, annotations, &[&format!("default/{name}")])), "TemplateNotFound", "{name}");
        let nearer = shelf.and_template(&format!("default/{name}"), json!({}));
        assert_eq!(reason(after(&nearer, annotations, &[&farther])), "fine", "{name}: somebody made a nearer one");
    }
}

#[test]
fn finding_2_what_users_change_themselves_is_not_missed() {
    let shelf = Shelf::with_tenant(json!({}))
        .and_tenant("default/dev", json!({}))
        .and_tenant("shared/prod", json!({}))
        .and_template("default/web", json!({}));
    let prod = ("tenant", "prod");

    assert_eq!(reason(after(&shelf, &[("template", "web"), prod], &["default/default"])), "fine", "another template");
    assert_eq!(reason(after(&shelf, &[prod], &["default/web2"])), "fine", "it names none any more");
    assert_eq!(reason(after(&shelf, &[("tenant", "dev")], &["default/base-prod"])), "fine", "another tenant");
    let moved = [("tenant", "default/prod")];
    assert_eq!(reason(after(&shelf, &moved, &["shared/base-prod"])), "fine", "a tenant of the same name elsewhere");
    assert_eq!(reason(after(&shelf, &[prod], &["default/base-prod"])), "TemplateNotFound");
}

#[test]
fn finding_2_a_route_may_say_that_it_wants_no_template() {
    let shelf = Shelf::with_tenant(json!({}))
        .and_template("default/default", json!({}))
        .and_template("default/base-prod", json!({}));
    let none = [("template", "none")];

    let selected = shelf.select(&route(&none)).unwrap();
    assert!(selected.template.is_none() && selected.base.is_none());
    assert_eq!(reason(after(&Shelf::with_tenant(json!({})), &none, &["default/base-prod", "default/default"])), "fine");

    let of_that_name = shelf.and_template("default/none", json!({}));
    assert_eq!(of_that_name.select(&route(&none)).unwrap().templates().len(), 2, "one of that name is one");
    assert_eq!(reason(after(&Shelf::with_tenant(json!({})), &none, &["default/none"])), "TemplateNotFound");
}

#[test]
fn finding_2_a_template_that_cannot_be_read_may_be_one() {
    for broken in ["default/default", "default/base-prod", "cloudflare-zero-trust/base-prod"] {
        let shelf = Shelf { broken: vec![broken.to_owned()], ..Shelf::with_tenant(json!({})) };
        let problem = shelf.select(&route(&[("tenant", "prod")])).unwrap_err();
        assert_eq!(problem.reason, "TemplateNotFound");
        assert!(problem.message.contains(broken), "{}", problem.message);
        assert_eq!(reason(shelf.select(&route(&[("tenant", "prod"), ("template", "none")]))), "fine");
    }
    let farther = Shelf { broken: vec![format!("{OPERATOR}/default")], ..Shelf::with_tenant(json!({})) };
    assert_eq!(reason(farther.and_template("default/default", json!({})).select(&route(&[]))), "fine", "not asked for");
}
