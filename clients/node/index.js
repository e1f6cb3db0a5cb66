// Idempotency keys for a Holdfast gateway, in whatever takes a fetch.
//
// Each call has a key from its first try until its answer was read to the end: of its body, or of the operation
// that the program names. A broken stream throws; the same call again replays it under its key.

import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash, randomUUID } from 'node:crypto';

const current = new AsyncLocalStorage();
// Milliseconds for which a call that nobody waits for keeps its key.
const KEPT = { attended: Infinity, orphaned: 600_000, failed: 120_000, delivered: 120_000 };

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
    Object.assign(this, { key, body, wasCut: false });
  }

  turn(state) {
    Object.assign(this, { state, at: Date.now(), wasCut: this.wasCut || state === 'orphaned' });
  }

  judge(answer, body) {
    let isBound = false;
    try {
      isBound = 'operation_id' in JSON.parse(body).error;
    } catch {
      this.wasCut ||= answer.status >= 500; // a proxy's own words: nobody knows
    }
    const isOpen = answer.headers.get('x-should-retry') === 'true' || (this.wasCut && !isBound);
    this.turn(isOpen ? 'orphaned' : isBound ? 'failed' : 'refused');
  }
}

function takeNamed({ named, step: stepName }, namespace, isRetry) {
  const place = (text) => JSON.stringify([namespace, text]);
  const last = named.calls.get(place(String(named.count)));
  if (stepName === undefined && last?.state === 'attended') {
    throw new Error('two calls of one operation at once: name its step, by step(name, body)');
  }
  if (stepName === undefined && last?.state === 'delivered' && !isRetry) named.count += 1;
  const text = stepName ?? String(named.count);
  const call = named.calls.get(place(text)) ?? new Call(operationKey(namespace, named.name, named.attempt, text));
  named.calls.set(place(text), call);
  return call;
}

function takeSlot(calls, request, bytes, isRetry) {
  const now = Date.now();
  for (const call of calls) if (now - call.at >= (KEPT[call.state] ?? 0)) calls.delete(call);
  const caller = `${request.url}\n${request.headers.get('authorization')}\n`;
  const body = createHash('sha256').update(caller).update(bytes).digest('hex');
  const mine = [...calls].filter((call) => call.body === body);
  const found = mine.find((call) => call.state === 'orphaned')
    ?? mine.findLast((call) => call.state === 'failed' && now - call.at < 60_000)
    ?? (isRetry ? mine.findLast((call) => call.state === 'failed' || call.state === 'delivered') ?? mine[0] : undefined)
    ?? new Call(randomUUID(), body);
  calls.add(found);
  return found;
}

function watched(stream, call) {
  const [reader, decoder] = [stream.getReader(), new TextDecoder()];
  let tail = '';
  const leave = () => call.state === 'attended' && call.turn('orphaned');
  return new ReadableStream({
    async pull(out) {
      try {
        const { done, value } = await reader.read();
        tail = tail.slice(-16) + decoder.decode(value, { stream: !done });
        if (tail.includes('data: [DONE]')) call.turn('delivered');
        if (!done) return out.enqueue(value);
        leave();
        out.close();
      } catch (error) {
        leave();
        out.error(error);
      }
    },
    cancel(reason) {
      leave();
      return reader.cancel(reason);
    },
  });
}

export function keyedFetch({ namespace, base = fetch }) {
  prefixed(namespace);
  const calls = new Set();
  return async (input, init) => {
    const [url, usual] = input instanceof Request ? [input.url, input.method] : [input, 'GET'];
    const isPost = (init?.method ?? usual).toUpperCase() === 'POST';
    if (!isPost || !new URL(url).pathname.endsWith('/chat/completions')) return base(input, init);
    const request = new Request(input, init);
    if (request.headers.has('idempotency-key')) return base(request);
    const bytes = Buffer.from(await request.arrayBuffer());
    const isRetry = (request.headers.get('x-stainless-retry-count') ?? '0') !== '0';
    const store = current.getStore();
    const call = store ? takeNamed(store, namespace, isRetry) : takeSlot(calls, request, bytes, isRetry);
    call.turn('attended');
    request.headers.set('Idempotency-Key', call.key);
    const { method, headers, signal } = request;
    try {
      const answer = await base(request.url, { ...init, method, headers, signal, body: bytes });
      const isStream = (answer.headers.get('content-type') ?? '').startsWith('text/event-stream');
      if (answer.ok && answer.body && isStream) return new Response(watched(answer.body, call), answer);
      // Read here: a body that is cut is this call's own error, and whoever called asks again.
      const body = await answer.arrayBuffer();
      if (answer.ok) call.turn('delivered');
      else call.judge(answer, Buffer.from(body).toString());
      return new Response(body, answer);
    } catch (error) {
      call.turn('orphaned');
      throw error;
    }
  };
}
