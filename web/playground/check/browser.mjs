// Measures a built playground in headless Chromium, opened as a file without a network; prints JSON.
//   node browser.mjs MODULES INDEX.html CHROMIUM PICTURES
import { mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, index, executablePath, pictures] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(join(modules, "playwright-core", "index.mjs")));
const axe = readFileSync(join(modules, "axe-core", "axe.min.js"), "utf8");
const args = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"];
const SIZES = { desktop: { width: 1400, height: 1000 }, phone: { width: 390, height: 844 } };
const requests = [];
const errors = [];

async function opened(colorScheme, size, fragment = "") {
  const options = { executablePath, headless: true, args, colorScheme, viewport: SIZES[size], offline: true };
  const context = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), "playground-")), options);
  const page = context.pages()[0];
  page.on("request", (request) => requests.push(request.url().split("#")[0]));
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => (message.type() === "error" ? errors.push(message.text()) : null));
  const begin = Date.now();
  await page.goto(pathToFileURL(index).href + fragment);
  await page.waitForSelector("body[data-ready]", { timeout: 60000 });
  return { context, page, ready: Date.now() - begin };
}

const quantile = (values, q) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))];

/** Processor seconds so far of all processes that this one has started, and of those that they have started. */
function processorSeconds() {
  const all = new Map();
  for (const name of readdirSync("/proc").filter((one) => /^[0-9]+$/.test(one))) {
    try {
      const [, rest] = readFileSync(`/proc/${name}/stat`, "utf8").split(/\) (?!.*\) )/s);
      const fields = rest.split(" ");
      all.set(Number(name), { parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) });
    } catch {
      // the process has ended meanwhile
    }
  }
  const ours = (pid) => all.has(pid) && (all.get(pid).parent === process.pid || ours(all.get(pid).parent));
  return [...all.keys()].filter(ours).reduce((sum, pid) => sum + all.get(pid).ticks, 0) / 100;
}

/** Times between frames while ten flows share 50 Mbit/s, and what drawing takes of them. */
async function frames(lanes) {
  const { context, page } = await opened("light", "desktop");
  await page.evaluate(async (count) => {
    const text = PS.engine.presets.find((one) => one.includes("ten-at-fifty"));
    await PS.page.state.load(text, count > 1 ? [[["name", '"codel"']]] : []);
    PS.page.state.play(true);
  }, lanes);
  await page.waitForTimeout(3000);
  await page.evaluate(() => PS.page.frames.splice(0));
  const before = processorSeconds();
  await page.waitForTimeout(8000);
  const worked = processorSeconds() - before;
  const seen = (await page.evaluate(() => PS.page.frames)).slice(1);
  const apart = seen.map((one) => one.apart);
  const drawn = seen.map((one) => one.drawn);
  await context.close();
  const virtual = seen.length > 1 ? (seen.at(-1).now - seen[0].now) / ((seen.at(-1).at - seen[0].at) / 1000) : 0;
  return { lanes, frames: seen.length, work: (1000 * worked) / seen.length, apart_p50: quantile(apart, 0.5), apart_p95: quantile(apart, 0.95), drawn_p50: quantile(drawn, 0.5), drawn_p95: quantile(drawn, 0.95), virtual };
}

/** Milliseconds from the move of a slider to the first frame that shows its effect. */
async function effect(label, shows) {
  const { context, page } = await opened("light", "desktop");
  await page.waitForTimeout(3000);
  const took = [];
  for (const position of [300, 420, 350, 460, 380]) {
    took.push(await page.evaluate(moved, { label, position, shows }));
    await page.waitForTimeout(700);
  }
  await context.close();
  return { label, p50: quantile(took, 0.5), most: Math.max(...took) };
}

