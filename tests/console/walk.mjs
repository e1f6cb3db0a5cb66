// A walk over every page that a person is led to: each kind of page once, whatever links to it. A page that is new is
// walked over as soon as another one leads to it.
import assert from "node:assert/strict";
import { look, reachable } from "./look.mjs";

const ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
/** Parameters that lead to more of the same page. */
const MORE = ["key", "after", "month", "from", "on", "period", "currency", "next", "thing", "actor", "sort", "view"];

/** What kind of page an address leads to: its path without ids, and what it is narrowed by. */
export function kind(address) {
  const { pathname, searchParams } = new URL(address, "http://localhost");
  const params = [...searchParams.keys()].filter((name) => !MORE.includes(name)).sort();
  return pathname.replace(ID, "ID") + (params.length ? `?${params.join("&")}` : "");
}

/** A name for the pictures of a page. */
function fileName(path) {
  return path === "/" ? "today" : path.slice(1).replaceAll("/", "-");
}

/** Whether the run looks at this page: all of them, or one half of them by the letters of their paths. */
function isOwn(path, world) {
  const letters = [...path].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
  return world.half === undefined || letters % 2 === world.half;
}

/** Walks from `starts` on, and answers the kinds of pages in the order in which they were met. */
export async function walk(page, world, starts) {
  const todo = [...starts];
  const seen = new Set();
  const looked = new Set();
  while (todo.length) {
    const address = todo.shift();
    const pageKind = kind(address);
    if (seen.has(pageKind)) continue;
    seen.add(pageKind);
    const path = pageKind.split("?")[0];
    // A file is downloaded, not shown.
    if (path.endsWith(".csv")) continue;
    const answer = await page.goto(address);
    assert.equal(answer.status(), 200, `${world.who} at ${address}`);
    if (world.looks && isOwn(path, world) && !looked.has(path)) {
      // Once, however it is narrowed.
      looked.add(path);
      const name = fileName(path);
      await look(page, world, name);
      await reachable(page, world, name);
    }
    // Links that lead away on purpose say so: the documentation, support, the page where one pays.
    const links = await page.locator('a[href]:not([rel~="external"])').evaluateAll((all) => all.map((it) => it.getAttribute("href")));
    for (const link of links) {
      assert.ok(link.startsWith("/") || link.startsWith("#"), `${address} leads elsewhere: ${link}`);
      if (link.startsWith("/")) todo.push(link);
    }
  }
  return [...seen];
}

/** Looks at the pages of what went wrong: a failure, and errors beside the fields of a filter and of a form. */
export async function lookAtFailures(page, world) {
  const gone = "/wallets/01890000-0000-7000-8000-000000000000";
  for (const [name, address, status] of [["not-found", gone, 404], ["filter-wrong", "/operations?id=seven", 422]]) {
    assert.equal((await page.goto(address)).status(), status);
    await look(page, world, name);
  }
  await page.goto("/wallets/new");
  await page.getByLabel("Name").fill("Acme Robotics");
  await page.getByLabel("Currency").fill("dollars");
  await page.getByRole("button", { name: "Create the wallet" }).click();
  await page.locator("#currency-error").waitFor();
  assert.equal(await page.getByLabel("Name").inputValue(), "Acme Robotics", "what was written stays");
  await look(page, world, "form-wrong");
}
