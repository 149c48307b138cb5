#!/usr/bin/env python3
"""Validates recorded requests against the request types of the official SDK.

usage: validate.py RECORDING…            every request must conform
       validate.py --planted RECORDING…  every request must be found to violate something

A recording is a file of JSON lines, or a folder of them (*.jsonl).

Unknown members, missing required members and wrong types are violations; so are requests that the SDK cannot make at
all. What is tolerated stands in exceptions.toml, each entry with a reason. Giving no request at all is a failure.
"""

import collections
import functools
import json
import pathlib
import re
import sys
import tomllib
import types
import typing
from datetime import date, datetime

import typing_extensions
from cloudflare._types import SequenceNotStr
from cloudflare._utils import PropertyInfo
from cloudflare.types import accounts, audit_logs, dns, rulesets, ssl, zones, zero_trust
from cloudflare.types.zero_trust import access, gateway, networks, tunnels
from cloudflare.types.zero_trust.access import application_create_params, application_update_params, applications
from cloudflare.types.zero_trust.networks import routes as network_routes
from cloudflare.types.zero_trust.tunnels import cloudflared

ACCOUNT = r"/accounts/(?P<account_id>[^/]+)"
ZONE = r"/zones/(?P<zone_id>[^/]+)"
TUNNEL = ACCOUNT + r"/cfd_tunnel/(?P<tunnel_id>[^/]+)"
ROUTE = ACCOUNT + r"/teamnet/routes"
APP = ACCOUNT + r"/access/apps/(?P<app_id>[^/]+)"
APP_POLICY = APP + r"/policies/(?P<policy_id>[^/]+)"
POLICY = ACCOUNT + r"/access/policies/(?P<policy_id>[^/]+)"
GROUP = ACCOUNT + r"/access/groups/(?P<group_id>[^/]+)"
SERVICE_TOKEN = ACCOUNT + r"/access/service_tokens/(?P<service_token_id>[^/]+)"
PROVIDER = ACCOUNT + r"/access/identity_providers/(?P<identity_provider_id>[^/]+)"
RULESET = ZONE + r"/rulesets/(?P<ruleset_id>[^/]+)"
ENTRYPOINT = ZONE + r"/rulesets/phases/(?P<ruleset_phase>[^/]+)/entrypoint"

