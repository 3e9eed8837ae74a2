// The worker: runs the simulator in step with the clock of the page, for all disciplines side by side. tools/pack/playground
// puts module.js before this file and both into one text, because a page from a folder may not load a worker's file.
"use strict";

const TICK_MS = 14; // between two steps: about one for each frame
const WORK_MS = 12; // longest work of one step, so that messages are answered
const CATCH_UP_MS = 40; // the same while a run catches up
const SLICE_S = 0.25; // simulated at once

let lab = null;
let lanes = []; // of the current run: { number, text, over }
let run = 0; // number of the current run; messages of older ones are ignored by the page
let until = 0; // simulated time to reach
let speed = 0; // simulated seconds per second; 0 stands still, Infinity goes to the end
let before = 0; // clock at the last step
let timer = null;

async function inflated(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

const told = (error) => ({ text: error.message, line: error.line || 0, column: error.column || 0 });

const reached = () => (lanes.length ? Math.min(...lanes.map((lane) => (lane.over ? Infinity : lab.now(lane.number)))) : 0);

/** Simulates every lane up to `target`, for at most `budget` milliseconds; returns whether all have reached it. */
function advance(target, budget) {
  const begin = performance.now();
  const rows = lanes.map(() => []);
  let broken = null;
  for (let more = true; more && performance.now() - begin < budget; ) {
    more = false;
    lanes.forEach((lane, i) => {
      const left = Math.min(target, lane.duration) - lab.now(lane.number);
      if (lane.over || left <= 1e-9) return;
      try {
        lane.over = lab.advance(lane.number, Math.min(left, SLICE_S));
      } catch (error) {
        broken = told(error);
        lane.over = true;
      }
      rows[i].push(lab.rows(lane.number));
      more = true;
    });
  }
  post(rows, broken);
}

function joined(parts) {
  const all = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function post(rows, broken) {
  const all = rows.map(joined);
  const over = lanes.every((lane) => lane.over);
  const now = over ? Math.max(...lanes.map((lane) => lab.now(lane.number))) : reached();
  if (!all.some((one) => one.length) && !over && !broken) return;
  postMessage({ type: "rows", run, now, over, broken, rows: all }, all.map((one) => one.buffer));
}

function step() {
  timer = null;
  const clock = performance.now();
  const behind = until - reached() > SLICE_S;
  if (speed === Infinity) until = Infinity;
  else if (!behind) until += ((clock - before) / 1000) * speed;
  before = clock;
  if (lanes.length && !lanes.every((lane) => lane.over)) {
    advance(until, behind || speed === Infinity ? CATCH_UP_MS : WORK_MS);
    wake();
  }
}

function wake() {
  const waits = speed > 0 || until - reached() > 1e-6;
  if (timer === null && waits && !lanes.every((lane) => lane.over)) timer = setTimeout(step, TICK_MS);
}

function open(message) {
  lanes.forEach((lane) => lab.close(lane.number));
  lanes = [];
  ({ run } = message);
  const opened = message.texts.map((text, number) => {
    try {
      const about = lab.open(number, text, message.interval);
      return { about, width: lab.width(number) };
    } catch (error) {
      return { mistake: told(error) };
    }
  });
  if (opened.every((one) => one.about)) {
    lanes = opened.map((one, number) => ({ number, text: message.texts[number], over: false, duration: one.about.duration_s }));
  }
  until = message.until || 0;
  before = performance.now();
  postMessage({ type: "opened", run, opened });
  if (lanes.length && until > 0) advance(until, WORK_MS); // short, so that the first picture is there at once
  wake();
}

function change(message) {
  try {
    const entries = lanes.map((lane) => (lane.over ? "" : lab.change(lane.number, message.link, message.keys)));
    postMessage({ type: "changed", run, entry: entries.find(Boolean) || "" });
  } catch (error) {
    postMessage({ type: "refused", run, mistake: told(error) });
  }
}

/** Questions whose answers are awaited by the page, by name. */
const questions = {
  set: (m) => lab.set(m.text, m.path, m.literal),
  setTable: (m) => lab.setTable(m.text, m.path, m.table),
  packets: (m) => lab.packets(m.text, m.from, m.length),
  summaries: () => lanes.map((lane) => lab.summary(lane.number)),
  check: (m) => {
    const about = lab.open(99, m.text, 1);
    lab.close(99);
    return about;
  },
};

function answer(message) {
  try {
    postMessage({ type: "answer", id: message.id, value: questions[message.question](message) });
  } catch (error) {
    postMessage({ type: "answer", id: message.id, mistake: told(error) });
  }
}

onmessage = async ({ data: message }) => {
  if (message.type === "begin") {
    const { instance } = await WebAssembly.instantiate(await inflated(message.wasm), {});
    lab = self.PenstockModule.wrap(instance);
    postMessage({ type: "ready", entries: lab.entries() });
  } else if (message.type === "open") {
    open(message);
  } else if (message.type === "speed") {
    if (speed === Infinity || message.speed === 0) until = Math.min(until, reached());
    speed = message.speed;
    before = performance.now();
    wake();
  } else if (message.type === "change") {
    change(message);
  } else {
    answer(message);
  }
};
