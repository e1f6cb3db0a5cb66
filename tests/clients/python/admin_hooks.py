"""What the description of the administration cannot say to a tester: which things there are, and which
members go together.

A well-formed `Idempotency-Key` becomes a fresh one, a well-formed id the one of a thing that exists. A
bound gets both its members, a change its reason, a holder's role its wallet. What is meant to be wrong
stays wrong.
"""

import os
import re
import uuid

import schemathesis

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
CURSOR = re.compile(r"[0-9a-f]{32}\Z")
THINGS = {name: os.environ["HOLDFAST_" + name.upper()] for name in ("wallet_id", "api_key_id", "operation_id")}
PATHS = {"wallets": "wallet_id", "api_keys": "api_key_id", "operations": "operation_id"}
BOUNDS = (("spend_micros", "spend_window"), ("key_spend_micros", "key_spend_window"))


def is_id(value):
    return isinstance(value, str) and UUID.match(value) is not None


def complete(body):
    for name, known in THINGS.items():
        if is_id(body.get(name)):
            body[name] = known
    for micros, window in BOUNDS:
        if isinstance(body.get(micros), int):
            body.setdefault(window, "day")
            body[window] = body[window] or "day"
        elif body.get(micros, "") is None or (micros not in body and body.get(window, 0) != 0):
            body.pop(micros, None)
            body.pop(window, None)
    if "role" in body and not str(body["role"]).startswith("holder"):
        body.pop("wallet_id", None)
    elif str(body.get("role")).startswith("holder"):
        body["wallet_id"] = body.get("wallet_id") or THINGS["wallet_id"]
    if body.get("amount_micros") == 0:
        body["amount_micros"] = 1


def filter_together(query):
    if is_id(query.get("request_key")):
        for name in set(query) - {"api_key_id", "request_key", "limit"}:
            del query[name]
        query["api_key_id"] = THINGS["api_key_id"]
        query["request_key"] = str(uuid.uuid4())
    if CURSOR.match(str(query.get("cursor", ""))):
        del query["cursor"]


@schemathesis.hook
def before_call(context, case, kwargs):
    headers = {} if case.headers is None else case.headers
    place = str(getattr(case.meta.phase.data, "parameter_location", ""))
    if place.endswith("BODY") or UUID.match(str(headers.get("Idempotency-Key", ""))):
        headers["Idempotency-Key"] = str(uuid.uuid4())
    of = case.path.removeprefix("/admin/v1/").split("/")[0]
    if case.path_parameters and is_id(case.path_parameters.get("id")) and of in PATHS:
        case.path_parameters["id"] = THINGS[PATHS[of]]
    if case.query:
        filter_together(case.query)
    if isinstance(case.body, dict):
        complete(case.body)
        for order in case.body.get("keys") or []:
            if isinstance(order, dict):
                complete(order)
        if case.path.endswith(("/rotate", "/api_keys", "/bulk")) and case.body.get("reason") is None:
            case.body["reason"] = "a test"