# Method, path, type of the parameters; `None` where the SDK's method takes nothing but the path.
OPERATIONS = [
    ("GET", r"/user/tokens/verify", None),
    ("GET", ACCOUNT + r"/tokens/verify", None),
    ("GET", r"/accounts", accounts.AccountListParams),
    ("GET", ACCOUNT, None),
    ("GET", ACCOUNT + r"/audit_logs", audit_logs.AuditLogListParams),
    ("GET", r"/zones", zones.ZoneListParams),
    ("POST", r"/zones", zones.ZoneCreateParams),
    ("GET", ZONE, None),
    ("PATCH", ZONE, zones.ZoneEditParams),
    ("DELETE", ZONE, None),
    ("GET", ZONE + r"/dns_records", dns.RecordListParams),
    ("POST", ZONE + r"/dns_records", dns.RecordCreateParams),
    ("POST", ZONE + r"/dns_records/batch", dns.RecordBatchParams),
    ("GET", ZONE + r"/dns_records/(?P<dns_record_id>[^/]+)", dns.RecordGetParams),
    ("PUT", ZONE + r"/dns_records/(?P<dns_record_id>[^/]+)", dns.RecordUpdateParams),
    ("PATCH", ZONE + r"/dns_records/(?P<dns_record_id>[^/]+)", dns.RecordEditParams),
    ("DELETE", ZONE + r"/dns_records/(?P<dns_record_id>[^/]+)", None),
    ("GET", ACCOUNT + r"/cfd_tunnel", tunnels.CloudflaredListParams),
    ("POST", ACCOUNT + r"/cfd_tunnel", tunnels.CloudflaredCreateParams),
    ("GET", TUNNEL, None),
    ("PATCH", TUNNEL, tunnels.CloudflaredEditParams),
    ("DELETE", TUNNEL, None),
    ("GET", TUNNEL + r"/token", None),
    ("GET", TUNNEL + r"/connections", None),
    ("DELETE", TUNNEL + r"/connections", cloudflared.ConnectionDeleteParams),
    ("GET", TUNNEL + r"/configurations", None),
    ("PUT", TUNNEL + r"/configurations", cloudflared.ConfigurationUpdateParams),
    ("GET", ACCOUNT + r"/teamnet/virtual_networks", networks.VirtualNetworkListParams),
    ("POST", ACCOUNT + r"/teamnet/virtual_networks", networks.VirtualNetworkCreateParams),
    ("GET", ACCOUNT + r"/teamnet/virtual_networks/(?P<virtual_network_id>[^/]+)", None),
    ("PATCH", ACCOUNT + r"/teamnet/virtual_networks/(?P<virtual_network_id>[^/]+)", networks.VirtualNetworkEditParams),
    ("DELETE", ACCOUNT + r"/teamnet/virtual_networks/(?P<virtual_network_id>[^/]+)", None),
    ("GET", ROUTE, networks.RouteListParams),
    ("POST", ROUTE, networks.RouteCreateParams),
    ("GET", ROUTE + r"/ip/(?P<ip>[^/]+)", network_routes.IPGetParams),
    ("POST", ROUTE + r"/network/(?P<ip_network_encoded>[^/]+)", network_routes.NetworkCreateParams),
    ("PATCH", ROUTE + r"/network/(?P<ip_network_encoded>[^/]+)", None),
    ("DELETE", ROUTE + r"/network/(?P<ip_network_encoded>[^/]+)", network_routes.NetworkDeleteParams),
    ("GET", ROUTE + r"/(?P<route_id>[^/]+)", None),
    ("PATCH", ROUTE + r"/(?P<route_id>[^/]+)", networks.RouteEditParams),
    ("DELETE", ROUTE + r"/(?P<route_id>[^/]+)", None),
    ("GET", ACCOUNT + r"/access/apps", access.ApplicationListParams),
    # Of the kinds of apps, the only one that is in use here.
    ("POST", ACCOUNT + r"/access/apps", application_create_params.SelfHostedApplication),
    ("GET", APP, None),
    ("PUT", APP, application_update_params.SelfHostedApplication),
    ("DELETE", APP, None),
    ("GET", APP + r"/policies", applications.PolicyListParams),
    ("POST", APP + r"/policies", access.PolicyCreateParams),
    ("GET", APP_POLICY, None),
    ("PUT", APP_POLICY, access.PolicyUpdateParams),
    ("DELETE", APP_POLICY, None),
    ("GET", ACCOUNT + r"/access/policies", access.PolicyListParams),
    ("POST", ACCOUNT + r"/access/policies", access.PolicyCreateParams),
    ("GET", POLICY, None),
    ("PUT", POLICY, access.PolicyUpdateParams),
    ("DELETE", POLICY, None),
    ("GET", ACCOUNT + r"/access/organizations", None),
    ("GET", ACCOUNT + r"/access/groups", access.GroupListParams),
    ("POST", ACCOUNT + r"/access/groups", access.GroupCreateParams),
    ("GET", GROUP, None),
    ("PUT", GROUP, access.GroupUpdateParams),
    ("DELETE", GROUP, None),
    ("GET", ACCOUNT + r"/gateway/configuration", None),
    ("PATCH", ACCOUNT + r"/gateway/configuration", gateway.ConfigurationEditParams),
    ("GET", ACCOUNT + r"/access/service_tokens", access.ServiceTokenListParams),
    ("POST", ACCOUNT + r"/access/service_tokens", access.ServiceTokenCreateParams),
    ("GET", SERVICE_TOKEN, None),
    ("PUT", SERVICE_TOKEN, access.ServiceTokenUpdateParams),
    ("DELETE", SERVICE_TOKEN, None),
    ("POST", SERVICE_TOKEN + r"/rotate", access.ServiceTokenRotateParams),
    ("POST", SERVICE_TOKEN + r"/refresh", None),
    ("GET", ACCOUNT + r"/access/identity_providers", zero_trust.IdentityProviderListParams),
    ("POST", ACCOUNT + r"/access/identity_providers", zero_trust.IdentityProviderCreateParams),
    ("GET", PROVIDER, None),
    ("PUT", PROVIDER, zero_trust.IdentityProviderUpdateParams),
    ("DELETE", PROVIDER, None),
    ("GET", ZONE + r"/rulesets", rulesets.RulesetListParams),
    ("POST", ZONE + r"/rulesets", rulesets.RulesetCreateParams),
    ("GET", ENTRYPOINT, None),
    ("PUT", ENTRYPOINT, rulesets.PhaseUpdateParams),
    ("GET", RULESET, None),
    ("PUT", RULESET, rulesets.RulesetUpdateParams),
    ("DELETE", RULESET, None),
    ("POST", RULESET + r"/rules", rulesets.RuleCreateParams),
    ("PATCH", RULESET + r"/rules/(?P<rule_id>[^/]+)", rulesets.RuleEditParams),
    ("DELETE", RULESET + r"/rules/(?P<rule_id>[^/]+)", None),
    ("GET", ZONE + r"/ssl/certificate_packs", ssl.CertificatePackListParams),
]
OPERATIONS = [(method, re.compile(path), params) for method, path, params in OPERATIONS]

