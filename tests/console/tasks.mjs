// What people do in the console, step by step as they do it, and what has come of it. The tasks of everyday begin on
// Home, and no more clicks than are allowed lead to the answer: a click or Enter counts, typing does not.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { fact, micros, person, signIn } from "./browser.mjs";
import { look, picture } from "./look.mjs";

/** The hand of a person who begins on Home, and the clicks that it made. */
class Hand {
  clicks = 0;

  constructor(page) {
    this.page = page;
  }

  static async onHome(page) {
    await page.goto("/");
    await page.getByRole("heading", { level: 1, name: "Home" }).waitFor();
    return new Hand(page);
  }

  async click(locator) {
    this.clicks += 1;
    await locator.click();
  }

  /** Follows the link with this text. */
  follow(name, within = this.page.getByRole("main")) {
    return this.click(within.getByRole("link", { name, exact: true }).first());
  }

  press(name) {
    return this.click(this.page.getByRole("button", { name, exact: true }));
  }

  /** Opens a field of choices with a click, and types the beginning of one. */
  async choose(name, option) {
    this.clicks += 1;
    await this.page.getByRole("combobox", { name, exact: true }).selectOption(option);
  }

  /** Searches for a term whose single hit opens. */
  async search(term) {
    await this.page.getByRole("searchbox", { name: "Search" }).fill(term);
    this.clicks += 1;
    await this.page.keyboard.press("Enter");
    await this.page.waitForURL((url) => url.pathname !== "/search" && url.pathname !== "/");
  }

  within(most) {
    assert.ok(this.clicks <= most, `${this.clicks} clicks, and ${most} are allowed`);
  }
}

/** Follows the link with this text. */
const follow = (page, name) => page.getByRole("link", { name, exact: true }).first().click();
const press = (page, name) => page.getByRole("button", { name, exact: true }).click();
/** Opens the page of a wallet or an API key by its name. */
async function open(page, name) {
  const hand = await Hand.onHome(page);
  await hand.search(name);
  return hand;
}
/** Opens a page from the navigation, which is in a menu on a small screen. */
async function navigate(page, name) {
  await page.goto("/");
  const menu = page.locator("header details.menu > summary");
  if (await menu.isVisible()) await menu.click();
  await page.getByRole("navigation", { name: "Pages" }).filter({ visible: true }).getByRole("link", { name }).click();
}
const call = (world, path, key, more = {}) =>
  fetch(`${world.api}${path}`, { ...more, headers: { authorization: `Bearer ${key}`, ...more.headers } });
/** A secret that was told. */
const told = (page) => page.locator("section.snippet", { has: page.getByRole("heading", { name: "API key" }) })
  .locator("code").innerText();
/** Keeps a picture of this part of the page for the manual, and looks at the page where the run does so. */
async function keep(page, world, name, part) {
  if (world.looks) await look(page, world, `task-${name}`);
  if (world.pictures) await picture(page, world, name, part);
}

async function issueAKey({ page, context, world }) {
  const hand = await open(page, "Acme Robotics");
  await hand.follow("New API key");
  await page.getByLabel("Name").fill("from the browser");
  await page.getByLabel("Spend limit").fill("5");
  await hand.choose("Within", "day");
  await page.getByLabel("Reason").fill("a new customer");
  await hand.press("Issue the key");
  const key = await told(page);
  hand.within(4);
  assert.match(key, /^hfk_/);
  assert.equal((await call(world, "/v1/wallet", key)).status, 200, "the key works");
  const copies = page.locator("section.snippet").getByRole("button", { name: "Copy" });
  if (world.script) {
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await copies.first().click();
    await page.locator("section.snippet").getByRole("button", { name: "Copied" }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), key);
  } else {
    assert.equal(await copies.count(), 0, "a button that does nothing is not there");
  }
  await keep(page, world, "issue", page.getByRole("heading", { level: 1 }));
  await page.reload();
  assert.ok(!(await page.content()).includes(key), "it is told once");
}

