"""Idempotency keys for a Holdfast gateway, in whatever takes an httpx client."""

# Each call has a key from its first try until its answer was read to the end: of its body, or of the operation that
# the program names. A broken stream raises; the same call again replays it under its key.

import hashlib
import json
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


def _library(thing):  # httpx or httpx2, whichever the caller uses
    return sys.modules[type(thing).__module__.partition(".")[0]]


def _error(code, text):
    return json.dumps({"error": {"message": text, "type": "idempotency_error", "param": None, "code": code}}).encode()


class _Call:
    def __init__(self, key="", body=b"", place=""):
        self.key, self.body, self.place, self.state, self.failed = key, body, place, "new", float("inf")

    def turn(self, state):
        if state != "orphaned" or self.state == "attended":  # nobody leaves what was delivered
            self.state, self.at = state, time.monotonic()
        if state == "failed":  # asking again makes a failure no younger
            self.at = self.failed = min(self.at, self.failed)

    def follow(self, response):
        is_final = response.headers.get("x-should-retry") == "false"
        if response.is_success:
            _Watched.put_into(response, self)
        else:  # a proxy that gives no advice knows nothing of the call
            self.turn("failed" if is_final else "orphaned")
        if self.place and is_final and response.status_code == 409:
            text = f"{self.place} was used for another request. Name another one, or make another, paid attempt."
            _Watched.put_into(response, _Call(), _error("idempotency_key_conflict", text))
            response.headers.pop("content-length", None)
        return response


class Operation:
    def __init__(self, name, attempt):
        self.name, self.attempt, self.count, self.calls = name, attempt, 1, {}

    def step(self, name):
        if name.isascii() and name.isdecimal():
            raise ValueError("a step's name is no number: calls without a step have these")
        return _within(self, name)

    def _take(self, namespace, step):
        last = self.calls.get((namespace, str(self.count)))
        if step is None and (last is None or last.state in ("attended", "delivered")):
            if any(call.state == "attended" for call in self.calls.values()):
                return None
            self.count += last is not None
        step = str(self.count) if step is None else step
        place = f'Step "{step}" of the operation "{self.name}", attempt {self.attempt},'
        key = operation_key(namespace, self.name, self.attempt, step)
        return self.calls.setdefault((namespace, step), _Call(key, place=place))


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
    @classmethod
    def put_into(cls, response, call, instead=None):
        # Of the library's own kind as well, which it asks for.
        response.stream = type("Watched", (cls, type(response.stream)), {})(response, call, instead)

    def __init__(self, response, call, instead):
        self.body, self.call, self.instead, self.tail = response.stream, call, instead, b""
        self.is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        self.broken = _library(response).RemoteProtocolError

    def look(self, part):
        self.tail = self.tail[-16:] + part
        # Behind a line's end, which no text of the model can have in JSON.
        if self.is_stream and b"\ndata: [DONE]" in self.tail:
            self.call.turn("delivered")
        said, self.instead = (part, None) if self.instead is None else (self.instead, b"")
        return said

    def end(self):
        if self.is_stream and self.call.state == "attended":
            raise self.broken("the stream ended before its answer did")
        self.call.turn("delivered")

    def __iter__(self):
        yield from map(self.look, self.body)
        self.end()

    async def __aiter__(self):
        async for part in self.body:
            yield self.look(part)
        self.end()

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
        if is_completion and "idempotency-key" not in request.headers:
            with _lock:
                taken = named[0]._take(self._namespace, named[1]) if named else self._slot(request)
                call = taken or call
                call.turn("attended")
            request.headers["Idempotency-Key"] = call.key
            request.headers["Accept-Encoding"] = "identity"  # so that a stream's end can be seen
            if not taken:  # an answer and no exception, which SDKs would take for a broken connection
                text = "Another call of this operation is under way: name its step, by operation.step(name)."
                content, headers = _error("operation_step_missing", text), {"x-should-retry": "false"}
                refusal = _library(request).Response(400, content=content, headers=headers)
        try:
            yield call, refusal
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
