"""Asks what `HOLDFAST_ASKS` lists, `[[how, text], …]`, and prints as its last line what each came to.

`HOLDFAST_KEYS` says who makes the keys: the sidecar, the helper, or an option of each call.
"""

import json
import os
import uuid

import holdfast

try:
    import httpx
except ImportError:
    import httpx2 as httpx

MODEL = "acme/large-1"
URL, API_KEY = os.environ["HOLDFAST_URL"], os.environ["HOLDFAST_KEY"]
KEYS = os.environ["HOLDFAST_KEYS"]
PEOPLE = {"1": "Ada"}
http = async_http = None
if KEYS == "helper":
    http = httpx.Client(transport=holdfast.keyed(httpx.HTTPTransport(), namespace="tests"), timeout=60)
    async_transport = holdfast.keyed(httpx.AsyncHTTPTransport(), namespace="tests")
    async_http = httpx.AsyncClient(transport=async_transport, timeout=60)
# What a client is to set, where it is not its default: `timeout` in seconds, `max_retries`.
settings = json.loads(os.environ.get("HOLDFAST_SETTINGS", "{}"))


def option():
    """Arguments of one call that give it a key."""
    if KEYS != "option":
        return {}
    return {"extra_headers": {"Idempotency-Key": str(uuid.uuid4())}}


def request(text, **more):
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], **more}


def function(parameters):
    return {"type": "function", "function": {"name": "look_up", "description": "Who lives there", "parameters": parameters}}


def shape(name):
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name], "additionalProperties": False}


def run(**hows):
    told = []
    for how, text in json.loads(os.environ["HOLDFAST_ASKS"]):
        try:
            told.append(hows[how](text))
        except Exception as error:
            told.append({"error": type(error).__name__})
    print(json.dumps(told))
