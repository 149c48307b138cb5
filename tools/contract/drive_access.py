"""Drives Access and the redirects of a zone: apps, policies, groups, service tokens, identity providers, rulesets."""

import datetime

import cloudflare
from cloudflare.types.rulesets import PhaseGetResponse

NOBODY = "11111111-1111-4111-a111-111111111111"
EMAIL = {"email": {"email": "me@example.com"}}
EVERYONE = {"everyone": {}}


def every_rule(provider, mails, addresses):
    """Every kind of rule; what they name in the account exists."""
    return [
        EMAIL, EVERYONE, {"email_domain": {"domain": "example.com"}}, {"ip": {"ip": "192.0.2.0/24"}},
        {"geo": {"country_code": "NL"}}, {"any_valid_service_token": {}}, {"certificate": {}},
        {"common_name": {"common_name": "robot"}}, {"auth_method": {"auth_method": "mfa"}},
        {"email_list": {"id": mails}}, {"ip_list": {"id": addresses}},
        {"device_posture": {"integration_uid": NOBODY}},
        {"external_evaluation": {"evaluate_url": "https://example.com/e", "keys_url": "https://example.com/k"}},
        {"azureAD": {"id": NOBODY, "identity_provider_id": provider}},
        {"github-organization": {"identity_provider_id": provider, "name": "org", "team": "ops"}},
        {"gsuite": {"email": "ops@example.com", "identity_provider_id": provider}},
        {"okta": {"identity_provider_id": provider, "name": "ops"}},
        {"saml": {"attribute_name": "group", "attribute_value": "ops", "identity_provider_id": provider}},
        {"oidc": {"claim_name": "group", "claim_value": "ops", "identity_provider_id": provider}},
        {"linked_app_token": {"app_uid": NOBODY}}, {"user_risk_score": {"user_risk_score": ["low"]}},
        {"auth_context": {"id": "c1", "ac_id": NOBODY, "identity_provider_id": provider}},
        {"cloudflare_account_member": {"account_id": "0" * 32}},
    ]


SETTINGS = dict(
    name="app", type="self_hosted", session_duration="8h", auto_redirect_to_identity=False, enable_binding_cookie=True,
    http_only_cookie_attribute=True, same_site_cookie_attribute="lax", logo_url="https://example.com/logo.png",
    skip_interstitial=True, app_launcher_visible=False, service_auth_401_redirect=True, custom_deny_message="no",
    custom_deny_url="https://example.com/no", custom_non_identity_deny_url="https://example.com/no", allow_iframe=True,
    options_preflight_bypass=False, path_cookie_attribute=False, allow_authenticate_via_warp=False,
)

PHASE = "http_request_dynamic_redirect"
REDIRECT = dict(
    action="redirect",
    expression='(not ssl and http.host eq "app.example.com")',
    description="to https",
    action_parameters={"from_value": {
        "target_url": {"expression": 'concat("https://", http.host, http.request.uri.path)'},
        "status_code": 301, "preserve_query_string": True,
    }},
)


def drive_access(drive, api, account):
    access = api.zero_trust.access
    provider = identity_providers(drive, api, account)
    group = groups(drive, api, account, provider)
    token = service_tokens(drive, access, account)
    policy = reusable_policies(drive, access, account, group, token)
    apps(drive, access, account, provider, token, policy)
    in_use(drive, access, account, group, token)


def identity_providers(drive, api, account):
    providers = api.zero_trust.identity_providers
    made = drive.model(providers.create(account_id=account, name="pin", type="onetimepin", config={}), "identity provider")
    drive.equal((made.name, made.type), ("pin", "onetimepin"), "identity provider")
    sso = providers.create(account_id=account, name="sso", type="oidc", config={
        "client_id": "c", "client_secret": "s", "auth_url": "https://sso.example.com/a", "scopes": ["email"]})
    drive.equal(len(list(providers.list(account_id=account))), 2, "identity providers")
    drive.equal(providers.get(identity_provider_id=sso.id, account_id=account).name, "sso", "identity provider read again")
    renamed = providers.update(identity_provider_id=sso.id, account_id=account, name="sso2", type="oidc", config={"client_id": "d"})
    drive.equal(renamed.name, "sso2", "renamed identity provider")
    drive.refused(lambda: providers.create(account_id=account, name="pin", type="onetimepin", config={}),
                  cloudflare.ConflictError, 409, [11009], "identity provider that exists")
    drive.equal(providers.delete(identity_provider_id=sso.id, account_id=account).id, sso.id, "deleted identity provider")
    drive.refused(lambda: providers.get(identity_provider_id=sso.id, account_id=account), cloudflare.NotFoundError, 404,
                  [12135], "identity provider that is gone")
    return made


