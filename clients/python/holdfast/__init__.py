"""Idempotency keys for a Holdfast gateway, in whatever takes an httpx client.

Each call has a key from its first try until its answer was read to the end: of its body, or of the operation that
the program names. A broken stream raises; the same call again replays it under its key.
"""

import hashlib
import threading
import time
import uuid
from contextlib import contextmanager
from contextvars import ContextVar

# Seconds for which a body finds its call again, by the state of that.
_KEPT = {"attended": 1e9, "orphaned": 600.0, "failed": 60.0}
_current = ContextVar("holdfast_operation", default=None)


def operation_key(namespace, name, attempt, step):
    texts = [len(text).to_bytes(4, "big") + text for text in map(str.encode, (namespace, name, step))]
    parts = [b"holdfast operation v1\0", texts[0], texts[1], attempt.to_bytes(4, "big"), texts[2]]
    return str(uuid.UUID(bytes=hashlib.sha256(b"".join(parts)).digest()[:16], version=4))


class _Call:
    def __init__(self, key, body=b""):
        self.key, self.body, self.state = key, body, "new"

    def turn(self, state):
        if state != "orphaned" or self.state == "attended":  # nobody leaves what was delivered
            self.state, self.at = state, time.monotonic()

    def follow(self, response):
        if response.is_success:
            # Of the library's own kind as well, which it asks for, be that httpx or httpx2.
            kind = type("Watched", (_Watched, type(response.stream)), {})
            response.stream = kind(response, self)
        else:  # a proxy that gives no advice knows nothing of the call
            self.turn("failed" if response.headers.get("x-should-retry") == "false" else "orphaned")
        return response


class Operation:
    def __init__(self, name, attempt):
        self.name, self.attempt, self.count, self.calls = name, attempt, 1, {}

    def step(self, name):
        return _within(self, name)

    def take(self, namespace, step):
        last = self.calls.get((namespace, str(self.count)))
        if step is None and last and last.state == "attended":
            raise RuntimeError("two calls of one operation at once: name its step, by operation.step(name)")
        self.count += step is None and last is not None and last.state == "delivered"
        step = str(self.count) if step is None else step
        key = operation_key(namespace, self.name, self.attempt, step)
        return self.calls.setdefault((namespace, step), _Call(key))


@contextmanager
def _within(named, step):
    token = _current.set((named, step))
    try:
        yield named
    finally:
        _current.reset(token)


def operation(name, attempt=1):
    return _within(Operation(name, attempt), None)


class _Watched:
    def __init__(self, response, call):
        self.body, self.call, self.tail = response.stream, call, b""
        self.is_stream = response.headers.get("content-type", "").startswith("text/event-stream")

    def look(self, part, is_end=False):
        self.tail = self.tail[-16:] + part
        # Behind a line's end, which no text of the model can have in JSON.
        if b"\ndata: [DONE]" in self.tail if self.is_stream else is_end:
            self.call.turn("delivered")
        return part

    def __iter__(self):
        yield from map(self.look, self.body)
        self.look(b"", is_end=True)

    async def __aiter__(self):
        async for part in self.body:
            yield self.look(part)
        self.look(b"", is_end=True)

    def close(self):
        self.call.turn("orphaned")
        self.body.close()

    async def aclose(self):
        self.call.turn("orphaned")
        await self.body.aclose()


class _Keyed:
    def __init__(self, base, namespace):
        self._base, self._namespace, self._lock, self._calls = base, namespace, threading.Lock(), []

    def __getattr__(self, name):
        return getattr(self._base, name)

    def handle_request(self, request):
        request.read()
        with self._calling(request) as call:
            return call.follow(self._base.handle_request(request))

    async def handle_async_request(self, request):
        await request.aread()
        with self._calling(request) as call:
            return call.follow(await self._base.handle_async_request(request))

    @contextmanager
    def _calling(self, request):
        call, named = _Call(""), _current.get()  # anything else than a completion is followed for nothing
        is_completion = request.method == "POST" and request.url.path.endswith("/chat/completions")
        if is_completion and "idempotency-key" not in request.headers:
            with self._lock:
                call = named[0].take(self._namespace, named[1]) if named else self._slot(request)
                call.turn("attended")
            request.headers["Idempotency-Key"] = call.key
        try:
            yield call
        except BaseException:
            call.turn("orphaned")
            raise

    def _slot(self, request):
        now, caller = time.monotonic(), request.headers.get("authorization", "")
        self._calls = [call for call in self._calls if now - call.at < _KEPT.get(call.state, 0.0)]
        body = hashlib.sha256(f"{request.url}\n{caller}\n".encode() + request.content).digest()
        states = {call.state: call for call in reversed(self._calls) if call.body == body}
        call = states.get("orphaned") or states.get("failed") or _Call(str(uuid.uuid4()), body)
        self._calls += [] if call in self._calls else [call]
        return call


def keyed(base, *, namespace):
    return _Keyed(base, namespace)
