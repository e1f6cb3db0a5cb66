// A named operation of three calls and two steps at once; it may be ended at any moment and begun again.

import fs from 'node:fs';

import { keyedFetch, operation, operationKey, step } from 'holdfast-client';
import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: process.env.HOLDFAST_URL,
  apiKey: process.env.HOLDFAST_KEY,
  fetch: keyedFetch({ namespace: 'tests' }),
});

async function ask(text) {
  const messages = [{ role: 'user', content: text }];
  return (await client.chat.completions.create({ model: 'acme/large-1', messages })).id;
}

function checkKeys() {
  const expanded = (text) => (typeof text === 'string' ? text : text.text.repeat(text.times));
  const cases = JSON.parse(fs.readFileSync(process.env.HOLDFAST_ASKS, 'utf8'));
  for (const { namespace, name, attempt, step: text, key } of cases) {
    const made = operationKey(expanded(namespace), expanded(name), attempt, expanded(text));
    if (made !== key) throw new Error(`${made} is not ${key}`);
  }
  return cases.length;
}

async function conflict() {
  try {
    return await step('left', () => ask('another'));
  } catch (error) {
    if (!(error instanceof OpenAI.ConflictError)) throw error;
    return error.code;
  }
}

const [ids, steps, reused] = await operation('order-42/summary', async () => {
  const made = [];
  for (const text of ['first', 'first', 'second']) made.push(await ask(text));
  return [made, await Promise.all(['left', 'right'].map((text) => step(text, () => ask(text)))), await conflict()];
});
ids.push(await operation('order-42/summary', { attempt: 2 }, () => ask('first')));
const both = await operation('order-42/other', () => Promise.allSettled([ask('left'), ask('right')]));
const errors = both.filter(({ reason }) => reason instanceof OpenAI.BadRequestError);
console.log(JSON.stringify({
  keys: checkKeys(),
  ids: new Set(ids).size,
  steps: new Set(steps).size,
  reused,
  refused: errors.map(({ reason }) => reason.code),
}));
