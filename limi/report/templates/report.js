"use strict";
// Copy buttons, and the table of all findings: sorted, filtered and paged where it is shown.
(function () {
  document.querySelectorAll("pre[data-copy]").forEach(function (block) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", function () {
      const text = block.querySelector("code").textContent;
      const done = function () {
        button.textContent = "Copied";
        setTimeout(function () { button.textContent = "Copy"; }, 1500);
      };
      const select = function () {
        const range = document.createRange();
        range.selectNodeContents(block.querySelector("code"));
        const selection = getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        if (document.execCommand("copy")) { done(); }
      };
      if (navigator.clipboard) { navigator.clipboard.writeText(text).then(done, select); } else { select(); }
    });
    block.append(button);
  });

  const held = document.getElementById("ledger-data");
  if (!held) { return; }
  const data = JSON.parse(held.textContent);
  const columns = data.columns;
  const total = columns[0].cells.length;
  const size = 25;
  const box = document.getElementById("ledger");
  const head = box.querySelector("thead tr");
  const body = box.querySelector("tbody");
  const said = box.querySelector("[data-said]");
  const filter = box.querySelector("input");
  const [before, after] = box.querySelectorAll("button[data-turn]");
  let order = Array.from({ length: total }, function (_, row) { return row; });
  let kept = order;
  let page = 0;
  let sorted = null;
  let down = false;

  const shown = function (column, row) {
    const cell = column.cells[row];
    if (cell === null) { return "missing"; }
    return column.levels ? column.levels[cell] : String(cell);
  };
  const rank = function (column, row) {
    const cell = column.cells[row];
    if (cell === null) { return -Infinity; }
    return column.levels ? column.levels[cell] : cell;
  };
  const draw = function () {
    const first = page * size;
    body.replaceChildren(...kept.slice(first, first + size).map(function (row) {
      const line = document.createElement("tr");
      columns.forEach(function (column, place) {
        const cell = document.createElement(place ? "td" : "th");
        if (!place) { cell.scope = "row"; }
        if (!column.levels) { cell.className = "figures"; }
        cell.textContent = shown(column, row);
        line.append(cell);
      });
      return line;
    }));
    const last = Math.min(first + size, kept.length);
    said.textContent = kept.length ? (first + 1) + " to " + last + " of " + kept.length.toLocaleString("en") : "none";
    before.disabled = page === 0;
    after.disabled = last >= kept.length;
  };
  const sift = function () {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    kept = words.length ? order.filter(function (row) {
      const text = columns.map(function (column) { return column.title + " " + shown(column, row); }).join("\n").toLowerCase();
      return words.every(function (word) { return text.includes(word); });
    }) : order;
    page = 0;
    draw();
  };
  columns.forEach(function (column) {
    const cell = document.createElement("th");
    cell.scope = "col";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = column.title;
    button.addEventListener("click", function () {
      down = sorted === column ? !down : !column.levels;
      sorted = column;
      order = order.slice().sort(function (a, b) {
        const x = rank(column, a);
        const y = rank(column, b);
        return (x < y ? -1 : x > y ? 1 : a - b) * (down ? -1 : 1);
      });
      head.querySelectorAll("th").forEach(function (other) { other.removeAttribute("aria-sort"); });
      cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      sift();
    });
    cell.append(button);
    head.append(cell);
  });
  filter.addEventListener("input", sift);
  before.addEventListener("click", function () { page -= 1; draw(); });
  after.addEventListener("click", function () { page += 1; draw(); });
  box.hidden = false;
  document.getElementById("ledger-off").hidden = true;
  draw();
})();
