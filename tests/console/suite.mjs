// The suite of the console in a real browser. What it is to do, and where, comes as JSON in HOLDFAST_TEST_WORLD: it
// knows nothing of how a gateway is started. It ends with 0 where all went well, and says what took how long.
//
//   first   the first owner uses the printed link and signs in
//   accept  a person uses an invitation and signs in
//   tasks   what people do
//   walk    every page that the person is led to, each looked at from all sides
//   failures   the pages of what went wrong
//   playground   a request, joined from a second tab and sent again
import assert from "node:assert/strict";
import { accept, person, signIn, withBrowser } from "./browser.mjs";
import { look, picture } from "./look.mjs";
import { playground } from "./playground.mjs";
import { TASKS } from "./tasks.mjs";
import { lookAtFailures, walk } from "./walk.mjs";

const world = { rotations: 0, found: [], ...JSON.parse(process.env.HOLDFAST_TEST_WORLD) };

async function step(name, run) {
  const began = performance.now();
  await run();
  console.log(`ok   ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
}

async function becomeTheFirstOwner({ page }) {
  await page.goto("/sign-in");
  if (world.looks) await look(page, world, "sign-in");
  await page.goto(world.link);
  if (world.looks) await look(page, world, "first-owner");
  if (world.pictures) await picture(page, world, "first-owner");
  await page.getByLabel("E-mail address").fill(world.email);
  await page.getByLabel("Name").fill("Ada");
  await page.getByLabel("New password", { exact: true }).fill(world.password);
  await page.getByLabel("The new password again").fill(world.password);
  await page.getByRole("button", { name: "Become the owner" }).dblclick();
  // The second click aborts the navigation of the first, which a wait for the address would fail by.
  await page.getByRole("heading", { level: 1, name: "Home" }).waitFor();
  if (world.pictures) await picture(page, world, "today");
  assert.equal((await page.goto(world.link)).status(), 404, "it works once");
  await page.goto("/");
}

await withBrowser(async (browser) => {
  const visitor = await person(browser, world);
  const { page, asked } = visitor;
  for (const part of world.parts) {
    if (part === "first") await step("the first owner signs in", () => becomeTheFirstOwner(visitor));
    if (part === "sign-in") await step("sign in", () => signIn(page, world.email, world.password));
    if (part === "accept") {
      await step(`accept an invitation as ${world.who}`, () => accept(page, world));
    }
    if (part === "tasks") {
      for (const [name, task] of TASKS) await step(name, () => task({ ...visitor, browser, world }));
    }
    if (part === "playground") {
      await step(`the playground, as ${world.who}`, () => playground({ ...visitor, world }));
    }
    if (part === "walk") {
      await step(`every page, as ${world.who}`, async () => {
        // A session beside this one, to be ended.
        const other = await person(browser, world);
        await signIn(other.page, world.email, world.password);
        await other.page.waitForURL((url) => url.pathname !== "/sign-in");
        const kinds = await walk(page, world, world.starts ?? ["/"]);
        for (const wanted of world.kinds ?? []) {
          assert.ok(kinds.some((it) => it.split("?")[0] === wanted), `nothing leads to ${wanted}`);
        }
        console.log(`     ${kinds.length} pages: ${kinds.join(" ")}`);
        await other.context.close();
      });
    }
    if (part === "failures") await step("the pages of failures", () => lookAtFailures(page, world));
  }
  const origin = new URL(world.base).origin;
  const elsewhere = asked.filter((url) => new URL(url).origin !== origin && !url.startsWith("chrome-error:"));
  assert.deepEqual(elsewhere, [], "everything comes from the console");
  // At the end: whoever mends one page wants to know of the others.
  assert.deepEqual(world.found, [], "pages that are not sound");
});
