#!/usr/bin/env python3
"""Drives a running simulator with the official SDK: every collection, every operation, errors.

usage: drive.py http://127.0.0.1:8787/client/v4

The simulator is reset and seeded first. The SDK validates each answer against its models; what it does not know of an
answer is a violation too. Prints how much was driven and exits with 1 when something is not as it should be.
"""

import datetime
import json
import sys
import time
import urllib.request

import httpx
import cloudflare
from cloudflare import Cloudflare

from drive_access import drive_access, drive_redirects

ACCOUNT = "0123456789abcdef0123456789abcdef"
ZONE = "00000000000000000000000000000001"
FREE_ZONE = "00000000000000000000000000000002"

# What the API tells of every object of Access, though the models of most do not name it.
ACCESS = {"created_at", "updated_at", "uid"}
TOKEN = ACCESS | {"client_secret_version", "expires_at", "last_seen_at", "previous_client_secret_expires_at"}

# Members of answers that the API sends and the SDK's models do not name.
UNNAMED = {
    # The answer to a creation holds the credentials, once.
    "CloudflareTunnel": {"credentials_file", "token"},
    "Owner": {"email"},
    "SelfHostedApplication": ACCESS,
    # The policies of an app: whether they are its own or several apps use them.
    "SelfHostedApplicationPolicy": {"reusable", "uid"},
    "UnionMember0": {"reusable", "uid"},
    "PolicyCreateResponse": {"uid"},
    "GroupCreateResponse": ACCESS,
    "GroupGetResponse": ACCESS,
    "ServiceToken": TOKEN,
    "ServiceTokenCreateResponse": TOKEN,
    "ServiceTokenRotateResponse": TOKEN,
    # Identity providers of all types are read with the model of the first.
    "AzureAD": {"uid"},
}

RECORDS = [
    dict(type="A", name="a", content="192.0.2.1", ttl=300, comment="first", tags=["team:web"]),
    dict(type="A", name="proxied", content="192.0.2.1", ttl=1, proxied=True, settings={"ipv4_only": True}),
    dict(type="AAAA", name="a", content="2001:db8::1", ttl=1),
    dict(type="CNAME", name="alias", content="a.example.com", ttl=1, proxied=True, settings={"flatten_cname": False}),
    dict(type="MX", name="@", content="mail.example.com", priority=10, ttl=3600),
    dict(type="NS", name="sub", content="ns1.example.net", ttl=86400),
    dict(type="PTR", name="ptr", content="host.example.com", ttl=1),
    dict(type="TXT", name="@", content='"v=spf1 -all"', ttl=1),
    # The SDK's model of this type alone knows no record without a comment.
    dict(type="OPENPGPKEY", name="key", content="aGVsbG8=", ttl=1, comment="key"),
    dict(type="CAA", name="@", ttl=1, data=dict(flags=0, tag="issue", value="letsencrypt.org")),
    dict(type="CERT", name="cert", ttl=1, data=dict(type=9, key_tag=1, algorithm=1, certificate="aGk=")),
    dict(type="DNSKEY", name="dnskey", ttl=1, data=dict(flags=257, protocol=3, algorithm=13, public_key="aGk=")),
    dict(type="DS", name="sub", ttl=1, data=dict(key_tag=1, algorithm=13, digest_type=2, digest="ab12")),
    dict(type="HTTPS", name="svc", ttl=1, data=dict(priority=1, target=".", value='alpn="h3,h2"')),
    dict(type="LOC", name="loc", ttl=1, data=dict(
        lat_degrees=37, lat_minutes=46, lat_seconds=46.5, lat_direction="N", long_degrees=122, long_minutes=23,
        long_seconds=35, long_direction="W", altitude=0, size=100, precision_horz=0, precision_vert=0)),
    dict(type="NAPTR", name="naptr", ttl=1, data=dict(
        order=100, preference=10, flags="S", service="SIP+D2U", regex="", replacement="_sip._udp.example.com")),
    dict(type="SMIMEA", name="smimea", ttl=1, data=dict(usage=3, selector=0, matching_type=1, certificate="ab12")),
    dict(type="SRV", name="_sip._tcp", ttl=1, data=dict(priority=5, weight=0, port=5060, target="sip.example.com")),
    dict(type="SSHFP", name="ssh", ttl=1, data=dict(algorithm=2, type=1, fingerprint="ab12")),
    dict(type="SVCB", name="svcb", ttl=1, data=dict(priority=1, target="svc.example.com", value="port=8080")),
    dict(type="TLSA", name="_443._tcp", ttl=1, data=dict(usage=3, selector=1, matching_type=1, certificate="ab12")),
    dict(type="URI", name="uri", ttl=1, priority=10, data=dict(weight=5, target="https://example.com/")),
]


