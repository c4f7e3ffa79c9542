// Sorting and downloads of the tables and figures, and folded sections.
const PREFIX = "#view:"; // of a fragment that names a view of the explorer, not a place of the page

/** Make the tables below an element sortable; each gets a button that downloads it. */
function enhanceTables(root) {
  root.querySelectorAll("table.sortable").forEach((table) => {
    makeSortable(table);
    if (table.dataset.filters) addFilters(table);
    if (!table.classList.contains("board")) // the filters have the button of this one
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

function enhanceFigures() {
  document.querySelectorAll("figure[id] img").forEach((image) => {
    const figure = image.closest("figure");
    const source = async () => {
      const address = image.dataset.packed ? await unpacked(image.dataset.packed) : image.src;
      return decodeURIComponent(address.slice(address.indexOf(",") + 1));
    };
    figure.querySelector("figcaption").append(" ", el("button", {
      type: "button", class: "download", onclick: async () => download(`${figure.id}.svg`, "image/svg+xml", await source()),
    }, "SVG"));
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

/** Return a text that the page has compressed by zlib, as base64. */
function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

/** Show the figures of folded sections, whose data addresses are compressed. */
function unpackFigures() {
  return Promise.all([...document.querySelectorAll("img[data-packed]")].map(async (image) => {
    try {
      image.src = await unpacked(image.dataset.packed);
      delete image.dataset.packed;
    } catch {
      image.after(el("p", {}, "This browser cannot decompress the figure. It is also in the folder figures of the report."));
    }
  }));
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
enhanceFigures();
showSource();
unpackFigures().then(revealTarget);
window.addEventListener("hashchange", revealTarget);
revealTarget();
