// Training traces of one entry: one small chart per quantity.
function traceCharts(entry) {
  if (!entry.t?.length) return null;
  return el("details", { "data-keep": "traces" },
    el("summary", {}, `Training: ${entry.t.map(([title]) => title.toLowerCase()).join(", ")}`),
    el("p", { class: "hint" }, "Median over splits, by epoch or iteration."),
    el("div", { class: "traces" }, entry.t.map(([title, unit, steps, values]) => traceChart(title, unit, steps, values))));
}

function traceChart(title, unit, steps, values) {
  const [width, height, left, right, top, bottom] = [330, 170, 64, 12, 24, 26];
  const pad = 0.05 * (Math.max(...values) - Math.min(...values)) || Math.abs(values[0]) || 1;
  const [low, high] = [Math.min(...values) - pad, Math.max(...values) + pad];
  const [first, last] = [steps[0], steps[steps.length - 1]];
  const X = (step) => left + ((step - first) / (last - first || 1)) * (width - left - right);
  const Y = (value) => top + ((high - value) / (high - low)) * (height - top - bottom);
  return svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `${title}: ${digits(values[0])} at step ${first}, ${digits(values[values.length - 1])} at step ${last}.`,
  },
  text(4, 14, unit ? `${title} (${unit})`.slice(0, 56) : title, { "font-size": 11.5 }),
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
