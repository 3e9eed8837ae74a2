// The page of the ledger: a search, a choice of verdicts, and long tables of which only the first rows are shown.
(() => {
  const LONG = 140; // characters of evidence; more opens on demand
  const FIRST = 5; // rows of a table that are shown before somebody asks for more
  const ORDER = ["holds", "conditional", "partly", "fails"];

  const headsOf = (table) => [...table.querySelectorAll("th")].map((th) => th.textContent.trim());
  const isClaims = (table) => headsOf(table)[0] === "verdict" && headsOf(table).includes("claim");
  const make = (tag, properties = {}, ...parts) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...parts);
    return element;
  };

  const all = [...document.querySelectorAll("article table, main table")];
  const claims = all.filter(isClaims);
  if (!claims.length) return;
  const rows = claims.flatMap((table) => [...table.tBodies[0].rows]);
  claims.forEach(prepare);
  const pagers = new Map(all.filter((table) => table.tBodies[0].rows.length > FIRST + 4).map((table) => [table, pager(table)]));
  const { bar, boxes, told } = searchBar();
  show();

  function prepare(table) {
    table.classList.add("claims");
    const heads = headsOf(table);
    const claim = heads.indexOf("claim");
    for (const row of table.tBodies[0].rows) {
      const verdict = row.cells[0].textContent.trim().split(/\s/)[0];
      row.dataset.verdict = verdict;
      row.dataset.text = row.textContent.toLowerCase();
      row.cells[0].classList.add("verdict", verdict);
      [...row.cells].forEach((cell, at) => {
        cell.dataset.head = heads[at];
        if (at && at !== claim) cell.classList.add("more");
        if (cell.textContent.length > LONG && at !== claim && !cell.querySelector("details")) fold(cell);
      });
      row.cells[claim].append(" ", opener(row));
    }
  }

  /** On a phone a row shows its verdict and its claim; this button shows the rest (site.css). */
  function opener(row) {
    const button = make("button", { type: "button", className: "open", textContent: "details" });
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => button.setAttribute("aria-expanded", String(row.classList.toggle("opened"))));
    return button;
  }

  function fold(cell) {
    const text = cell.textContent.trim();
    const summary = make("summary", { textContent: `${text.slice(0, LONG - 50).replace(/\s+\S*$/, "")} …` });
    cell.append(make("details", {}, summary, ...cell.childNodes));
  }

  /** A button below a long table, which shows the rows that are not shown yet. */
  function pager(table) {
    const button = make("button", { type: "button", className: "pager" });
    (table.closest(".table-wrapper") || table).after(button);
    button.addEventListener("click", () => {
      table.dataset.whole = "true";
      show();
    });
    return button;
  }

  function searchBar() {
    const form = make("form", { className: "ledger-bar", id: "search-claims" });
    form.setAttribute("role", "search");
    const input = make("input", { type: "search", placeholder: "search: PINK, RTT, Table 3 …" });
    input.setAttribute("aria-label", "search the claims");
    form.append(input);
    const kinds = [...new Set(rows.map((row) => row.dataset.verdict))];
    kinds.sort((a, b) => (ORDER.indexOf(a) + 9) % 9 - (ORDER.indexOf(b) + 9) % 9);
    const checks = kinds.map((kind) => {
      const box = make("input", { type: "checkbox", checked: true, value: kind });
      const count = rows.filter((row) => row.dataset.verdict === kind).length;
      form.append(make("label", { className: `verdict ${kind}` }, box, ` ${kind} (${count})`));
      return box;
    });
    const output = make("output");
    form.append(output);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", show);
    const section = claims[0].closest("section");
    section.parentElement.insertBefore(form, section);
    const jump = make("a", { href: "#search-claims", textContent: `Search the ${rows.length} claims` });
    document.querySelector("h1").after(jump);
    return { bar: form, boxes: checks, told: output };
  }

  function show() {
    const words = bar.elements[0].value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const fits = (row) => wanted.has(row.dataset.verdict) && words.every((word) => row.dataset.text.includes(word));
    let count = 0;
    for (const table of all) {
      const isOne = claims.includes(table);
      const found = [...table.tBodies[0].rows].filter((row) => !isOne || fits(row));
      if (isOne) count += found.length;
      const shown = pagers.has(table) && !table.dataset.whole ? found.slice(0, FIRST) : found;
      for (const row of table.tBodies[0].rows) row.hidden = !shown.includes(row);
      if (pagers.has(table)) {
        pagers.get(table).hidden = shown.length === found.length;
        pagers.get(table).textContent = `Show ${found.length - shown.length} more`;
      }
      if (!isOne) continue;
      (table.closest(".table-wrapper") || table).hidden = !found.length;
      const section = table.closest("section");
      if (section.querySelectorAll("table.claims").length === 1) section.classList.toggle("none", !found.length);
    }
    told.textContent = `${count} of ${rows.length} claims`;
  }
})();