# Parameters of writes that travel in the query.
IN_QUERY = {"include_shadow_metadata"}

# Members by which the types of a union are told apart.
TELLING = ("type", "action")

Violation = collections.namedtuple("Violation", "kind field message")


def plain(kind):
    """A type without `Required[…]` and `Annotated[…]`."""
    while typing.get_origin(kind) in (typing_extensions.Required, typing.Required, typing.NotRequired, typing.Annotated,
                                      typing_extensions.Annotated):
        kind = typing.get_args(kind)[0]
    return kind


@functools.cache
def is_typed_dict(kind):
    return typing_extensions.is_typeddict(kind)


@functools.cache
def members(kind):
    """Wire name → (type, whether it is required) of a TypedDict.

    `__required_keys__` is of no use: the SDK's annotations are texts when its classes are made.
    """
    found = {}
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        required = typing.get_origin(hint) in (typing.Required, typing_extensions.Required)
        inner = typing.get_args(hint)[0] if required else hint
        wire = name
        if typing.get_origin(inner) is typing.Annotated:
            for extra in typing.get_args(inner)[1:]:
                if isinstance(extra, PropertyInfo) and extra.alias:
                    wire = extra.alias
        found[wire] = (plain(hint), required)
    return found


@functools.cache
def union_members(kind):
    kind = plain(kind)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return [member for part in typing.get_args(kind) for member in union_members(part)]
    return [kind]


@functools.cache
def tags(kind):
    """Member → values, for those members of a TypedDict that tell it from others."""
    hints = {name: members(kind)[name][0] for name in TELLING if name in members(kind)}
    return {name: typing.get_args(hint) for name, hint in hints.items() if typing.get_origin(hint) is typing.Literal}


def fitting(options, value):
    """Of several TypedDicts, those whose `type` or `action` is the value's; all of them where there is no such member."""
    told = [option for option in options if tags(option)]
    if not told or not any(name in value for option in told for name in tags(option)):
        return options if len(told) < len(options) or not any(required_tag(option) for option in told) else []
    return [option for option in told if all(value.get(name) in values for name, values in tags(option).items() if name in value)]


@functools.cache
def required_tag(kind):
    return any(members(kind)[name][1] for name in tags(kind))


def check(value, kind, where, path_names=frozenset()):
    """The violations of a JSON value against a type."""
    options = union_members(kind)
    if isinstance(value, dict):
        dicts = [option for option in options if is_typed_dict(option)]
        if dicts:
            candidates = fitting(dicts, value) if len(dicts) > 1 else dicts
            if not candidates:
                told = {name: value.get(name) for name in TELLING}
                return [Violation("type", f"{where}.type", f"nothing fits {told}")]
            return min((check_members(value, kind, where, path_names) for kind in candidates), key=len)
    failures = [check_plain(value, option, where) for option in options]
    return min(failures, key=len)


