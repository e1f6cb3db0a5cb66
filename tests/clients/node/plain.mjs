// A client that knows nothing of keys: whole answers and streams.

import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: process.env.HOLDFAST_URL,
  apiKey: process.env.HOLDFAST_KEY,
  maxRetries: 8,
});
const ask = { model: 'acme/large-1', messages: [{ role: 'user', content: 'Say hello' }] };

async function whole() {
  return (await client.chat.completions.create(ask)).choices[0].message.content;
}

async function streamed() {
  let said = '';
  const chunks = await client.chat.completions.create({ ...ask, stream: true });
  for await (const chunk of chunks) said += chunk.choices[0].delta.content ?? '';
  return said;
}

console.log(JSON.stringify([await whole(), await streamed(), await whole(), await streamed()]));
