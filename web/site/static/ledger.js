// The tables of claims on the page of the ledger: a search, a choice of verdicts, and long evidence that opens on demand.
(() => {
  const LONG = 140;
  const tables = [...document.querySelectorAll("table")].filter((t) => {
    const heads = [...t.querySelectorAll("th")].map((th) => th.textContent.trim());
    return heads[0] === "verdict" && heads.includes("claim");
  });
  if (!tables.length) return;

  const rows = tables.flatMap((table) => {
    table.classList.add("claims");
    return [...table.tBodies[0].rows];
  });
  const kinds = [];
  for (const row of rows) {
    const verdict = row.cells[0].textContent.trim().split(/\s/)[0];
    row.dataset.verdict = verdict;
    row.cells[0].classList.add("verdict", verdict);
    if (!kinds.includes(verdict)) kinds.push(verdict);
    row.dataset.text = row.textContent.toLowerCase();
    const last = row.cells[row.cells.length - 1];
    if (last.textContent.length > LONG && !row.querySelector("details")) fold(last);
  }

  const ORDER = ["holds", "partly", "fails"];
  kinds.sort((a, b) => (ORDER.indexOf(a) + 9) % 9 - (ORDER.indexOf(b) + 9) % 9);

  function fold(cell) {
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    const text = cell.textContent.trim();
    summary.textContent = `${text.slice(0, LONG - 50).replace(/\s+\S*$/, "")} …`;
    details.append(summary, ...cell.childNodes);
    cell.append(details);
  }

  const bar = document.createElement("form");
  bar.className = "ledger-bar";
  bar.setAttribute("role", "search");
  bar.innerHTML = '<input type="search" aria-label="search the claims" placeholder="search: PINK, RTT, Table 3 …">';
  const boxes = kinds.map((kind) => {
    const label = document.createElement("label");
    const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true, value: kind });
    label.append(box, ` ${kind} (${rows.filter((row) => row.dataset.verdict === kind).length})`);
    bar.append(label);
    return box;
  });
  const told = document.createElement("output");
  bar.append(told);
  bar.addEventListener("submit", (event) => event.preventDefault());
  bar.addEventListener("input", show);
  const first = tables[0].closest(".table-wrapper") || tables[0];
  const heading = first.closest("section");
  heading.parentElement.insertBefore(bar, heading);
  const jump = Object.assign(document.createElement("a"), { href: "#search-claims", textContent: `Search the ${rows.length} claims` });
  bar.id = "search-claims";
  document.querySelector("h1").after(jump);
  show();

  function show() {
    const words = bar.elements[0].value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    let count = 0;
    for (const row of rows) {
      row.hidden = !wanted.has(row.dataset.verdict) || !words.every((word) => row.dataset.text.includes(word));
      count += !row.hidden;
    }
    for (const table of tables) {
      const section = table.closest("section");
      const mine = [...table.tBodies[0].rows].some((row) => !row.hidden);
      (table.closest(".table-wrapper") || table).hidden = !mine;
      if (section && section.querySelectorAll("table.claims").length === 1) section.classList.toggle("none", !mine);
    }
    told.textContent = `${count} of ${rows.length} claims`;
  }
})();