function moved({ label, position, shows }) {
  const { state, frames } = PS.page;
  const name = [...document.querySelectorAll(".slider label")].find((one) => one.textContent === label);
  const input = document.getElementById(name.htmlFor);
  const rate = () => state.lanes[0].rows.at(state.lanes[0].rows.count - 1, state.lanes[0].rows.queue("rate"));
  const before = shows === "rate" ? rate() : state.lanes[0].rows;
  const begin = performance.now();
  input.value = position;
  input.dispatchEvent(new Event("input"));
  return new Promise((resolve) => {
    const look = () => {
      const { rows } = state.lanes[0];
      const there = shows === "rate" ? rate() !== before : rows !== before && rows.count > 0;
      const last = frames.at(-1);
      if (there && last && performance.now() > last.at && last.now === state.now) return resolve(performance.now() - begin);
      requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
}

/** Milliseconds of a run of 100 s of the DSL line with 4 flows and DropTail, in this browser; the best of ten. */
async function dsl() {
  const { context, page } = await opened("light", "desktop");
  await page.evaluate(() => PS.page.state.play(false));
  await page.addScriptTag({ path: new URL("../src/module.js", import.meta.url).pathname });
  const took = await page.evaluate(async () => {
    const bytes = Uint8Array.from(atob(PS.engine.wasm), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const { instance } = await WebAssembly.instantiate(await new Response(stream).arrayBuffer(), {});
    const lab = PenstockModule.wrap(instance);
    const text = PS.engine.presets.find((one) => one.includes("my-dsl-line")).replace('[[flows]]\nkind = "voip"\n', "");
    return Array.from({ length: 10 }, () => {
      lab.open(0, text, 0.02);
      const begin = performance.now();
      lab.skip(0, 100);
      return performance.now() - begin;
    });
  });
  await context.close();
  return { best: Math.min(...took), median: quantile(took, 0.5) };
}

/** Violations that axe-core finds, in each theme and size, with all parts of the page in use. It must not fetch style
 * sheets (`preload`), which a page from a folder may not do. */
async function accessible(colorScheme, size) {
  const { context, page } = await opened(colorScheme, size);
  await page.evaluate(async () => {
    PS.page.state.toTheEnd();
    document.querySelectorAll("details").forEach((one) => (one.open = true));
  });
  await page.waitForFunction(() => PS.page.state.over, null, { timeout: 60000 });
  await page.click("#packets-now");
  await page.waitForSelector(".life");
  await page.click("#copy");
  await page.waitForFunction(() => document.getElementById("command").textContent);
  await page.waitForTimeout(700);
  await page.screenshot({ path: join(pictures, `${size}-${colorScheme}.png`), fullPage: true });
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run({ preload: false }));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  await context.close();
  const violations = found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).join(", ")}`);
  return { size, colorScheme, violations, passes: found.passes.length, wide };
}

/** What only the keyboard does, and what a link carries; returns the sentences that do not hold. */
async function behaviour() {
  const { context, page } = await opened("light", "desktop");
  const wrong = [];
  const expect = (holds, sentence) => (holds ? null : wrong.push(sentence));
  await page.keyboard.press("Space");
  expect(!(await page.evaluate(() => PS.page.state.playing)), "the space bar stops the run");
  await page.focus("canvas.queue");
  await page.keyboard.press("ArrowLeft");
  expect((await page.textContent("#status")).startsWith("At "), "an arrow key reads a chart");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".life option");
  await page.selectOption(".life select", "0");
  expect((await page.textContent(".story")).startsWith("A packet of"), "a packet tells its life");
  await page.keyboard.press("Space");
  await page.evaluate(() => PS.page.state.play(true));
  await page.waitForTimeout(500);
  await page.evaluate(() => PS.page.state.steer({ path: ["topology"], link: "bottleneck", key: "rate", literal: '"5Mbit/s"' }));
  await page.waitForFunction(() => PS.page.state.recorded.length === 1);
  await page.evaluate(() => PS.page.state.toTheEnd());
  await page.waitForFunction(() => PS.page.state.over, null, { timeout: 60000 });
  await page.click("#copy");
  await page.waitForFunction(() => document.getElementById("command").textContent);
  const link = await page.inputValue("#link");
  const summaries = await page.evaluate(() => PS.page.state.lab.ask("summaries", {}));
  const [report] = await Promise.all([page.waitForEvent("download"), page.click("#report")]);
  const read = readFileSync(await report.path(), "utf8");
  const names = await page.evaluate(() => PS.page.state.disciplines);
  const pictures = read.match(/<img src="data:image\/png;base64,[^"]{200,}" alt="[^"]+ of [^"]+"/g) || [];
  expect(pictures.length === 6 * names.length, "a report has the charts of each discipline");
  expect(read.includes("penstock run 'p1=") && names.every((name) => read.includes(`scenario: ${name}`)), "a report has the link and the scenarios");
  await page.evaluate(() => (document.getElementById("editor").open = true));
  await page.fill("#text", "duration = \"1s\"\n\n[topolgy]\n");
  await page.click("#run-text");
  await page.waitForSelector("#mistake:not([hidden])");
  expect((await page.textContent("#mistake")).includes("playground.toml:3:2"), "a mistake names line and column");
  await context.close();
  return { wrong, link, summaries };
}

const result = { behaviour: await behaviour(), accessible: [] };
for (const size of Object.keys(SIZES)) for (const theme of ["light", "dark"]) result.accessible.push(await accessible(theme, size));
result.dsl = await dsl();
result.effects = [await effect("rate", "rate"), await effect("limit of the queue", "rows")];
result.frames = [await frames(1), await frames(2)];
result.elsewhere = requests.filter((url) => !/^(file|data|blob):/.test(url));
result.errors = errors;
console.log(JSON.stringify(result));