def check_members(value, kind, where, path_names):
    known = members(kind)
    found = []
    for name, member in value.items():
        if name not in known or name in path_names:
            found.append(Violation("unknown", f"{where}.{name}", f"{kind.__name__} has no member {name}"))
        else:
            found += check(member, known[name][0], f"{where}.{name}")
    for name, (_, required) in known.items():
        if required and name not in value and name not in path_names:
            found.append(Violation("missing", f"{where}.{name}", f"{kind.__name__} requires {name}"))
    return found


def check_plain(value, kind, where):
    origin = typing.get_origin(kind)
    wrong = [Violation("type", where, f"{json.dumps(value)[:80]} is not {kind}")]
    if kind in (object, typing.Any):
        return []
    if origin is typing.Literal:
        return [] if value in typing.get_args(kind) and not isinstance(value, bool) else wrong
    if origin in (list, collections.abc.Iterable, collections.abc.Sequence, SequenceNotStr):
        if not isinstance(value, list):
            return wrong
        inner = typing.get_args(kind)[0]
        return [violation for place, item in enumerate(value) for violation in check(item, inner, f"{where}[{place}]")]
    if origin in (dict, collections.abc.Mapping) or kind is dict:
        return [] if isinstance(value, dict) else wrong
    if kind is type(None):
        return [] if value is None else wrong
    if kind is bool:
        return [] if isinstance(value, bool) else wrong
    if kind is int:
        return [] if isinstance(value, int) and not isinstance(value, bool) else wrong
    if kind is float:
        return [] if isinstance(value, (int, float)) and not isinstance(value, bool) else wrong
    if kind in (str, datetime, date):
        return [] if isinstance(value, str) else wrong
    return wrong


def from_query(text, kind):
    """A query's text as the JSON value its type asks for; the text itself where it cannot be one."""
    options = union_members(kind)
    for option in options:
        if typing.get_origin(option) in (list, SequenceNotStr):
            return text if isinstance(text, list) else text.split(",")
    if isinstance(text, list):
        return text
    if bool in options and text in ("true", "false"):
        return text == "true"
    if int in options and re.fullmatch(r"-?\d+", text):
        return int(text)
    if float in options and re.fullmatch(r"-?\d+(\.\d+)?", text):
        return float(text)
    return text


def query_value(query, kind):
    """`{"name.exact": "x"}` → `{"name": {"exact": "x"}}`, with the types that the parameters ask for."""
    value = {}
    known = members(kind)
    for name, text in query.items():
        head, _, tail = name.partition(".")
        hint = known.get(head, (str, False))[0]
        if tail:
            inner = members(hint).get(tail, (str, False))[0] if is_typed_dict(hint) else str
            nested = value.setdefault(head, {})
            if isinstance(nested, dict):
                nested[tail] = from_query(text, inner)
        else:
            value[head] = from_query(text, hint)
    return value


def only(kind, names):
    """A query's own parameters, when the rest of a type is the body."""
    return {name: hint for name, (hint, _) in members(kind).items() if name in names}


def validate(request):
    """The violations of one recorded request."""
    path = request["path"].removeprefix("/client/v4")
    method, query, body = request["method"], request.get("query") or {}, request.get("body")
    body, found = own_policies(method, path, body)
    for wanted, pattern, params in OPERATIONS:
        fits = pattern.fullmatch(path)
        if wanted == method and fits:
            return found + validate_operation(method, query, body, params, frozenset(fits.groupdict()))
    return [Violation("unknown", "path", f"the SDK has no operation {method} {path}")]


def own_policies(method, path, body):
    """An app's own policies, checked with the type of reusable ones; returns the rest of the body.

    The SDK's texts say that an app may define policies (in its body, or below its path) with a precedence; of the types
    for these, one lost name, decision and rules, the other the precedence.
    """
    if method not in ("POST", "PUT") or not isinstance(body, dict):
        return body, []
    if re.fullmatch(APP + r"/policies(/[^/]+)?", path):
        return without_precedence(body, "body")
    if not re.fullmatch(ACCOUNT + r"/access/apps(/[^/]+)?", path) or not isinstance(body.get("policies"), list):
        return body, []
    rest, found = [], []
    for place, policy in enumerate(body["policies"]):
        if isinstance(policy, dict) and "decision" in policy:
            where = f"body.policies[{place}]"
            policy, wrong = without_precedence({name: policy[name] for name in policy if name != "id"}, where)
            found += wrong + check(policy, access.PolicyCreateParams, where, frozenset({"account_id"}))
        else:
            rest.append(policy)
    return dict(body, policies=rest), found