class Drive:
    """Counts what was driven and checked, and keeps what went wrong."""

    def __init__(self, base_url):
        self.base_url = base_url.rstrip("/")
        self.root = self.base_url.removesuffix("/client/v4")
        self.operations = 0
        self.assertions = 0
        self.violations = []

    def client(self, token="right", **options):
        """A client that fails at once, and on every answer that its models do not fit."""
        hooks = {"response": [self._count]}
        http_client = httpx.Client(event_hooks=hooks, trust_env=False)
        if token is not None:
            options["api_token"] = token
        return Cloudflare(base_url=self.base_url, max_retries=0, http_client=http_client, _strict_response_validation=True,
                          **options)

    def _count(self, _response):
        self.operations += 1

    def admin(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, data=data, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=10) as answer:
            return json.load(answer)

    def check(self, condition, what):
        self.assertions += 1
        if not condition:
            self.violations.append(what)

    def equal(self, found, wanted, what):
        self.check(found == wanted, f"{what}: {found!r} instead of {wanted!r}")

    def model(self, value, what):
        """Everything in an answer must be known to the SDK's model of it."""
        known = UNNAMED.get(type(value).__name__, set())
        extra = set(getattr(value, "model_extra", None) or {}) - known
        self.check(not extra, f"{what}: the SDK does not know {sorted(extra)} of {type(value).__name__}")
        for name in getattr(type(value), "model_fields", {}):
            inner = getattr(value, name, None)
            for part in inner if isinstance(inner, list) else [inner]:
                if hasattr(part, "model_extra"):
                    self.model(part, f"{what}.{name}")
        return value

    def refused(self, call, error, status, codes, what):
        try:
            call()
        except error as refusal:
            found = [entry.code for entry in refusal.errors]
            self.equal(refusal.status_code, status, f"{what}: status")
            self.check(bool(set(found) & set(codes)), f"{what}: codes {found} instead of one of {codes}")
            return refusal
        except Exception as other:  # noqa: BLE001 - whatever it is, it is a violation
            self.check(False, f"{what}: {type(other).__name__} {other} instead of {error.__name__}")
        else:
            self.check(False, f"{what}: was not refused")


def wait(drive):
    deadline = time.monotonic() + 30
    while True:
        try:
            return drive.admin("GET", "/health")
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def seed(drive):
    drive.admin("POST", "/admin/reset", {})
    drive.admin("POST", "/admin/seed", {
        "accounts": [{"id": ACCOUNT, "name": "Contract"}],
        "zones": [
            {"id": ZONE, "name": "example.com", "plan": "pro", "account": ACCOUNT},
            {"id": FREE_ZONE, "name": "example.org", "plan": "free", "account": ACCOUNT},
        ],
        "tokens": [{"token": "right", "email": "me@example.com"}, {"token": "reader", "permissions": {"dns": "read"}}],
        "keys": [{"email": "owner@example.com", "key": "global"}],
    })


