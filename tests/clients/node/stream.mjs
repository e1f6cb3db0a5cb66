// A stream that is read to its end, however often its connection breaks.

import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.env.HOLDFAST_URL, apiKey: process.env.HOLDFAST_KEY });

async function stream(text) {
  const key = crypto.randomUUID();
  for (let tries = 0; tries < 10; tries++) {
    let said = ''; // another try begins with the first chunk
    let usage;
    try {
      const chunks = await client.chat.completions.create(
        {
          model: 'acme/large-1',
          messages: [{ role: 'user', content: text }],
          stream: true,
          stream_options: { include_usage: true },
        },
        { headers: { 'Idempotency-Key': key } },
      );
      for await (const chunk of chunks) {
        for (const choice of chunk.choices) said += choice.delta.content ?? '';
        usage = chunk.usage ?? usage;
      }
      return [said, usage.customer_charge_micros];
    } catch (error) {
      // A connection that breaks in the middle is an error of the runtime's own.
      const isTold = error instanceof OpenAI.APIError;
      if (isTold && !(error instanceof OpenAI.APIConnectionError)) throw error;
    }
  }
  throw new Error(`no end of ${key}`);
}

console.log(JSON.stringify(await stream('Say hello')));
