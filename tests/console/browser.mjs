// The browser: Debian's Chromium, driven over its own protocol. It reaches loopback alone, and keeps nothing.
import { chromium } from "playwright-core";
import { look, windowOf } from "./look.mjs";

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--no-proxy-server",
];
/** Time for a step: whatever takes longer never happens. */
const PATIENCE_MS = 20_000;

/** Starts the browser, hands it to `use`, and ends it whatever becomes of that. */
export async function withBrowser(use) {
  const executablePath = process.env.HOLDFAST_TEST_CHROMIUM;
  const browser = await chromium.launch({ executablePath, args: FLAGS, timeout: 60_000 });
  try {
    return await use(browser);
  } finally {
    await browser.close();
  }
}

/** A person's browser of their own: no cookie of anybody else, with a script or without. */
export async function person(browser, world) {
  const context = await browser.newContext({
    baseURL: world.base, javaScriptEnabled: world.script, viewport: windowOf(world),
    acceptDownloads: true, locale: "en-GB", timezoneId: "UTC",
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  page.on("pageerror", (error) => { throw error; });
  return { context, page, asked };
}

/** Signs in at the form that stands there. */
export async function signIn(page, email, password) {
  await page.goto("/sign-in");
  await page.getByLabel("E-mail address").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** Sets the password of a link, which signs in. */
export async function accept(page, world) {
  const { link, password } = world;
  await page.goto(link);
  if (world.looks) await look(page, world, "link");
  await page.getByLabel("New password", { exact: true }).fill(password);
  await page.getByLabel("The new password again").fill(password);
  await page.getByRole("button", { name: "Set the password" }).click();
  await page.waitForURL((url) => url.pathname === "/");
}

/** The value of a fact. */
export async function fact(page, name) {
  const row = page.locator("dl > div").filter({ has: page.locator("dt", { hasText: new RegExp(`^${name}$`) }) });
  return (await row.locator("dd").innerText()).trim();
}

/** Micros of a text like `1,250.00 USD`. */
export function micros(text) {
  const [, sign, units, fraction = ""] = /^(-?)([\d,]+)(?:\.(\d+))? /.exec(text);
  const value = BigInt(units.replaceAll(",", "")) * 1_000_000n + BigInt(fraction.padEnd(6, "0"));
  return sign ? -value : value;
}
