// The charts of all disciplines side by side, the numbers above them, and the cursor.
"use strict";

(function (PS) {
  const { el, select, unique } = PS.dom;
  const { MEASURES, MOST_LINES, Chart, Scales, flowColour } = PS.charts;
  const units = PS.units;

  class Screen extends EventTarget {
    constructor(place, state) {
      super();
      Object.assign(this, { place, state, charts: [], scales: new Scales(), cursor: null, view: 20, heads: [] });
      this.seen = new WeakMap(); // by canvas: true if it is within the window of the browser
      this.sight = new IntersectionObserver((entries) => {
        entries.forEach((entry) => this.seen.set(entry.target, entry.isIntersecting));
        this.dirty = true;
      }, { rootMargin: "600px" });
    }

    /** Makes the elements anew, for the disciplines that there are. */
    build(entries) {
      const { lanes } = this.state;
      this.scales = new Scales();
      this.sight.disconnect();
      this.heads = lanes.map((lane) => this.head(lane, entries));
      this.charts = [];
      const rows = MEASURES.map((measure) => this.measure(measure));
      const heads = el("div", { class: "lanes heads" }, ...this.heads.map((head) => head.element));
      this.place.replaceChildren(heads, ...rows, this.legend());
      this.place.style.setProperty("--lanes", lanes.length);
    }

    head(lane, entries) {
      const { state } = this;
      const names = entries.filter((entry) => entry.kind !== "cc").map((entry) => entry.name);
      const i = state.lanes.indexOf(lane);
      const name = state.disciplines[i];
      const id = unique("discipline");
      const pick = select(names, name, { id, onchange: () => this.pick(lane, pick.value) });
      const entry = entries.find((one) => one.name === name);
      const numbers = el("dl", { class: "numbers" });
      const parameters = el("details", {}, el("summary", {}, "parameters"));
      if (entry) {
        parameters.append(el("p", { class: "hint" }, entry.about), PS.controls.parameterFields(entry, lane, (pairs) => state.setDiscipline(lane, pairs)));
      }
      const remove = el("button", { type: "button", class: "quiet", "aria-label": `remove ${name}`, onclick: () => this.remove(lane) }, "×");
      const title = el("div", { class: "title" }, el("label", { for: id, class: "hidden" }, `discipline ${i + 1}`), pick, state.lanes.length > 1 ? remove : null);
      return { element: el("section", { class: "head", "aria-label": `${name}, discipline ${i + 1}` }, title, numbers, parameters), numbers };
    }

    pick(lane, name) {
      this.state.setDiscipline(lane, [["name", JSON.stringify(name)]]).then(() => this.changed());
    }

    remove(lane) {
      this.state.removeLane(lane).then(() => this.changed());
    }

    changed() {
      this.dispatchEvent(new Event("changed"));
    }

    measure(measure) {
      const title = el("h3", {}, measure.title, " ", el("span", { class: "unit" }, measure.unit));
      if (measure.id === "drops") title.append(el("span", { class: "key" }, chip("--drop"), "dropped ", chip("--mark"), "marked"));
      const canvases = this.state.lanes.map((lane, i) => {
        const canvas = el("canvas", { class: `chart ${measure.id}`, role: "img", tabindex: 0 });
        const chart = new Chart(canvas, measure);
        this.charts.push({ chart, lane, measure, name: this.state.disciplines[i] });
        this.listen(canvas, chart);
        this.sight.observe(canvas);
        return el("figure", {}, el("figcaption", { class: "which" }, this.state.disciplines[i]), canvas);
      });
      return el("section", { class: "measure", "aria-label": measure.title }, title, el("div", { class: "lanes" }, ...canvases));
    }

    listen(canvas, chart) {
      const point = (event) => this.point(chart.timeAt(event.offsetX, this.window()));
      canvas.addEventListener("pointerdown", point);
      canvas.addEventListener("pointermove", (event) => (event.buttons || event.pointerType === "mouse" ? point(event) : null));
      canvas.addEventListener("click", () => this.dispatchEvent(new CustomEvent("packets", { detail: this.cursor })));
      canvas.addEventListener("keydown", (event) => this.key(event));
    }

    /** Arrow keys move the cursor by a hundredth of the view, with Shift by a tenth; Enter shows the packets there. */
    key(event) {
      const { from, to } = this.window();
      const step = ((to - from) / 100) * (event.shiftKey ? 10 : 1);
      const moves = { ArrowLeft: -step, ArrowRight: step };
      if (event.key in moves) {
        const at = this.cursor === null ? this.state.now : this.cursor;
        this.point(Math.max(0, Math.min(this.state.now, at + moves[event.key])));
        this.dispatchEvent(new CustomEvent("read", { detail: this.reading() }));
      } else if (event.key === "Enter") {
        this.dispatchEvent(new CustomEvent("packets", { detail: this.cursor === null ? this.state.now : this.cursor }));
      } else if (event.key === "Escape") {
        this.point(null);
      } else {
        return;
      }
      event.preventDefault();
    }

    point(time) {
      this.cursor = time;
      this.dirty = true;
    }

    /** What the charts show at the cursor, as a sentence. */
    reading() {
      const time = this.cursor;
      const parts = this.state.lanes.map((lane, i) => {
        const { rows } = lane;
        if (!rows || !rows.count) return "";
        const row = rows.rowAt(time);
        const kilobytes = units.short(rows.at(row, rows.queue("bytes")) / 1000);
        return `${this.state.disciplines[i]}: queue ${kilobytes} kB, delay ${units.told(rows.at(row, rows.queue("delay")), "ms")}`;
      });
      return `At ${time.toFixed(2)} s: ${parts.filter(Boolean).join("; ")}.`;
    }

    legend() {
      const { about } = this.state;
      const flows = about ? about.flows : [];
      const shown = flows.slice(0, 16).map((flow, i) => el("li", {}, chip(null, flowColour(i)), `${i} ${flow.cc || flow.kind}`));
      if (flows.length > 16) shown.push(el("li", {}, `and ${flows.length - 16} more${flows.length > MOST_LINES ? `; ${MOST_LINES} are drawn` : ""}`));
      return el("ul", { class: "legend", "aria-label": "flows" }, ...shown);
    }

    /** The part of the run that is shown. */
    window() {
      const { state } = this;
      const whole = state.about ? state.about.duration_s : 20;
      if (this.view === Infinity) return { from: 0, to: Math.max(whole, 1e-3), cursor: this.cursor };
      const to = Math.max(Math.min(this.view, whole), state.now);
      return { from: to - Math.min(this.view, whole), to, cursor: this.cursor };
    }

    draw() {
      const view = this.window();
      const all = this.state.lanes.map((lane) => lane.rows).filter(Boolean);
      for (const { chart, lane, measure } of this.charts) {
        if (this.seen.get(chart.canvas) || !chart.wide) chart.draw(lane.rows, view, this.scales.top(measure, all, view));
      }
    }

    /** Returns pictures of the run so far, with what a screen reader says of them. */
    pictures() {
      const all = this.state.lanes.map((lane) => lane.rows).filter(Boolean);
      const view = { from: 0, to: Math.max(this.state.now, 1e-3), cursor: null };
      const scales = new Scales();
      this.dirty = true;
      return this.charts.map(({ chart, lane, measure, name }) => {
        chart.draw(lane.rows, view, scales.top(measure, all, view));
        return { title: `${measure.title}, ${measure.unit}`, name, src: chart.canvas.toDataURL(), text: sentence(lane.rows, measure, name) };
      });
    }

    /** Writes the numbers above the charts, and names the charts for those who do not see them. */
    tellNumbers() {
      this.state.lanes.forEach((lane, i) => this.heads[i] && this.heads[i].numbers.replaceChildren(...numbersOf(lane.rows)));
      for (const { chart, lane, measure, name } of this.charts) chart.canvas.setAttribute("aria-label", sentence(lane.rows, measure, name));
    }
  }

  const chip = (variable, colour) => el("span", { class: "chip", "aria-hidden": "true", style: `background: ${colour || `var(${variable})`}` });

  function numbersOf(rows) {
    if (!rows || !rows.count) return [];
    const last = rows.count - 1;
    const pair = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
    return [
      pair("delay", units.told(meanOf(rows, "delay", 1), "ms")),
      pair("link", units.told((100 * meanOf(rows, "sent", 1)) / rows.at(last, rows.queue("rate")), "%")),
      pair("drops", String(rows.counted("drops"))),
      pair("marks", String(rows.counted("marks"))),
    ];
  }

  /** Returns the mean of a column over the last `seconds`; null if it has no value there. */
  const meanOf = (rows, column, seconds) => rows.mean(rows.queue(column), Math.max(0, rows.count - Math.round(seconds / rows.interval)));

  function sentence(rows, measure, name) {
    const title = `${measure.title} of ${name}`;
    if (!rows || !rows.count) return `${title}, no samples yet`;
    const last = rows.count - 1;
    if (measure.id === "drops") return `${title}: ${rows.counted("drops")} dropped, ${rows.counted("marks")} marked so far`;
    if (measure.per === "queue") return `${title}: now ${units.told(rows.at(last, rows.queue(measure.of)) * measure.scale, measure.unit)}`;
    const all = Array.from({ length: rows.flows }, (_, flow) => rows.at(last, rows.flow(measure.of, flow)) * measure.scale);
    const values = all.filter((value) => !Number.isNaN(value));
    if (!values.length) return `${title}: none now`;
    return `${title}: from ${units.short(Math.min(...values))} to ${units.short(Math.max(...values))} ${measure.unit} over ${values.length} flows`;
  }

  PS.Screen = Screen;
})((globalThis.PS = globalThis.PS || {}));