def accounts(drive, api):
    page = api.accounts.list(per_page=5)
    drive.equal([account.name for account in page.result], ["Contract"], "accounts")
    account = drive.model(api.accounts.get(account_id=ACCOUNT), "account")
    drive.equal((account.id, account.type), (ACCOUNT, "standard"), "account")
    drive.equal(api.user.tokens.verify().status, "active", "token")


def zones(drive, api):
    made = drive.model(api.zones.create(name="example.net", account={"id": ACCOUNT}, type="full"), "zone")
    drive.equal((made.name, made.status, made.account.id), ("example.net", "pending", ACCOUNT), "new zone")
    drive.check(isinstance(made.created_on, datetime.datetime), "zone: created_on is a time")
    drive.equal([zone.id for zone in api.zones.list(name="example.net").result], [made.id], "zone by name")
    for number in range(8):
        api.zones.create(name=f"page{number}.example", account={"id": ACCOUNT})
    listed = [zone.name for zone in api.zones.list(per_page=5, order="name", direction="asc")]
    drive.equal((len(listed), listed), (11, sorted(listed)), "zones over three pages")
    by_account = api.zones.list(account={"id": ACCOUNT}, status="active", per_page=50)
    drive.equal(len(by_account.result), 2, "active zones of the account")
    drive.equal(api.zones.edit(zone_id=made.id, paused=True).paused, True, "paused zone")
    drive.equal(api.zones.get(zone_id=made.id).paused, True, "paused zone read again")
    drive.equal(api.zones.get(zone_id=ZONE).plan.legacy_id, "pro", "plan")
    drive.refused(lambda: api.zones.create(name="example.net", account={"id": ACCOUNT}), cloudflare.BadRequestError, 400,
                  [1061], "zone that exists")
    drive.equal(api.zones.delete(zone_id=made.id).id, made.id, "deleted zone")
    drive.refused(lambda: api.zones.get(zone_id=made.id), cloudflare.NotFoundError, 404, [1001], "deleted zone")


def certificates(drive, api):
    packs = api.ssl.certificate_packs.list(zone_id=ZONE, status="all").result
    found = [(pack.type, pack.status, pack.hosts) for pack in packs]
    drive.equal(found, [("universal", "active", ["example.com", "*.example.com"])], "certificate packs")
    drive.model(packs[0], "certificate pack")


def record_fields(drive, body, record, what):
    for name, wanted in body.items():
        found = getattr(record, name, None)
        if name == "name":
            wanted = "example.com" if wanted == "@" else f"{wanted}.example.com"
        if name in ("data", "settings"):
            found = {key: getattr(found, key) for key in wanted}
        drive.equal(found, wanted, f"{what}.{name}")
    drive.check(isinstance(record.modified_on, datetime.datetime), f"{what}: modified_on is a time")
    drive.check(bool(record.content), f"{what}: has a content")


