// The playground as people use it: a request, a second tab that joins it while it runs, and the same one again.
import assert from "node:assert/strict";
import { fact } from "./browser.mjs";
import { look } from "./look.mjs";

const WORDS = "one two three four five six";
const REPLAYED = "idempotent-replayed";

const press = (page, name) => page.getByRole("button", { name, exact: true }).click();
const paste = (page, world) => page.getByLabel("API key").fill(world.key);
const answered = (page) => page.getByText("You said: " + WORDS).waitFor();

/** Asks for a slow answer, has it and the same one again, and looks at both. */
export async function playground({ page, context, world }) {
  await page.goto("/");
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Playground" }).click();
  await paste(page, world);
  await page.getByLabel("Message").fill(`${WORDS}\n[[sim: pace 300ms]]`);
  await press(page, "Send");
  if (world.script) await join({ page, context, world });
  await answered(page);
  const charge = await fact(page, "It cost, once");
  assert.match(charge, /^0\.0*[1-9]\d* USD$/);
  assert.equal(await fact(page, REPLAYED), "false");
  // The page keeps no API key but in the field where it was pasted, which without a script is a new page's.
  if (!world.script) await paste(page, world);
  await press(page, "Send again");
  await page.getByText("sent again without a run").waitFor();
  await answered(page);
  assert.deepEqual([await fact(page, REPLAYED), await fact(page, "It cost, once")], ["true", charge]);
  if (world.looks) await look(page, world, "playground-answer");
  await page.getByRole("link", { name: "Charge breakdown" }).click();
  await page.getByRole("heading", { level: 1, name: /^Request / }).waitFor();
}

/** Opens the same request in a second tab while it runs: the answer comes there from its beginning. */
async function join({ page, context, world }) {
  const [tab] = await Promise.all([
    context.waitForEvent("page"), page.getByRole("link", { name: "Join from another tab" }).click(),
  ]);
  assert.ok(!tab.url().includes(world.key), "the API key is in no address");
  await paste(tab, world);
  await press(tab, "Send");
  await answered(tab);
  assert.equal(await fact(tab, REPLAYED), "true");
  await tab.close();
}
