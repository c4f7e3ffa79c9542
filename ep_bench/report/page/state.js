// The view: chosen score, methods, data sets and cell. It is stored in the fragment of the address.
const indices = (list) => list.map((_, place) => place);
const everything = () => ({
  score: DATA.scores[0], methods: indices(DATA.methods), sets: indices(DATA.datasets), complete: false,
  converged: false, cell: null, versus: null, place: null,
});

/** Names of a list as text; names are encoded, so that a comma separates them. */
const encodeNames = (chosen, list) => chosen.map((place) => encodeURIComponent(list[place].name)).join(",");
const decodeNames = (text, list) => {
  const names = text.split(",").map(decodeURIComponent);
  return indices(list).filter((place) => names.includes(list[place].name));
};
const presetOf = (view) => DATA.presets.find((preset) =>
  preset.methods.length === view.methods.length && preset.methods.every((m) => view.methods.includes(m)) &&
  preset.sets.length === view.sets.length && preset.sets.every((d) => view.sets.includes(d)));

/** Return the fragment of a view; what has its default is left out. */
function fragmentOf(view) {
  const parts = [];
  if (view.score !== DATA.scores[0]) parts.push(`score=${encodeURIComponent(view.score.key)}`);
  const preset = presetOf(view);
  if (preset) {
    if (preset !== DATA.presets[0]) parts.push(`preset=${encodeURIComponent(preset.name)}`);
  } else {
    if (view.methods.length < DATA.methods.length) parts.push(`methods=${encodeNames(view.methods, DATA.methods)}`);
    if (view.sets.length < DATA.datasets.length) parts.push(`sets=${encodeNames(view.sets, DATA.datasets)}`);
  }
  for (const name of ["complete", "converged"]) if (view[name]) parts.push(`${name}=1`);
  if (view.place !== null) parts.push(`time=${encodeNames([view.place], DATA.datasets)}`);
  if (view.cell) {
    parts.push(`cell=${encodeNames([view.cell.method], DATA.methods)},${encodeNames([view.cell.dataset], DATA.datasets)}`);
    if (view.versus !== null) parts.push(`versus=${encodeNames([view.versus], DATA.methods)}`);
  }
  return parts.length ? PREFIX + parts.join("&") : "";
}

/** Return the view of a fragment; unknown names are ignored. */
function viewOf(fragment) {
  const view = everything();
  if (!fragment.startsWith(PREFIX)) return view;
  for (const part of fragment.slice(PREFIX.length).split("&")) {
    const [key, value = ""] = part.split("=");
    try {
      apply(view, key, value);
    } catch (error) {
      if (!(error instanceof URIError)) throw error;
    }
  }
  return view;
}

function apply(view, key, value) {
  if (key === "score") view.score = DATA.scores.find((score) => score.key === decodeURIComponent(value)) ?? view.score;
  if (key === "preset") {
    const preset = DATA.presets.find((one) => one.name === decodeURIComponent(value));
    if (preset) Object.assign(view, { methods: [...preset.methods], sets: [...preset.sets] });
  }
  if (key === "methods") view.methods = decodeNames(value, DATA.methods);
  if (key === "sets") view.sets = decodeNames(value, DATA.datasets);
  if (key === "complete" || key === "converged") view[key] = value === "1";
  if (key === "time") view.place = decodeNames(value, DATA.datasets)[0] ?? null;
  if (key === "versus") view.versus = decodeNames(value, DATA.methods)[0] ?? null;
  if (key === "cell") {
    const [method, dataset] = value.split(",");
    const [m] = decodeNames(method, DATA.methods);
    const [d] = decodeNames(dataset ?? "", DATA.datasets);
    view.cell = entryOf(m, d) ? { method: m, dataset: d } : null;
  }
}
