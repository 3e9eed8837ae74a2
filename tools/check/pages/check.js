// Opens pages and judges them; see tools/check/pages-check.
const fs = require("fs");
const path = require("path");
const puppeteer = require("puppeteer-core");

const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [made, out] = process.argv.slice(2);
const VIEWS = [["phone", 390, 844], ["desktop", 1400, 900]];
const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const judge = async (browser, file, [view, width, height], theme) => {
  const tab = await browser.newPage();
  const wrong = [];
  tab.on("pageerror", (error) => wrong.push(`script: ${error.message}`));
  tab.on("request", (request) => /^(file|data|blob):/.test(request.url()) || wrong.push(`loads ${request.url()}`));
  await tab.setViewport({ width, height });
  await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  await tab.goto(`file://${file}`, { waitUntil: "load" });
  const opened = await tab.evaluate(() => performance.getEntriesByType("navigation")[0].loadEventEnd);
  const cpu = (await tab.metrics()).TaskDuration * 1000;
  await tab.evaluate(() => { window.penstockPage.everything(); document.querySelectorAll("details").forEach((one) => { one.open = true; }); });
  await new Promise((done) => setTimeout(done, 300));
  if (await tab.evaluate(() => document.documentElement.scrollWidth > innerWidth)) wrong.push("wider than the screen");
  const undrawn = await tab.evaluate(() => window.penstockPage.charts.filter((chart) => !chart.place.querySelector("canvas")).length);
  if (undrawn) wrong.push(`${undrawn} charts are not drawn`);
  await tab.evaluate(axe);
  const found = await tab.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  for (const one of found.violations) wrong.push(`axe: ${one.id}: ${one.help} (${one.nodes.length} times, such as ${one.nodes[0].target.join(" ")})`);
  await tab.close();
  return { page: path.basename(file), view, theme, opened_ms: Math.round(opened), cpu_ms: Math.round(cpu), wrong };
};

(async () => {
  const userDataDir = fs.mkdtempSync(path.join(made, "profile-"));
  const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS, userDataDir });
  const results = [];
  for (const name of fs.readdirSync(made).filter((one) => one.endsWith(".html")).sort()) {
    for (const [view, theme] of [[VIEWS[0], "dark"], [VIEWS[0], "light"], [VIEWS[1], "dark"], [VIEWS[1], "light"]]) results.push(await judge(browser, path.join(made, name), view, theme));
  }
  const chromium = await browser.version();
  await browser.close();
  const version = (name) => require(`${name}/package.json`).version;
  const told = { chromium, "axe-core": version("axe-core"), results };
  if (out) fs.writeFileSync(out, `${JSON.stringify(told, null, 1)}\n`);
  const wrong = results.flatMap((one) => one.wrong.map((text) => `${one.page}, ${one.view}, ${one.theme}: ${text}`));
  wrong.forEach((line) => console.error(line));
  console.log(`${results.length} views of ${new Set(results.map((one) => one.page)).size} pages, ${wrong.length} problems`);
  process.exit(wrong.length ? 1 : 0);
})();
