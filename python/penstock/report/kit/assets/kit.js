// Charts, tables and colours of Penstock's pages. It needs uPlot and nothing else.
(() => {
  "use strict";
  const root = document.documentElement;
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const make = (tag, props = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), props);
    made.append(...children);
    return made;
  };
  const charts = [];

  // Colours: those of the system, until the reader chooses.
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = "auto";
  const dress = (theme = chosen === "auto" ? (system.matches ? "dark" : "light") : chosen) => {
    root.dataset.theme = theme;
    charts.forEach((chart) => chart.drawn && chart.draw());
  };
  root.dataset.theme = system.matches ? "dark" : "light";

  // Numbers with four digits.
  const shown = (value) => {
    if (value == null || Number.isNaN(value)) return "–";
    const size = Math.abs(value);
    if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(2);
    return value.toLocaleString("en", { maximumSignificantDigits: size >= 1000 ? 7 : 4 });
  };

  // Marks differ in shape, so that colour alone distinguishes nothing.
  const SHAPES = ["circle", "square", "up", "diamond", "down", "cross", "left", "right"];
  const DASHES = [[], [], [], [], [9, 4], [9, 4], [2, 3], [2, 3]];
  const corners = {
    square: [[-1, -1], [1, -1], [1, 1], [-1, 1]], up: [[0, -1.2], [1.1, 0.9], [-1.1, 0.9]],
    down: [[0, 1.2], [1.1, -0.9], [-1.1, -0.9]], diamond: [[0, -1.35], [1.35, 0], [0, 1.35], [-1.35, 0]],
    left: [[-1.2, 0], [0.9, 1.1], [0.9, -1.1]], right: [[1.2, 0], [-0.9, 1.1], [-0.9, -1.1]],
    cross: [[-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2], [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]],
  };
  const shape = (path, kind, x, y, r) => {
    if (kind === "circle") return path.arc(x, y, r, 0, 2 * Math.PI);
    corners[kind].forEach(([dx, dy], i) => path[i ? "lineTo" : "moveTo"](x + dx * r, y + dy * r));
    path.closePath();
  };
  const colour = (line) => css(`--c${line.c % 8}`);

  class Chart {
    constructor(figure) {
      this.figure = figure;
      this.about = JSON.parse(figure.querySelector("script").textContent);
      this.place = figure.querySelector(".plot");
      this.lines = this.about.lines;
      this.lines.forEach((line) => { line.x ??= this.about.xs; line.on = !line.off; });
      this.drawn = null;
      this.legend();
      this.tools();
      this.place.addEventListener("keydown", (event) => this.key(event));
      new ResizeObserver(() => this.drawn && this.drawn.setSize(this.size())).observe(this.place);
    }

    // Data: one column of x, and for each line y or low, middle and high.
    joined() {
      const tables = [];
      this.columns = [];
      for (const line of this.lines) {
        const ys = line.lo ? [line.lo, line.hi, line.y] : [line.y];
        const known = tables.find((table) => table[0] === line.x);
        if (known) known.push(...ys); else tables.push([line.x, ...ys]);
      }
      for (const table of tables) {
        for (const line of this.lines.filter((one) => one.x === table[0])) {
          if (line.lo) this.columns.push([line, "lo"], [line, "hi"]);
          this.columns.push([line, "y"]);
        }
      }
      return tables.length > 1 ? uPlot.join(tables, tables.map((table) => table.slice(1).map(() => 1))) : tables[0];
    }

    size() {
      const width = Math.max(260, Math.floor(this.place.clientWidth));
      return { width, height: width < 560 ? 240 : 300 };
    }

    draw() {
      const [was, about] = [this.drawn, this.about];
      const zoom = was && this.zoomed ? { min: was.scales.x.min, max: was.scales.x.max } : null;
      if (was) was.destroy();
      this.data = this.joined();
      const ink = css("--soft"), grid = { stroke: css("--line"), width: 1 }, font = "12px system-ui, sans-serif";
      const axis = (of, more) => ({ stroke: ink, grid, ticks: { show: false }, font, labelFont: font, labelSize: 18, size: 46, label: of.label + (of.unit ? ` (${of.unit})` : ""), values: (_, all) => all.map((v) => (v == null ? "" : shown(v))), ...more });
      const names = about.x.names;
      const x = axis(about.x, names
        ? { splits: () => names.map((_, i) => i), values: (_, all) => all.map((i) => names[i] ?? ""), grid: { show: false }, space: 1, rotate: names.join("").length > 46 && this.size().width < 560 ? -40 : 0, size: names.join("").length > 46 && this.size().width < 560 ? 70 : 34 }
        : { size: 34 });
      const y = axis(about.y, { size: (_, values) => 14 + 7 * Math.max(2, ...(values ?? []).map((v) => String(v).length)) });
      const spread = [Math.min(...this.data[0]), Math.max(...this.data[0])];
      const options = {
        ...this.size(), legend: { show: false }, pxAlign: false,
        focus: { alpha: 0.35 },
        cursor: { focus: { prox: this.lines.length > 1 ? 18 : -1 }, drag: { x: true, y: false, setScale: true }, points: { size: 7 }, ...(about.sync ? { sync: { key: about.sync, scales: ["x", null], setSeries: false } } : {}) },
        scales: {
          x: { time: false, distr: about.x.log ? 3 : 1, ...(names ? { range: () => [-0.5, names.length - 0.5] } : {}) },
          y: { distr: about.y.log ? 3 : 1, range: (_, low, high) => this.range(low, high) },
        },
        axes: [x, y],
        series: [{}, ...this.columns.map(([line, part]) => this.series(line, part))],
        bands: this.bands(),
        hooks: {
          setCursor: [() => this.tell()],
          setScale: [(u, key) => key === "x" && this.rescaled(u, spread)],
          drawSeries: [(u, index) => this.marks(u, index)],
        },
      };
      this.place.textContent = "";
      this.drawn = new uPlot(options, this.data, this.place);
      this.drawn.over.setAttribute("aria-hidden", "true");
      if (zoom) this.drawn.setScale("x", zoom);
    }

    range(low, high) {
      const y = this.about.y;
      if (low == null) return [0, 1];
      if (y.log) return [low / 1.2, high * 1.2];
      const pad = 0.06 * (high - low || Math.abs(high) || 1);
      return [y.min ?? (y.zero ? Math.min(0, low) : low - pad), y.max ?? high + pad];
    }

    series(line, part) {
      const stroke = colour(line), show = line.on;
      const silent = { show, paths: () => null, points: { show: false }, stroke: "transparent" };
      if (part !== "y") return line.style === "band" ? { show, stroke: "transparent", points: { show: false }, spanGaps: true } : silent;
      if (line.style === "points") return { ...silent, stroke };
      const paths = line.style === "step" ? uPlot.paths.stepped({ align: 1 }) : line.style === "fall" ? uPlot.paths.stepped({ align: -1 }) : undefined;
      return { show, stroke, width: line.wide ? 2.6 : 1.8, dash: line.dash ?? DASHES[line.c % 8], paths, points: { show: false }, spanGaps: false };
    }

    bands() {
      return this.columns.flatMap(([line, part], i) => (line.style === "band" && part === "lo" ? [{ series: [i + 2, i + 1], fill: colour(line) + "33" }] : []));
    }

    // Marks of points, and bars of their intervals.
    marks(u, index) {
      const [line, part] = this.columns[index - 1] ?? [];
      if (!line || part !== "y" || !line.on || (!line.mark && line.style !== "points")) return;
      const { ctx } = u, ratio = devicePixelRatio, r = 4.3 * ratio, xs = this.data[0], ys = this.data[index];
      const bars = line.lo && line.style !== "band";
      ctx.save();
      ctx.beginPath();
      ctx.rect(u.bbox.left - r, u.bbox.top - r, u.bbox.width + 2 * r, u.bbox.height + 2 * r);
      ctx.clip();
      ctx.strokeStyle = colour(line);
      ctx.fillStyle = line.open ? css("--page") : colour(line);
      ctx.lineWidth = 1.7 * ratio;
      ys.forEach((y, i) => {
        if (y == null) return;
        const [px, py] = [u.valToPos(xs[i], "x", true), u.valToPos(y, "y", true)];
        ctx.beginPath();
        if (bars && this.data[index - 2][i] != null) {
          ctx.moveTo(px, u.valToPos(this.data[index - 2][i], "y", true));
          ctx.lineTo(px, u.valToPos(this.data[index - 1][i], "y", true));
          ctx.stroke();
          ctx.beginPath();
        }
        shape(ctx, SHAPES[line.c % 8], px, py, line.open ? r * 1.25 : r);
        ctx.fill();
        ctx.stroke();
      });
      ctx.restore();
    }

    rescaled(u, [low, high]) {
      const { min, max } = u.scales.x;
      this.zoomed = min > low || max < high;
      if (this.reset) this.reset.disabled = !this.zoomed;
      if (!this.about.sync || Chart.busy) return;
      Chart.busy = true;
      charts.filter((one) => one !== this && one.about.sync === this.about.sync && one.drawn).forEach((one) => one.drawn.setScale("x", { min, max }));
      Chart.busy = false;
    }

    legend() {
      const list = make("ul", { className: "legend" });
      this.outputs = this.lines.map((line) => {
        const value = make("output", { ariaHidden: "true" }), key = this.keyOf(line);
        const button = make("button", { type: "button", ariaPressed: String(line.on), title: "Show or hide" }, key, line.name, value);
        button.setAttribute("aria-pressed", String(line.on));
        button.addEventListener("click", () => {
          line.on = !line.on;
          button.setAttribute("aria-pressed", String(line.on));
          if (this.drawn) this.columns.forEach(([of], i) => of === line && this.drawn.setSeries(i + 1, { show: line.on }));
        });
        list.append(make("li", {}, button));
        return value;
      });
      this.place.after(list);
    }

    keyOf(line) {
      const path = new Path2DText();
      if (line.mark || line.style === "points") shape(path, SHAPES[line.c % 8], 15, 7, 4);
      const dash = (line.dash ?? DASHES[line.c % 8]).join(" ");
      const stroke = line.style === "points" ? "" : `<line x1="1" x2="29" y1="7" y2="7" stroke="var(--c${line.c % 8})" stroke-width="${line.style === "band" ? 7 : 2.5}" stroke-dasharray="${dash}"${line.style === "band" ? ' opacity=".55"' : ""}/>`;
      const holder = make("span");
      holder.innerHTML = `<svg viewBox="0 0 30 14" aria-hidden="true">${stroke}<path d="${path.text}" stroke="var(--c${line.c % 8})" stroke-width="1.6" fill="${line.open ? "var(--page)" : `var(--c${line.c % 8})`}"/></svg>`;
      return holder.firstChild;
    }

    tools() {
      const bar = this.figure.querySelector(".tools");
      const button = (label, action) => {
        const made = make("button", { type: "button" }, label);
        made.addEventListener("click", action);
        bar.append(made);
        return made;
      };
      if (!this.about.x.names) {
        button("Zoom in", () => this.zoom(0.5));
        button("Zoom out", () => this.zoom(2));
        this.reset = button("Whole range", () => this.whole());
        this.reset.disabled = true;
      }
      button("CSV", () => this.download());
      const details = this.figure.querySelector("details.numbers");
      details.addEventListener("toggle", () => details.open && !details.querySelector("table") && details.append(this.table()));
    }

    view() {
      const { min, max } = this.drawn.scales.x;
      return this.about.x.log ? [Math.log(min), Math.log(max)] : [min, max];
    }

    show(low, high) {
      const all = this.data[0], back = this.about.x.log ? Math.exp : (v) => v;
      this.drawn.setScale("x", { min: Math.max(back(low), all[0]), max: Math.min(back(high), all[all.length - 1]) });
    }

    zoom(factor) {
      const [low, high] = this.view(), here = this.drawn.cursor.idx;
      const at = here == null ? (low + high) / 2 : this.about.x.log ? Math.log(this.data[0][here]) : this.data[0][here];
      this.show(at - (at - low) * factor, at + (high - at) * factor);
    }

    whole() { this.drawn.setScale("x", { min: this.data[0][0], max: this.data[0][this.data[0].length - 1] }); }

    key(event) {
      if (!this.drawn || event.target !== this.place) return;
      const xs = this.data[0], step = event.shiftKey ? Math.max(1, Math.round(xs.length / 20)) : 1;
      const now = this.drawn.cursor.idx ?? 0;
      const move = { ArrowLeft: now - step, ArrowRight: now + step, Home: 0, End: xs.length - 1 }[event.key];
      if (move != null) this.point(Math.min(xs.length - 1, Math.max(0, move)));
      else if (event.key === "+" || event.key === "=") this.zoom(0.5);
      else if (event.key === "-") this.zoom(2);
      else if (event.key === "Escape" || event.key === "0") this.whole();
      else return;
      event.preventDefault();
    }

    point(index) {
      this.drawn.setCursor({ left: this.drawn.valToPos(this.data[0][index], "x"), top: 20 });
      const x = this.about.x.names ? this.about.x.names[Math.round(this.data[0][index])] : `${shown(this.data[0][index])} ${this.about.x.unit}`;
      const said = this.lines.filter((line) => line.on).slice(0, 8).map((line) => `${line.name} ${shown(this.at(line, index))}`);
      document.getElementById("kit-live").textContent = `${x}: ${said.join(", ")} ${this.about.y.unit}`;
    }

    at(line, index) {
      const column = this.columns.findIndex(([of, part]) => of === line && part === "y");
      const ys = this.data[column + 1];
      if (ys[index] != null || line.style === "points") return ys[index];
      if (line.x === this.data[0]) return null;
      for (let i = index; i >= 0; i -= 1) if (ys[i] != null) return ys[i];
      return null;
    }

    tell() {
      const index = this.drawn?.cursor.idx;
      this.outputs.forEach((output, i) => { output.textContent = index == null ? "" : shown(this.at(this.lines[i], index)); });
    }

    rows() {
      const [xs, ...ys] = this.data ?? this.joined(), { x, y } = this.about;
      const head = [x.unit ? `${x.label} (${x.unit})` : x.label, ...this.columns.map(([line, part]) => line.name + (part === "y" ? "" : part === "lo" ? ", low" : ", high") + (y.unit ? ` (${y.unit})` : ""))];
      const name = (value) => (x.names ? x.names[Math.round(value)] : value);
      return [head, ...xs.map((value, i) => [name(value), ...ys.map((column) => column[i])])];
    }

    table() {
      const [head, ...rows] = this.rows(), most = 3000;
      const cells = (tag, row) => make("tr", {}, ...row.map((value) => make(tag, { className: "n", ...(tag === "th" ? { scope: "col" } : {}) }, typeof value === "number" ? shown(value) : value ?? "–")));
      const table = make("table", {}, make("caption", {}, rows.length > most ? `The first ${most} of ${rows.length} rows; the CSV file has all.` : `${rows.length} rows`), make("thead", {}, cells("th", head)), make("tbody", {}, ...rows.slice(0, most).map((row) => cells("td", row))));
      const holder = make("div", { className: "scroll", tabIndex: 0 }, table);
      holder.setAttribute("role", "group");
      holder.setAttribute("aria-label", `Numbers of ${this.about.title}`);
      return holder;
    }

    download() {
      const text = this.rows().map((row) => row.map((v) => (v == null ? "" : /[",\n]/.test(v) ? `"${String(v).replaceAll('"', '""')}"` : v)).join(",")).join("\n");
      const link = make("a", { href: URL.createObjectURL(new Blob([text + "\n"], { type: "text/csv" })), download: `${this.about.title.replace(/\W+/g, "-").toLowerCase()}.csv` });
      link.click();
      URL.revokeObjectURL(link.href);
    }
  }

  // Collects a path as the text of an SVG element.
  class Path2DText {
    text = "";
    moveTo(x, y) { this.text += `M${x} ${y}`; }
    lineTo(x, y) { this.text += `L${x} ${y}`; }
    closePath() { this.text += "Z"; }
    arc(x, y, r) { this.text += `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`; }
  }

  // Tables: sorting, a filter, and the rows of long ones on request.
  const value = (row, column) => {
    const cell = row.cells[column], number = Number(cell.dataset.v ?? cell.textContent.replaceAll(",", "").replace(/ ?%$/, ""));
    return cell.textContent.trim() === "–" ? -Infinity : Number.isNaN(number) ? cell.textContent.trim() : number;
  };
  const sortable = (table) => {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        [...table.tHead.rows[0].cells].forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const order = (a, b) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1);
        const rows = [...body.rows].map((row) => [value(row, column), row]);
        rows.sort(([a], [b]) => (up ? order(a, b) : order(b, a))).forEach(([, row]) => body.append(row));
        table.kitShow?.();
      });
    });
  };
  const limit = (table) => (matchMedia("(max-width: 44rem)").matches ? Math.min(8, table.dataset.most) : Number(table.dataset.most));
  const shortened = (table) => {
    const body = table.tBodies[0], most = limit(table), count = body.rows.length;
    const filter = make("input", { type: "search", placeholder: "Filter rows" }), said = make("span", { className: "soft" });
    const more = make("button", { type: "button" }, `Show all ${count}`);
    let all = false;
    filter.setAttribute("aria-label", "Filter rows");
    said.setAttribute("role", "status");
    table.kitShow = () => {
      const word = filter.value.trim().toLowerCase();
      let found = 0;
      for (const row of body.rows) {
        const fits = !word || row.textContent.toLowerCase().includes(word);
        found += fits ? 1 : 0;
        row.hidden = !fits || (!all && found > most);
      }
      said.textContent = `${all ? found : Math.min(found, most)} of ${count} rows`;
      more.hidden = all || found <= most;
      if (table.kitCards) named(table);
    };
    filter.addEventListener("input", table.kitShow);
    more.addEventListener("click", () => { all = true; table.kitShow(); });
    (table.closest(".scroll") ?? table).before(make("div", { className: "tools" }, filter, more, said));
    table.kitShow();
  };
  // A table stays one for screen readers when the style shows its rows as cards.
  const named = (table) => {
    const heads = [...table.tHead.rows[0].cells], labels = heads.map((head) => head.textContent.trim());
    const role = (one, name) => one.setAttribute("role", name);
    role(table, "table");
    [table.tHead, table.tBodies[0]].forEach((one) => role(one, "rowgroup"));
    role(table.tHead.rows[0], "row");
    heads.forEach((head) => role(head, "columnheader"));
    for (const row of table.tBodies[0].rows) {
      if (row.hidden || row.getAttribute("role")) continue;
      role(row, "row");
      [...row.cells].forEach((cell, i) => {
        cell.dataset.label = labels[i];
        role(cell, cell.tagName === "TH" ? "rowheader" : "cell");
      });
    }
  };

  const start = () => {
    document.querySelectorAll("figure.chart").forEach((figure) => charts.push(new Chart(figure)));
    const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
      const chart = charts.find((one) => one.place === entry.target);
      if (entry.isIntersecting && !chart.drawn) chart.draw();
    }), { rootMargin: "500px" });
    charts.forEach((chart) => seen.observe(chart.place));
    const phone = matchMedia("(max-width: 44rem)"), tables = [...document.querySelectorAll("table.cards")];
    const cards = () => phone.matches && tables.forEach((table) => { table.kitCards = true; named(table); });
    phone.addEventListener("change", cards);
    tables.forEach((table) => {
      if (table.tBodies[0].rows.length > 3) sortable(table);
      if (table.tBodies[0].rows.length > limit(table)) shortened(table);
    });
    cards();
    const button = document.getElementById("kit-theme"), words = { auto: "system", dark: "dark", light: "light" };
    button.hidden = false;
    button.addEventListener("click", () => {
      chosen = { auto: root.dataset.theme === "dark" ? "light" : "dark", dark: "light", light: "dark" }[chosen];
      button.textContent = `Colours: ${words[chosen]}`;
      dress();
    });
    system.addEventListener("change", () => dress());
    const everything = () => charts.forEach((chart) => chart.drawn || chart.draw());
    addEventListener("beforeprint", () => { everything(); dress("light"); });
    addEventListener("afterprint", () => dress());
    window.penstockPage = { charts, everything };
  };
  document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", start) : start();
})();
