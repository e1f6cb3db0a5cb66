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
from schemathesis.core import NotSet

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
NAME = re.compile(r"[a-z_]{1,32}[.][a-z_]{1,32}\Z")
MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T")
MODEL = re.compile(r"[a-z0-9][a-z0-9._-]*/([A-Za-z0-9][A-Za-z0-9._:-]*|[*])\Z")
GROUPS = re.compile(r"[a-z_]{3,7}(,[a-z_]{3,7})?\Z")
CURRENCY = re.compile(r"[A-Z]{3}\Z")
CURSOR = re.compile(r"[A-Za-z0-9_-]{48}\Z")
THINGS = {name: os.environ["HOLDFAST_" + name.upper()] for name in ("wallet_id", "api_key_id", "operation_id", "admin_key_id", "person_id")}
RECEIVER = os.environ["HOLDFAST_RECEIVER"]
PATHS = {"wallets": "wallet_id", "api_keys": "api_key_id", "operations": "operation_id", "admin_keys": "admin_key_id", "people": "person_id"}
BOUNDS = (("spend_micros", "spend_window"), ("key_spend_micros", "key_spend_window"))


def is_id(value):
    return isinstance(value, str) and UUID.match(value) is not None


def whole(value):
    # A whole number of JSON Schema may have a point; one of this API has none.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def complete(body):
    body.update({name: whole(value) for name, value in body.items()})
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
    if CURRENCY.match(str(body.get("currency", ""))) and ("wallet_id" in body or "operation_id" in body):
        body["currency"] = "USD"
    if body.get("amount_micros") == 0:
        body["amount_micros"] = 1
    if str(body.get("url", "")).startswith("http"):
        body["url"] = RECEIVER
    if isinstance(body.get("kinds"), list) and all(isinstance(kind, str) for kind in body["kinds"]):
        body["kinds"] = ["wallet.low"] if body["kinds"] else []
    if isinstance(body.get("models"), list) and all(MODEL.match(str(id)) for id in body["models"]):
        body["models"] = [os.environ["HOLDFAST_MODEL"]] if body["models"] else []
    if isinstance(body.get("ends_in_seconds"), int):
        body.pop("ends_at", None)
    elif MOMENT.match(str(body.get("ends_at", ""))):
        body["ends_at"] = "2099-01-01T00:00:00Z"


def filter_together(query):
    if set(query) - {"api_key_id", "request_key", "limit"}:
        query.pop("request_key", None)
    if is_id(query.get("request_key")):
        query["api_key_id"] = THINGS["api_key_id"]
        query["request_key"] = str(uuid.uuid4())
    if CURSOR.match(str(query.get("cursor", ""))):
        del query["cursor"]
    known = {"thing": "wallet:" + THINGS["wallet_id"], "use_case": "wallet.create", "kind": "wallet.credited"}
    for name, pattern in (("thing", ":"), ("use_case", "."), ("kind", ".")):
        if pattern in str(query.get(name, "")) and (name == "thing" or NAME.match(query[name])):
            query[name] = known[name]
    if GROUPS.match(str(query.get("by", ""))):
        query["by"] = "day,model"
    for name, moment in (("from", "2026-11-01T00:00:00Z"), ("to", "2026-11-02T00:00:00Z")):
        if MOMENT.match(str(query.get(name, ""))):
            query[name] = moment
    if query.get("format") in ("csv", "jsonl"):
        query.pop("limit", None)
        query.pop("cursor", None)


@schemathesis.auth()
class AdminKey:
    def get(self, case, context):
        return os.environ["HOLDFAST_ADMIN_KEY"]

    def set(self, case, key, context):
        case.headers = {**(case.headers or {}), "Authorization": "Bearer " + key}


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
    if case.path.endswith("/rotate") and (case.body is None or isinstance(case.body, NotSet)):
        case.body, case.media_type = {}, "application/json"
    if isinstance(case.body, dict):
        complete(case.body)
        for order in case.body.get("keys") or []:
            if isinstance(order, dict):
                complete(order)
        if case.path.endswith(("/rotate", "/api_keys", "/bulk")) and case.body.get("reason") is None:
            case.body["reason"] = "a test"
