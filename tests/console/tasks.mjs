// What people do in the console, step by step as they do it, and what has come of it.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { fact, micros, person, signIn } from "./browser.mjs";
import { look, picture } from "./look.mjs";

/** Follows the link with this text. */
const follow = (page, name) => page.getByRole("link", { name, exact: true }).first().click();
const press = (page, name) => page.getByRole("button", { name, exact: true }).click();
/** Opens the page of a wallet or an API key by its name, from the list on. */
async function open(page, list, name) {
  await page.goto("/");
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: list }).click();
  await page.getByRole("main").getByRole("link", { name, exact: true }).click();
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
  await open(page, "Wallets", "Acme Robotics");
  await follow(page, "Issue an API key");
  await page.getByLabel("Name").fill("from the browser");
  await page.getByLabel("Spend limit").fill("5");
  await page.getByLabel("Reason").fill("a new customer");
  await press(page, "Issue the key");
  const key = await told(page);
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

async function depositOnce({ page, world }) {
  await open(page, "Wallets", "Acme Robotics");
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
  await open(page, "Wallets", "Acme Robotics");
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

async function whyWasIt402({ page, world }) {
  const refused = await call(world, "/v1/chat/completions", world.poor, {
    method: "POST", headers: { "content-type": "application/json", "idempotency-key": crypto.randomUUID() },
    body: JSON.stringify({ model: world.model, messages: [{ role: "user", content: "hello" }] }),
  });
  assert.equal(refused.status, 402);
  // Home names the low and the empty wallets; the key leads to its wallet, too.
  await page.goto("/");
  const low = page.getByRole("region", { name: "Low and empty wallets" });
  await low.getByRole("link", { name: "Borealis" }).click();
  await page.getByText("This wallet runs low").waitFor();
  assert.equal(micros(await fact(page, "Available")), 0n);
  await keep(page, world, "402-wallet", page.getByRole("heading", { level: 1 }));
  await open(page, "API keys", "small budget");
  const used = page.locator("section.facts", { hasText: "Used of its limits" });
  await used.getByText("0.00 USD of 0.000001 USD").waitFor();
  await keep(page, world, "402-key", used);
}

/** Opens the newest operation that was charged. */
async function openCharged(page) {
  await page.goto("/operations?status=completed");
  await page.locator("tbody tr").first().getByRole("link").first().click();
  await page.getByRole("heading", { level: 1, name: /^Request / }).waitFor();
}

async function explainACharge({ page, world }) {
  await openCharged(page);
  const charge = micros(await fact(page, "Charge"));
  const lines = page.getByRole("region", { name: /^Why it cost what it cost/ }).locator("tbody tr");
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
  await keep(page, world, "charge", page.getByRole("region", { name: /^Why it cost what it cost/ }));
}

async function refund({ page, world }) {
  await openCharged(page);
  const charge = micros(await fact(page, "Charge"));
  const operation = page.url();
  await follow(page, "Refund");
  await page.getByLabel("Reason").fill("the answer was of no use");
  await keep(page, world, "refund", page.getByRole("heading", { level: 1 }));
  const amount = page.getByLabel(/^Amount in/);
  const units = (Number(charge) / 1e6).toFixed(6);
  await amount.fill(units);
  await press(page, "Refund");
  await page.getByText("nothing has been done yet").waitFor();
  await page.getByRole("button", { name: "Refund" }).dblclick();
  await page.getByText("This form was sent").waitFor();
  await page.goto(operation);
  assert.equal(micros(await fact(page, "Refunded")), charge);
  assert.equal(await page.getByRole("link", { name: "Refund", exact: true }).count(), 0, "there is no more to refund");
}

async function rotateWithGrace({ page, world }) {
  await open(page, "API keys", "production");
  await follow(page, "Rotate");
  await page.getByLabel("The other credentials").selectOption({ label: "stay an hour" });
  await page.getByLabel("Reason").fill("a laptop was lost");
  await press(page, "Rotate the key");
  const key = await told(page);
  assert.notEqual(key, world.key);
  for (const bearer of [key, world.key]) {
    assert.equal((await call(world, "/v1/wallet", bearer)).status, 200, "both work for an hour");
  }
  await keep(page, world, "rotated", page.getByRole("heading", { level: 1 }));
  await follow(page, "To the API key");
  const rows = page.getByRole("region", { name: "Credentials in force" }).locator("tbody tr");
  assert.equal(await rows.count(), 2 + world.rotations);
  world.rotations += 1;
  world.key = key;
}

async function exportAMonth({ page, world }) {
  await open(page, "Wallets", "Acme Robotics");
  const available = micros(await fact(page, "Available"));
  const counting = page.getByText("is being counted");
  for (const end = Date.now() + 20_000; Date.now() < end && (await counting.count()) > 0; ) {
    await page.reload();
  }
  await keep(page, world, "statement", page.getByRole("cell", { name: "Balance after" }));
  const [file] = await Promise.all([page.waitForEvent("download"), follow(page, "The month as a CSV file")]);
  assert.match(file.suggestedFilename(), /^statement-Acme-Robotics-\d{4}-\d{2}\.csv$/);
  const lines = (await readFile(await file.path(), "utf8")).trim().split("\r\n").map((line) => line.split(","));
  const [head, ...rows] = lines;
  const of = (row, name) => row[head.indexOf(name)];
  const closing = rows.at(-1);
  assert.equal(of(closing, "kind"), "closing", JSON.stringify(lines));
  assert.equal(BigInt(of(closing, "available_micros")), available, JSON.stringify([head, closing]));
}

async function sendAgain({ page, world }) {
  await page.goto("/");
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Webhooks" }).click();
  await follow(page, "Make a webhook");
  await page.getByLabel("Address").fill(`${world.receiver}/${world.script ? "with" : "without"}`);
  await page.getByLabel("Description").fill("accounting");
  await press(page, "Make the webhook");
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
  await press(page, "Send it again");
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

export const TASKS = [
  ["issue a key", issueAKey],
  ["deposit with a double click and with back", depositOnce],
  ["deposit by the keyboard", depositByKeyboard],
  ["find why a call was 402", whyWasIt402],
  ["explain a charge", explainACharge],
  ["refund", refund],
  ["rotate with grace", rotateWithGrace],
  ["export a month", exportAMonth],
  ["send a webhook again", sendAgain],
  ["end somebody's session", endASession],
];