/** Tops a wallet up, and sees the new balance. */
async function topUp({ page, world }) {
  const hand = await open(page, "Acme Robotics");
  const before = micros(await fact(page, "Available"));
  await hand.follow("Deposit");
  await page.getByLabel("Amount in USD").fill("12.50");
  await hand.press("Deposit");
  await hand.press("Deposit");
  const done = await page.getByText(/^12\.50 USD deposited to Acme Robotics\./).innerText();
  hand.within(4);
  const [, available] = /Available (.*)\.$/m.exec(done);
  assert.equal(micros(available), before + 12_500_000n, done);
  await keep(page, world, "topped-up");
}

async function depositOnce({ page, world }) {
  await open(page, "Acme Robotics");
  const wallet = page.url();
  const before = micros(await fact(page, "Available"));
  await follow(page, "Deposit");
  const form = page.url();
  await page.getByLabel("Amount in USD").fill("25");
  await page.getByLabel("Note").fill("INV-2026-1107");
  await press(page, "Deposit");
  assert.equal(micros(await fact(page, "Available afterwards")), before + 25_000_000n);
  const review = page.url();
  await keep(page, world, "deposit-review", page.getByRole("heading", { level: 1 }));
  await page.reload();
  await page.getByText("nothing has been done yet").waitFor();
  await page.getByRole("button", { name: "Deposit" }).dblclick();
  await page.getByText("This form was sent").waitFor();
  await keep(page, world, "deposit-done");
  // Back over the review to the form: each says what was done, and the browser asks nothing.
  for (const url of [review, form]) {
    assert.equal((await page.goBack())?.status(), 200, "a page, and no question of the browser");
    assert.equal(page.url(), url);
    await page.getByText("This form was sent").waitFor();
  }
  await page.reload();
  await page.goto(wallet);
  assert.equal(micros(await fact(page, "Available")), before + 25_000_000n, "one deposit");
}

/** By the keyboard alone, from the wallet's page to the money. */
async function depositByKeyboard({ page }) {
  await open(page, "Acme Robotics");
  const wallet = page.url();
  const before = micros(await fact(page, "Available"));
  const at = async (locator) => {
    for (let stop = 0; stop < 60; stop += 1) {
      await page.keyboard.press("Tab");
      if (await locator.evaluate((it) => it === document.activeElement)) return;
    }
    assert.fail("the keyboard does not get there");
  };
  await at(page.getByRole("link", { name: "Deposit", exact: true }));
  await page.keyboard.press("Enter");
  await page.waitForURL("**/deposit?key=*");
  await at(page.getByLabel("Amount in USD"));
  await page.keyboard.type("1.5");
  await page.keyboard.press("Enter");
  await page.getByText("nothing has been done yet").waitFor();
  await at(page.getByRole("button", { name: "Deposit" }));
  await page.keyboard.press("Enter");
  await page.getByText("This form was sent").waitFor();
  await page.goto(wallet);
  assert.equal(micros(await fact(page, "Available")), before + 1_500_000n);
}

/** A request of the poor key, which is refused. */
async function refused(world) {
  const answer = await call(world, "/v1/chat/completions", world.poor, {
    method: "POST", headers: { "content-type": "application/json", "idempotency-key": crypto.randomUUID() },
    body: JSON.stringify({ model: world.model, messages: [{ role: "user", content: "hello" }] }),
  });
  assert.equal(answer.status, 402);
  return answer.headers.get("x-request-id");
}

