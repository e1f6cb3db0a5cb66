"""What no description can say to a tester: keys are for one body each, and which model there is.

A well-formed key becomes a fresh one, also where only the body is to be wrong; a well-formed model id
the model of this gateway; and a bound of the answer or of the charge one that suffices. So requests run: seldom is one asked to replay only.
Moments of a report become a day, and a page of it none: they depend on each other. What is meant to be wrong stays wrong.
"""

import os
import re
import uuid

import schemathesis

KEY = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")
MODEL = re.compile(r"[a-z0-9][a-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._:-]*\Z")
BOUNDS = ("max_completion_tokens", "max_tokens")
MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:00:00Z)?\Z")
PAGE = re.compile(r"page_[0-9]+\Z")
SECONDS_MAX = 253_402_300_799
BUCKETS_MAX = {"/v1/organization/usage/completions": 168, "/v1/organization/costs": 180}


def is_number(value, low, high):
    return str(value).isdecimal() and low <= int(value) <= high


def of_report(path, query):
    if all(is_number(query.get(name, 0), 0, SECONDS_MAX) for name in ("start_time", "end_time")):
        query.update({name: at for name, at in (("start_time", 0), ("end_time", 86_400)) if name in query})
    if is_number(query.get("limit", ""), 1, BUCKETS_MAX.get(path, 0)):
        query["limit"] = 1
    for name, moment in (("from", "2026-11-01"), ("to", "2026-11-02")):
        if MOMENT.match(str(query.get(name, ""))):
            query[name] = moment
    if PAGE.match(str(query.get("page", ""))):
        del query["page"]


@schemathesis.hook
def before_call(context, case, kwargs):
    headers = {} if case.headers is None else case.headers
    place = str(getattr(case.meta.phase.data, "parameter_location", ""))
    if headers.get("Holdfast-Replay-Only") == "true" and not place.endswith("HEADER"):
        del headers["Holdfast-Replay-Only"]
    if place.endswith("BODY") or KEY.match(str(headers.get("Idempotency-Key", ""))):
        headers["Idempotency-Key"] = str(uuid.uuid4())
    if str(headers.get("Holdfast-Max-Charge-Micros", "")).isdecimal():
        headers["Holdfast-Max-Charge-Micros"] = "9000000"
    if case.query:
        of_report(case.path, case.query)
    body = case.body
    if isinstance(body, dict):
        model = body.get("model")
        if isinstance(model, str) and len(model) <= 128 and MODEL.match(model):
            body["model"] = os.environ["HOLDFAST_MODEL"]
        for name in BOUNDS:
            if type(body.get(name)) is int and body[name] > 0:
                body[name] = 100
