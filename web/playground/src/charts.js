// Charts on canvas, drawn anew in each frame from the samples that are in view.
"use strict";

(function (PS) {
  const LEFT = 44; // room for the numbers of the axis, in CSS pixels
  const BOTTOM = 16;
  const TOP = 6;
  const GAP_S = 0.1; // a line goes on over so much time without a value, such as a delay where no packet left
  const MOST_LINES = 24; // more flows than this are drawn as a band and its middle
  const FLOWS = ["--flow0", "--flow1", "--flow2", "--flow3", "--flow4", "--flow5", "--flow6", "--flow7"];

  /** What is drawn: one row of charts for each measure. `of` names the column, `per` what has such a column. */
  const MEASURES = [
    { id: "queue", title: "Queue", unit: "kB", per: "queue", of: "bytes", scale: 1e-3, least: 10, kind: "area" },
    { id: "delay", title: "Queueing delay", unit: "ms", per: "queue", of: "delay", scale: 1, least: 5, kind: "area" },
    { id: "trips", title: "Round trips of flows", unit: "ms", per: "flow", of: "srtt", scale: 1, least: 5, kind: "lines" },
    { id: "drops", title: "Drops and marks", unit: "packets", per: "queue", of: "drops", scale: 1, least: 4, kind: "bars" },
    { id: "windows", title: "Windows", unit: "kB", per: "flow", of: "cwnd", scale: 1e-3, least: 10, kind: "lines" },
    { id: "goodput", title: "Goodput of flows", unit: "Mbit/s", per: "flow", of: "goodput", scale: 1e-6, least: 0.1, kind: "lines" },
  ];

  /** Returns a round number that is not below `value`. */
  function ceiling(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((n) => n * power).find((n) => n >= value * 0.9999) || value;
  }

  let ink = {};
  /** Reads the colours of the theme; must be called when it changes. */
  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const names = ["--text", "--faint", "--grid", "--area", "--area-line", "--drop", "--mark", "--cursor", "--panel", ...FLOWS];
    ink = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(name).trim()]));
  }

  const flowColour = (flow) => ink[FLOWS[flow % FLOWS.length]];

  class Chart {
    constructor(canvas, measure) {
      Object.assign(this, { canvas, measure, pen: canvas.getContext("2d", { alpha: false }), wide: 0, high: 0 });
    }

    /** Adapts the canvas to its size on the page. */
    fit() {
      const { clientWidth, clientHeight } = this.canvas;
      const dots = Math.min(2, window.devicePixelRatio || 1);
      if (this.wide === clientWidth && this.high === clientHeight && this.dots === dots) return;
      Object.assign(this, { wide: clientWidth, high: clientHeight, dots });
      this.canvas.width = clientWidth * dots;
      this.canvas.height = clientHeight * dots;
    }

    /** The part of the canvas that shows samples. */
    get plot() {
      return { x: LEFT, y: TOP, w: Math.max(10, this.wide - LEFT - 6), h: this.high - TOP - BOTTOM };
    }

    /** Returns the time at a horizontal position, in CSS pixels. */
    timeAt(x, view) {
      const { x: left, w } = this.plot;
      return view.from + (Math.max(0, Math.min(w, x - left)) / w) * (view.to - view.from);
    }

    draw(rows, view, top) {
      this.fit();
      const { pen } = this;
      pen.setTransform(this.dots, 0, 0, this.dots, 0, 0);
      pen.fillStyle = ink["--panel"];
      pen.fillRect(0, 0, this.wide, this.high);
      const scope = { ...this.plot, ...view, top, toX: 0, toY: 0 };
      scope.toX = scope.w / (view.to - view.from);
      scope.toY = scope.h / top;
      this.axes(scope);
      if (rows && rows.count) {
        pen.save();
        pen.beginPath();
        pen.rect(scope.x, scope.y - 2, scope.w, scope.h + 3);
        pen.clip();
        this[this.measure.kind](rows, scope, span(rows, view, scope.w));
        pen.restore();
      }
      if (view.cursor !== null) this.cursor(scope);
    }

    axes({ x, y, w, h, from, to, top }) {
      const { pen } = this;
      pen.lineWidth = 1;
      pen.font = "11px system-ui, sans-serif";
      pen.fillStyle = ink["--faint"];
      pen.strokeStyle = ink["--grid"];
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      pen.beginPath();
      for (const part of h > 60 ? [0, 0.5, 1] : [0, 1]) {
        const at = Math.round(y + h - part * h) + 0.5;
        pen.moveTo(x, at);
        pen.lineTo(x + w, at);
        pen.fillText(PS.units.short(part * top), x - 5, at);
      }
      pen.textAlign = "center";
      pen.textBaseline = "top";
      const each = ceiling((to - from) / Math.max(2, Math.floor(w / 80)));
      for (let t = Math.ceil(from / each) * each; t <= to + 1e-9; t += each) {
        const at = Math.round(x + ((t - from) / (to - from)) * w) + 0.5;
        pen.moveTo(at, y + h);
        pen.lineTo(at, y + h + 3);
        if (at < x + w - 12) pen.fillText(`${PS.units.short(t)} s`, at, y + h + 4);
      }
      pen.stroke();
    }

    /** The largest value of each group of samples, filled down to zero. */
    area(rows, scope, span) {
      const { pen } = this;
      const column = rows.queue(this.measure.of);
      const base = scope.y + scope.h;
      pen.strokeStyle = ink["--area-line"];
      pen.fillStyle = ink["--area"];
      pen.lineWidth = 1.25;
      for (const piece of pieces(rows, column, span)) {
        const points = piece.map(([t, value]) => [scope.x + (t - scope.from) * scope.toX, base - value * this.measure.scale * scope.toY]);
        pen.beginPath();
        for (const [x, y] of points) pen.lineTo(x, y);
        pen.stroke();
        pen.lineTo(points[points.length - 1][0], base);
        pen.lineTo(points[0][0], base);
        pen.closePath();
        pen.fill();
      }
    }

    /** Drops as bars, marks as bars of another colour on top of them. */
    bars(rows, scope, span) {
      const { pen } = this;
      const base = scope.y + scope.h;
      const { step, from } = bins(rows, scope);
      const wide = Math.max(1.5, step * rows.interval * scope.toX - 1);
      for (let row = from; row < span.last; row += step) {
        const drops = sum(rows, row, step, rows.queue("drops"));
        const marks = sum(rows, row, step, rows.queue("marks"));
        if (drops + marks === 0) continue;
        const x = scope.x + (row * rows.interval - scope.from) * scope.toX;
        pen.fillStyle = ink["--drop"];
        pen.fillRect(x, base - drops * scope.toY, wide, drops * scope.toY);
        pen.fillStyle = ink["--mark"];
        pen.fillRect(x, base - (drops + marks) * scope.toY, wide, marks * scope.toY);
      }
    }

    lines(rows, scope, span) {
      const { pen } = this;
      const shown = Math.min(rows.flows, MOST_LINES);
      pen.lineWidth = rows.flows > 8 ? 1 : 1.5;
      for (let flow = 0; flow < shown; flow++) {
        this.line(rows, scope, span, rows.flow(this.measure.of, flow), flowColour(flow));
      }
    }

    line(rows, scope, { first, last, group }, column, colour) {
      const { pen } = this;
      const { data, width } = rows;
      const base = scope.y + scope.h;
      const toY = this.measure.scale * scope.toY;
      let [some, before] = [false, -Infinity];
      pen.beginPath();
      for (let row = first; row < last; row += group) {
        const value = data[row * width + column];
        if (Number.isNaN(value)) continue;
        const t = data[row * width];
        const x = scope.x + (t - scope.from) * scope.toX;
        some = some || value > 0;
        if (t - before > GAP_S + group * rows.interval) pen.moveTo(x, base - value * toY);
        else pen.lineTo(x, base - value * toY);
        before = t;
      }
      if (!some) return;
      pen.strokeStyle = colour;
      pen.stroke();
    }

    cursor({ x, y, h, from, to, cursor, toX }) {
      if (cursor < from || cursor > to) return;
      const { pen } = this;
      pen.strokeStyle = ink["--cursor"];
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(x + (cursor - from) * toX, y);
      pen.lineTo(x + (cursor - from) * toX, y + h);
      pen.stroke();
    }
  }

  /** The samples in view, and how many of them share a point: groups begin at multiples, so that nothing flickers. */
  function span(rows, view, pixels) {
    const begin = Math.max(0, Math.floor(view.from / rows.interval) - 1);
    const last = Math.min(rows.count, Math.ceil(view.to / rows.interval) + 1);
    const apart = rows.flows > 8 ? 2.5 : 1.5; // pixels between points
    const group = Math.max(1, Math.floor((view.to - view.from) / rows.interval / (pixels / apart)));
    return { first: begin - (begin % group), last, group };
  }

  /** Returns the largest values of groups of samples, with their times, in pieces between which there are none for long. */
  function pieces(rows, column, { first, last, group }) {
    const found = [];
    let before = -Infinity;
    for (let row = first; row < last; row += group) {
      let most = NaN;
      for (let one = row; one < Math.min(last, row + group); one++) {
        const value = rows.at(one, column);
        if (!(value <= most) && !Number.isNaN(value)) most = value;
      }
      if (Number.isNaN(most)) continue;
      const t = rows.at(row, 0);
      if (t - before > GAP_S + group * rows.interval) found.push([]);
      found[found.length - 1].push([t, most]);
      before = t;
    }
    return found;
  }

  /** Bars are as wide as a hundredth of the view. */
  function bins(rows, scope) {
    const step = Math.max(1, Math.round((scope.to - scope.from) / 100 / rows.interval));
    const begin = Math.max(0, Math.floor(scope.from / rows.interval));
    return { step, from: begin - (begin % step) };
  }

  function sum(rows, row, step, column) {
    let all = 0;
    for (let one = row; one < Math.min(rows.count, row + step); one++) all += rows.at(one, column);
    return all;
  }

  /** Returns the largest value of a measure in view. */
  function largest(rows, measure, view) {
    const { first, last, group } = span(rows, view, 400);
    let most = 0;
    if (measure.kind === "bars") {
      const { step, from } = bins(rows, view);
      for (let row = from; row < last; row += step) {
        most = Math.max(most, sum(rows, row, step, rows.queue("drops")) + sum(rows, row, step, rows.queue("marks")));
      }
      return most * measure.scale;
    }
    const each = measure.kind === "lines" ? group : 1;
    const columns = measure.per === "queue" ? [rows.queue(measure.of)] : flowColumns(rows, measure);
    for (const column of columns) {
      for (let row = first; row < last; row += each) if (rows.at(row, column) > most) most = rows.at(row, column);
    }
    return most * measure.scale;
  }

  const flowColumns = (rows, measure) =>
    Array.from({ length: Math.min(rows.flows, MOST_LINES) }, (_, flow) => rows.flow(measure.of, flow));

  /** Scales that grow at once and shrink only when half of them is empty, one for each measure. */
  class Scales {
    constructor() {
      this.tops = new Map();
    }

    top(measure, all, view) {
      const most = Math.max(measure.least, ...all.map((rows) => (rows.count ? largest(rows, measure, view) : 0)));
      const now = this.tops.get(measure.id) || 0;
      if (most > now || most < now * 0.45) this.tops.set(measure.id, ceiling(most * 1.05));
      return this.tops.get(measure.id);
    }
  }

  PS.charts = { MEASURES, MOST_LINES, Chart, Scales, readColours, flowColour, pieces };
})((globalThis.PS = globalThis.PS || {}));
