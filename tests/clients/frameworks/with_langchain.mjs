// LangChain for JavaScript.

import { HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';

import { MODEL, PEOPLE, apiKey, baseURL, fetch, headers, run, settings } from './report.mjs';

const llm = new ChatOpenAI({ model: MODEL, apiKey, configuration: { baseURL, fetch }, ...settings });
const lookUp = tool(({ zip }) => PEOPLE[zip], {
  name: 'look_up',
  description: 'Who lives there',
  schema: z.object({ zip: z.string() }),
});
// Whole answers read the one, streams the other.
const options = () => ({ options: { headers: headers() }, headers: headers() });

async function stream(text) {
  let said = '';
  for await (const chunk of await llm.stream(text, options())) said += chunk.content;
  return said;
}

async function tools(text) {
  const bound = llm.bindTools([lookUp]);
  const messages = [new HumanMessage(text)];
  const message = await bound.invoke(messages, options());
  messages.push(message);
  for (const call of message.tool_calls) messages.push(await lookUp.invoke(call));
  return [...message.tool_calls.map((call) => call.args.zip), (await bound.invoke(messages, options())).content];
}

await run({
  whole: async (text) => (await llm.invoke(text, options())).content,
  stream,
  tools,
  structured: async (text) =>
    (await llm.withStructuredOutput(z.object({ name: z.string() })).invoke(text, options())).name,
});
