// Runs scenarios in the module of a built playground and prints their summaries: one JSON list of texts.
//   node summaries.mjs ENGINE.js < JSON list of scenarios
//   node summaries.mjs ENGINE.js --time < JSON list with one scenario      milliseconds of processor time of 20 runs
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const here = new URL("../src/module.js", import.meta.url);
(0, eval)(readFileSync(process.argv[2], "utf8")); // defines PS.engine
(0, eval)(readFileSync(here, "utf8"));
const { instance } = await WebAssembly.instantiate(gunzipSync(Buffer.from(globalThis.PS.engine.wasm, "base64")), {});
const lab = globalThis.PenstockModule.wrap(instance);

function run(text) {
  try {
    lab.open(0, text, 0.05);
    while (!lab.advance(0, 0.37)); // in steps with samples, as the page does
    return lab.summary(0);
  } catch (error) {
    return `error: ${error.message}`;
  }
}

function processorTime(text) {
  lab.open(0, text, 1);
  const before = process.cpuUsage();
  lab.skip(0, 1e6);
  return process.cpuUsage(before).user / 1000;
}

const texts = JSON.parse(readFileSync(0, "utf8"));
const timed = process.argv[3] === "--time";
console.log(JSON.stringify(timed ? Array.from({ length: 20 }, () => processorTime(texts[0])) : texts.map(run)));