def made_list(drive, account, name, kind):
    """The id of a list of addresses, made behind the API's back: no request of ours is about them."""
    put = {"action": "put", "collection": "gateway_lists", "scope": account, "object": {"name": name, "type": kind}}
    return drive.admin("POST", "/admin/objects", put)["id"]


def groups(drive, api, account, provider):
    access = api.zero_trust.access
    mails, addresses = made_list(drive, account, "mails", "EMAIL"), made_list(drive, account, "addresses", "IP")
    rules = every_rule(provider.id, mails, addresses)
    made = drive.model(access.groups.create(account_id=account, name="everything", include=rules), "group")
    drive.equal(len(made.include), len(rules), "rules of a group")
    drive.equal(len({type(rule).__name__ for rule in made.include}), len(rules), "each rule has a model of its own")
    for number in range(5):
        access.groups.create(account_id=account, name=f"group{number}", include=[EMAIL], exclude=[EVERYONE], require=[EMAIL])
    drive.equal(len(list(access.groups.list(account_id=account, per_page=2))), 6, "groups over three pages")
    found = access.groups.list(account_id=account, name="group3").result
    drive.equal([group.name for group in found], ["group3"], "group by name")
    changed = access.groups.update(group_id=found[0].id, account_id=account, name="admins", include=[EMAIL])
    drive.equal((changed.id, changed.name, changed.exclude), (found[0].id, "admins", []), "changed group")
    drive.model(access.groups.get(group_id=changed.id, account_id=account), "group read again")
    bad, create = cloudflare.BadRequestError, access.groups.create
    drive.refused(lambda: create(account_id=account, name="g", include=[]), bad, 400, [12130], "group without a rule")
    drive.refused(lambda: create(account_id=account, name="g", include=[{"group": {"id": NOBODY}}]), bad, 400, [11020],
                  "group of an unknown group")
    drive.refused(lambda: create(account_id=account, name="g", include=[{"email": {"email": "me"}}]), bad, 400, [12130],
                  "group with a bad address")
    drive.equal(access.groups.delete(group_id=made.id, account_id=account).id, made.id, "deleted group")
    drive.refused(lambda: access.groups.get(group_id=made.id, account_id=account), cloudflare.NotFoundError, 404, [12135],
                  "group that is gone")
    return changed


