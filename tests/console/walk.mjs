// A walk over every page that a person is led to: each kind of page once, whatever links to it. A page that is new is
// walked over as soon as another one leads to it.
import assert from "node:assert/strict";
import { look, reachable } from "./look.mjs";

const ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
/** Parameters that lead to more of the same page. */
const MORE = ["key", "after", "month", "from", "next", "thing", "actor"];

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
    if (world.looks && !looked.has(path)) {
      // Once, however it is narrowed.
      looked.add(path);
      const name = fileName(path);
      await look(page, world, name);
      await reachable(page, world, name);
    }
    const links = await page.locator("a[href]").evaluateAll((all) => all.map((it) => it.getAttribute("href")));
    for (const link of links) {
      assert.ok(link.startsWith("/") || link.startsWith("#"), `${address} leads elsewhere: ${link}`);
      if (link.startsWith("/")) todo.push(link);
    }
  }
  return [...seen];
}
