// The AI SDK.

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateObject, generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

import { MODEL, PEOPLE, apiKey, baseURL, fetch, headers, run, settings } from './report.mjs';

const gateway = createOpenAICompatible({
  name: 'gateway',
  baseURL,
  apiKey,
  fetch,
  supportsStructuredOutputs: true,
});
const model = gateway(MODEL);

async function stream(prompt) {
  let [said, failure] = ['', undefined];
  const onError = ({ error }) => {
    failure = error;
  };
  for await (const piece of streamText({ model, prompt, headers: headers(), onError }).textStream) said += piece;
  if (failure) throw failure;
  return said;
}

async function tools(prompt) {
  const zips = [];
  const lookUp = tool({
    description: 'Who lives there',
    inputSchema: z.object({ zip: z.string() }),
    execute: ({ zip }) => {
      zips.push(zip);
      return PEOPLE[zip];
    },
  });
  const stopWhen = stepCountIs(3);
  const { text } = await generateText({ model, prompt, headers: headers(), tools: { look_up: lookUp }, stopWhen });
  return [...zips, text];
}

await run({
  whole: async (prompt) => (await generateText({ model, prompt, headers: headers(), ...settings })).text,
  stream,
  tools,
  structured: async (prompt) =>
    (await generateObject({ model, prompt, schema: z.object({ name: z.string() }), headers: headers() })).object.name,
});
