#!/usr/bin/env python3
"""Holds a running simulator to facts about the real API.

usage: facts.py http://127.0.0.1:8787/client/v4 [facts.toml]

A fact is a request, what was done before it, and what the real API is known to answer, with the source of that knowledge. The
simulator is reset and seeded for each. Prints how many held, and exits with 1 when one did not.
"""

import http.client
import json
import pathlib
import re
import sys
import tomllib
import urllib.parse

ACCOUNT = "0123456789abcdef0123456789abcdef"
BARE = "fedcba9876543210fedcba9876543210"
NAMES = {
    "account": ACCOUNT,
    "bare": BARE,
    "zone": "00000000000000000000000000000001",
    "tunnel": "11111111-2222-4333-8444-555555555555",
    "local": "22222222-2222-4333-8444-555555555555",
    "nobody": "99999999-9999-4999-8999-999999999999",
    "no_record": "99999999999999999999999999999999",
}
SEED = {
    "accounts": [{"id": ACCOUNT, "name": "Example"}, {"id": BARE, "name": "Bare", "zero_trust": False}],
    "zones": [{"id": NAMES["zone"], "name": "example.com", "account": ACCOUNT, "plan": "free"}],
    "tokens": [
        {"token": "right", "email": "me@example.com"},
        {"token": "mine", "email": "me@example.com"},
        {"token": "yours", "email": "you@example.com"},
        {"token": "reader", "email": "you@example.com", "permissions": {"dns": "read", "zone": "read"}},
        {"token": "stranger", "email": "you@example.com", "accounts": [BARE]},
    ],
    "tunnels": [
        {"account": ACCOUNT, "id": NAMES["tunnel"], "name": "remote", "config_src": "cloudflare"},
        {"account": ACCOUNT, "id": NAMES["local"], "name": "beside", "config_src": "local"},
    ],
}
KNOWN = {"says", "source", "before", "request", "status", "code", "text", "result", "info", "has", "lacks", "header"}


class Simulator:
    """One connection, over which everything is asked."""

    def __init__(self, base_url):
        url = urllib.parse.urlsplit(base_url)
        self.prefix = url.path.rstrip("/")
        self.connection = http.client.HTTPConnection(url.hostname, url.port, timeout=10)

    def send(self, method, path, body=None, headers=None):
        data = None if body is None else json.dumps(body)
        self.connection.request(method, path, data, headers or {})
        answer = self.connection.getresponse()
        text = answer.read()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, json.loads(text or "null")

    def admin(self, path, body=None):
        status, _, answer = self.send("POST", path, body)
        if status != 200:
            raise ValueError(f"{path}: {answer}")

    def api(self, request):
        headers = {"Content-Type": "application/json"}
        token = request.get("token", "right")
        if token:
            headers["Authorization"] = f"Bearer {token}"
        headers.update(request.get("headers", {}))
        return self.send(request["method"], self.prefix + request["path"], request.get("body"), headers)


def filled(value, names):
    """The value with `{name}` replaced in all its texts."""
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda match: names.get(match[1], match[0]), value)
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    if isinstance(value, dict):
        return {name: filled(member, names) for name, member in value.items()}
    return value


def differences(wanted, found, place="result"):
    """What of `wanted` is not so in `found`; members that are not named may be anything."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [text for name in wanted for text in differences(wanted[name], found.get(name), f"{place}.{name}")]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found))
        return [text for number, (one, other) in pairs for text in differences(one, other, f"{place}[{number}]")]
    return [] if wanted == found else [f"{place} is {json.dumps(found)}, not {json.dumps(wanted)}"]


def errors_of(answer):
    """All errors of an answer, with those that they are explained by."""
    told = (answer or {}).get("errors") or []
    return told + [inner for error in told for inner in error.get("error_chain", [])]


def judge(fact, status, headers, answer):
    """Why a fact does not hold."""
    wrong = []
    if "status" in fact and fact["status"] != status:
        wrong.append(f"status is {status}, not {fact['status']}")
    errors = errors_of(answer)
    if "code" in fact and fact["code"] not in [error["code"] for error in errors]:
        wrong.append(f"code {fact['code']} is not among {json.dumps(errors)}")
    if "text" in fact and not any(fact["text"] in error["message"] for error in errors):
        wrong.append(f"{fact['text']!r} is in none of {json.dumps(errors)}")
    if errors and not {"code", "text"} & fact.keys() and fact.get("status", 200) < 400:
        wrong.append(f"refused: {json.dumps(errors)}")
    result = (answer or {}).get("result")
    if "result" in fact:
        wrong += differences(fact["result"], result)
    wrong += differences(fact.get("info", {}), (answer or {}).get("result_info") or {}, "result_info")
    wrong += [f"result has no {name}" for name in fact.get("has", []) if name not in (result or {})]
    wrong += [f"result has {name}" for name in fact.get("lacks", []) if name in (result or {})]
    for name, pattern in fact.get("header", {}).items():
        if not re.fullmatch(pattern, headers.get(name, "")):
            wrong.append(f"header {name} is {headers.get(name)!r}, not {pattern!r}")
    return wrong


def check(simulator, fact):
    """Plays a fact; returns why it does not hold."""
    simulator.admin("/admin/reset")
    simulator.admin("/admin/rate-limit", {"requests": 1200, "seconds": 300})
    simulator.admin("/admin/quotas", {})
    simulator.admin("/admin/seed", SEED)
    names = dict(NAMES)
    for step in fact.get("before", []):
        step = filled(step, names)
        if "admin" in step:
            simulator.admin(step["admin"], step.get("body"))
            continue
        for _ in range(step.get("times", 1)):
            status, _, answer = simulator.api(step)
        if status >= 300 and not step.get("refused"):
            return [f"before it, {step['method']} {step['path']} was refused: {json.dumps(answer)}"]
        if "save" in step:
            names[step["save"]] = answer["result"]["id"]
    return judge(filled(fact, names), *simulator.api(filled(fact["request"], names)))


def unsound(fact):
    """What is wrong with how a fact is written."""
    wrong = [f"unknown member {name}" for name in fact if name not in KNOWN]
    wrong += [f"{name} is missing" for name in ("says", "source", "request") if not fact.get(name)]
    if not str(fact.get("source", "")).startswith("https://"):
        wrong.append("source is no address")
    if not {"status", "code", "text", "result", "info", "header"} & fact.keys():
        wrong.append("nothing is expected")
    return wrong


def main():
    table = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path(__file__).with_name("facts.toml")
    facts = tomllib.loads(table.read_text())["fact"]
    simulator, held = Simulator(sys.argv[1]), 0
    for fact in facts:
        wrong = unsound(fact) or check(simulator, fact)
        held += not wrong
        for why in wrong:
            print(f"facts: not so: {fact.get('says')}: {why}", file=sys.stderr)
    print(f"facts: {held} of {len(facts)} held")
    sys.exit(0 if held == len(facts) else 1)


if __name__ == "__main__":
    main()
