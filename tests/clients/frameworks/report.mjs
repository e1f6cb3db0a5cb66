// Asks what `HOLDFAST_ASKS` lists, `[[how, text], …]`, and prints as its last line what each came to.
//
// `HOLDFAST_KEYS` says who makes the keys: the sidecar, the helper, or an option of each call.

import { keyedFetch } from 'holdfast-client';

export const MODEL = 'acme/large-1';
export const PEOPLE = { 1: 'Ada' };
export const { HOLDFAST_URL: baseURL, HOLDFAST_KEY: apiKey } = process.env;
export const fetch = process.env.HOLDFAST_KEYS === 'helper' ? keyedFetch({ namespace: 'tests' }) : undefined;

// What a client is to set, where it is not its default: `timeout` in seconds, `max_retries`.
const { timeout, max_retries: maxRetries } = JSON.parse(process.env.HOLDFAST_SETTINGS ?? '{}');
export const settings = {
  ...(timeout === undefined ? {} : { timeout: timeout * 1_000 }),
  ...(maxRetries === undefined ? {} : { maxRetries }),
};

// Headers of one call that give it a key.
export const headers = () =>
  process.env.HOLDFAST_KEYS === 'option' ? { 'Idempotency-Key': crypto.randomUUID() } : {};

export async function run(hows) {
  const told = [];
  for (const [how, text] of JSON.parse(process.env.HOLDFAST_ASKS)) {
    try {
      told.push(await hows[how](text));
    } catch (error) {
      told.push({ error: error.constructor.name });
    }
  }
  console.log(JSON.stringify(told));
}
