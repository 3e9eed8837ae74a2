// Tables of parameters: on a phone each row becomes a block, so that nothing has to be scrolled sideways (site.css).
(() => {
  for (const table of document.querySelectorAll("table")) {
    const heads = [...table.querySelectorAll("th")].map((th) => th.textContent.trim());
    if (heads.length === 3 && heads[1] === "default") table.classList.add("params");
  }
})();