/** Why a call was 402: from its request id, from its key and from its wallet. */
async function whyWasIt402({ page, world }) {
  const id = await refused(world);
  const cause = page.getByText(/^The hold would pass the API key's spend limit\. The request could have cost 0\.\d+ USD, and 0\.000001 USD was available/);
  // The row is written beside the request, within a second.
  await until(page, async () => {
    await page.goto(`/search?q=${id}`);
    return new URL(page.url()).pathname !== "/search";
  });
  let hand = await Hand.onHome(page);
  await hand.search(id);
  await cause.waitFor();
  hand.within(2);
  await keep(page, world, "402", page.getByRole("heading", { level: 1 }));

  hand = await open(page, "small budget");
  const used = page.locator("section.facts", { hasText: "Limits, holds included" });
  await used.getByText("0.00 USD of 0.000001 USD").waitFor();
  await keep(page, world, "402-key", used);
  const latest = () => page.getByRole("region", { name: "Last refused requests" }).locator("tbody tr").first();
  await latest().getByText("402 spend_limit_exceeded").waitFor();
  await hand.click(latest().getByRole("link").first());
  await cause.waitFor();
  hand.within(2);

  // Home names the low and the empty wallets.
  hand = await Hand.onHome(page);
  await hand.follow("Borealis", page.getByRole("region", { name: "Low and empty wallets" }));
  await page.getByText("The balance is below the low-balance threshold").waitFor();
  assert.equal(micros(await fact(page, "Available")), 0n);
  await keep(page, world, "402-wallet", page.getByRole("heading", { level: 1 }));
  await hand.click(latest().getByRole("link").first());
  await cause.waitFor();
  hand.within(2);
}

/** Loads the page anew until this is so. */
async function until(page, isSo) {
  const end = Date.now() + 20_000;
  while (!(await isSo())) assert.ok(Date.now() < end, await page.locator("main").innerText());
}

/** Today's revenue and margin against yesterday's: on Home, without a click. */
async function readTheDay({ page, world }) {
  const hand = await Hand.onHome(page);
  const tile = (label) => page.locator(".tiles dl > div").filter({ has: page.locator("dt", { hasText: label }) });
  assert.match(await tile("Revenue today").innerText(), /0\.\d+ USD[^]*yesterday 0\.\d*[1-9]\d* USD/);
  assert.match(await tile("Margin today").innerText(), /\d\.\d %[^]*with known cost, yesterday -?\d+\.\d %/);
  hand.within(0);
  await keep(page, world, "home", page.locator("section.tiles"));
}

/** The five largest customers of the month: on Home, without a click, the largest first. */
async function findTheLargest({ page }) {
  const hand = await Hand.onHome(page);
  const ranking = page.locator("section").filter({ has: page.getByRole("heading", { name: "Largest customers this month" }) });
  const lines = (await ranking.locator("li").allInnerTexts()).map((line) => line.split("\n").map((part) => part.trim()));
  const named = lines.filter(([name]) => !name.startsWith("Other ("));
  assert.equal(named.length, 5, JSON.stringify(lines));
  assert.equal(named[0][0], "Acme Robotics");
  const amounts = named.map((line) => micros(line.at(-1)));
  assert.deepEqual(amounts, [...amounts].sort((one, two) => Number(two - one)), JSON.stringify(lines));
  hand.within(0);
}

/** Which route fails, since when, and what its provider said. */
async function findTheFailingRoute({ page, world }) {
  const hand = await Hand.onHome(page);
  const row = page.getByRole("region", { name: "Failing routes" }).locator("tbody tr").filter({ hasText: "acme/" });
  await hand.click(row.getByRole("link").first());
  await page.getByRole("heading", { level: 1, name: /^acme\// }).waitFor();
  assert.match(await fact(page, "Failing since"), /^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2} UTC$/);
  assert.match(await fact(page, "Last error"), /^HTTP 503, code engine_busy, type overload_error: The engines are busy\.?/);
  hand.within(1);
  await keep(page, world, "route");
}

/** Pays for an answer, and opens its request by the id that the caller sees. */
async function openCharged(page, world) {
  const answer = await call(world, "/v1/chat/completions", world.key, {
    method: "POST", headers: { "content-type": "application/json", "idempotency-key": crypto.randomUUID() },
    body: JSON.stringify({ model: world.model, messages: [{ role: "user", content: "hello to the console" }] }),
  });
  assert.equal(answer.status, 200);
  const { id } = await answer.json();
  assert.match(id, /^chatcmpl_/);
  const hand = await Hand.onHome(page);
  await hand.search(id);
  await page.getByRole("heading", { level: 1, name: /^Request / }).waitFor();
  return hand;
}

async function explainACharge({ page, world }) {
  const hand = await openCharged(page, world);
  const charge = micros(await fact(page, "Charge"));
  const lines = page.getByRole("region", { name: /^Charge breakdown/ }).locator("tbody tr");
  const rows = await lines.evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.innerText.trim())));
  const amount = (name) => rows.find(([meter]) => meter.startsWith(name)).at(-1);
  const exact = (text) => {
    const [, units, fraction = ""] = /^([\d,]+)(?:\.(\d+))?/.exec(text);
    return BigInt(units.replaceAll(",", "")) * 10n ** 12n + BigInt(fraction.padEnd(12, "0"));
  };
  const isLine = ([, units]) => units !== "";
  const sum = rows.filter(isLine).reduce((total, row) => total + exact(row.at(-1)), 0n);
  assert.equal(sum, exact(amount("Sum")), JSON.stringify(rows));
  assert.equal((sum + 999_999n) / 1_000_000n, charge, "rounded up it is the charge");
  hand.within(2);
  await keep(page, world, "charge", page.getByRole("region", { name: /^Charge breakdown/ }));
}