def records(drive, api):
    dns = api.dns.records
    made = []
    for body in RECORDS:
        record = drive.model(dns.create(zone_id=ZONE, **body), f"{body['type']} record")
        record_fields(drive, body, record, f"{body['type']} record")
        read = dns.get(dns_record_id=record.id, zone_id=ZONE)
        drive.equal(type(read).__name__, type(record).__name__, f"{body['type']} record: model")
        record_fields(drive, body, read, f"{body['type']} record read again")
        made.append(record)
    drive.equal(len({type(record).__name__ for record in made}), 21, "models of record types")
    listed = list(dns.list(zone_id=ZONE, per_page=4))
    drive.equal([record.id for record in listed], [record.id for record in made], "records over six pages")
    drive.equal(dns.list(zone_id=ZONE, per_page=4, page=2).result_info.page, 2, "page number")
    first = made[0]
    found = dns.list(zone_id=ZONE, name={"exact": "A.example.com"}, type="A").result
    drive.equal([record.id for record in found], [first.id], "record by name and type")
    for query in [dict(comment={"present": "true"}, type="A"), dict(content={"exact": "192.0.2.1"}, proxied=False),
                  dict(name={"startswith": "a."}, content={"contains": "0.2."}), dict(tag={"exact": "team:web"}),
                  dict(match="any", name={"exact": "none"}, comment={"exact": "first"})]:
        drive.equal([record.id for record in dns.list(zone_id=ZONE, **query).result], [first.id], f"records by {query}")
    ordered = [record.name for record in dns.list(zone_id=ZONE, order="name", direction="desc").result]
    drive.equal(ordered, sorted(ordered, reverse=True), "ordered records")
    edited = dns.edit(dns_record_id=first.id, zone_id=ZONE, name="a", type="A", ttl=120, content="192.0.2.2")
    drive.equal((edited.content, edited.ttl, edited.comment), ("192.0.2.2", 120, "first"), "edited record")
    replaced = dns.update(dns_record_id=first.id, zone_id=ZONE, name="a", type="A", ttl=1, content="192.0.2.3")
    drive.equal((replaced.content, replaced.comment, replaced.tags), ("192.0.2.3", None, []), "replaced record")
    record_errors(drive, api, first)
    drive.equal(dns.delete(dns_record_id=first.id, zone_id=ZONE).id, first.id, "deleted record")
    drive.refused(lambda: dns.get(dns_record_id=first.id, zone_id=ZONE), cloudflare.NotFoundError, 404, [81044],
                  "deleted record")


def record_errors(drive, api, first):
    create = api.dns.records.create
    bad = cloudflare.BadRequestError
    same = dict(zone_id=ZONE, type="A", name="a", content="192.0.2.3", ttl=1)
    refusals = [
        ("identical record", same, [81057, 81058]),
        ("CNAME beside A", dict(same, type="CNAME", content="x.example.net"), [81053]),
        ("A beside CNAME", dict(same, name="alias"), [81054]),
        ("bad address", dict(same, content="192.0.2.300"), [9005]),
        ("bad IPv6 address", dict(same, type="AAAA", content="192.0.2.3"), [9006]),
        ("bad target", dict(same, type="CNAME", name="new", content="not a name"), [9007]),
        ("bad name", dict(same, name="two words"), [9000]),
        ("short time to live", dict(same, name="new", ttl=2), [9021]),
        ("proxied text", dict(same, type="TXT", name="new", content="x", proxied=True), [9004]),
        ("missing part", dict(zone_id=ZONE, type="SRV", name="_x._tcp", ttl=1, data={"port": 1}), [9101]),
    ]
    for what, body, codes in refusals:
        drive.refused(lambda body=body: create(**body), bad, 400, codes, what)
    tagged = dict(zone_id=FREE_ZONE, type="A", name="a", content="192.0.2.3", ttl=1, tags=["a:b"])
    drive.refused(lambda: create(**tagged), bad, 400, [1004], "tags on a free plan")
    drive.refused(lambda: api.dns.records.edit(dns_record_id="0" * 32, zone_id=ZONE, type="A", name="a", ttl=1),
                  cloudflare.NotFoundError, 404, [81044], "edit of no record")
    drive.refused(lambda: api.dns.records.list(zone_id="nonsense"), cloudflare.NotFoundError, 404, [7003], "no zone")