def service_tokens(drive, access, account):
    tokens = access.service_tokens
    made = drive.model(tokens.create(account_id=account, name="robot", duration="8760h"), "service token")
    drive.equal((made.name, made.duration, made.enabled), ("robot", "8760h", True), "new service token")
    drive.check(bool(made.client_secret) and made.client_id.endswith(".access"), "a new token shows its secret")
    for number in range(5):
        tokens.create(account_id=account, name=f"more{number}")
    listed = list(tokens.list(account_id=account, per_page=2))
    drive.equal(len(listed), 6, "service tokens over three pages")
    drive.check(not hasattr(listed[0], "client_secret"), "lists show no secrets")
    drive.equal([token.id for token in tokens.list(account_id=account, name="robot").result], [made.id], "token by name")
    read = drive.model(tokens.get(service_token_id=made.id, account_id=account), "service token read again")
    lasts = read.expires_at - datetime.datetime.now(datetime.timezone.utc)
    drive.check(datetime.timedelta(days=364) < lasts < datetime.timedelta(days=366), "a token lasts a year")
    changed = tokens.update(service_token_id=made.id, account_id=account, name="renamed", duration="24h")
    drive.equal((changed.name, changed.client_id), ("renamed", made.client_id), "changed service token")
    until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    rotated = drive.model(tokens.rotate(service_token_id=made.id, account_id=account,
                                        previous_client_secret_expires_at=until), "rotated service token")
    drive.check(rotated.client_secret not in (None, made.client_secret), "a rotated token has another secret")
    drive.equal(tokens.rotate(service_token_id=made.id, account_id=account).client_id, made.client_id, "rotated again")
    refreshed = drive.model(tokens.refresh(service_token_id=made.id, account_id=account), "refreshed service token")
    drive.check(refreshed.expires_at >= changed.expires_at, "a refreshed token lasts longer")
    drive.refused(lambda: tokens.create(account_id=account, name="t", duration="1y"), cloudflare.BadRequestError, 400,
                  [12130], "token with a bad duration")
    drive.equal(tokens.delete(service_token_id=listed[1].id, account_id=account).id, listed[1].id, "deleted service token")
    drive.refused(lambda: tokens.rotate(service_token_id=listed[1].id, account_id=account), cloudflare.NotFoundError, 404,
                  [12135], "service token that is gone")
    return made


def reusable_policies(drive, access, account, group, token):
    policies = access.policies
    made = drive.model(policies.create(account_id=account, name="admins", decision="allow",
                                       include=[{"group": {"id": group.id}}], session_duration="1h"), "reusable policy")
    drive.equal((made.name, made.decision, made.reusable, made.app_count), ("admins", "allow", True, 0), "reusable policy")
    for number in range(4):
        policies.create(account_id=account, name=f"policy{number}", decision="deny", include=[EVERYONE])
    listed = list(policies.list(account_id=account, per_page=2))
    drive.equal(len(listed), 5, "reusable policies over three pages")
    changed = policies.update(policy_id=listed[1].id, account_id=account, name="robots", decision="non_identity",
                              include=[{"service_token": {"token_id": token.id}}], require=[{"ip": {"ip": "192.0.2.1"}}])
    drive.equal((changed.name, changed.decision, len(changed.require)), ("robots", "non_identity", 1), "changed policy")
    drive.equal(policies.get(policy_id=changed.id, account_id=account).name, "robots", "reusable policy read again")
    bad = cloudflare.BadRequestError
    drive.refused(lambda: policies.create(account_id=account, name="p", decision="allow",
                  include=[{"service_token": {"token_id": NOBODY}}]), bad, 400, [12130], "policy with an unknown token")
    drive.equal(policies.delete(policy_id=listed[2].id, account_id=account).id, listed[2].id, "deleted policy")
    drive.refused(lambda: policies.get(policy_id=listed[2].id, account_id=account), cloudflare.NotFoundError, 404, [12135],
                  "reusable policy that is gone")
    return made