/** Refunds the request that a customer names by its `chatcmpl_…`. */
async function refund({ page, world }) {
  const hand = await openCharged(page, world);
  const charge = micros(await fact(page, "Charge"));
  const operation = page.url();
  await hand.follow("Refund");
  await page.getByLabel("Reason").fill("the answer was of no use");
  await keep(page, world, "refund", page.getByRole("heading", { level: 1 }));
  const amount = page.getByLabel(/^Amount in/);
  const units = (Number(charge) / 1e6).toFixed(6);
  await amount.fill(units);
  await hand.press("Refund");
  await page.getByText("nothing has been done yet").waitFor();
  hand.clicks += 1;
  await page.getByRole("button", { name: "Refund" }).dblclick();
  await page.getByText("This form was sent").waitFor();
  hand.within(4);
  await page.goto(operation);
  assert.equal(micros(await fact(page, "Refunded")), charge);
  assert.equal(await page.getByRole("link", { name: "Refund", exact: true }).count(), 0, "there is no more to refund");
}

async function rotateWithGrace({ page, world }) {
  const hand = await open(page, "production");
  await hand.follow("Rotate");
  await hand.choose("The other credentials", { label: "stay an hour" });
  await page.getByLabel("Reason").fill("a laptop was lost");
  await hand.press("Rotate the key");
  const key = await told(page);
  hand.within(4);
  assert.notEqual(key, world.key);
  for (const bearer of [key, world.key]) {
    assert.equal((await call(world, "/v1/wallet", bearer)).status, 200, "both work for an hour");
  }
  await keep(page, world, "rotated", page.getByRole("heading", { level: 1 }));
  await follow(page, "Open API key");
  const rows = page.getByRole("region", { name: "Credentials in force" }).locator("tbody tr");
  assert.equal(await rows.count(), 2 + world.rotations);
  world.rotations += 1;
  world.key = key;
}

/** One file for the accountant, with every payment and every charge of this month, and of the last one. */
async function fileForTheAccountant({ page }) {
  for (const month of ["this", "last"]) {
    const hand = await Hand.onHome(page);
    await hand.follow("Payments");
    const [file] = await Promise.all([page.waitForEvent("download"), hand.follow(`File (${month} month)`)]);
    hand.within(2);
    assert.match(file.suggestedFilename(), /^ledger-\d{4}-\d{2}\.csv$/);
    const lines = (await readFile(await file.path(), "utf8")).trim().split("\r\n").map((line) => line.split(","));
    const kinds = lines.map((line) => line[lines[0].indexOf("kind")]);
    assert.equal(kinds.at(-1), "closing", JSON.stringify(lines));
    const wanted = month === "this" ? ["deposit", "charge", "refund"] : [];
    for (const kind of wanted) assert.ok(kinds.includes(kind), `${kind} in ${JSON.stringify(lines)}`);
  }
}