def without_precedence(policy, where):
    found = check_plain(policy["precedence"], int, f"{where}.precedence") if "precedence" in policy else []
    return {name: policy[name] for name in policy if name != "precedence"}, found


def validate_operation(method, query, body, params, path_names):
    if params is None:
        extra = [Violation("unknown", f"query.{name}", "the SDK's method has no parameters") for name in query]
        if body not in (None, {}):
            extra.append(Violation("unknown", "body", "the SDK's method has no body"))
        return extra
    if method in ("GET", "DELETE"):
        found = check(query_value(query, params), params, "query", path_names)
        return found + ([] if body in (None, {}) else [Violation("unknown", "body", "the SDK sends no body")])
    allowed = only(params, IN_QUERY) if is_typed_dict(params) else {}
    found = [Violation("unknown", f"query.{name}", "the SDK sends no such query") for name in query if name not in allowed]
    return found + check(body if body is not None else {}, params, "body", path_names)


class Exceptions:
    """What is tolerated, and how often it was."""

    def __init__(self, path):
        entries = tomllib.loads(path.read_text()).get("exception", []) if path.exists() else []
        for entry in entries:
            unknown = set(entry) - {"method", "path", "kind", "field", "reason"}
            if unknown or not entry.get("reason", "").strip():
                sys.exit(f"contract: {path}: an exception needs a reason and has {sorted(unknown)}: {entry}")
        self.entries = entries
        self.used = collections.Counter()

    def tolerates(self, request, violation):
        for number, entry in enumerate(self.entries):
            if (entry["method"] == request["method"] and entry["kind"] == violation.kind
                    and re.search(entry["path"], request["path"]) and re.fullmatch(entry["field"], violation.field)):
                self.used[number] += 1
                return True
        return False


def files(paths):
    for path in map(pathlib.Path, paths):
        yield from sorted(path.glob("*.jsonl")) if path.is_dir() else [path]


def requests(paths):
    for path in files(paths):
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield f"{path}:{number}", json.loads(line)


def main():
    arguments = sys.argv[1:]
    planted, complete = arguments[:1] == ["--planted"], arguments[:1] == ["--complete"]
    paths = arguments[1:] if planted or complete else arguments
    if not paths:
        sys.exit(__doc__)
    exceptions = Exceptions(pathlib.Path(__file__).with_name("exceptions.toml"))
    seen, bad, kinds = 0, 0, collections.Counter()
    for place, request in requests(paths):
        seen += 1
        found = [violation for violation in validate(request) if not exceptions.tolerates(request, violation)]
        if planted:
            if not found:
                bad += 1
                print(f"contract: MISSED {place}: {request['method']} {request['path']} was planted as a violation")
            continue
        bad += len(found)
        for violation in found:
            kinds[violation.kind] += 1
            if sum(kinds.values()) <= 50:
                print(f"contract: VIOLATION {place}: {request['method']} {request['path']}: {violation.kind} "
                      f"{violation.field}: {violation.message}")
    for number, entry in enumerate(exceptions.entries):
        if exceptions.used[number]:
            print(f"contract: tolerated {exceptions.used[number]} times: {entry['kind']} {entry['field']}: {entry['reason']}")
        elif complete:
            # What nothing needs any more would excuse the next mistake.
            bad += 1
            print(f"contract: UNUSED exception: {entry['method']} {entry['path']} {entry['kind']} {entry['field']}: take it out")
    if seen == 0:
        sys.exit("contract: no requests to validate: a recording without requests proves nothing")
    outcome = f"{bad} missed" if planted else f"{bad} violations"
    print(f"contract: {seen} {'planted violations' if planted else 'requests'} validated, {outcome}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
