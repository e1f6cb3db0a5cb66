// A short timeout and the SDK's own retries: a slow answer is picked up, not paid for again.

import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: process.env.HOLDFAST_URL,
  apiKey: process.env.HOLDFAST_KEY,
  timeout: 4_000,
  maxRetries: 9,
});
const { data, response } = await client.chat.completions
  .create(
    { model: 'acme/large-1', messages: [{ role: 'user', content: 'Say hello' }] },
    { headers: { 'Idempotency-Key': crypto.randomUUID() } },
  )
  .withResponse();
console.log(JSON.stringify({
  content: data.choices[0].message.content,
  replayed: response.headers.get('idempotent-replayed'),
}));
