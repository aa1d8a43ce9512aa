"use strict";
// A cell is a number if its text begins with one: "0.912 ± 0.021", "+0.44", ".0625", "×2.1".
const valueOf = (cell) => {
  const text = cell.textContent.trim();
  const number = parseFloat(text.replace(/,/g, "").replace("−", "-").replace("×", ""));
  return { text, number };
};
const compare = (a, b) => {
  const numbers = [a, b].map((value) => !Number.isNaN(value.number));
  if (numbers[0] && numbers[1]) return a.number - b.number;
  if (numbers[0] !== numbers[1]) return numbers[0] ? -1 : 1;
  return a.text.localeCompare(b.text);
};
const sortBy = (header) => {
  const row = header.parentElement;
  const column = [...row.children].indexOf(header);
  const body = row.closest("table").tBodies[0];
  const descending = header.getAttribute("aria-sort") === "ascending";
  for (const other of row.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const sign = descending ? -1 : 1;
  const rows = [...body.rows].map((line) => [valueOf(line.cells[column]), line]);
  rows.sort((a, b) => sign * compare(a[0], b[0]));
  body.append(...rows.map((entry) => entry[1]));
};
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => sortBy(button.parentElement));
}
// A row stays if it has every word of the filter.
for (const input of document.querySelectorAll("input[type=search]")) {
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of input.parentElement.querySelector("tbody").rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}
const large = document.getElementById("large");
const enlarge = (item) => {
  const close = document.createElement("button");
  close.textContent = "Close";
  const picture = item.querySelector(".picture svg").cloneNode(true);
  picture.style.minWidth = picture.style.maxWidth;  // its size on paper, however narrow the screen
  large.replaceChildren(close, picture);
  large.showModal();
};
large.addEventListener("click", () => large.close());
for (const item of document.querySelectorAll("article:has(.picture)")) {
  for (const part of item.querySelectorAll(".picture, .enlarge")) {
    part.addEventListener("click", () => enlarge(item));
  }
}
