// The SDK's own loop over a tool: with a key that the client makes for each step, and with one header for all.

import OpenAI from 'openai';

class GatewayOpenAI extends OpenAI {
  idempotencyHeader = 'Idempotency-Key';

  defaultIdempotencyKey() {
    return crypto.randomUUID();
  }
}

const options = { baseURL: process.env.HOLDFAST_URL, apiKey: process.env.HOLDFAST_KEY };
const parameters = { type: 'object', properties: { zip: { type: 'string' } } };
const lookUp = { name: 'look_up', description: 'Who lives there', parameters, parse: JSON.parse, function: () => 'Ada' };
const body = () => ({
  model: 'acme/large-1',
  messages: [{ role: 'user', content: 'Who lives in 1?' }],
  tools: [{ type: 'function', function: lookUp }],
});

const said = await new GatewayOpenAI(options).chat.completions.runTools(body()).finalContent();
const headers = { 'Idempotency-Key': crypto.randomUUID() };
const code = await new OpenAI(options).chat.completions
  .runTools(body(), { headers })
  .finalContent()
  .catch((error) => error.code ?? error.cause?.code);
console.log(JSON.stringify({ said, code }));
