// The same key and the same request: the same answer, from what was paid for before.

import assert from 'node:assert';
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.env.HOLDFAST_URL, apiKey: process.env.HOLDFAST_KEY });
const key = crypto.randomUUID();

const ask = () =>
  client.chat.completions
    .create(
      { model: 'acme/large-1', messages: [{ role: 'user', content: 'Say hello' }] },
      { headers: { 'Idempotency-Key': key } },
    )
    .withResponse();

const [first, second] = [await ask(), await ask()];
assert.deepStrictEqual(first.data, second.data);
console.log(JSON.stringify({
  same: true,
  replayed: [first, second].map(({ response }) => response.headers.get('idempotent-replayed')),
}));