async function exportAMonth({ page, world }) {
  await open(page, "Acme Robotics");
  const available = micros(await fact(page, "Available"));
  await follow(page, "Statement");
  const counting = page.getByText("is being counted");
  for (const end = Date.now() + 20_000; Date.now() < end && (await counting.count()) > 0; ) {
    await page.reload();
  }
  await page.getByRole("cell", { name: "Closing balance" }).waitFor();
  await keep(page, world, "statement", page.getByRole("heading", { level: 1 }));
  const [file] = await Promise.all([page.waitForEvent("download"), follow(page, "Statement as CSV")]);
  assert.match(file.suggestedFilename(), /^statement-Acme-Robotics-\d{4}-\d{2}\.csv$/);
  const lines = (await readFile(await file.path(), "utf8")).trim().split("\r\n").map((line) => line.split(","));
  const [head, ...rows] = lines;
  const of = (row, name) => row[head.indexOf(name)];
  const closing = rows.at(-1);
  assert.equal(of(closing, "kind"), "closing", JSON.stringify(lines));
  assert.equal(BigInt(of(closing, "available_micros")), available, JSON.stringify([head, closing]));
}

async function sendAgain({ page, world }) {
  await navigate(page, "Webhooks");
  await follow(page, "Create a webhook");
  await page.getByLabel("Address").fill(`${world.receiver}/${world.script ? "with" : "without"}`);
  await page.getByLabel("Description").fill("accounting");
  await press(page, "Create the webhook");
  await page.getByRole("heading", { name: "Secret" }).waitFor();
  await page.locator("section.facts").getByRole("link").click();
  const webhook = page.url();
  await follow(page, "Send a test");
  await press(page, "Send a test");
  const rows = page.getByRole("region", { name: "Deliveries" }).locator("tbody tr");
  const delivered = async (tries) => {
    const until = Date.now() + 20_000;
    for (;;) {
      await page.goto(webhook);
      const row = rows.filter({ hasText: "delivered" }).filter({ hasText: "webhook.test" });
      if ((await row.count()) && (await row.first().locator("td").nth(2).innerText()).trim() === String(tries)) return;
      assert.ok(Date.now() < until, await page.locator("main").innerText());
    }
  };
  await delivered(1);
  await page.getByRole("link", { name: "Send again" }).first().click();
  await press(page, "Send again");
  await delivered(world.resendTries);
  await keep(page, world, "webhook-again", page.getByRole("region", { name: "Deliveries" }));
}

async function endASession({ browser, page, world }) {
  const other = await person(browser, world);
  await signIn(other.page, world.email, world.password);
  await other.page.getByRole("heading", { level: 1, name: "Home" }).waitFor();
  await page.goto("/account");
  await keep(page, world, "sessions", page.getByRole("region", { name: "Sessions" }));
  // The newest of the others is the one that has just begun.
  await page.getByRole("link", { name: "End it" }).first().click();
  await press(page, "End this session");
  await page.waitForURL("**/account");
  await other.page.goto("/wallets");
  assert.match(other.page.url(), /\/sign-in\?next=/, "they are asked to sign in");
  await page.goto("/wallets");
  assert.match(page.url(), /\/wallets$/, "this one goes on");
  await other.context.close();
}

/** The ten tasks whose clicks are counted, and beside them what a person may do wrong or otherwise. */
export const TASKS = [
  ["find why a call was 402", whyWasIt402],
  ["explain a charge", explainACharge],
  ["refund a request", refund],
  ["read the day", readTheDay],
  ["find the largest customers", findTheLargest],
  ["find the failing route", findTheFailingRoute],
  ["top up", topUp],
  ["issue a key with a daily limit", issueAKey],
  ["rotate with grace", rotateWithGrace],
  ["file for the accountant", fileForTheAccountant],
  ["deposit with a double click and with back", depositOnce],
  ["deposit by the keyboard", depositByKeyboard],
  ["export a month", exportAMonth],
  ["send a webhook again", sendAgain],
  ["end somebody's session", endASession],
];
