// How the search of the site ranks pages: Sphinx finds them, and this weighs them by their kind and by the sentence of the index.
// `var`, because Sphinx has a variable of this name already.
var PAGES = $PAGES; // name: [how likely it is what is meant, the words of its title and its sentence]
var ASKED = (new URLSearchParams(window.location.search).get("q") || "").toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) || [];
var Scorer = {
  score([name, , , , score]) {
    const [prior, words] = PAGES[name] || [0.4, ""];
    const told = ASKED.filter((word) => words.includes(word.slice(0, Math.max(4, word.length - 3)))).length;
    return prior * (score + 15 * told);
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
