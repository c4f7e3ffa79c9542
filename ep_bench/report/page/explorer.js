// The explorer of a page that has cells.
function startExplorer() {
  const root = document.getElementById("explorer");
  let view = viewOf(location.hash);
  const show = (change) => {
    const opens = change.cell && !view.cell;
    view = { ...view, ...change };
    history.replaceState(null, "", fragmentOf(view) || location.pathname + location.search);
    draw();
    if (opens) document.getElementById("cell")?.scrollIntoView({ block: "nearest" });
  };
  const open = (method, dataset) => show({ cell: { method, dataset } });
  const folded = (id, title, content) => el("details", { id, "data-keep": id }, el("summary", {}, title), content);
  const draw = () => {
    const kept = new Set([...root.querySelectorAll("details[data-keep]")].filter((one) => one.open).map((one) => one.dataset.keep));
    const focus = document.activeElement?.id;
    const board = leaderboardOf(view);
    const places = view.sets.filter((d) => DATA.datasets[d].task === view.score.task);
    if (view.place !== null && !places.includes(view.place)) view.place = null;
    const choice = el("label", {}, "Data set ", el("select", {
      id: "time-set", onchange: (event) => show({ place: event.target.value === "" ? null : Number(event.target.value) }),
    }, el("option", { value: "" }, "all ranked"), places.map((d) => el("option", { value: d, selected: d === view.place }, DATA.datasets[d].name))));
    root.replaceChildren(
      filterBar(view, show),
      el("p", { id: "subset", "aria-live": "polite" }, leaderboardNote(view, board)),
      el("div", { id: "live-leaderboard" }, leaderboardTable(view, board, open)),
      view.cell ? cellPanel(view, show) : el("p", { class: "hint" }, "Select a method to see its splits."),
      folded("time", "Score against CPU time, with the Pareto front", [el("p", { class: "filters" }, choice), timeChart(view, board, open)]));
    root.querySelectorAll("details[data-keep]").forEach((one) => { one.open = kept.has(one.dataset.keep); });
    if (focus) document.getElementById(focus)?.focus();
  };
  document.querySelectorAll("#leaderboard .static").forEach((one) => { one.hidden = true; });
  for (const line of document.querySelectorAll("#leaderboard > p, #leaderboard > ul > li")) // the note on the view has this sentence
    if (/^(Lowest average rank|Best) by /.test(line.textContent.trim())) line.hidden = true;
  root.hidden = false;
  draw();
  root.querySelector("#time").open = true;
  window.addEventListener("hashchange", () => {
    if (location.hash.startsWith(PREFIX) || !location.hash) { view = viewOf(location.hash); draw(); }
  });
}

// A browser that cannot decompress the cells shows the static page.
if (document.getElementById("explorer") && "DecompressionStream" in window) readCells().then(startExplorer).then(revealTarget);
