// The page: connects forms, state and charts.
"use strict";

(function (PS) {
  const { el } = PS.dom;
  const $ = (id) => document.getElementById(id);

  let state;
  let screen;
  let packets;
  let entries = [];
  const frames = []; // times of the last frames in milliseconds, for whoever measures this page

  /** Reads the comment at the top of a preset: title, disciplines beside its own, what to look at. */
  function preset(text) {
    const [title, beside, ...more] = text.split("\n").filter((line) => line.startsWith("# ")).map((line) => line.slice(2));
    const names = beside.replace("beside:", "").split(",").map((name) => name.trim());
    const look = more.find((line) => line.startsWith("Look at:")) || "";
    return { title, beside: names, look, text: text.replace(`# ${beside}\n`, "") };
  }

  async function begin() {
    $("settings").open = !matchMedia("(max-width: 900px)").matches; // where the charts would not be seen below them
    PS.charts.readColours();
    const lab = new PS.Lab(PS.engine);
    state = new PS.State(lab);
    screen = new PS.Screen($("screen"), state);
    packets = new PS.Packets($("packets"), state);
    const ready = new Promise((resolve) => lab.addEventListener("ready", ({ detail }) => resolve(detail.entries)));
    lab.addEventListener("failed", ({ detail }) => mistake({ text: `The simulator stopped: ${detail.text}`, line: 0, column: 0 }));
    entries = await ready;
    listen();
    const presets = PS.engine.presets.map(preset);
    presets.forEach((one, i) => $("preset").append(el("option", { value: i }, one.title)));
    $("preset").addEventListener("change", () => choose(presets[$("preset").value]).then(() => state.play(true)));
    if (!(await fromLink())) await choose(presets[0]);
    state.play(!matchMedia("(prefers-reduced-motion: reduce)").matches);
    requestAnimationFrame(frame);
    document.body.dataset.ready = "true";
  }

  async function choose(one) {
    $("look").textContent = one.look;
    history.replaceState(null, "", location.pathname + location.search);
    await load(() => state.load(one.text, one.beside.map((name) => [["name", JSON.stringify(name)]])));
  }

  async function load(work) {
    try {
      mistake(null);
      await work();
    } catch (error) {
      mistake(error.text === undefined ? { text: String(error), line: 0, column: 0 } : error);
      return false;
    }
    return true;
  }

  async function fromLink() {
    if (!location.hash.includes("p1=")) return false;
    return load(async () => {
      const texts = await PS.link.decode(location.hash).catch(() => null);
      if (!texts) throw { text: "This link is damaged: it does not hold a scenario. Copy it again as a whole.", line: 0, column: 0 };
      await state.loadTexts(texts);
      $("look").textContent = "This scenario came with the link.";
      $("preset").selectedIndex = -1;
    });
  }

  function listen() {
    state.addEventListener("loaded", () => forms());
    state.addEventListener("opened", () => (screen.dirty = true));
    state.addEventListener("playing", buttons);
    state.addEventListener("over", () => {
      buttons();
      results();
      say(`The run is over at ${state.now.toFixed(1)} s. The results are in the table.`);
    });
    state.addEventListener("texts", texts);
    state.addEventListener("mistake", ({ detail }) => mistake(detail));
    screen.addEventListener("changed", () => screen.build(entries));
    screen.addEventListener("read", ({ detail }) => say(detail));
    screen.addEventListener("packets", ({ detail }) => showPackets(detail));
    listenToButtons();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themeChanged);
    addEventListener("hashchange", () => fromLink().then((loaded) => loaded && state.play(true)));
    setInterval(() => screen.tellNumbers(), 500);
    setInterval(() => state.playing && results(), 1000);
    setInterval(tellTime, 100);
  }

  function listenToButtons() {
    $("play").addEventListener("click", () => state.play(!state.playing));
    $("again").addEventListener("click", () => state.again());
    $("end").addEventListener("click", () => state.toTheEnd());
    $("speed").addEventListener("change", () => state.setSpeed(Number($("speed").value)));
    $("view").addEventListener("change", () => (screen.view = Number($("view").value)));
    $("theme").addEventListener("change", () => {
      document.documentElement.dataset.theme = $("theme").value;
      themeChanged();
    });
    $("add").addEventListener("click", () => state.addLane("codel").then(() => screen.build(entries)));
    $("run-text").addEventListener("click", runText);
    $("text").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) runText();
    });
    $("copy").addEventListener("click", copyLink);
    $("record").addEventListener("click", record);
    $("report").addEventListener("click", report);
    $("packets-now").addEventListener("click", () => showPackets(screen.cursor === null ? state.now : screen.cursor));
    document.addEventListener("keydown", shortcut);
  }

  /** The space bar starts and stops, wherever it has no other meaning. */
  function shortcut(event) {
    const busy = event.target.closest("button, input, select, textarea, summary, a");
    if (event.key !== " " || busy) return;
    event.preventDefault();
    state.play(!state.playing);
  }

  function themeChanged() {
    PS.charts.readColours();
    screen.dirty = true;
  }

  function forms() {
    const controls = entries.filter((entry) => entry.kind === "cc").map((entry) => entry.name);
    const set = { steer: (what) => state.steer(what), edit: (path, literal) => state.edit(path, literal) };
    $("forms").replaceChildren(PS.controls.linkForm(state.about, state, set), PS.controls.flowForm(state.about, controls, set));
    screen.build(entries);
    screen.point(null);
    $("packets").replaceChildren();
    $("add").disabled = state.lanes.length >= PS.MOST_LANES;
  }

  function buttons() {
    $("play").textContent = state.playing ? "Pause" : state.over ? "Play again" : "Play";
  }

  function texts() {
    $("add").disabled = state.lanes.length >= PS.MOST_LANES;
    if (document.activeElement !== $("text")) $("text").value = state.lanes[0].text;
    if (location.hash) history.replaceState(null, "", location.pathname + location.search);
    $("command").textContent = "";
    $("link").value = "";
  }

  async function runText() {
    const beside = state.lanes.slice(1).map((lane) => lane.pairs);
    if (await load(() => state.load($("text").value, beside))) {
      $("look").textContent = "Your own scenario.";
      state.play(true);
    }
  }

  function mistake(detail) {
    const box = $("mistake");
    box.hidden = !detail;
    box.textContent = detail ? detail.text : "";
    if (!detail || !detail.line) return;
    $("editor").open = true;
    const area = $("text");
    const lines = area.value.split("\n");
    const at = lines.slice(0, detail.line - 1).reduce((sum, line) => sum + line.length + 1, 0) + detail.column - 1;
    area.setSelectionRange(at, at + 1);
    area.setAttribute("aria-describedby", "mistake");
  }

  function say(text) {
    $("status").textContent = text;
  }

  async function showPackets(time) {
    await load(() => packets.show(time));
    $("packets").scrollIntoView({ block: "nearest" });
  }

  const COLUMNS = [
    ["discipline", (s, q, i) => state.disciplines[i]],
    ["use of the link", (s, q) => PS.units.told(q.utilization * 100, "%")],
    ["queueing delay, median", (s, q) => PS.units.told(q.queue_delay_ms.p50, "ms")],
    ["90 %", (s, q) => PS.units.told(q.queue_delay_ms.p90, "ms")],
    ["99 %", (s, q) => PS.units.told(q.queue_delay_ms.p99, "ms")],
    ["round trip, 90 %", (s) => PS.units.told(s.rtt_ms.p90, "ms")],
    ["dropped", (s, q) => String(q.drops_overflow + q.drops_aqm)],
    ["marked", (s, q) => String(q.marks)],
    ["fairness (Jain)", (s) => PS.units.short(s.jain.overall)],
  ];

  async function results() {
    const { run } = state;
    const summaries = (await state.lab.ask("summaries", {})).map((text) => JSON.parse(text));
    if (run !== state.run || summaries.length !== state.lanes.length) return;
    const head = el("tr", {}, ...COLUMNS.map(([name]) => el("th", { scope: "col" }, name)));
    const rows = summaries.map((summary, i) => {
      const cells = COLUMNS.map(([, of], column) => el(column ? "td" : "th", column ? {} : { scope: "row" }, of(summary, summary.bottlenecks[0], i)));
      return el("tr", {}, ...cells);
    });
    $("results").replaceChildren(el("thead", {}, head), el("tbody", {}, ...rows));
  }

  async function copyLink() {
    const fragment = await PS.link.encode(await state.texts());
    const url = `${location.href.split("#")[0]}#${fragment}`;
    history.replaceState(null, "", `#${fragment}`);
    $("link").value = url;
    $("command").textContent = `penstock run '${fragment}'`;
    const copied = await navigator.clipboard.writeText(url).then(() => true, () => false);
    if (!copied) $("link").select();
    say(copied ? "The link is in the clipboard." : "The link is in the field: copy it from there.");
  }

  function download(name, text, type) {
    const link = el("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  /** Downloads the results of all disciplines in one file, and the scenario of each. */
  async function record() {
    const [all, written] = [await state.lab.ask("summaries", {}), await state.texts()];
    const runs = all.map((text, i) => ({ discipline: state.disciplines[i], scenario: written[i], summary: JSON.parse(text) }));
    const { name } = state.about;
    download(`${name}.json`, JSON.stringify({ format: 1, simulated_s: state.now, runs }, null, 2), "application/json");
    written.forEach((text, i) => download(`${name}-${state.disciplines[i]}.toml`, text, "text/plain"));
    say(`Downloaded ${name}.json and ${written.length} scenarios.`);
  }

  /** Downloads one file for reading, with the charts of the whole run. */
  async function report() {
    await results();
    const written = await state.texts();
    const { name } = state.about;
    const about = { title: `Penstock: ${name}`, now: state.now, table: $("results"), pictures: screen.pictures() };
    download(`${name}.html`, PS.report.write({ ...about, texts: written, names: state.disciplines, fragment: await PS.link.encode(written) }), "text/html");
    say(`Downloaded ${name}.html.`);
  }

  function tellTime() {
    const text = `${state.now.toFixed(1)} s of ${state.about ? PS.units.short(state.about.duration_s) : 0} s`;
    if ($("clock").textContent !== text) $("clock").textContent = text;
  }

  let shown = -1;
  let last = 0;
  function frame(clock) {
    requestAnimationFrame(frame);
    const moved = state.now !== shown || screen.dirty;
    if (!moved) return;
    const begin = performance.now();
    shown = state.now;
    screen.dirty = false;
    screen.draw();
    frames.push({ at: clock, apart: clock - last, drawn: performance.now() - begin, now: state.now });
    last = clock;
    if (frames.length > 2000) frames.splice(0, 1000);
  }

  PS.page = { frames, get state() { return state; }, get screen() { return screen; } };
  addEventListener("resize", () => screen && (screen.dirty = true));
  begin().catch((error) => mistake({ text: `The playground cannot start: ${error.message}`, line: 0, column: 0 }));
})((globalThis.PS = globalThis.PS || {}));
