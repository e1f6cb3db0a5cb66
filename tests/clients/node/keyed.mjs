// A fetch that makes a key for each body: calls that say nothing of keys, over connections that break.

import OpenAI from 'openai';

// A body has one key from its first try until its answer was read to the end.
function keyedFetch({ base = fetch, milliseconds = 600_000 } = {}) {
  const kept = new Map();
  return async (url, init = {}) => {
    const headers = new Headers(init.headers);
    const isPost = (init.method ?? 'GET').toUpperCase() === 'POST';
    if (!isPost || headers.has('idempotency-key')) return base(url, init);
    const now = Date.now();
    for (const [name, { since }] of kept) if (now - since > milliseconds) kept.delete(name);
    const name = [url, headers.get('authorization'), init.body].join('\n');
    if (!kept.has(name)) kept.set(name, { key: crypto.randomUUID(), since: now });
    headers.set('Idempotency-Key', kept.get(name).key);
    const answer = await base(url, { ...init, headers });
    if (!answer.ok || !answer.body) return answer;
    if (!(answer.headers.get('content-type') ?? '').startsWith('text/event-stream')) {
      // Read here, a body that is cut is this call's own error, and the SDK asks again.
      const body = await answer.arrayBuffer();
      kept.delete(name);
      return new Response(body, answer);
    }
    const decoder = new TextDecoder();
    let tail = '';
    const look = new TransformStream({
      transform(part, out) {
        tail += decoder.decode(part, { stream: true });
        if (tail.includes('data: [DONE]')) kept.delete(name);
        tail = tail.slice(-16);
        out.enqueue(part);
      },
    });
    return new Response(answer.body.pipeThrough(look), answer);
  };
}

const client = new OpenAI({
  baseURL: process.env.HOLDFAST_URL,
  apiKey: process.env.HOLDFAST_KEY,
  fetch: keyedFetch(),
});
const body = { model: 'acme/large-1', messages: [{ role: 'user', content: 'Say hello' }] };

async function whole() {
  return (await client.chat.completions.create(body)).choices[0].message.content;
}

async function streamed() {
  let said = '';
  for await (const chunk of await client.chat.completions.create({ ...body, stream: true })) {
    for (const choice of chunk.choices) said += choice.delta.content ?? '';
  }
  return said;
}

// A loop above the SDK: it calls anew, and knows nothing of keys.
async function persistent(ask) {
  for (let tries = 0; tries < 5; tries++) {
    try {
      return await ask();
    } catch (error) {
      const isTold = error instanceof OpenAI.APIError;
      if (isTold && !(error instanceof OpenAI.APIConnectionError)) throw error;
    }
  }
  throw new Error('no end');
}

const said = [];
for (const ask of [whole, whole, streamed, streamed]) said.push(await persistent(ask));
console.log(JSON.stringify({ said }));
