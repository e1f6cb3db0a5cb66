"""What no description can say to a tester: keys are for one body each, and which model there is.

A well-formed key becomes a fresh one, also where only the body is to be wrong; a well-formed model id
the model of this gateway; and a bound of the answer or of the charge one that suffices. So requests run.
What is meant to be wrong stays wrong.
"""

import os
import re
import uuid

import schemathesis

KEY = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")
MODEL = re.compile(r"[a-z0-9][a-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._:-]*\Z")
BOUNDS = ("max_completion_tokens", "max_tokens")


@schemathesis.hook
def before_call(context, case, kwargs):
    headers = {} if case.headers is None else case.headers
    place = str(getattr(case.meta.phase.data, "parameter_location", ""))
    if place.endswith("BODY") or KEY.match(str(headers.get("Idempotency-Key", ""))):
        headers["Idempotency-Key"] = str(uuid.uuid4())
    if str(headers.get("Holdfast-Max-Charge-Micros", "")).isdecimal():
        headers["Holdfast-Max-Charge-Micros"] = "9000000"
    body = case.body
    if isinstance(body, dict):
        model = body.get("model")
        if isinstance(model, str) and len(model) <= 128 and MODEL.match(model):
            body["model"] = os.environ["HOLDFAST_MODEL"]
        for name in BOUNDS:
            if type(body.get(name)) is int and body[name] > 0:
                body[name] = 100
