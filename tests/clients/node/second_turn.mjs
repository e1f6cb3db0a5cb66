// What the SDK's own helpers give back is appended to the conversation, whole and in pieces.

import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.env.HOLDFAST_URL, apiKey: process.env.HOLDFAST_KEY });

const shape = (name) => ({
  type: 'object',
  properties: { [name]: { type: 'string' } },
  required: [name],
  additionalProperties: false,
});
const request = (messages) => ({
  model: 'acme/large-1',
  messages,
  tools: [{ type: 'function', function: { name: 'look_up', parameters: shape('zip'), strict: true } }],
  response_format: { type: 'json_schema', json_schema: { name: 'person', schema: shape('name'), strict: true } },
});
const options = () => ({ headers: { 'Idempotency-Key': crypto.randomUUID() } });

const whole = (messages) => client.chat.completions.parse(request(messages), options());
const inPieces = (messages) => client.chat.completions.stream(request(messages), options()).finalChatCompletion();

const converse = async (ask) => {
  const messages = [{ role: 'user', content: 'Who lives in 1?' }];
  const zips = [];
  const names = [];
  for (let turn = 0; turn < 3; turn += 1) {
    const { message } = (await ask(messages)).choices[0];
    messages.push(message);
    for (const call of message.tool_calls ?? []) {
      zips.push(call.function.parsed_arguments.zip);
      messages.push({ role: 'tool', tool_call_id: call.id, content: 'Ada' });
    }
    if (message.parsed) {
      names.push(message.parsed.name);
      messages.push({ role: 'user', content: 'Who again?' });
    }
  }
  return { zips, names };
};

console.log(JSON.stringify([await converse(whole), await converse(inPieces)]));
