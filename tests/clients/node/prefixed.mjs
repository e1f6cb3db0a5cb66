// A client that is told the header's name alone makes keys with a prefix of its own.

import OpenAI from 'openai';

class PrefixedOpenAI extends OpenAI {
  idempotencyHeader = 'Idempotency-Key';
}

const client = new PrefixedOpenAI({
  baseURL: process.env.HOLDFAST_URL,
  apiKey: process.env.HOLDFAST_KEY,
});
try {
  await client.chat.completions.create({
    model: 'acme/large-1',
    messages: [{ role: 'user', content: 'Say hello' }],
  });
} catch (error) {
  console.log(JSON.stringify({ status: error.status, code: error.code, message: error.message }));
}
