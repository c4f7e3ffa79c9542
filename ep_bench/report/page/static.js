// Sorting and downloads of the tables and figures, and folded sections.
const PREFIX = "#view:"; // of a fragment that names a view of the explorer, not a place of the page

function enhanceStaticPage() {
  document.querySelectorAll("table.sortable").forEach((table) => {
    makeSortable(table);
    const name = table.closest("[id]")?.id ?? "table";
    table.closest(".scroll").after(csvButton(() => table, name));
  });
  document.querySelectorAll("figure[id]").forEach((figure) => {
    const image = figure.querySelector("img");
    const source = () => decodeURIComponent(image.src.slice(image.src.indexOf(",") + 1));
    figure.querySelector("figcaption").append(" ", el("button", {
      type: "button", class: "download", onclick: () => download(`${figure.id}.svg`, "image/svg+xml", source()),
    }, "SVG"));
  });
}

/** Open the folded sections around the target of the address. */
function revealTarget() {
  if (!location.hash || location.hash.startsWith(PREFIX)) return;
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  target?.querySelector("details")?.setAttribute("open", "");
  target?.scrollIntoView();
}

enhanceStaticPage();
window.addEventListener("hashchange", revealTarget);
window.addEventListener("beforeprint", () => document.querySelectorAll("main details").forEach((one) => { one.open = true; }));
revealTarget();
