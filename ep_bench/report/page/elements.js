// Elements of the page, numbers as text, downloads and sortable tables.
const SVG = "http://www.w3.org/2000/svg";
const MINUS = "\u2212";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}
const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

const signed = (text) => text.replace(/^-/, MINUS);
const digits = (value, count = 3) => {
  if (value === null || !Number.isFinite(value)) return "–";
  const size = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  return signed(size < -4 || size > 6 ? value.toExponential(count - 1) : value.toFixed(Math.max(0, count - 1 - size)));
};
const duration = (seconds) => {
  if (seconds === null) return "–";
  const [unit, size] = seconds < 1 ? ["ms", 1e-3] : seconds < 120 ? ["s", 1] : seconds < 7200 ? ["min", 60] : ["h", 3600];
  return `${digits(seconds / size)} ${unit}`;
};
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
/** One field of a CSV file; a text that a spreadsheet would read as a formula gets an apostrophe. */
const csvField = (text) => {
  const safe = /^[=+@]|^-(?![\d.])/.test(text) ? `'${text}` : text;
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
/** The rows shown of a table as CSV: values without units and marks, and standard errors in columns of their own. */
function csvOf(table) {
  const rows = [...table.rows].filter((row) => !row.hidden).map((row) => [...row.cells].filter((cell) => !cell.hidden));
  const plain = (cell) => cell.innerText.trim().replaceAll(/\s+/g, " ").replaceAll(MINUS, "-");
  const errorOf = (cell) => / ± ([\d.e+-]+)/.exec(plain(cell))?.[1] ?? "";
  const hasErrors = rows[0].map((_, column) => rows.some((row) => errorOf(row[column])));
  const fields = (cell, column, head) => {
    const value = head ? plain(cell) : cell.dataset.value ?? shownValue(cell).replace(MINUS, "-");
    return hasErrors[column] ? [value, head ? `${value} standard error` : errorOf(cell)] : [value];
  };
  return rows.map((row, k) => row.flatMap((cell, column) => fields(cell, column, k === 0)).map(csvField).join(",") + "\n").join("");
}
const csvButton = (table, name) =>
  el("button", { type: "button", class: "download", onclick: () => download(`${name}.csv`, "text/csv", csvOf(table())) }, "CSV");

/** The text of an entry; of one of class n, the number at its start. */
function shownValue(cell) {
  const text = cell.textContent.trim();
  const number = cell.classList.contains("n") ? parseFloat(text.replace(MINUS, "-")) : NaN;
  return isNaN(number) ? text : String(number);
}

/** Make the headings of a table sort its rows; rows without a value are last. */
function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? shownValue(cell);
    return text === "" ? null : isNaN(text) ? text.toLowerCase() : Number(text);
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
  heads.forEach((head, column) => head.querySelector("button")?.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [key(row, column), row]);
    rows.sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null) : down ? compare(b, a) : compare(a, b));
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows.map(([, row]) => row));
  }));
}

/** A sortable table; an entry is a text, or an object with text, value, class, title and action. */
function tableOf(head, rows, label, name) {
  const entry = (item, place) => {
    const cell = typeof item === "object" && item !== null && !(item instanceof Node) ? item : { text: item };
    const content = cell.action ? el("button", { type: "button", class: "link", onclick: cell.action }, cell.text) : cell.text;
    return el(place ? "td" : "th", {
      scope: place ? null : "row", class: cell.class, title: cell.title, style: cell.style,
      "data-value": "value" in cell ? (cell.value ?? "") : null,
    }, content);
  };
  const table = el("table", { class: "sortable" },
    el("thead", {}, el("tr", {}, head.map((word) => el("th", { scope: "col" }, el("button", { type: "button" }, word))))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map(entry)))));
  makeSortable(table);
  return el("div", {},
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table),
    csvButton(() => table, name));
}
