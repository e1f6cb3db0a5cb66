// The SDK's option for a key, alone: no header comes of it.

import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.env.HOLDFAST_URL, apiKey: process.env.HOLDFAST_KEY });
const body = { model: 'acme/large-1', messages: [{ role: 'user', content: 'Say hello' }] };
try {
  await client.chat.completions.create(body, { idempotencyKey: crypto.randomUUID() });
} catch (error) {
  console.log(JSON.stringify({ status: error.status, code: error.code }));
}