def batch(drive, api):
    dns = api.dns.records
    bodies = [dict(type="A", name=f"b{number}", content="192.0.2.1", ttl=1) for number in range(150)]
    answer = drive.model(dns.batch(zone_id=FREE_ZONE, posts=bodies), "batch")
    drive.equal(len(answer.posts), 150, "batch of posts")
    drive.equal(answer.posts[7].name, "b7.example.org", "answers are in order")
    first, second, third = answer.posts[:3]
    mixed = dns.batch(
        zone_id=FREE_ZONE,
        deletes=[{"id": first.id}],
        patches=[{"id": second.id, "type": "A", "name": "b1", "ttl": 60, "comment": "patched"}],
        puts=[{"id": third.id, "type": "A", "name": "b2", "ttl": 1, "content": "192.0.2.9"}],
        posts=[{"type": "CNAME", "name": "b0", "content": "b1.example.org", "ttl": 1}],
    )
    drive.equal([record.id for record in mixed.deletes], [first.id], "batch deletes")
    drive.equal((mixed.patches[0].comment, mixed.patches[0].content), ("patched", "192.0.2.1"), "batch patches")
    drive.equal(mixed.puts[0].content, "192.0.2.9", "batch puts")
    drive.equal(mixed.posts[0].type, "CNAME", "a name can be deleted and made in one batch")
    before = [record.id for record in dns.list(zone_id=FREE_ZONE)]
    wrong = [dict(type="A", name="ok", content="192.0.2.1", ttl=1), dict(type="A", name="no", content="x", ttl=1)]
    drive.refused(lambda: dns.batch(zone_id=FREE_ZONE, deletes=[{"id": second.id}], posts=wrong),
                  cloudflare.BadRequestError, 400, [9005], "batch with one bad record")
    drive.equal([record.id for record in dns.list(zone_id=FREE_ZONE)], before, "a refused batch changes nothing")
    many = [dict(type="A", name=f"m{number}", content="192.0.2.1", ttl=1) for number in range(201)]
    drive.refused(lambda: dns.batch(zone_id=FREE_ZONE, posts=many), cloudflare.BadRequestError, 400, [9208],
                  "batch over the plan's limit")
    drive.refused(lambda: dns.batch(zone_id=FREE_ZONE, posts=many[:60]), cloudflare.BadRequestError, 400, [81045],
                  "more records than the plan allows")


def tunnels(drive, api):
    cloudflared = api.zero_trust.tunnels.cloudflared
    made = drive.model(cloudflared.create(account_id=ACCOUNT, name="first", config_src="cloudflare"), "tunnel")
    drive.equal((made.name, made.status, made.remote_config), ("first", "inactive", True), "new tunnel")
    drive.equal(made.config_src, "cloudflare", "config_src")
    for number in range(6):
        secret = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
        cloudflared.create(account_id=ACCOUNT, name=f"more{number}", tunnel_secret=secret)
    drive.equal(len(list(cloudflared.list(account_id=ACCOUNT, per_page=3))), 7, "tunnels over three pages")
    found = cloudflared.list(account_id=ACCOUNT, name="first", is_deleted=False).result
    drive.equal([tunnel.id for tunnel in found], [made.id], "tunnel by name")
    drive.equal(len(cloudflared.list(account_id=ACCOUNT, include_prefix="more").result), 6, "tunnels by prefix")
    drive.equal(cloudflared.list(account_id=ACCOUNT, uuid=made.id).result[0].name, "first", "tunnel by id")
    drive.model(cloudflared.get(tunnel_id=made.id, account_id=ACCOUNT), "tunnel read again")
    renamed = cloudflared.edit(tunnel_id=made.id, account_id=ACCOUNT, name="renamed")
    drive.equal(renamed.name, "renamed", "renamed tunnel")
    token = cloudflared.token.get(tunnel_id=made.id, account_id=ACCOUNT)
    drive.check(isinstance(token, str) and len(token) > 40, "token")
    drive.equal(list(cloudflared.connections.get(tunnel_id=made.id, account_id=ACCOUNT)), [], "connections")
    cloudflared.connections.delete(tunnel_id=made.id, account_id=ACCOUNT)
    configurations(drive, api, made)
    drive.refused(lambda: cloudflared.create(account_id=ACCOUNT, name="renamed"), cloudflare.ConflictError, 409, [1013],
                  "tunnel that exists")
    drive.refused(lambda: cloudflared.create(account_id=ACCOUNT, name="x", tunnel_secret="c2hvcnQ="),
                  cloudflare.BadRequestError, 400, [1004], "short secret")
    gone = cloudflared.delete(tunnel_id=made.id, account_id=ACCOUNT)
    drive.check(gone.deleted_at is not None, "a deleted tunnel says when")
    drive.equal(len(cloudflared.list(account_id=ACCOUNT, is_deleted=True).result), 1, "deleted tunnels")
    drive.refused(lambda: cloudflared.delete(tunnel_id=made.id, account_id=ACCOUNT), cloudflare.NotFoundError, 404, [1003],
                  "tunnel that is gone")


