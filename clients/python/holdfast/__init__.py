"""Idempotency keys for a Holdfast gateway, in whatever takes an httpx client."""

# Each call has a key from its first try until its answer was read to the end: of its body, or of the operation that
# the program names. A broken stream raises; the same call again replays it under its key.

import hashlib
import sys
import threading
import time
import uuid
from contextlib import contextmanager
from contextvars import ContextVar

# Seconds for which a body finds its call again, by the state of that.
_KEPT = {"attended": 1e9, "orphaned": 600.0, "failed": 60.0}
_current = ContextVar("holdfast_operation", default=None)
_lock = threading.Lock()  # of all calls: transports may share an operation


def operation_key(namespace, name, attempt, step):
    texts = [len(text).to_bytes(4, "big") + text for text in map(str.encode, (namespace, name, step))]
    parts = [b"holdfast operation v1\0", texts[0], texts[1], attempt.to_bytes(4, "big"), texts[2]]
    return str(uuid.UUID(bytes=hashlib.sha256(b"".join(parts)).digest()[:16], version=4))


def _http(thing):  # httpx or httpx2, whichever the caller uses
    return sys.modules[type(thing).__module__.partition(".")[0]]


class _Call:
    def __init__(self, key="", body=b""):
        self.key, self.body, self.state, self.failed = key, body, "new", float("inf")

    def turn(self, state):
        if state != "orphaned" or self.state == "attended":  # nobody leaves what was delivered
            self.state, self.at = state, time.monotonic()
        if state == "failed":  # asking again makes a failure no younger
            self.at = self.failed = min(self.at, self.failed)

    def follow(self, response):
        if response.is_success:
            # Of the library's own kind as well, which it asks for.
            response.stream = type("Watched", (_Watched, type(response.stream)), {})(response, self)
        else:  # a proxy that gives no advice knows nothing of the call
            self.turn("failed" if response.headers.get("x-should-retry") == "false" else "orphaned")
        return response


class Operation:
    def __init__(self, name, attempt):
        self.name, self.attempt, self.count, self.calls = name, attempt, 1, {}

    def step(self, name):
        return _within(self, name)

    def _take(self, namespace, step):
        last = self.calls.get((namespace, str(self.count)))
        if step is None and (last is None or last.state in ("attended", "delivered")):
            if any(call.state == "attended" for call in self.calls.values()):
                return _Call()
            self.count += last is not None
        step = str(self.count) if step is None else step
        return self.calls.setdefault((namespace, step), _Call(operation_key(namespace, self.name, self.attempt, step)))


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
        self.body, self.call, self.tail, self.broken = response.stream, call, b"", _http(response).RemoteProtocolError
        self.is_stream = response.headers.get("content-type", "").startswith("text/event-stream")

    def look(self, part):
        self.tail = self.tail[-16:] + part
        # Behind a line's end, which no text of the model can have in JSON.
        if self.is_stream and b"\ndata: [DONE]\n\n" in self.tail:
            self.call.turn("delivered")
        return part

    @contextmanager
    def reading(self):
        try:
            yield
        except Exception:
            if not self.is_stream or self.call.state != "delivered":  # behind its end nothing is missing
                raise
        if self.is_stream and self.call.state == "attended":
            raise self.broken("the stream ended before its answer did")
        self.call.turn("delivered")

    def __iter__(self):
        with self.reading():
            yield from map(self.look, self.body)

    async def __aiter__(self):
        with self.reading():
            async for part in self.body:
                yield self.look(part)

    def close(self):
        self.call.turn("orphaned")
        self.body.close()

    async def aclose(self):
        self.call.turn("orphaned")
        await self.body.aclose()


class _Keyed:
    def __init__(self, base, namespace):
        self._base, self._namespace, self._calls = base, namespace, []

    def __getattr__(self, name):
        return getattr(self._base, name)

    def handle_request(self, request):
        request.read()
        with self._calling(request) as (call, refusal):
            return refusal or call.follow(self._base.handle_request(request))

    async def handle_async_request(self, request):
        await request.aread()
        with self._calling(request) as (call, refusal):
            return refusal or call.follow(await self._base.handle_async_request(request))

    @contextmanager
    def _calling(self, request):
        call, named, refusal = _Call(), _current.get(), None  # what is no completion is followed for nothing
        is_completion = request.method == "POST" and request.url.path.endswith("/chat/completions")
        if is_completion and "x-idempotency-key" in request.headers and "idempotency-key" not in request.headers:
            request.headers["Idempotency-Key"] = request.headers.pop("x-idempotency-key")
        elif is_completion and "idempotency-key" not in request.headers:
            with _lock:
                call = named[0]._take(self._namespace, named[1]) if named else self._slot(request)
                call.turn("attended")
            # Not compressed, so that a stream's end can be seen.
            request.headers.update({"Idempotency-Key": call.key, "Accept-Encoding": "identity"})
            if not call.key:  # an answer and no exception, which SDKs would take for a broken connection
                error = {"code": "operation_step_missing", "message": "Another call is under way: name its step."}
                refusal = _http(request).Response(400, json={"error": error}, headers={"x-should-retry": "false"})
        try:
            yield call, refusal
        except BaseException:
            call.turn("orphaned")
            raise

    def _slot(self, request):
        self._calls = [call for call in self._calls if time.monotonic() - call.at < _KEPT.get(call.state, 0.0)]
        caller = f"{request.url}\n{request.headers.get('authorization', '')}\n"
        body = hashlib.sha256(caller.encode() + request.content).digest()
        states = {call.state: call for call in reversed(self._calls) if call.body == body}
        call = states.get("orphaned") or states.get("failed") or _Call(str(uuid.uuid4()), body)
        self._calls += [] if call in self._calls else [call]
        return call


def keyed(base, *, namespace):
    return _Keyed(base, namespace)
