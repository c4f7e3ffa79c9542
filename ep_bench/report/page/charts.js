// Charts of one entry: its splits, and its training traces.
const WIDTH = Math.min(720, Math.max(320, innerWidth - 50)); // a narrow window has a narrow chart, with letters of the same size
const colourOf = (method) => (DATA.methods[method].colour === "#000000" ? "currentColor" : DATA.methods[method].colour);
const text = (x, y, words, extra = {}) => svg("text", { x: x.toFixed(1), y: y.toFixed(1), fill: "currentColor", "font-size": 12, ...extra }, words);

/** Round steps of 1, 2 or 5 that give about `count` ticks. */
function ticksOf(low, high, count = 5) {
  const raw = (high - low) / count || 1;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = size * [1, 2, 5, 10].find((factor) => factor * size >= raw);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step)
    .map((value) => Number(value.toPrecision(12)));
}

/** Horizontal strips of dots, one per row, on a common axis; each row has a label, values, mean and reference bands. */
function dotChart(rows, axis, label) {
  const [left, right, line] = [WIDTH < 500 ? 110 : 150, 20, 46];
  const letters = Math.floor(left / 7);
  const height = rows.length * line + 44;
  const all = rows.flatMap((row) => [...row.values, ...(row.bands ?? []).flatMap((band) => [band.mean - (band.error ?? 0), band.mean + (band.error ?? 0)])]);
  const pad = 0.05 * (Math.max(...all) - Math.min(...all) || 1);
  const [low, high] = [Math.min(...all) - pad, Math.max(...all) + pad];
  const X = (value) => left + ((value - low) / (high - low)) * (WIDTH - left - right);
  const fits = (places) => places.length * 8 * Math.max(...places.map((place) => String(place).length)) < WIDTH - left - right;
  const ticks = [5, 3, 2].map((count) => ticksOf(low, high, count)).find(fits) ?? [];
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label },
    ticks.map((value) => [
      svg("line", { x1: X(value), x2: X(value), y1: 8, y2: height - 36, class: "grid" }),
      text(X(value), height - 20, signed(String(value)), { "text-anchor": "middle" })]),
    text(Math.min(left + (WIDTH - left - right) / 2, WIDTH - 3.5 * axis.length), height - 4, axis, { "text-anchor": "middle" }),
    rows.map((row, i) => {
      const y = 8 + (i + 0.5) * line;
      return [
        text(left - 8, y + 4, row.label.length > letters ? `${row.label.slice(0, letters - 1)}…` : row.label, { "text-anchor": "end" }),
        (row.bands ?? []).map((band) => svg("rect", {
          x: X(band.mean - (band.error ?? 0)), width: Math.max(2, X(band.mean + (band.error ?? 0)) - X(band.mean - (band.error ?? 0))),
          y: y - 18, height: 36, class: "band" }, svg("title", {}, band.title))),
        row.values.map((value, k) => svg("circle", { cx: X(value), cy: y - 6, r: 3.6, fill: row.colour, "fill-opacity": 0.55 },
          svg("title", {}, `split ${row.splits[k]}: ${digits(value, 4)}`))),
        row.mean && [
          svg("line", { x1: X(row.mean[0] - row.mean[1]), x2: X(row.mean[0] + row.mean[1]), y1: y + 10, y2: y + 10, stroke: "currentColor", "stroke-width": 2 }),
          svg("circle", { cx: X(row.mean[0]), cy: y + 10, r: 3.2, fill: "currentColor" }, svg("title", {}, row.mean[2]))],
      ];
    }),
    rows.some((row) => row.zero) && low < 0 && high > 0 ? svg("line", { x1: X(0), x2: X(0), y1: 8, y2: height - 36, stroke: "currentColor", "stroke-dasharray": "4 3" }) : null);
}

/** Training traces of one entry: one small chart per quantity. */
function traceCharts(entry) {
  if (!entry.t?.length) return null;
  return el("details", {},
    el("summary", {}, `Training: ${entry.t.map(([title]) => title.toLowerCase()).join(", ")}`),
    el("p", { class: "hint" }, "Median over splits, by epoch or iteration."),
    el("div", { class: "traces" }, entry.t.map(([title, unit, steps, values]) => el("figure", {},
      el("figcaption", {}, unit ? `${title} (${unit})` : title), traceChart(title, steps, values)))));
}

function traceChart(title, steps, values) {
  const [width, height, left, right, top, bottom] = [330, 150, 64, 12, 8, 24];
  const pad = 0.05 * (Math.max(...values) - Math.min(...values)) || Math.abs(values[0]) || 1;
  const [low, high] = [Math.min(...values) - pad, Math.max(...values) + pad];
  const [first, last] = [steps[0], steps[steps.length - 1]];
  const X = (step) => left + ((step - first) / (last - first || 1)) * (width - left - right);
  const Y = (value) => top + ((high - value) / (high - low)) * (height - top - bottom);
  return svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `${title}: ${digits(values[0])} at step ${first}, ${digits(values[values.length - 1])} at step ${last}.`,
  },
  ticksOf(low, high, 3).map((value) => [
    svg("line", { x1: left, x2: width - right, y1: Y(value), y2: Y(value), class: "grid" }),
    text(left - 5, Y(value) + 4, digits(value), { "text-anchor": "end" })]),
  text(left, height - 8, String(first), { "text-anchor": "start" }),
  text(width - right, height - 8, String(last), { "text-anchor": "end" }),
  svg("polyline", {
    fill: "none", stroke: "currentColor", "stroke-width": 1.5,
    points: steps.map((step, i) => `${X(step).toFixed(1)},${Y(values[i]).toFixed(1)}`).join(" "),
  }));
}
