// A key per call: the SDK's own retries of a call repeat its key.

import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.env.HOLDFAST_URL, apiKey: process.env.HOLDFAST_KEY });

const ask = (text) =>
  client.chat.completions.create(
    { model: 'acme/large-1', messages: [{ role: 'user', content: text }] },
    { headers: { 'Idempotency-Key': crypto.randomUUID() } },
  );

const answers = [await ask('Say hello'), await ask('Say hello')];
console.log(JSON.stringify({
  contents: answers.map((answer) => answer.choices[0].message.content),
  charges: answers.map((answer) => answer.usage.customer_charge_micros),
}));