def apps(drive, access, account, provider, token, policy):
    applications = access.applications
    # The SDK's type of an app's own policies names neither decision nor rules; its texts do.
    own = [
        dict(name="allow", decision="allow", include=[EMAIL], precedence=1),
        dict(name="service", decision="non_identity", include=[{"service_token": {"token_id": token.id}}], precedence=2),
    ]
    made = drive.model(applications.create(account_id=account, domain="app.example.com", policies=own,
                                           allowed_idps=[provider.id], **SETTINGS), "app")
    for name, wanted in SETTINGS.items():
        drive.equal(getattr(made, name), wanted, f"app.{name}")
    drive.equal((made.domain, made.self_hosted_domains), ("app.example.com", ["app.example.com"]), "app's domains")
    drive.equal([(entry.name, entry.decision, entry.precedence) for entry in made.policies],
                [("allow", "allow", 1), ("service", "non_identity", 2)], "app's own policies")
    drive.equal(made.policies[0].include[0].email.email, "me@example.com", "rule of an app's own policy")
    drive.check(len(made.aud) == 64, "an app has an audience")
    for number in range(6):
        applications.create(account_id=account, domain=f"app{number}.example.com", name="more", type="self_hosted")
    drive.equal(len(list(applications.list(account_id=account, per_page=3))), 7, "apps over three pages")
    for query, count in [(dict(domain="app.example.com", exact=True), 1), (dict(domain="example.com"), 7),
                         (dict(name="more", exact=True), 6), (dict(aud=made.aud), 1), (dict(search="app3"), 1)]:
        drive.equal(len(applications.list(account_id=account, **query).result), count, f"apps by {query}")
    drive.model(applications.get(app_id=made.id, account_id=account), "app read again")
    put = applications.update(app_id=made.id, account_id=account, domain="moved.example.com", name="app", type="self_hosted",
                              policies=[dict(own[0], id=made.policies[0].id)])
    drive.equal((put.id, put.domain, put.policies[0].id), (made.id, "moved.example.com", made.policies[0].id), "moved app")
    linked = applications.update(app_id=made.id, account_id=account, domain="moved.example.com", type="self_hosted",
                                 policies=[{"id": policy.id, "precedence": 1}],
                                 destinations=[{"type": "public", "uri": "moved.example.com"},
                                               {"type": "public", "uri": "moved.example.com/api"}])
    drive.equal([entry.name for entry in linked.policies], ["admins"], "linked policy")
    drive.equal(len(drive.model(linked, "linked app").destinations), 2, "destinations")
    drive.equal(access.policies.get(policy_id=policy.id, account_id=account).app_count, 1, "apps of a policy")
    refused_apps(drive, access, account, own[0], policy)
    app_policies(drive, access, account)


def refused_apps(drive, access, account, own, policy):
    bad, create = cloudflare.BadRequestError, access.applications.create
    basics = dict(account_id=account, type="self_hosted", name="x")
    drive.refused(lambda: create(domain="moved.example.com", **basics), cloudflare.ConflictError, 409, [11010],
                  "app for a domain that has one")
    drive.refused(lambda: create(domain="x.example.com", policies=[own, {"id": policy.id, "precedence": 2}], **basics), bad,
                  400, [12130], "linked and own policies in one app")
    drive.refused(lambda: create(domain="x.example.com", policies=[{"id": NOBODY}], **basics), bad, 400, [12130],
                  "app with an unknown policy")
    drive.refused(lambda: create(domain="https://x.example.com", **basics), bad, 400, [12130], "app for a URL")
    drive.refused(lambda: create(domain="x.example.com", session_duration="1", **basics), bad, 400, [12130],
                  "app with a bad duration")
    drive.refused(lambda: access.policies.delete(policy_id=policy.id, account_id=account), bad, 400, [12130],
                  "delete of a policy that an app uses")
    drive.refused(lambda: access.applications.get(app_id=NOBODY, account_id=account), cloudflare.NotFoundError, 404, [11021],
                  "unknown app")
    drive.admin("POST", "/admin/quotas", {"applications": 7, "service_tokens": 5})
    drive.refused(lambda: create(domain="x.example.com", **basics), bad, 400, [12130], "more apps than allowed")
    drive.refused(lambda: access.service_tokens.create(account_id=account, name="x"), bad, 400, [12130],
                  "more tokens than allowed")
    drive.admin("POST", "/admin/quotas", {})


def app_policies(drive, access, account):
    policies = access.applications.policies
    app = access.applications.create(account_id=account, domain="own.example.com", type="self_hosted", name="own")
    place = dict(app_id=app.id, account_id=account)
    made = drive.model(policies.create(name="first", decision="allow", include=[EMAIL], precedence=1, **place), "app policy")
    drive.equal((made.name, made.decision, made.precedence), ("first", "allow", 1), "new app policy")
    second = policies.create(name="second", decision="bypass", include=[EVERYONE], **place)
    drive.equal(second.precedence, 2, "the next precedence")
    drive.equal([entry.name for entry in policies.list(**place)], ["first", "second"], "app policies")
    changed = policies.update(policy_id=second.id, name="denied", decision="deny", include=[EVERYONE], precedence=3, **place)
    drive.equal((changed.id, changed.name, changed.precedence), (second.id, "denied", 3), "changed app policy")
    drive.model(policies.get(policy_id=made.id, **place), "app policy read again")
    drive.refused(lambda: policies.create(name="x", decision="allow", include=[EMAIL], precedence=3, **place),
                  cloudflare.BadRequestError, 400, [12130], "a precedence twice")
    drive.equal(policies.delete(policy_id=made.id, **place).id, made.id, "deleted app policy")
    drive.refused(lambda: policies.get(policy_id=made.id, **place), cloudflare.NotFoundError, 404, [12135],
                  "app policy that is gone")
    drive.equal(access.applications.delete(app_id=app.id, account_id=account).id, app.id, "deleted app")