def configurations(drive, api, tunnel):
    documents = api.zero_trust.tunnels.cloudflared.configurations
    config = {
        "ingress": [
            {"hostname": "app.example.com", "path": "/api", "service": "http://10.0.0.1:80",
             "origin_request": {"no_tls_verify": True, "connect_timeout": 10,
                                "access": {"aud_tag": ["tag"], "team_name": "team", "required": True}}},
            {"hostname": "", "service": "http_status:404"},
        ],
        "origin_request": {"http2_origin": True, "keep_alive_connections": 50},
    }
    drive.equal(documents.get(tunnel_id=tunnel.id, account_id=ACCOUNT).version, 0, "version before the first write")
    put = drive.model(documents.update(tunnel_id=tunnel.id, account_id=ACCOUNT, config=config), "configuration")
    drive.equal((put.version, put.tunnel_id, put.source), (1, tunnel.id, "cloudflare"), "configuration")
    rule = put.config.ingress[0]
    drive.equal((rule.hostname, rule.path, rule.service), ("app.example.com", "/api", "http://10.0.0.1:80"), "rule")
    drive.equal(rule.origin_request.access.aud_tag, ["tag"], "rule's access")
    drive.equal(put.config.origin_request.keep_alive_connections, 50, "origin settings")
    documents.update(tunnel_id=tunnel.id, account_id=ACCOUNT, config=config)
    drive.equal(documents.get(tunnel_id=tunnel.id, account_id=ACCOUNT).version, 2, "version after two writes")
    no_end = {"ingress": config["ingress"][:1]}
    drive.refused(lambda: documents.update(tunnel_id=tunnel.id, account_id=ACCOUNT, config=no_end),
                  cloudflare.BadRequestError, 400, [1056], "configuration without a last rule")


def virtual_networks(drive, api):
    networks = api.zero_trust.networks.virtual_networks
    made = drive.model(networks.create(account_id=ACCOUNT, name="lab", comment="ours"), "virtual network")
    drive.equal((made.name, made.comment, made.is_default_network), ("lab", "ours", False), "new virtual network")
    drive.equal(len(list(networks.list(account_id=ACCOUNT))), 2, "virtual networks")
    drive.equal([found.id for found in networks.list(account_id=ACCOUNT, name="lab", is_deleted=False)], [made.id],
                "virtual network by name")
    default = next(iter(networks.list(account_id=ACCOUNT, is_default=True)))
    edited = networks.edit(virtual_network_id=made.id, account_id=ACCOUNT, comment="changed", is_default_network=True)
    drive.equal((edited.comment, edited.is_default_network), ("changed", True), "edited virtual network")
    last = networks.get(virtual_network_id=default.id, account_id=ACCOUNT)
    drive.equal(last.is_default_network, False, "one default at a time")
    networks.edit(virtual_network_id=default.id, account_id=ACCOUNT, is_default_network=True)
    drive.refused(lambda: networks.create(account_id=ACCOUNT, name="lab"), cloudflare.ConflictError, 409, [1017],
                  "virtual network that exists")
    drive.refused(lambda: networks.delete(virtual_network_id=default.id, account_id=ACCOUNT), cloudflare.BadRequestError,
                  400, [1019], "delete of the default")
    other = networks.create(account_id=ACCOUNT, name="short-lived")
    gone = networks.delete(virtual_network_id=other.id, account_id=ACCOUNT)
    drive.check(gone.deleted_at is not None, "a deleted virtual network says when")
    drive.equal([found.id for found in networks.list(account_id=ACCOUNT, is_deleted=True)], [other.id], "deleted ones")
    drive.refused(lambda: networks.delete(virtual_network_id=other.id, account_id=ACCOUNT), cloudflare.NotFoundError,
                  404, [1016], "virtual network that is gone")
    return made


