// Calls that say nothing of keys, over connections that break: the helper makes a key for each body.

import { keyedFetch } from 'holdfast-client';
import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: process.env.HOLDFAST_URL,
  apiKey: process.env.HOLDFAST_KEY,
  fetch: keyedFetch({ namespace: 'tests' }),
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
