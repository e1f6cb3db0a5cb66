"""A named operation of three calls and two steps at once; it may be ended at any moment and begun again."""

import asyncio
import contextlib
import json
import os
import pathlib

import holdfast
import httpx2 as httpx
from openai import AsyncOpenAI, BadRequestError, ConflictError, OpenAI

options = {"base_url": os.environ["HOLDFAST_URL"], "api_key": os.environ["HOLDFAST_KEY"]}
transport = holdfast.keyed(httpx.HTTPTransport(), namespace="tests")
other_transport = holdfast.keyed(httpx.AsyncHTTPTransport(), namespace="tests")
client = OpenAI(http_client=httpx.Client(transport=transport), **options)
other = AsyncOpenAI(http_client=httpx.AsyncClient(transport=other_transport), **options)


def messages(text):
    return {"model": "acme/large-1", "messages": [{"role": "user", "content": text}]}


def expanded(text):
    return text if isinstance(text, str) else text["text"] * text["times"]


def check_keys():
    cases = json.loads(pathlib.Path(os.environ["HOLDFAST_ASKS"]).read_text(encoding="utf-8"))
    for case in cases:
        namespace, name, step = (expanded(case[part]) for part in ("namespace", "name", "step"))
        assert holdfast.operation_key(namespace, name, case["attempt"], step) == case["key"], case
    return len(cases)


def ask(text):
    return client.chat.completions.create(**messages(text)).id


async def both(named, is_named):
    async def ask(step):
        with named.step(step) if is_named else contextlib.nullcontext():
            return (await other.chat.completions.create(**messages(step))).id

    return await asyncio.gather(ask("left"), ask("right"), return_exceptions=True)


def conflict(named):
    try:
        with named.step("left"):
            return ask("another")
    except ConflictError as error:
        return error.code


loop = asyncio.new_event_loop()
with holdfast.operation("order-42/summary") as named:
    ids = [ask(text) for text in ("first", "first", "second")]
    steps = loop.run_until_complete(both(named, True))
    reused = conflict(named)
with holdfast.operation("order-42/summary", attempt=2):
    ids.append(ask("first"))
with holdfast.operation("order-42/other") as named:
    told = loop.run_until_complete(both(named, False))
unnamed = [error.code for error in told if isinstance(error, BadRequestError)]
print(json.dumps({
    "keys": check_keys(),
    "ids": len(set(ids)),
    "steps": len(set(steps)),
    "reused": reused,
    "refused": unnamed,
}))
