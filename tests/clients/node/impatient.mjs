// A loop above the SDK that gives up on each call long before the model answers, whole, streamed and by a signal;
// then one whose calls are refused for good.

import { keyedFetch } from 'holdfast-client';
import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: process.env.HOLDFAST_URL,
  apiKey: process.env.HOLDFAST_KEY,
  fetch: keyedFetch({ namespace: 'tests' }),
  maxRetries: 0,
  timeout: 500,
});
const body = (text) => ({ model: 'acme/large-1', messages: [{ role: 'user', content: text }] });

async function whole() {
  return (await client.chat.completions.create(body('whole'))).choices[0].message.content;
}

async function streamed() {
  let said = '';
  for await (const chunk of await client.chat.completions.create({ ...body('streamed'), stream: true })) {
    for (const choice of chunk.choices) said += choice.delta.content ?? '';
  }
  return said;
}

async function signalled() {
  const signal = AbortSignal.timeout(500);
  const said = await client.chat.completions.create(body('asynchronous'), { signal, timeout: 30_000 });
  return said.choices[0].message.content;
}

async function persistent(ask) {
  for (let tries = 1; tries < 100; tries++) {
    try {
      return [await ask(), tries > 1];
    } catch (error) {
      const isLate = error instanceof OpenAI.APIConnectionError || error instanceof OpenAI.APIUserAbortError;
      if (!isLate) throw error;
    }
  }
  throw new Error('no end');
}

async function refused() {
  try {
    await client.chat.completions.create(body('refuse this'), { timeout: 30_000 });
  } catch (error) {
    return [error.status, error.headers.get('idempotent-replayed')];
  }
  return [];
}

const said = [];
for (const ask of [whole, streamed, signalled]) said.push(await persistent(ask));
const refusals = [await refused(), await refused(), await refused()];
// Equal calls at the same moment are calls of their own.
const twin = () => client.chat.completions.create(body('twins'), { timeout: 30_000 });
const twins = new Set((await Promise.all([twin(), twin()])).map((answer) => answer.id)).size;
console.log(JSON.stringify({ said, refused: refusals, twins }));
