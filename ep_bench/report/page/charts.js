// Charts: score against CPU time, and the splits of one entry.
const WIDTH = 760;
const SHAPES = {
  o: (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0z`,
  s: (r) => `M${-r},${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  "^": (r) => `M0,${-1.2 * r}L${1.1 * r},${0.9 * r}H${-1.1 * r}z`,
  v: (r) => `M0,${1.2 * r}L${1.1 * r},${-0.9 * r}H${-1.1 * r}z`,
  D: (r) => `M0,${-1.3 * r}L${1.3 * r},0L0,${1.3 * r}L${-1.3 * r},0z`,
  P: (r) => `M${-0.4 * r},${-1.2 * r}h${0.8 * r}v${0.8 * r}h${0.8 * r}v${0.8 * r}h${-0.8 * r}v${0.8 * r}h${-0.8 * r}v${-0.8 * r}h${-0.8 * r}v${-0.8 * r}h${0.8 * r}z`,
};
const colourOf = (method) => (DATA.methods[method].colour === "#000000" ? "currentColor" : DATA.methods[method].colour);
const marker = (method, x, y, extra = {}, ...children) => svg("path", {
  d: (SHAPES[DATA.methods[method].marker] ?? SHAPES.o)(4.5), transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`,
  fill: colourOf(method), ...extra,
}, ...children);
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
const logTicks = (low, high) => {
  const decades = Math.log10(high / low);
  const factors = decades > 2.5 ? [1] : decades > 1 ? [1, 3] : [1, 2, 3, 5, 7];
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1)
    for (const factor of factors) found.push(factor * 10 ** power);
  return found.filter((value) => value >= low * 0.999 && value <= high * 1.001);
};

/** Points of the chart: CPU time and loss over the subset, or the mean score on one data set. */
function timePoints(view, board) {
  if (view.place === null)
    return board.rows.filter((row) => row.rank !== null && row.seconds > 0 && Number.isFinite(row.loss))
      .map((row) => ({ method: row.method, x: row.seconds, y: row.loss, value: row.loss }));
  const sign = view.score.better === "higher" ? -1 : 1;
  return view.methods.filter((m) => isEligible(m, view.place, view)).map((method) => {
    const value = mean(valuesOf(method, view.place, view.score.column));
    return { method, x: median(valuesOf(method, view.place, "seconds")), y: sign * value, value };
  }).filter((point) => point.x > 0);
}

/** The cheapest method whose mean on one data set is within 5 %, or 0.05 nats, of the best, in one sentence. */
function cheapest(view, points) {
  if (view.place === null) return "";
  const best = points.reduce((a, b) => (b.y < a.y ? b : a));
  const nats = view.score.better === "higher"; // log-likelihoods have no zero that does not depend on the unit of the target
  const near = points.filter((p) => p.y - best.y <= 0.05 * (nats ? 1 : Math.abs(best.y)));
  const found = near.reduce((a, b) => (b.x < a.x ? b : a));
  return `Best: ${labelOn(best.method, [view.place])} (${digits(best.value)}). Cheapest within ${nats ? "0.05 nats" : "5 %"} of it: ${labelOn(found.method, [view.place])} (${digits(found.value)}, ${duration(found.x)}). `;
}

function timeChart(view, board, open) {
  const points = timePoints(view, board);
  const where = view.place === null ? "the ranked data sets" : DATA.datasets[view.place].name;
  if (points.length < 2) return el("p", {}, `Fewer than two complete methods have CPU times on ${where}.`);
  const nameOf = (method) => labelOn(method, view.place === null ? board.subset.sets : [view.place]);
  const longest = Math.max(...points.map((p) => nameOf(p.method).length));
  const [left, right, top, bottom, height] = [64, Math.min(Math.max(130, 6.6 * longest + 14), 300), 12, 44, 360];
  const xs = points.map((p) => p.x);
  const [x0, x1] = [Math.min(...xs) / 1.3, Math.max(...xs) * 1.3];
  const ys = points.map((p) => p.y);
  const pad = 0.06 * (Math.max(...ys) - Math.min(...ys) || 1);
  const [y0, y1] = [Math.min(...ys) - pad, Math.max(...ys) + pad];
  const X = (value) => left + (Math.log(value / x0) / Math.log(x1 / x0)) * (WIDTH - left - right);
  const Y = (value) => top + ((y0 < value ? value - y0 : 0) / (y1 - y0)) * (height - top - bottom); // the best is on top
  const flip = view.place !== null && view.score.better === "higher" ? -1 : 1;
  const percent = view.place === null && view.score.better === "lower";
  const front = paretoFront(points);
  const onFront = new Set(front.map((p) => p.method));
  const title = view.place === null ? (percent ? "mean loss (%)" : "mean loss (nats)") : view.score.axis;
  const boxes = points.map((p) => ({ x: X(p.x) - 6, y: Y(p.y) - 6, w: 12, h: 12 }));
  const free = (box) => !boxes.some((b) => box.x < b.x + b.w && b.x < box.x + box.w && box.y < b.y + b.h && b.y < box.y + box.h);
  /** A free place in the right margin for a label without one at its point, as close to its height as possible. */
  const marginPlace = (py, w) => {
    const places = Array.from({ length: 26 }, (_, i) => ({ x: WIDTH - right + 8, y: 13 * i, w, h: 13 })).sort((a, b) => Math.abs(a.y + 6 - py) - Math.abs(b.y + 6 - py));
    return places.find(free) ?? places[0];
  };
  const labels = [...points].sort((a, b) => onFront.has(b.method) - onFront.has(a.method)).map((p) => {
    const words = nameOf(p.method);
    const w = 6.6 * words.length + 4;
    const [px, py] = [X(p.x), Y(p.y)];
    const spots = [[8, 4], [-w - 6, 4], [-w / 2, -9], [-w / 2, 18]].map(([dx, dy]) => ({ x: px + dx, y: py + dy - 10, w, h: 13 }));
    const box = spots.find((one) => one.x > left && one.x + w < WIDTH && one.y > 0 && one.y + 13 < height - bottom + 8 && free(one)) ?? marginPlace(py, w);
    boxes.push(box);
    const line = spots.includes(box) ? null : svg("line", { x1: px, y1: py, x2: box.x, y2: box.y + 6, class: "grid" });
    return [line, text(box.x, box.y + 10, words, { class: "label", "font-size": 11.5, "font-weight": onFront.has(p.method) ? 600 : 400 })];
  });
  const chart = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height, role: "img", id: "time-chart",
    "aria-label": `${points.length} methods by CPU time and ${title} on ${where}. Pareto front, cheapest first: ${front.map((p) => nameOf(p.method)).join(", ")}.`,
  },
  logTicks(x0, x1).map((value) => [
    svg("line", { x1: X(value), x2: X(value), y1: top, y2: height - bottom, class: "grid" }),
    text(X(value), height - bottom + 16, duration(value), { "text-anchor": "middle" })]),
  ticksOf(y0, y1).map((value) => [
    svg("line", { x1: left, x2: WIDTH - right, y1: Y(value), y2: Y(value), class: "grid" }),
    text(left - 6, Y(value) + 4, percent ? digits(100 * value, 2) : signed(String(flip * value)), { "text-anchor": "end" })]),
  svg("polyline", { class: "front", points: front.map((p) => `${X(p.x).toFixed(1)},${Y(p.y).toFixed(1)}`).join(" ") }),
  points.map((p) => marker(p.method, X(p.x), Y(p.y), {
    "data-method": DATA.methods[p.method].name, class: "point", tabindex: "0", role: "button",
    "aria-label": nameOf(p.method),
    onclick: () => open(p.method, view.place ?? board.subset.sets[0]),
    onkeydown: (event) => event.key === "Enter" && open(p.method, view.place ?? board.subset.sets[0]),
  }, svg("title", {}, `${nameOf(p.method)}: ${duration(p.x)}, ${percent ? lossText(p.value, view.score) : digits(p.value)}`))),
  labels,
  text(left + (WIDTH - left - right) / 2, height - 8, "median CPU time per split, tuning included (log axis)", { "text-anchor": "middle" }),
  svg("text", { transform: `translate(13,${(height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle", fill: "currentColor", "font-size": 12 }, title));
  return el("figure", { id: "score-against-time" }, el("div", { class: "scroll chart" }, chart),
    el("figcaption", {}, `${view.score.title} against CPU time on ${where}; better is higher up. The line is the Pareto front: ` +
      `no other method is both faster and better. ${front.map((p) => nameOf(p.method)).join(", ")}. ${cheapest(view, points)}`, svgButton(() => chart, "score-against-time")));
}

/** Horizontal strips of dots, one per row, on a common axis; each row has a label, values, mean and reference lines. */
function dotChart(rows, axis, label) {
  const [left, right, line] = [150, 20, 46];
  const height = rows.length * line + 44;
  const all = rows.flatMap((row) => [...row.values, ...(row.bands ?? []).flatMap((band) => [band.mean - (band.error ?? 0), band.mean + (band.error ?? 0)])]);
  const pad = 0.05 * (Math.max(...all) - Math.min(...all) || 1);
  const [low, high] = [Math.min(...all) - pad, Math.max(...all) + pad];
  const X = (value) => left + ((value - low) / (high - low)) * (WIDTH - left - right);
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height, role: "img", "aria-label": label },
    ticksOf(low, high).map((value) => [
      svg("line", { x1: X(value), x2: X(value), y1: 8, y2: height - 36, class: "grid" }),
      text(X(value), height - 20, signed(String(value)), { "text-anchor": "middle" })]),
    text(left + (WIDTH - left - right) / 2, height - 4, axis, { "text-anchor": "middle" }),
    rows.map((row, i) => {
      const y = 8 + (i + 0.5) * line;
      const centre = mean(row.values);
      const error = standardError(row.values);
      return [
        text(left - 8, y + 4, row.label.length > 21 ? `${row.label.slice(0, 20)}…` : row.label, { "text-anchor": "end" }),
        (row.bands ?? []).map((band) => svg("rect", {
          x: X(band.mean - (band.error ?? 0)), width: Math.max(2, X(band.mean + (band.error ?? 0)) - X(band.mean - (band.error ?? 0))),
          y: y - 18, height: 36, class: "band" }, svg("title", {}, band.title))),
        row.values.map((value, k) => svg("circle", { cx: X(value), cy: y - 6, r: 3.6, fill: row.colour, "fill-opacity": 0.55 },
          svg("title", {}, `split ${row.splits[k]}: ${digits(value, 4)}`))),
        svg("line", { x1: X(centre - error), x2: X(centre + error), y1: y + 10, y2: y + 10, stroke: "currentColor", "stroke-width": 2 }),
        svg("circle", { cx: X(centre), cy: y + 10, r: 3.2, fill: "currentColor" }, svg("title", {}, withError(centre, error))),
      ];
    }),
    rows.some((row) => row.zero) && low < 0 && high > 0 ? svg("line", { x1: X(0), x2: X(0), y1: 8, y2: height - 36, stroke: "currentColor", "stroke-dasharray": "4 3" }) : null);
}
