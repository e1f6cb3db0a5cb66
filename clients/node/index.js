// Idempotency keys for a Holdfast gateway, in whatever takes a fetch.
// Each call has a key from its first try until its answer was read to the end: of its body, or of the operation
// that the program names. A broken stream throws; the same call again replays it under its key.

import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash, randomUUID } from 'node:crypto';

const current = new AsyncLocalStorage();
// Milliseconds for which a body finds its call again, by the state of that.
const KEPT = { attended: Infinity, orphaned: 600_000, failed: 60_000 };

function u32(number) {
  if (!Number.isInteger(number) || number < 0 || number > 0xffff_ffff) throw new RangeError('no 32-bit number');
  return Buffer.from([number >>> 24, number >>> 16, number >>> 8, number]);
}

function prefixed(text) {
  if (!text.isWellFormed()) throw new TypeError('half of a surrogate pair has no UTF-8');
  const bytes = Buffer.from(text, 'utf8');
  return Buffer.concat([u32(bytes.length), bytes]);
}

export function operationKey(namespace, name, attempt, step) {
  const hash = createHash('sha256').update('holdfast operation v1\0');
  for (const part of [prefixed(namespace), prefixed(name), u32(attempt), prefixed(step)]) hash.update(part);
  const bytes = hash.digest().subarray(0, 16);
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');
}

export function operation(name, ...rest) {
  const body = rest.pop();
  const attempt = rest[0]?.attempt ?? 1;
  return current.run({ named: { name, attempt, count: 1, calls: new Map() } }, body);
}

export function step(name, body) {
  const named = current.getStore()?.named;
  if (!named) throw new Error('a step is part of an operation');
  return current.run({ named, step: name }, body);
}

class Call {
  constructor(key, body) {
    Object.assign(this, { key, body, state: 'new', failed: Infinity });
  }

  turn(state) {
    if (state === 'orphaned' && this.state !== 'attended') return; // nobody leaves what was delivered
    Object.assign(this, { state, at: Date.now() });
    if (state === 'failed') this.at = this.failed = Math.min(this.at, this.failed); // asking again makes it no younger
  }
}

// An answer and no exception, which SDKs would take for a broken connection and try again.
function stepMissing() {
  const error = { code: 'operation_step_missing', message: 'Another call is under way: name its step, by step().' };
  return Response.json({ error }, { status: 400, headers: { 'x-should-retry': 'false' } });
}

function takeNamed({ named, step: stepName }, namespace) {
  const place = (text) => JSON.stringify([namespace, text]);
  const last = named.calls.get(place(String(named.count)));
  if (stepName === undefined && (!last || ['attended', 'delivered'].includes(last.state))) {
    if ([...named.calls.values()].some((call) => call.state === 'attended')) return undefined;
    if (last) named.count += 1;
  }
  const text = stepName ?? String(named.count);
  const call = named.calls.get(place(text)) ?? new Call(operationKey(namespace, named.name, named.attempt, text));
  named.calls.set(place(text), call);
  return call;
}

function takeSlot(calls, request, bytes) {
  for (const call of calls) if (Date.now() - call.at >= (KEPT[call.state] ?? 0)) calls.delete(call);
  const caller = `${request.url}\n${request.headers.get('authorization')}\n`;
  const body = createHash('sha256').update(caller).update(bytes).digest('hex');
  const find = (state) => [...calls].find((call) => call.body === body && call.state === state);
  const found = find('orphaned') ?? find('failed') ?? new Call(randomUUID(), body);
  calls.add(found);
  return found;
}

function watched(stream, call) {
  let [reader, decoder, tail] = [stream.getReader(), new TextDecoder(), ''];
  return new ReadableStream({
    async pull(out) {
      try {
        const { done, value } = await reader.read();
        tail = tail.slice(-16) + decoder.decode(value, { stream: !done });
        if (tail.includes('\ndata: [DONE]\n\n')) call.turn('delivered'); // no text of the model has a bare line's end
        if (!done) return out.enqueue(value);
        if (call.state === 'attended') throw new TypeError('the stream ended before its answer did');
        out.close();
      } catch (error) {
        if (call.state === 'delivered') return out.close(); // the answer is whole: an error would be asked for anew
        call.turn('orphaned');
        out.error(error);
      }
    },
    cancel(reason) {
      call.turn('orphaned');
      return reader.cancel(reason);
    },
  }, { highWaterMark: 0 }); // nothing is read before it is asked for
}

export function keyedFetch({ namespace, base = fetch }) {
  prefixed(namespace);
  const calls = new Set();
  return async (input, init) => {
    const [url, usual] = input instanceof Request ? [input.url, input.method] : [input, 'GET'];
    const isPost = (init?.method ?? usual).toUpperCase() === 'POST';
    if (!isPost || !new URL(url).pathname.endsWith('/chat/completions')) return base(input, init);
    const request = new Request(input, init);
    const forwarded = request.headers.has('idempotency-key') ? null : request.headers.get('x-idempotency-key');
    if (forwarded !== null) { request.headers.delete('x-idempotency-key'); request.headers.set('Idempotency-Key', forwarded); }
    if (request.headers.has('idempotency-key')) return base(request);
    const bytes = Buffer.from(await request.arrayBuffer());
    const store = current.getStore();
    const call = store ? takeNamed(store, namespace) : takeSlot(calls, request, bytes);
    if (!call) return stepMissing();
    call.turn('attended');
    request.headers.set('Idempotency-Key', call.key);
    const { method, headers, signal } = request;
    try {
      const answer = await base(request.url, { ...init, method, headers, signal, body: bytes });
      const isStream = (answer.headers.get('content-type') ?? '').startsWith('text/event-stream');
      if (answer.ok && answer.body && isStream) return new Response(watched(answer.body, call), answer);
      // Read here: a body that is cut is a fetch that failed, and whoever called asks again.
      const body = await answer.arrayBuffer().catch((cause) => {
        throw new TypeError('fetch failed', { cause });
      });
      // A proxy that gives no advice knows nothing of the call.
      call.turn(answer.ok ? 'delivered' : answer.headers.get('x-should-retry') === 'false' ? 'failed' : 'orphaned');
      return new Response(body, answer);
    } catch (error) {
      call.turn('orphaned');
      throw error;
    }
  };
}
