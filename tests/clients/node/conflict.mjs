// The same key and another request: an error, and no retry.

import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.env.HOLDFAST_URL, apiKey: process.env.HOLDFAST_KEY });
const key = crypto.randomUUID();

const ask = (text) =>
  client.chat.completions.create(
    { model: 'acme/large-1', messages: [{ role: 'user', content: text }] },
    { headers: { 'Idempotency-Key': key } },
  );

await ask('Say hello');
try {
  await ask('Say something else');
} catch (error) {
  if (!(error instanceof OpenAI.ConflictError)) throw error;
  console.log(JSON.stringify({ status: error.status, code: error.code }));
}