def routes(drive, api, virtual_network):
    teamnet = api.zero_trust.networks.routes
    tunnel = api.zero_trust.tunnels.cloudflared.create(account_id=ACCOUNT, name="routed")
    made = drive.model(teamnet.create(account_id=ACCOUNT, network="10.0.0.0/16", tunnel_id=tunnel.id, comment="c"), "route")
    drive.equal((made.network, made.tunnel_id, made.comment), ("10.0.0.0/16", tunnel.id, "c"), "new route")
    drive.check(bool(made.virtual_network_id), "a route is in the default network")
    teamnet.create(account_id=ACCOUNT, network="10.0.0.0/16", tunnel_id=tunnel.id, virtual_network_id=virtual_network.id)
    six = teamnet.create(account_id=ACCOUNT, network="2001:db8::/32", tunnel_id=tunnel.id)
    drive.equal(six.network, "2001:db8::/32", "IPv6 route")
    for number in range(1, 6):
        teamnet.create(account_id=ACCOUNT, network=f"10.{number}.0.0/16", tunnel_id=tunnel.id)
    listed = list(teamnet.list(account_id=ACCOUNT, per_page=3, is_deleted=False))
    drive.equal(len(listed), 8, "routes over three pages")
    drive.model(listed[0], "listed route")
    drive.equal((listed[0].tunnel_name, listed[1].virtual_network_name), ("routed", "lab"), "names in lists")
    for query, count in [(dict(virtual_network_id=virtual_network.id), 1), (dict(network_subset="10.0.0.0/14"), 5),
                         (dict(network_superset="10.1.2.0/24"), 1), (dict(tunnel_id=tunnel.id), 8),
                         (dict(route_id=six.id), 1), (dict(comment="c"), 1)]:
        drive.equal(len(teamnet.list(account_id=ACCOUNT, **query).result), count, f"routes by {query}")
    drive.equal(teamnet.get(route_id=made.id, account_id=ACCOUNT).network, "10.0.0.0/16", "route read again")
    edited = teamnet.edit(route_id=made.id, account_id=ACCOUNT, comment="changed", network="10.99.0.0/16")
    drive.equal((edited.comment, edited.network), ("changed", "10.99.0.0/16"), "edited route")
    drive.equal(teamnet.ips.get(ip="10.3.4.5", account_id=ACCOUNT).network, "10.3.0.0/16", "route by address")
    older = teamnet.networks.create(ip_network_encoded="172.16.0.0/12", account_id=ACCOUNT, tunnel_id=tunnel.id)
    drive.equal(older.network, "172.16.0.0/12", "route made by its network")
    gone = teamnet.networks.delete(ip_network_encoded="172.16.0.0/12", account_id=ACCOUNT)
    drive.check(gone.deleted_at is not None, "a deleted route says when")
    bad, create = cloudflare.BadRequestError, teamnet.create
    drive.refused(lambda: create(account_id=ACCOUNT, network="10.1.0.0/16", tunnel_id=tunnel.id), cloudflare.ConflictError,
                  409, [1014], "route that exists")
    drive.refused(lambda: create(account_id=ACCOUNT, network="10.1.0.1/16", tunnel_id=tunnel.id), bad, 400, [1004],
                  "network with host bits")
    drive.refused(lambda: api.zero_trust.networks.virtual_networks.delete(virtual_network_id=virtual_network.id,
                  account_id=ACCOUNT), bad, 400, [1020], "virtual network with routes")
    drive.refused(lambda: api.zero_trust.tunnels.cloudflared.delete(tunnel_id=tunnel.id, account_id=ACCOUNT), bad, 400,
                  [1023], "tunnel with routes")
    teamnet.delete(route_id=made.id, account_id=ACCOUNT)
    drive.refused(lambda: teamnet.delete(route_id=made.id, account_id=ACCOUNT), cloudflare.NotFoundError, 404, [1002],
                  "route that is gone")


