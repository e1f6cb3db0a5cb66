// The official SDK.

import OpenAI from 'openai';

import { MODEL, apiKey, baseURL, fetch, headers, run, settings } from './report.mjs';

const client = new OpenAI({ baseURL, apiKey, fetch, ...settings });
const shape = (name) => ({
  type: 'object',
  properties: { [name]: { type: 'string' } },
  required: [name],
  additionalProperties: false,
});
const request = (text) => ({ model: MODEL, messages: [{ role: 'user', content: text }] });
const create = (body) => client.chat.completions.create(body, { headers: headers() });

async function stream(text) {
  let said = '';
  for await (const chunk of await create({ ...request(text), stream: true })) {
    for (const choice of chunk.choices) said += choice.delta.content ?? '';
  }
  return said;
}

async function tools(text) {
  const body = { ...request(text), tools: [{ type: 'function', function: { name: 'look_up', parameters: shape('zip') } }] };
  const { message } = (await create(body)).choices[0];
  const zips = message.tool_calls.map((call) => JSON.parse(call.function.arguments).zip);
  const results = message.tool_calls.map((call) => ({ role: 'tool', tool_call_id: call.id, content: 'Ada' }));
  body.messages.push(message, ...results);
  return [...zips, (await create(body)).choices[0].message.content];
}

async function structured(text) {
  const schema = { name: 'person', schema: shape('name'), strict: true };
  const body = { ...request(text), response_format: { type: 'json_schema', json_schema: schema } };
  const answer = await client.chat.completions.parse(body, { headers: headers() });
  return answer.choices[0].message.parsed.name;
}

await run({
  whole: async (text) => (await create(request(text))).choices[0].message.content,
  stream,
  tools,
  structured,
});
