// The forms: link, flows and the parameters of disciplines. They read the description of a scenario and report what a
// person sets, as a path of keys with a literal of TOML.
"use strict";

(function (PS) {
  const { el, select, slider, logarithmic, unique } = PS.dom;
  const units = PS.units;

  const RATE = logarithmic(1e5, 1e9);
  const DELAY = logarithmic(0.1, 1000);
  const COUNT = logarithmic(1, 200);
  const MOST_LOSS = 0.2;
  const WITH_TCP = ["bulk", "transfer", "http", "web"];

  /** Where the tables of links stand in a scenario: [path, table] of each. */
  function links(about) {
    const topology = about.resolved.topology || {};
    const list = topology.hops ? "hops" : topology.links ? "links" : null;
    if (!list) return [[["topology"], topology]];
    return topology[list].map((table, i) => [["topology", list, String(i)], table]);
  }

  /** The table of the discipline that "side by side" replaces: `[aqm]`, or that of the first link that has its own. */
  function disciplinePath(about) {
    if (about.written.aqm) return ["aqm"];
    const topology = about.written.topology || {};
    for (const list of ["hops", "links"]) {
      const at = (topology[list] || []).findIndex((link) => link.aqm);
      if (at >= 0) return ["topology", list, String(at), "aqm"];
    }
    return ["aqm"];
  }

  function valueAt(tree, path) {
    return path.reduce((here, key) => (here === undefined || here === null ? undefined : here[key]), tree);
  }

  /** Returns the discipline as pairs of keys and literals, as it is written; the default is DropTail. */
  function disciplineOf(about) {
    const table = valueAt(about.written, disciplinePath(about));
    if (typeof table === "string") return [["name", units.literal(table)]];
    const entries = Object.entries(table || { name: "droptail" });
    return entries.map(([key, value]) => [key, units.literal(value)]);
  }

  /** The key and the direction in `[[changes]]` of a key of a link: a rate or a delay that one direction has alone. */
  function stepOf(table, key) {
    if (key.startsWith("reverse_")) return { step: key.slice("reverse_".length), direction: "reverse" };
    return { step: key, direction: table[`reverse_${key}`] === undefined ? null : "forward" };
  }

  /** The form of the link: what acts at once (`steer`), and what starts the run again (`edit`). */
  function linkForm(about, state, { steer, edit }) {
    const all = links(about);
    const chosen = Math.min(state.link || 0, all.length - 1);
    const [path, table] = all[chosen];
    const name = about.links[chosen];
    const now = { ...table, ...(state.steered[name] || {}) };
    const form = el("fieldset", {}, el("legend", {}, "Link"));
    if (all.length > 1) {
      const id = unique("link");
      const pick = select(about.links, name, { id, onchange: () => state.pickLink(about.links.indexOf(pick.value)) });
      form.append(el("div", { class: "field" }, el("label", { for: id }, "which link"), pick));
    }
    const set = (key) => (text) => steer({ path, link: name, key, ...stepOf(table, key), literal: key === "loss" ? text : JSON.stringify(text) });
    const rate = (label, key) => slider({ label, position: RATE.position(units.rate(now[key]) || 1e7), shown: now[key], toText: (at) => units.rateText(RATE.value(at)), change: set(key) });
    const delay = (label, key) => slider({ label, position: DELAY.position(units.delayMs(now[key]) || 0.1), shown: now[key], toText: (at) => units.delayText(DELAY.value(at)), change: set(key) });
    form.append(
      rate("rate", "rate"),
      ...(table.reverse_rate ? [rate("rate of the way back", "reverse_rate")] : []),
      delay("delay, one way", "delay"),
      ...(table.reverse_delay ? [delay("delay of the way back", "reverse_delay")] : []),
      lossSlider(now.loss, set("loss")),
      limitSlider(table.limit || "1000p", (text) => edit([...path, "limit"], JSON.stringify(text))),
      el("p", { class: "hint" }, "Rate, delay and loss act from now on. The limit runs the past again with its new value."),
    );
    return form;
  }

  function lossSlider(loss, change) {
    const share = (at) => Number((MOST_LOSS * (at / 1000) ** 2).toFixed(4));
    const percent = slider({
      label: "loss on the wire",
      position: Math.round(1000 * Math.sqrt(Math.min(1, (loss || 0) / MOST_LOSS))),
      toText: (at) => `${units.short(share(at) * 100)} %`,
      change: (text) => change(String(Number((parseFloat(text) / 100).toFixed(4)))),
    });
    return percent;
  }

  function limitSlider(limit, change) {
    const { number, unit } = units.split(limit) || { number: 1000, unit: "p" };
    const scale = logarithmic(unit === "p" || unit === "kB" || unit === "KiB" ? 2 : 1, Math.max(10000, number * 4));
    const toText = (at) => `${Math.max(1, Math.round(Number(units.short(scale.value(at)))))}${unit}`;
    return slider({ label: "limit of the queue", position: scale.position(number), shown: limit, toText, change });
  }

  /** The form of the flows: a count for each group, and a control for those with TCP. */
  function flowForm(about, controls, { edit }) {
    const form = el("fieldset", {}, el("legend", {}, "Flows"));
    (about.written.flows || []).forEach((group, i) => {
      const kind = group.kind || "bulk";
      const which = (about.written.flows || []).length > 1 ? `group ${i + 1}, ` : "";
      const title = el("p", { class: "group" }, `${which}${kind}${group.direction === "reverse" ? ", reverse" : ""}`);
      const toText = (at) => String(Math.max(1, Math.round(COUNT.value(at))));
      const count = slider({
        label: "number of flows",
        position: COUNT.position(group.count || 1),
        shown: String(group.count || 1),
        toText,
        change: (text) => edit(["flows", String(i), "count"], text),
      });
      const control = WITH_TCP.includes(kind) ? controlField(about, group, i, controls, edit) : "";
      form.append(el("div", { role: "group", "aria-label": title.textContent }, title, count, control));
    });
    form.append(el("p", { class: "hint" }, "These run the past again with the new value, up to now."));
    return form;
  }

  const nameOf = (value) => (value && typeof value === "object" ? value.name : value);

  function controlField(about, group, i, controls, edit) {
    const inside = group.tcp && group.tcp.cc !== undefined;
    const cc = inside ? group.tcp.cc : group.cc !== undefined ? group.cc : (about.written.tcp || {}).cc;
    const path = inside ? ["flows", String(i), "tcp", "cc"] : ["flows", String(i), "cc"];
    const id = unique("control");
    const pick = select(controls, nameOf(cc) || "cubic", { id, onchange: () => edit(path, JSON.stringify(pick.value)) });
    return el("div", { class: "field" }, el("label", { for: id }, "control"), pick);
  }

  /** The fields of a discipline's parameters. `lane.pairs` is what is written; `change` gets the new pairs. */
  function parameterFields(entry, lane, change) {
    const written = new Map(lane.pairs);
    const set = (key, literal) => {
      const others = lane.pairs.filter(([one]) => one !== key);
      change(literal === "" ? others : [...others, [key, literal]]);
    };
    const fields = entry.parameters.map((parameter) => parameterField(parameter, written.get(parameter.name), set));
    return el("div", { class: "parameters" }, ...fields);
  }

  function parameterField(parameter, literal, set) {
    const { name, default: usual, about } = parameter;
    const now = literal === undefined ? usual : bare(literal);
    const amount = typeof now === "number" ? { number: now, unit: "" } : units.split(now);
    if (typeof usual === "boolean") return checkbox(name, about, now === true || now === "true", set);
    if (amount && amount.number > 0) {
      const scale = logarithmic(amount.number / 20, amount.number * 20);
      const whole = Number.isInteger(usual) && usual > 4;
      const toText = (at) => `${at === 500 ? amount.number : units.short(whole ? Math.round(scale.value(at)) : scale.value(at))}${amount.unit}`;
      const quoted = (text) => (amount.unit ? JSON.stringify(text) : text);
      return slider({ label: name, about, position: 500, toText, change: (text) => set(name, quoted(text)) });
    }
    const id = unique("parameter");
    const hint = usual === null || usual === undefined ? "" : typeof usual === "string" ? usual : JSON.stringify(usual);
    const value = literal === undefined ? null : typeof now === "string" ? now : JSON.stringify(now);
    const input = el("input", { id, type: "text", title: about, value, placeholder: hint, autocomplete: "off" });
    input.addEventListener("change", () => set(name, input.value.trim() ? units.typed(input.value) : ""));
    return el("div", { class: "field" }, el("label", { for: id }, name), input);
  }

  function bare(literal) {
    try {
      return JSON.parse(literal);
    } catch {
      return literal;
    }
  }

  function checkbox(name, about, checked, set) {
    const id = unique("parameter");
    const input = el("input", { id, type: "checkbox", title: about, checked });
    input.addEventListener("change", () => set(name, String(input.checked)));
    return el("div", { class: "field check" }, input, el("label", { for: id }, name));
  }

  PS.controls = { linkForm, stepOf, flowForm, parameterFields, disciplinePath, disciplineOf, links, valueAt };
})((globalThis.PS = globalThis.PS || {}));
