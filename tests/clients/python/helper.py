"""The helper over a transport that answers as it is told, with a clock that is set by hand."""

import asyncio
import json
import types

import holdfast
import httpx2 as httpx

URL = "http://gateway/v1/chat/completions"
DONE = b'data: {"choices": []}\n\ndata: [DONE]\n\n'
clock, keys = [1_000.0], []
holdfast.time = types.SimpleNamespace(monotonic=lambda: clock[0])


class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body of one piece, which ends in order or breaks."""

    def __init__(self, piece, breaks=False):
        self.piece, self.breaks = piece, breaks

    def __iter__(self):
        yield self.piece
        if self.breaks:
            raise httpx.ReadError("cut")

    async def __aiter__(self):
        for piece in self:
            yield piece


def gateway(request):
    keys.append(request.headers["idempotency-key"])
    match json.loads(request.content):
        case {"status": status}:
            return httpx.Response(status, stream=Pieces(b"{}"), headers={"x-should-retry": "false"})
        case {"stream": stream, **rest}:
            stream = Pieces(stream.encode(), "breaks" in rest)
            return httpx.Response(200, stream=stream, headers={"content-type": "text/event-stream"})
    return httpx.Response(200, stream=Pieces(b"{}"))


def fresh():
    keys.clear()
    return httpx.Client(transport=holdfast.keyed(httpx.MockTransport(gateway), namespace="tests"))


def asynchronous(body):
    async def ask():
        transport = holdfast.keyed(httpx.MockTransport(gateway), namespace="tests")
        async with httpx.AsyncClient(transport=transport) as client:
            return await client.post(URL, json=body)

    return asyncio.run(ask())


def failures():
    """A loop that asks every twenty seconds, from the first failure on: which key each try has."""
    client, seen = fresh(), []
    for _ in range(8):
        client.post(URL, json={"status": 502})
        clock[0] += 20
    for key in keys:
        seen += [key] if key not in seen else []
    return [seen.index(key) for key in keys]


def raised(ask, body):
    try:
        return ask(body).status_code
    except httpx.HTTPError as error:
        return type(error).__name__


def streams():
    done = {"stream": DONE.decode()}
    bodies = [done, {"stream": "data: {}\n\ndata: [DONE]\n"}, {"stream": "", "breaks": True}, {**done, "breaks": True}]
    client = fresh()
    ends = [[raised(ask, body) for body in bodies] for ask in (lambda it: client.post(URL, json=it), asynchronous)]
    raised(lambda body: client.post(URL, json=body), bodies[1])
    return {"ends": ends, "key again": keys[-1] == keys[1]}


def steps():
    """A step under way, and calls without a step beside it."""
    client = fresh()
    with holdfast.operation("order-42") as operation:
        broken = raised(lambda body: client.post(URL, json=body), {"stream": "", "breaks": True})
        with operation.step("long"):
            long = client.send(client.build_request("POST", URL, json={"stream": DONE.decode()}), stream=True)
        repeated, refused = client.post(URL, json={}), client.post(URL, json={})
        long.read()
        after = client.post(URL, json={})
    made = [holdfast.operation_key("tests", "order-42", 1, step) for step in ("1", "long", "1", "2")]
    return {
        "broken": broken,
        "told": [answer.status_code for answer in (repeated, refused, after)],
        "code": refused.json()["error"]["code"],
        "keys": keys == made,
    }


def forwarded():
    """A key of the client's own, in the header that proxies forward: which headers the gateway gets."""
    seen = []

    def base(request):
        seen.append([request.headers.get(name) for name in ("idempotency-key", "x-idempotency-key")])
        return httpx.Response(200, json={})

    client = httpx.Client(transport=holdfast.keyed(httpx.MockTransport(base), namespace="tests"))
    for headers in ({"X-Idempotency-Key": "a"}, {"X-Idempotency-Key": "a", "Idempotency-Key": "b"}):
        client.post(URL, json={}, headers=headers)
    return seen


client = fresh()
print(json.dumps({
    "forwarded": forwarded(),
    "failures": failures(),
    "streams": streams(),
    "steps": steps(),
}))
