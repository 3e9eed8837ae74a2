// Opens the live page of a gateway and judges it; see tools/check/gateway-page-check.
const fs = require("fs");
const path = require("path");
const puppeteer = require("puppeteer-core");

const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [address, token, out] = process.argv.slice(2);
const VIEWS = [["phone", 390, 844], ["desktop", 1280, 900]];
const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--ignore-certificate-errors"];
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const violations = async (tab, where) => {
  await tab.evaluate(axe);
  const found = await tab.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.map((one) => `${where}axe: ${one.id}: ${one.help} (${one.nodes.length} times, such as ${one.nodes[0].target.join(" ")})`);
};

const judge = async (browser, [view, width, height], theme) => {
  const context = await browser.createBrowserContext();
  const tab = await context.newPage();
  const wrong = [];
  tab.on("pageerror", (error) => wrong.push(`script: ${error.message}`));
  tab.on("console", (message) => message.type() === "error" && wrong.push(`console: ${message.text()}`));
  tab.on("request", (request) => request.url().startsWith(address) || request.url().startsWith("data:") || wrong.push(`loads ${request.url()}`));
  await tab.setViewport({ width, height });
  await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  await tab.goto(address, { waitUntil: "load" });
  wrong.push(...await violations(tab, "login: "));
  // The keyboard alone logs in.
  await tab.keyboard.type(token);
  await Promise.all([tab.waitForNavigation({ waitUntil: "load" }), tab.keyboard.press("Enter")]);
  await tab.waitForFunction(() => document.querySelectorAll("#tiles li").length > 4 && document.querySelector(".plot canvas"), { timeout: 30000 });
  const before = await tab.$eval("#lead", (one) => one.textContent);
  await wait(2500);
  if (before === await tab.$eval("#lead", (one) => one.textContent)) wrong.push("nothing is new after 2.5 s");
  await tab.evaluate(() => { window.penstockPage.everything(); document.querySelectorAll("details").forEach((one) => { one.open = true; }); });
  await wait(1500);
  if (await tab.evaluate(() => document.documentElement.scrollWidth > innerWidth)) wrong.push("wider than the screen");
  const undrawn = await tab.evaluate(() => window.penstockPage.charts.filter((chart) => !chart.place.querySelector("canvas")).length);
  if (undrawn) wrong.push(`${undrawn} charts are not drawn`);
  // Arrow keys read a chart.
  await tab.focus(".plot");
  await tab.keyboard.press("End");
  const said = await tab.$eval("#kit-live", (one) => one.textContent);
  if (!/download .* upload/.test(said)) wrong.push(`the keyboard reads nothing from a chart: ${JSON.stringify(said)}`);
  for (const span of ["86400", "3600", "600"]) await tab.click(`[data-span="${span}"]`);
  wrong.push(...await violations(tab, ""));
  // The counters on the page are those that the page was sent.
  const counters = await tab.evaluate(async () => {
    const sent = await (await fetch("/api/now")).json();
    await new Promise((done) => setTimeout(done, 1200));
    const cell = [...document.querySelectorAll("#counters tbody tr")].find((row) => row.cells[0].textContent === "delivered, bytes");
    const after = await (await fetch("/api/now")).json();
    return [sent, after].map((one) => one.status.reverse.delivered.bytes).concat(Number(cell.cells[2].textContent.replaceAll(",", "")));
  });
  if (counters[2] < counters[0] || counters[2] > counters[1]) wrong.push(`the page shows ${counters[2]}, the gateway had ${counters[0]} before and ${counters[1]} after`);
  // Budgets on the page are those that the page was sent, and whoever takes more comes first.
  const budgets = await tab.evaluate(async () => {
    const { c2ml, enforcement } = (await (await fetch("/api/now")).json()).status;
    const rows = [...document.querySelectorAll("#budgets-table tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent));
    const digits = (bps) => `${(bps / 1e6).toLocaleString("en", { maximumSignificantDigits: 4 })} Mbit/s`;
    const sent = c2ml.nodes.map((one) => [one.name, String(one.class), digits(one.budget_bps), enforcement.nodes.find((seen) => seen.node === one.node)?.over]);
    return { rows, sent, over: enforcement.over };
  });
  for (const [name, level, budget, over] of budgets.sent) {
    const row = budgets.rows.find((cells) => cells[0] === name);
    if (!row || row[3] !== level || row[6] !== budget || row[2].startsWith("takes more") !== over) wrong.push(`budget of ${name}: the page shows ${JSON.stringify(row)}, the gateway has ${budget}, ${over}`);
  }
  if (budgets.over !== 1 || budgets.rows[0]?.[0] !== "flooder") wrong.push(`the flood is not seen: ${JSON.stringify(budgets.rows)}`);
  await tab.evaluate(() => { document.querySelectorAll("details").forEach((one) => { one.open = false; }); scrollTo(0, 0); });
  await wait(300);
  await tab.screenshot({ path: path.join(out, `live-${view}-${theme}.png`), fullPage: true });
  await tab.evaluate(() => document.getElementById("hosts").scrollIntoView({ behavior: "instant" }));
  await wait(300);
  await tab.screenshot({ path: path.join(out, `budgets-${view}-${theme}.png`) });
  await context.close();
  return wrong.map((text) => `${view}, ${theme}: ${text}`);
};

(async () => {
  const userDataDir = fs.mkdtempSync(path.join(out, "profile-"));
  const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS, userDataDir });
  const wrong = [];
  for (const view of VIEWS) for (const theme of ["dark", "light"]) wrong.push(...await judge(browser, view, theme));
  await browser.close();
  fs.rmSync(userDataDir, { recursive: true });
  wrong.forEach((line) => console.error(line));
  console.log(`4 views of the live page, ${wrong.length} problems; pictures in ${out}`);
  process.exit(wrong.length ? 1 : 0);
})();
