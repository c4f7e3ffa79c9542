// The first section: the view of a score and group of data sets, filters of its rows, and the panel of one entry.
let DATA = null;
let entries = new Map();
const entryOf = (method, dataset) => entries.get(`${method},${dataset}`);
const placeOf = (list, name) => list.findIndex((one) => one.name === name);

/** The state of the page from the address: names of score, sets, family, limit of CPU time, and cell. */
function stateOf(fragment) {
  const found = { score: DATA.scores[0].key, sets: "all", family: "", cpu: "", cell: null };
  if (!fragment.startsWith(PREFIX)) return found;
  const decoded = (value) => {
    try {
      return value.split(",").map(decodeURIComponent);
    } catch {
      return [""];
    }
  };
  const values = Object.fromEntries(fragment.slice(PREFIX.length).split("&").map((part) => [part.split("=")[0], decoded(part.split("=")[1] ?? "")]));
  for (const name of ["score", "sets", "family", "cpu"]) if (values[name]) [found[name]] = values[name];
  if (!DATA.scores.some((score) => score.key === found.score)) found.score = DATA.scores[0].key;
  if (!viewOf(found)) found.sets = "all";
  const [method, dataset] = [placeOf(DATA.methods, values.cell?.[0]), placeOf(DATA.datasets, values.cell?.[1])];
  if (entryOf(method, dataset)) found.cell = { method, dataset, versus: values.versus ? placeOf(DATA.methods, values.versus[0]) : null };
  return found;
}

/** The fragment of a state; what has its default is left out. */
function fragmentOf(state) {
  const plain = { score: state.score === DATA.scores[0].key ? "" : state.score, sets: state.sets === "all" ? "" : state.sets, family: state.family, cpu: state.cpu };
  const parts = Object.entries(plain).filter(([, value]) => value !== "").map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  if (state.cell) {
    parts.push(`cell=${encodeURIComponent(DATA.methods[state.cell.method].name)},${encodeURIComponent(DATA.datasets[state.cell.dataset].name)}`);
    if (state.cell.versus >= 0 && state.cell.versus !== null) parts.push(`versus=${encodeURIComponent(DATA.methods[state.cell.versus].name)}`);
  }
  return parts.length ? PREFIX + parts.join("&") : "";
}

const viewOf = (state) => DATA.views.find((view) => view.score === state.score && view.group === state.sets);

/** Average ranks of some methods (their places in the view) over its data sets; 1 is the best, ties share a rank. */
function averageRanks(view, kept) {
  return kept.map((place) => view.ranks[place].reduce((sum, own, d) => {
    const ranks = kept.map((other) => view.ranks[other][d]);
    return sum + ranks.filter((rank) => rank < own).length + (ranks.filter((rank) => rank === own).length + 1) / 2;
  }, 0) / view.ranks[place].length);
}

/** Show a view, and of its rows those of a family and below a limit of CPU time, by ranks among themselves. */
function showView(state) {
  const view = viewOf(state);
  const root = document.getElementById("view");
  root.innerHTML = view.html;
  enhanceTables(root);
  const isShown = (name, seconds) => (state.family === "" || String(DATA.methods[placeOf(DATA.methods, name)].family) === state.family)
    && (state.cpu === "" || (seconds !== null && seconds < Number(state.cpu)));
  const seconds = new Map(view.methods.map((name, place) => [name, view.seconds[place]]));
  if (state.family !== "" || state.cpu !== "") {
    for (const one of root.querySelectorAll("tr[data-method], .point"))
      if (!isShown(one.dataset.method, seconds.get(one.dataset.method) ?? null)) one.remove();
    rankAgain(root, view, state);
    drawFront(root.querySelector(".scatter"));
  }
  shorten(root.querySelector("table.board"));
}

/** Draw the front through the points that are left in the chart of losses and times, with the names of its methods. */
function drawFront(chart) {
  if (!chart) return;
  chart.querySelectorAll(".label").forEach((one) => one.remove());
  const placeIn = (point) => point.getAttribute("transform").match(/-?\d+/g).map(Number);
  const seconds = (point) => Number(point.dataset.seconds), loss = (point) => Number(point.dataset.loss);
  const found = [];
  for (const point of [...chart.querySelectorAll(".point")].sort((a, b) => seconds(a) - seconds(b) || loss(a) - loss(b)))
    if (!found.length || loss(point) < loss(found.at(-1))) found.push(point);
  const best = found.map((point) => [...placeIn(point), point.dataset.method]);
  chart.querySelector(".front").setAttribute("points", best.map(([x, y]) => `${x},${y}`).join(" "));
  let above = Infinity;
  for (const [x, y, method] of best) {
    above = Math.min(y - 3, above - 19);
    const inside = x > 61 + 7 * method.length;
    chart.append(svg("text", { class: "label", x: inside ? x - 9 : x + 9, y: above, "text-anchor": inside ? "end" : "start" }, method));
  }
  const top = Math.min(Math.round(above) - 19, 0);
  chart.setAttribute("viewBox", `0 ${top} 760 ${350 - top}`);
}

