"""A transport that makes a key for each body: calls that say nothing of keys, over connections that break."""

import hashlib
import time
import uuid

try:
    import httpx2 as httpx  # comes with openai-python 3
except ImportError:
    import httpx


class Keys:
    """Which key a body has, from its first try until its answer was read to the end."""

    def __init__(self, seconds=600):
        self.kept, self.seconds = {}, seconds

    def give(self, request):
        if request.method != "POST" or "idempotency-key" in request.headers:
            return None
        now = time.monotonic()
        for name in [name for name, (_, since) in list(self.kept.items()) if now - since > self.seconds]:
            self.kept.pop(name, None)
        caller = request.headers.get("authorization", "")
        name = hashlib.sha256(f"{request.url}\n{caller}\n".encode() + request.content).digest()
        key, _ = self.kept.setdefault(name, (str(uuid.uuid4()), now))
        request.headers["Idempotency-Key"] = key
        return name

    def watch(self, name, response):
        if name and response.is_success:
            is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
            response.stream = Watched(response.stream, is_stream, lambda: self.kept.pop(name, None))
        return response


class Watched(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that says when it was read to its end; a stream's end is its `[DONE]`."""

    def __init__(self, body, is_stream, whole):
        self.body, self.is_stream, self.whole, self.tail = body, is_stream, whole, b""

    def look(self, part):
        self.tail += part
        if self.is_stream and b"data: [DONE]" in self.tail:
            self.whole()
        self.tail = self.tail[-16:]
        return part

    def __iter__(self):
        for part in self.body:
            yield self.look(part)
        if not self.is_stream:
            self.whole()

    async def __aiter__(self):
        async for part in self.body:
            yield self.look(part)
        if not self.is_stream:
            self.whole()

    def close(self):
        self.body.close()

    async def aclose(self):
        await self.body.aclose()


class KeyedTransport(httpx.HTTPTransport):
    keys = Keys()

    def handle_request(self, request):
        request.read()
        name = self.keys.give(request)
        return self.keys.watch(name, super().handle_request(request))


class AsyncKeyedTransport(httpx.AsyncHTTPTransport):
    keys = Keys()

    async def handle_async_request(self, request):
        await request.aread()
        name = self.keys.give(request)
        return self.keys.watch(name, await super().handle_async_request(request))


# The transport ends here; what follows uses it.
import json
import os

from openai import APIConnectionError, OpenAI

client = OpenAI(
    base_url=os.environ["HOLDFAST_URL"],
    api_key=os.environ["HOLDFAST_KEY"],
    http_client=httpx.Client(transport=KeyedTransport(), timeout=600),
)
body = {"model": "acme/large-1", "messages": [{"role": "user", "content": "Say hello"}]}


def whole():
    return client.chat.completions.create(**body).choices[0].message.content


def streamed():
    said = ""
    for chunk in client.chat.completions.create(**body, stream=True):
        said += "".join(choice.delta.content or "" for choice in chunk.choices)
    return said


def persistent(ask):
    """A loop above the SDK: it calls anew, and knows nothing of keys."""
    for _ in range(5):
        try:
            return ask()
        except (APIConnectionError, httpx.TransportError):
            continue
    raise TimeoutError


said = [persistent(ask) for ask in [whole, whole, streamed, streamed]]
print(json.dumps({"said": said, "kept": len(KeyedTransport.keys.kept)}))
