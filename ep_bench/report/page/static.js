// Sorting and downloads of the tables, and folded sections.
const PREFIX = "#view:"; // of a fragment that names a view of the explorer, not a place of the page

/** Make the tables below an element sortable; each gets a button that downloads it. */
function enhanceTables(root) {
  root.querySelectorAll("table.sortable").forEach((table) => {
    makeSortable(table);
    if (table.dataset.filters) addFilters(table);
    table.closest(".scroll").after(csvButton(() => table, table.closest("[id]")?.id ?? "table"));
  });
}

/** Show the source of a figure or table under the pointer, also of one that a script has made. */
function showSource() {
  const source = document.querySelector("meta[name=source]")?.content ?? "";
  document.addEventListener("pointerover", (event) => {
    const shown = event.target.closest?.("figure, table");
    if (shown && !shown.title) shown.title = source;
  });
}

/** Put menus above a table that hide rows by the values of the columns that it names. */
function addFilters(table) {
  const heads = [...table.tHead.rows[0].cells].map((head) => head.textContent);
  const columns = table.dataset.filters.split("|").map((name) => heads.indexOf(name));
  const rows = [...table.tBodies[0].rows];
  const valueOf = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const count = el("span", { role: "status" });
  const menus = columns.map((column) => el("select", { "aria-label": heads[column], onchange: apply },
    el("option", { value: "" }, `${heads[column]}: all`),
    [...new Set(rows.map((row) => valueOf(row, column)))].sort().map((value) => el("option", { value }, value))));
  function apply() {
    rows.forEach((row) => { row.hidden = menus.some((menu, k) => menu.value && menu.value !== valueOf(row, columns[k])); });
    count.textContent = plural(rows.filter((row) => !row.hidden).length, "row");
  }
  apply();
  table.closest(".scroll").before(el("div", { class: "filters" }, menus, count));
}

/** Open the folded sections around the target of the address. */
function revealTarget() {
  if (!location.hash || location.hash.startsWith(PREFIX)) return;
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  target?.querySelector("details")?.setAttribute("open", "");
  target?.scrollIntoView();
}

document.querySelectorAll("main > section").forEach((section) => { if (!section.querySelector("#view")) enhanceTables(section); });
showSource();
window.addEventListener("hashchange", revealTarget);
revealTarget();
