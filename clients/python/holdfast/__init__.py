"""Idempotency keys for a Holdfast gateway, in whatever takes an httpx client.

Each call has a key from its first try until its answer was read to the end: of its body, or of the operation that
the program names. A broken stream raises; the same call again replays it under its key.
"""

from __future__ import annotations

import hashlib
import json
import struct
import threading
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

try:
    import httpx2 as httpx  # comes with openai-python 3
except ImportError:
    import httpx  # type: ignore[no-redef]

__all__ = ["AsyncTransport", "Operation", "Transport", "operation", "operation_key"]
# Seconds for which a call that nobody waits for keeps its key.
_KEPT = {"attended": 1e9, "orphaned": 600.0, "failed": 120.0, "delivered": 120.0}


def operation_key(namespace: str, name: str, attempt: int, step: str) -> str:
    """The key of one call of a named operation: the same in every process and language."""
    texts = [struct.pack(">I", len(text)) + text for text in map(str.encode, (namespace, name, step))]
    parts = [b"holdfast operation v1\0", texts[0], texts[1], struct.pack(">I", attempt), texts[2]]
    return str(uuid.UUID(bytes=hashlib.sha256(b"".join(parts)).digest()[:16], version=4))


class _Call:
    def __init__(self, key: str, body: bytes = b"") -> None:
        self.key, self.body, self.was_cut = key, body, False
        self.turn("attended")

    def turn(self, state: str) -> None:
        self.state, self.at, self.was_cut = state, time.monotonic(), self.was_cut or state == "orphaned"

    def judge(self, response: httpx.Response) -> None:
        try:
            is_bound = "operation_id" in json.loads(response.content)["error"]
        except (ValueError, KeyError, TypeError):  # a proxy's own words: nobody knows
            is_bound, self.was_cut = False, self.was_cut or response.status_code >= 500
        if response.headers.get("x-should-retry") == "true" or (self.was_cut and not is_bound):
            self.turn("orphaned")
        else:
            self.turn("failed" if is_bound else "refused")


class Operation:
    """Calls with keys of their own: by their steps, else by their order."""

    def __init__(self, name: str, attempt: int) -> None:
        self.name, self.attempt, self.count = name, attempt, 1
        self.calls: dict[tuple[str, str], _Call] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Names the one call that is made in here."""
        token = _current.set((self, name))
        try:
            yield
        finally:
            _current.reset(token)

    def take(self, namespace: str, step: str | None, is_retry: bool) -> _Call:
        last = self.calls.get((namespace, str(self.count)))
        if step is None and last and last.state == "attended":
            raise RuntimeError("two calls of one operation at once: name its step, by operation.step(name)")
        self.count += step is None and last is not None and last.state == "delivered" and not is_retry
        place = (namespace, str(self.count) if step is None else step)
        return self.calls.setdefault(place, _Call(operation_key(namespace, self.name, self.attempt, place[1])))


_current: ContextVar[tuple[Operation, str | None] | None] = ContextVar("holdfast_operation", default=None)


@contextmanager
def operation(name: str, attempt: int = 1) -> Iterator[Operation]:
    """Names the operation of the calls in here. Another attempt is another, paid run."""
    named = Operation(name, attempt)
    token = _current.set((named, None))
    try:
        yield named
    finally:
        _current.reset(token)


class _Keys:
    def __init__(self, namespace: str) -> None:
        self.namespace, self.lock, self.calls = namespace, threading.Lock(), list[_Call]()

    def take(self, request: httpx.Request) -> _Call | None:
        is_completion = request.method == "POST" and request.url.path.endswith("/chat/completions")
        if not is_completion or "idempotency-key" in request.headers:
            return None
        named, is_retry = _current.get(), request.headers.get("x-stainless-retry-count", "0") != "0"
        with self.lock:
            call = named[0].take(self.namespace, named[1], is_retry) if named else self.slot(request, is_retry)
            call.turn("attended")
        request.headers["Idempotency-Key"] = call.key
        return call

    def slot(self, request: httpx.Request, is_retry: bool) -> _Call:
        now, caller = time.monotonic(), request.headers.get("authorization", "")
        self.calls = [call for call in self.calls if now - call.at < _KEPT.get(call.state, 0.0)]
        body = hashlib.sha256(f"{request.url}\n{caller}\n".encode() + request.content).digest()
        mine = [call for call in self.calls if call.body == body]
        orphans = [call for call in mine if call.state == "orphaned"]
        failed = [call for call in mine if call.state == "failed" and now - call.at < 60.0]
        ended = [call for call in mine if is_retry and call.state in ("failed", "delivered")]
        found = orphans[:1] or failed[-1:] or ended[-1:] or (mine[:1] if is_retry else [])
        if not found:
            found = [_Call(str(uuid.uuid4()), body)]
            self.calls += found
        return found[0]


class _Watched(httpx.SyncByteStream, httpx.AsyncByteStream):
    def __init__(self, response: httpx.Response, call: _Call) -> None:
        self.body: Any = response.stream
        self.call, self.tail = call, b""
        self.is_stream = response.headers.get("content-type", "").startswith("text/event-stream")

    def look(self, part: bytes, is_end: bool = False) -> bytes:
        self.tail = self.tail[-16:] + part
        if b"data: [DONE]" in self.tail if self.is_stream else is_end:
            self.call.turn("delivered")
        return part

    def __iter__(self) -> Iterator[bytes]:
        yield from map(self.look, self.body)
        self.look(b"", is_end=True)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self.body:
            yield self.look(part)
        self.look(b"", is_end=True)

    def leave(self) -> None:
        if self.call.state == "attended":
            self.call.turn("orphaned")

    def close(self) -> None:
        self.leave()
        self.body.close()

    async def aclose(self) -> None:
        self.leave()
        await self.body.aclose()


class Transport(httpx.HTTPTransport):
    """For `httpx.Client(transport=…)`. The namespace tells this program's operations from others' of its API key."""

    def __init__(self, *, namespace: str, **options: Any) -> None:
        super().__init__(**options)
        self._keys = _Keys(namespace)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        call = self._keys.take(request)
        try:
            response = super().handle_request(request)
            if call and not response.is_success:
                response.read()
                call.judge(response)
        except BaseException:
            if call:
                call.turn("orphaned")
            raise
        if call and response.is_success:
            response.stream = _Watched(response, call)
        return response


class AsyncTransport(httpx.AsyncHTTPTransport):
    """The same for `httpx.AsyncClient(transport=…)`."""

    def __init__(self, *, namespace: str, **options: Any) -> None:
        super().__init__(**options)
        self._keys = _Keys(namespace)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        call = self._keys.take(request)
        try:
            response = await super().handle_async_request(request)
            if call and not response.is_success:
                await response.aread()
                call.judge(response)
        except BaseException:
            if call:
                call.turn("orphaned")
            raise
        if call and response.is_success:
            response.stream = _Watched(response, call)
        return response
