// The helper over a fetch that answers as it is told, with a clock that is set by hand.

import { keyedFetch, operation, operationKey, step } from 'holdfast-client';

const url = 'http://gateway/v1/chat/completions';
const DONE = 'data: {"choices": []}\n\ndata: [DONE]\n\n';
let [clock, keys] = [1_000_000, []];
Date.now = () => clock;

// A body of one piece, which ends in order or breaks.
function pieces(piece, breaks) {
  const bytes = [new TextEncoder().encode(piece)];
  return new ReadableStream({
    pull: (out) => {
      if (bytes.length) return out.enqueue(bytes.pop());
      return breaks ? out.error(new TypeError('cut')) : out.close();
    },
  });
}

async function gateway(_url, { headers, body }) {
  keys.push(new Headers(headers).get('idempotency-key'));
  const { status, stream, breaks } = JSON.parse(new TextDecoder().decode(body));
  if (status) return Response.json({ error: {} }, { status, headers: { 'x-should-retry': 'false' } });
  if (stream === undefined) return Response.json({});
  return new Response(pieces(stream, breaks), { headers: { 'content-type': 'text/event-stream' } });
}

function fresh() {
  keys = [];
  const keyed = keyedFetch({ namespace: 'tests', base: gateway });
  return (body) => keyed(url, { method: 'POST', body: JSON.stringify(body) });
}

// A loop that asks every twenty seconds, from the first failure on: which key each try has.
async function failures() {
  const ask = fresh();
  for (let tries = 0; tries < 8; tries++) {
    await ask({ status: 502 });
    clock += 20_000;
  }
  const seen = [...new Set(keys)];
  return keys.map((key) => seen.indexOf(key));
}

const thrown = async (answer) => {
  try {
    return await (await answer).text().then(() => 200);
  } catch (error) {
    return error.constructor.name;
  }
};

async function streams() {
  const ask = fresh();
  const ends = [];
  const broken = { stream: 'data: {}\n\ndata: [DONE]\n' };
  // What breaks behind its last event is whole.
  for (const body of [{ stream: DONE }, broken, { stream: '', breaks: true }, { stream: DONE, breaks: true }]) {
    ends.push(await thrown(ask(body)));
  }
  await thrown(ask(broken));
  return { ends: [ends], 'key again': keys.at(-1) === keys[1] };
}

// A step under way, and calls without a step beside it.
async function steps() {
  const ask = fresh();
  const told = await operation('order-42', async () => {
    const broken = await thrown(ask({ stream: '', breaks: true }));
    const long = await step('long', () => ask({ stream: DONE }));
    const repeated = await ask({});
    const refused = await ask({});
    await long.text();
    const after = await ask({});
    return { broken, told: [repeated, refused, after].map(({ status }) => status), refused };
  });
  const made = ['1', 'long', '1', '2'].map((text) => operationKey('tests', 'order-42', 1, text));
  const { code } = (await told.refused.json()).error;
  return { broken: told.broken, told: told.told, code, keys: String(keys) === String(made) };
}

// A key of the client's own, in the header that proxies forward: which headers the gateway gets.
async function forwarded() {
  const seen = [];
  const base = async (request) => {
    seen.push(['idempotency-key', 'x-idempotency-key'].map((name) => request.headers.get(name)));
    return Response.json({});
  };
  const keyed = keyedFetch({ namespace: 'tests', base });
  for (const headers of [{ 'X-Idempotency-Key': 'a' }, { 'X-Idempotency-Key': 'a', 'Idempotency-Key': 'b' }]) {
    await keyed(url, { method: 'POST', body: '{}', headers });
  }
  return seen;
}

console.log(JSON.stringify({
  forwarded: await forwarded(),
  failures: await failures(),
  streams: await streams(),
  steps: await steps(),
}));
