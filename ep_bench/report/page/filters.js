// The filter bar: score, presets, methods by family, data sets, complete and converged entries.
const checkbox = (label, checked, action, extra = {}) =>
  el("label", { class: "check" }, el("input", { type: "checkbox", checked, onchange: (event) => action(event.target.checked), ...extra }), ` ${label}`);

function filterBar(view, show) {
  const toggled = (list, place, on) => (on ? [...list, place].sort((a, b) => a - b) : list.filter((one) => one !== place));
  const scores = el("select", {
    id: "filter-score", onchange: (event) => show({ score: DATA.scores[event.target.value], place: null }),
  }, DATA.scores.map((score, place) => el("option", { value: place, selected: score === view.score }, score.axis)));
  const active = presetOf(view);
  const presets = DATA.presets.map((preset) => el("button", {
    type: "button", class: "preset", "aria-pressed": String(preset === active),
    onclick: () => show({ methods: [...preset.methods], sets: [...preset.sets] }),
  }, preset.name));
  const families = DATA.families.map((family, number) => {
    const members = indices(DATA.methods).filter((m) => DATA.methods[m].family === number);
    if (!members.length) return null;
    const chosen = members.filter((m) => view.methods.includes(m)).length;
    const all = checkbox(family, chosen === members.length, (on) => show({
      methods: indices(DATA.methods).filter((m) => (members.includes(m) ? on : view.methods.includes(m))),
    }), { "data-family": family });
    all.firstChild.indeterminate = chosen > 0 && chosen < members.length;
    return el("fieldset", {}, el("legend", {}, all), members.map((m) => checkbox(
      labelOf(m), view.methods.includes(m), (on) => show({ methods: toggled(view.methods, m, on) }),
      { "data-method": DATA.methods[m].name })));
  });
  const sets = DATA.datasets.map((dataset, d) => checkbox(
    dataset.name, view.sets.includes(d), (on) => show({ sets: toggled(view.sets, d, on) }), { "data-set": dataset.name }));
  const folded = (id, title, ...content) => el("details", { id, "data-keep": id }, el("summary", {}, title), content);
  return el("form", { class: "filters", "aria-label": "Filters", onsubmit: (event) => event.preventDefault() },
    el("label", {}, "Score ", scores),
    el("span", { role: "group", "aria-label": "Presets" }, presets),
    checkbox("complete only", view.complete, (on) => show({ complete: on }), { id: "filter-complete" }),
    checkbox("without †", view.converged, (on) => show({ converged: on }), { id: "filter-converged" }),
    folded("filter-methods", `Methods: ${view.methods.length} of ${DATA.methods.length}`, families),
    folded("filter-sets", `Data sets: ${view.sets.length} of ${DATA.datasets.length}`, el("fieldset", {}, sets)));
}
