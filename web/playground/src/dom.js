// Building of elements.
"use strict";

(function (PS) {
  let names = 0;

  /** Creates an element; attributes that begin with "on" are listeners, null leaves one out. */
  function el(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value === true) made.setAttribute(name, "");
      else if (value !== null && value !== false) made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  const unique = (prefix) => `${prefix}-${++names}`;

  /** A select of words; `chosen` is added if it is not among them. */
  function select(words, chosen, attributes) {
    const all = words.includes(chosen) ? words : [chosen, ...words];
    return el("select", attributes, ...all.map((word) => el("option", { value: word, selected: word === chosen }, word)));
  }

  /**
   * A slider with its label and its value as a text. `toText` writes the value of a position from 0 to 1000, which a
   * screen reader says as well; `shown` is the value until the slider moves. `change` gets the value at most once in
   * 40 ms while it moves.
   */
  function slider({ label, about, position, shown, toText, change }) {
    const id = unique("slider");
    const begin = PS.units.spaced(shown || toText(position));
    const out = el("output", { for: id }, begin);
    const input = el("input", { id, type: "range", min: 0, max: 1000, step: 1, value: position, title: about || null });
    input.setAttribute("aria-valuetext", begin);
    const changed = atMostEvery(40, () => change(toText(Number(input.value))));
    input.addEventListener("input", () => {
      const text = PS.units.spaced(toText(Number(input.value)));
      out.textContent = text;
      input.setAttribute("aria-valuetext", text);
      changed();
    });
    return el("div", { class: "slider" }, el("label", { for: id }, label), out, input);
  }

  /** Returns a function that calls `work` at once, and again after `ms` if it was called meanwhile. */
  function atMostEvery(ms, work) {
    let [waiting, again] = [false, false];
    return function call() {
      again = waiting;
      if (waiting) return;
      waiting = true;
      work();
      setTimeout(() => {
        waiting = false;
        if (again) call();
      }, ms);
    };
  }

  /** Positions of a slider from `least` to `most` on a logarithmic scale. */
  const logarithmic = (least, most) => ({
    position: (value) => Math.round((1000 * Math.log(Math.max(least, Math.min(most, value)) / least)) / Math.log(most / least)),
    value: (position) => least * (most / least) ** (position / 1000),
  });

  PS.dom = { el, select, slider, logarithmic, unique };
})((globalThis.PS = globalThis.PS || {}));
