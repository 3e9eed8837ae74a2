// The report of a run: one file with the results, the charts of the whole run, the scenarios and the link, for reading.
"use strict";

(function (PS) {
  const { el } = PS.dom;
  const STYLE = `body { margin: 0 auto; max-width: 70rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; } th, td { padding: .3rem .7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid; }
th:first-child { text-align: left; } .charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(18rem, 100%), 1fr)); gap: 1rem; }
figure { margin: 0; } img { width: 100%; } pre { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid; padding: .6rem; }`;

  /** The colours of the page as they are now, which the pictures of the charts have as well. */
  function colours() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    return `html { color-scheme: ${style.colorScheme}; background: ${value("--panel")}; color: ${value("--text")}; }`;
  }

  /** Returns the report as the text of a file. `pictures` are those of `Screen.pictures`, `table` is that of the results. */
  function write({ title, now, table, pictures, texts, names, fragment }) {
    const page = document.implementation.createHTMLDocument(title);
    page.documentElement.lang = "en";
    page.head.append(el("meta", { charset: "utf-8" }), el("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }), el("style", {}, STYLE + colours()));
    const measures = [...new Set(pictures.map((one) => one.title))];
    page.body.append(
      el("h1", {}, title),
      el("p", {}, `${names.join(", ")} with the same traffic, simulated for ${now.toFixed(1)} s in Penstock's playground.`),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "table of results" }, table.cloneNode(true)),
      ...measures.flatMap((measure) => [el("h2", {}, measure), charts(pictures.filter((one) => one.title === measure))]),
      el("h2", {}, "The same run in a terminal"),
      el("pre", { tabindex: 0 }, `penstock run '${fragment}'`),
      ...texts.map((text, i) => el("details", {}, el("summary", {}, `scenario: ${names[i]}`), el("pre", { tabindex: 0 }, text))),
    );
    return `<!doctype html>\n${page.documentElement.outerHTML}\n`;
  }

  const charts = (pictures) =>
    el("div", { class: "charts" }, ...pictures.map((one) => el("figure", {}, el("figcaption", {}, one.name), el("img", { src: one.src, alt: one.text }))));

  PS.report = { write };
})((globalThis.PS = globalThis.PS || {}));
