// A look at a page as people have it: light, dark, 360 px wide and printed. A machine looks for what a screen reader or a
// small screen would stumble over, and a picture is kept for people.
import { AxeBuilder } from "@axe-core/playwright";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";

/** Largest page, in bytes of HTML. */
const PAGE_MAX = 50 << 10;
const VIEWS = [
  { name: "light", colorScheme: "light", width: 1280, height: 900 },
  { name: "dark", colorScheme: "dark", width: 1280, height: 900 },
  { name: "narrow", colorScheme: "light", width: 360, height: 740 },
  { name: "print", colorScheme: "dark", media: "print", width: 794, height: 1123 },
];

/** Size of a person's window: a desk's, unless the run is on a phone. */
export const windowOf = (world) => (world.narrow ? { width: 390, height: 844 } : { width: 1280, height: 900 });

/** Looks at the page that is open, from all sides; what is wrong with it goes to what was found. */
export async function look(page, world, name) {
  const folder = join(world.folder, world.site);
  await mkdir(folder, { recursive: true });
  const bytes = Buffer.byteLength(await page.content());
  if (bytes > PAGE_MAX) world.found.push(`${name} has ${bytes} bytes`);
  for (const { name: view, colorScheme, media = "screen", width, height } of VIEWS) {
    await page.emulateMedia({ colorScheme, media });
    await page.setViewportSize({ width, height });
    const over = await page.evaluate(() => {
      const root = document.documentElement;
      return { page: root.scrollWidth, window: root.clientWidth };
    });
    if (over.page > over.window) world.found.push(`${name} is ${over.page} px wide on ${over.window} px`);
    // Everything in light; of the dark view its colours, which are all that differs; of the narrow one its width.
    const axe = new AxeBuilder({ page }).setLegacyMode(true);
    if (view === "dark") axe.withRules(["color-contrast", "link-in-text-block"]);
    if (view === "light" || view === "dark") world.found.push(...(await unsound(axe, `${name}, ${view}`)));
    await page.screenshot({ path: join(folder, `${name}.${view}.png`), fullPage: true });
  }
  await page.emulateMedia({ colorScheme: "light", media: "screen" });
  await page.setViewportSize(windowOf(world));
}

/** A small picture for the manual. */
export async function picture(page, world, name, part = page.locator("body")) {
  const folder = join(world.folder, "pictures");
  await mkdir(folder, { recursive: true });
  await page.setViewportSize({ width: 860, height: 530 });
  await part.first().evaluate((it) => it.scrollIntoView());
  await page.evaluate(() => window.scrollBy(0, -16));
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await page.setViewportSize(windowOf(world));
}

/** What axe finds. */
async function unsound(axe, name) {
  const { violations } = await axe.analyze();
  return violations.map(({ id, nodes }) => `${name}: ${id}: ${nodes.map((node) => node.html).join(" | ")}`);
}

/** The page works by the keyboard: over the link to the page itself to the button of its form. */
export async function reachable(page, world, name) {
  const way = await page.evaluate(() => {
    document.activeElement?.blur();
    window.stops = [];
    const note = (event) => window.stops.push(event.target.matches("a.skip") ? "skip" : event.target.type ?? "");
    document.addEventListener("focusin", note);
    const stops = "a[href], button, input:not([type=hidden]), select, textarea, [tabindex]";
    const form = document.querySelector("main form.change:not([action='/sign-out'])");
    const within = [...document.querySelectorAll("main *")].filter((it) => it.matches(stops));
    const last = form ? within.indexOf(form.querySelector("button[type=submit]")) : 0;
    // A field for a moment has a stop for each of its parts.
    return last + 1 + 6 * document.querySelectorAll("main input[type=datetime-local]").length;
  });
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  for (let stop = 0; stop < way; stop += 1) await page.keyboard.press("Tab");
  const stops = await page.evaluate(() => window.stops);
  if (stops[0] !== "skip") world.found.push(`${name}: the first stop is not the way past the navigation`);
  const hasForm = await page.locator("main form.change:not([action='/sign-out'])").count();
  if (hasForm && !stops.includes("submit")) world.found.push(`${name}: its button is not reached by the keyboard`);
}