def audit_logs(drive, api):
    entries = list(api.audit_logs.list(account_id=ACCOUNT, per_page=100, zone={"name": "example.com"}))
    drive.check(len(entries) >= len(RECORDS), f"{len(entries)} audit entries for the zone")
    entry = drive.model(entries[0], "audit entry")
    drive.equal((entry.actor.email, entry.resource.type), ("me@example.com", "DNS_record"), "audit entry")
    drive.check(entries[0].when >= entries[-1].when, "the newest entry is the first")


def credentials(drive):
    stranger = drive.client("wrong")
    denied, unknown = cloudflare.PermissionDeniedError, cloudflare.AuthenticationError
    drive.refused(lambda: stranger.zones.list(), denied, 403, [9109], "zones with a wrong token")
    drive.refused(lambda: stranger.user.tokens.verify(), unknown, 401, [1000], "verify with a wrong token")
    cloudflared = stranger.zero_trust.tunnels.cloudflared
    drive.refused(lambda: cloudflared.list(account_id=ACCOUNT), unknown, 401, [10000], "tunnels with a wrong token")
    owner = drive.client(None, api_email="owner@example.com", api_key="global")
    drive.check(len(owner.zones.list().result) > 0, "a global key lists zones")
    other = drive.client(None, api_email="other@example.com", api_key="global")
    drive.refused(lambda: other.zones.list(), denied, 403, [9103], "a key of somebody else")
    reader = drive.client("reader")
    drive.refused(lambda: reader.zones.list(), denied, 403, [0], "a reader of records lists zones")
    drive.check(len(reader.dns.records.list(zone_id=ZONE).result) > 0, "a reader lists records")
    drive.refused(lambda: reader.dns.records.create(zone_id=ZONE, type="A", name="r", content="192.0.2.1", ttl=1), denied,
                  403, [10000], "a reader writes")


def limits(drive, api):
    raw = api.zones.with_raw_response.list()
    drive.check('"default";r=' in raw.headers.get("ratelimit", ""), "Ratelimit header")
    drive.equal(raw.headers.get("ratelimit-policy"), '"default";q=1200;w=300', "Ratelimit-Policy header")
    drive.admin("POST", "/admin/faults", {"method": "GET", "path": "/zones$", "type": "rate_limit", "count": 1, "retry_after": 7})
    refusal = drive.refused(lambda: api.zones.list(), cloudflare.RateLimitError, 429, [971], "too many requests")
    drive.equal(refusal and refusal.response.headers.get("retry-after"), "7", "Retry-After header")
    drive.admin("POST", "/admin/faults", {"method": "GET", "path": "/zones$", "type": "server_error", "count": 1})
    drive.refused(lambda: api.zones.list(), cloudflare.InternalServerError, 500, [1000], "server error")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    drive = Drive(sys.argv[1])
    wait(drive)
    seed(drive)
    api = drive.client()
    accounts(drive, api)
    zones(drive, api)
    certificates(drive, api)
    records(drive, api)
    batch(drive, api)
    tunnels(drive, api)
    routes(drive, api, virtual_networks(drive, api))
    drive_access(drive, api, ACCOUNT)
    audit_logs(drive, api)
    drive_redirects(drive, api, ZONE)
    credentials(drive)
    limits(drive, api)
    for violation in drive.violations:
        print(f"contract: VIOLATION {violation}")
    print(f"contract: {drive.operations} operations driven, {drive.assertions} assertions, "
          f"{len(drive.violations)} violations")
    sys.exit(1 if drive.violations else 0)


if __name__ == "__main__":
    main()