def in_use(drive, access, account, group, token):
    bad = cloudflare.BadRequestError
    drive.refused(lambda: access.groups.delete(group_id=group.id, account_id=account), bad, 400, [12130], "group in use")
    drive.refused(lambda: access.service_tokens.delete(service_token_id=token.id, account_id=account), bad, 400, [12139],
                  "token in use")


def ruleset(answer):
    """Writes are answered with `Union[Ruleset, object]`, of which the SDK takes the object: give it its model."""
    return PhaseGetResponse.model_validate(answer)


def drive_redirects(drive, api, zone):
    rulesets, missing = api.rulesets, cloudflare.NotFoundError
    drive.refused(lambda: rulesets.phases.get(ruleset_phase=PHASE, zone_id=zone), missing, 404, [10003], "no entrypoint yet")
    made = drive.model(ruleset(rulesets.phases.update(ruleset_phase=PHASE, zone_id=zone, rules=[REDIRECT])), "entrypoint")
    drive.equal((made.kind, made.phase, made.version), ("zone", PHASE, "1"), "new entrypoint")
    rule = made.rules[0]
    drive.equal((rule.action, rule.enabled, rule.description), ("redirect", True, "to https"), "redirect")
    drive.equal(rule.action_parameters.from_value.status_code, 301, "redirect's status")
    drive.equal([found.id for found in rulesets.list(zone_id=zone)], [made.id], "rulesets of the zone")
    place = dict(ruleset_id=made.id, zone_id=zone)
    second = dict(REDIRECT, description="second")
    two = drive.model(ruleset(rulesets.rules.create(**place, **second, position={"index": 1})), "ruleset")
    drive.equal([entry.description for entry in two.rules], ["second", "to https"], "a rule at a place")
    edited = ruleset(rulesets.rules.edit(rule_id=two.rules[0].id, enabled=False, **place))
    drive.equal([entry.enabled for entry in edited.rules], [False, True], "edited rule")
    left = ruleset(rulesets.rules.delete(rule_id=two.rules[0].id, **place))
    drive.equal([entry.id for entry in left.rules], [rule.id], "rules after a delete")
    drive.equal(drive.model(rulesets.phases.get(ruleset_phase=PHASE, zone_id=zone), "entrypoint").version, "4", "version")
    drive.model(rulesets.get(**place), "ruleset read again")
    drive.refused(lambda: rulesets.rules.create(**place, **dict(REDIRECT, expression="(")), cloudflare.BadRequestError, 400,
                  [20127], "rule without an expression")
    drive.refused(lambda: rulesets.rules.delete(rule_id="0" * 32, **place), missing, 404, [10003], "unknown rule")
    rulesets.delete(**place)
    drive.refused(lambda: rulesets.get(**place), missing, 404, [10003], "ruleset that is gone")
    posted = rulesets.create(zone_id=zone, kind="zone", phase=PHASE, name="ours", rules=[])
    again = drive.model(ruleset(posted), "ruleset made by POST")
    drive.equal((again.name, list(again.rules)), ("ours", []), "ruleset made by POST")
    full = drive.model(ruleset(rulesets.update(ruleset_id=again.id, zone_id=zone, rules=[REDIRECT])), "replaced ruleset")
    drive.equal(len(full.rules), 1, "replaced ruleset")
