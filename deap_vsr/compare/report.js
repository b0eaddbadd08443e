// Tables sort on a click on a column's head: numbers by size, text with numbers in their order, empty cells last.
"use strict";
for (const table of document.querySelectorAll("table")) {
  const heads = Array.from(table.tHead.rows[0].cells);
  const key = (row, column) => row.cells[column].dataset.value;
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const size = (text) => (text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text));
      const rows = Array.from(table.tBodies[0].rows);
      rows.sort((a, b) => {
        const [x, y] = [key(a, column), key(b, column)];
        if (x === "" || y === "") return (x === "") - (y === "");
        const [p, q] = [size(x), size(y)];
        const both = !Number.isNaN(p) && !Number.isNaN(q);
        const order = both ? (p < q ? -1 : p > q ? 1 : 0) : x.localeCompare(y, "en", { numeric: true });
        return down ? -order : order;
      });
      table.tBodies[0].append(...rows);
    });
  });
}
// A link to a run opens it.
const open = () => {
  const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (place instanceof HTMLDetailsElement) place.open = true;
};
window.addEventListener("hashchange", open);
open();