/** Replace the ranks by those among the shown methods, without intervals. */
function rankAgain(root, view, state) {
  const note = document.getElementById("restricted");
  const rows = [...root.querySelectorAll("table.board tbody tr")];
  const kept = view.methods.map((_, place) => place).filter((place) => rows.some((row) => row.dataset.method === view.methods[place]));
  const ranks = averageRanks(view, kept);
  note.textContent = `Shown: ${plural(kept.length, "ranked method")}. Ranks are averages among these, without intervals and tests; the sentences above, bold and ≈ are of all methods.`;
  note.hidden = false;
  const rankOf = new Map(kept.map((place, i) => [view.methods[place], ranks[i]]));
  const single = view.ranks[0]?.length === 1;
  for (const row of single ? [] : rows) {
    const rank = rankOf.get(row.dataset.method);
    if (rank === undefined) continue;
    row.cells[1].textContent = rank.toFixed(1);
    row.cells[1].dataset.value = rank;
  }
  if (single) return;
  for (const row of root.querySelector("table.board").rows) row.cells[2].hidden = true;
  for (const body of root.querySelectorAll("table.board tbody, table.map tbody"))
    body.append(...[...body.rows].sort((a, b) => (rankOf.get(a.dataset.method) ?? Infinity) - (rankOf.get(b.dataset.method) ?? Infinity)));
}

const SHORT = 12; // rows of the table until the reader asks for all
function shorten(table) {
  const rows = [...table.tBodies[0].rows].slice(SHORT);
  if (rows.length < 4) return;
  table.classList.add("short");
  const all = el("button", { type: "button", class: "download more", onclick: () => { table.classList.remove("short"); all.remove(); } }, `all ${table.tBodies[0].rows.length} methods`);
  table.closest(".scroll").after(all);
}

function start() {
  const form = document.getElementById("filters");
  const dialog = document.getElementById("cell");
  let state = stateOf(location.hash);
  const limits = form.cpu?.dataset.limits.split(" ") ?? [];
  const store = () => history.replaceState(null, "", fragmentOf(state) || location.pathname + location.search);
  const score = () => DATA.scores.find((one) => one.key === state.score);
  const fillForm = () => {
    form.score.value = state.score;
    if (form.sets) form.sets.value = state.sets;
    form.family.value = state.family;
    if (!form.cpu) return;
    form.cpu.value = limits.includes(state.cpu) ? limits.indexOf(state.cpu) : limits.length;
    form.querySelector("output").textContent = state.cpu === "" ? "any" : `< ${state.cpu} s`;
  };
  const showCell = (cell) => {
    state.cell = cell;
    store();
    fillPanel(dialog, cell, score(), showCell);
    const entry = [...document.querySelectorAll("table.map tr")].find((row) => row.dataset.method === DATA.methods[cell.method].name);
    const place = [...(entry?.cells ?? [])].find((one) => one.dataset.set === DATA.datasets[cell.dataset].name) ?? entry;
    document.querySelector(".chosen")?.classList.remove("chosen");
    place?.classList.add("chosen");
    if (!dialog.open) {
      dialog.showModal();
      place?.scrollIntoView({ block: "center", inline: "nearest" });
    }
  };
  const openMethod = (target) => {
    const holder = target.closest("[data-method]");
    const method = placeOf(DATA.methods, holder?.dataset.method);
    if (method < 0) return;
    const named = placeOf(DATA.datasets, target.closest("[data-set]")?.dataset.set);
    const dataset = named >= 0 ? named : DATA.datasets.findIndex((_, d) => entryOf(method, d)?.a?.[state.score]);
    if (entryOf(method, dataset)) showCell({ method, dataset, versus: null });
  };
  const draw = () => {
    fillForm();
    showView(state);
    if (state.cell) showCell(state.cell);
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    const cpu = form.cpu && Number(form.cpu.value) < limits.length ? limits[Number(form.cpu.value)] : "";
    state = { ...state, score: form.score.value, sets: form.sets?.value ?? "all", family: form.family.value, cpu };
    if (!viewOf(state)) state.sets = "all";
    store();
    draw();
  });
  document.getElementById("view").addEventListener("click", (event) => {
    if (!event.target.closest("thead, button.download, a, summary")) openMethod(event.target);
  });
  document.getElementById("view").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches(".point")) openMethod(event.target);
  });
  dialog.addEventListener("close", () => { state.cell = null; store(); });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  form.hidden = false;
  document.getElementById("view").classList.add("live");
  draw();
  window.addEventListener("hashchange", () => {
    if (!location.hash.startsWith(PREFIX) && location.hash) return;
    if (dialog.open) dialog.close();
    state = stateOf(location.hash);
    draw();
  });
}

/** Read the cells of the page: JSON, compressed by zlib, as base64. */
async function readCells() {
  const bytes = Uint8Array.from(atob(document.getElementById("cells").textContent), (letter) => letter.charCodeAt(0));
  DATA = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  entries = new Map(DATA.entries.map((entry) => [`${entry.m},${entry.d}`, entry]));
}

// A browser that cannot decompress the cells shows the static page.
if ("DecompressionStream" in window) readCells().then(start).then(revealTarget);
