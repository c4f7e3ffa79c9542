// Cells of the report, and what is computed from them: means, complete subsets, ranks and losses.
let DATA = { entries: [] };
const EQUAL_DIGITS = 1e-9; // relative difference of tied scores
let entries = new Map();
/** Read the cells of the page: JSON, compressed by zlib, as base64. */
async function readCells() {
  DATA = JSON.parse(await unpacked(document.getElementById("cells").textContent));
  entries = new Map(DATA.entries.map((entry) => [`${entry.m},${entry.d}`, entry]));
}

const entryOf = (method, dataset) => entries.get(`${method},${dataset}`);
const known = (values) => (values ?? []).filter((value) => value !== null);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
};
/** Standard deviation over splits (ddof 0) divided by the root of their number. */
const standardError = (values) => {
  const centre = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - centre) ** 2)) / values.length);
};
const valuesOf = (method, dataset, column) => known(entryOf(method, dataset)?.[column]);
const labelOf = (method) => DATA.methods[method].name + DATA.methods[method].mark;
/** A method with its mark on the given data sets: a dagger if a split has not converged, a ring if one has nearly. */
function labelOn(method, sets) {
  const counts = sets.map((d) => entryOf(method, d)?.c ?? [0, 0, 0]);
  const nearly = counts.some(([converged, judged, not]) => judged - converged - not > 0);
  return DATA.methods[method].name + (sets.every((d) => hasConverged(method, d)) ? (nearly ? "°" : "") : "†");
}
const hasConverged = (method, dataset) => !(entryOf(method, dataset)?.c?.[2] > 0);
const hasConvergedOn = (method, sets) => sets.every((d) => hasConverged(method, d));
const isComplete = (method, dataset, score) => {
  const count = valuesOf(method, dataset, score.column).length;
  return count > 0 && count === DATA.datasets[dataset].plan;
};
/** Whether an entry may be ranked: complete and, if asked for, converged. */
const isEligible = (method, dataset, view) =>
  isComplete(method, dataset, view.score) && (!view.converged || hasConverged(method, dataset));

/** The data sets that count in ranks: not those on which the log-likelihood has no upper bound, unless there is no other. */
function rankedSets(view) {
  const own = view.sets.filter((d) => !view.score.task || DATA.datasets[d].task === view.score.task);
  const bounded = own.filter((d) => !view.score.unbounded.includes(DATA.datasets[d].name));
  return bounded.length ? bounded : own;
}

/** The largest set of data sets times methods without a gap. */
function largestSubset(view) {
  const candidates = rankedSets(view);
  const masks = view.methods.map((method) =>
    candidates.reduce((mask, d, i) => (isEligible(method, d, view) ? mask | (1n << BigInt(i)) : mask), 0n));
  const found = new Set();
  for (const mask of new Set(masks)) {
    for (const other of [...found].slice(0, Math.max(0, 4096 - found.size))) found.add(mask & other);
    found.add(mask);
  }
  let best = { sets: [], methods: [], size: 0 };
  const ascending = [...found].sort((a, b) => (a < b ? -1 : 1)); // as in significance.py, which decides equal sizes
  for (const common of ascending) {
    if (!common) continue;
    const methods = view.methods.filter((_, j) => (masks[j] & common) === common);
    const sets = candidates.filter((_, i) => (common >> BigInt(i)) & 1n);
    const size = methods.length * sets.length;
    if (methods.length > 1 && (size > best.size || (size === best.size && sets.length > best.sets.length)))
      best = { sets, methods, size };
  }
  return best;
}

/** Ranks of values, 1 the best, with average ranks for ties. */
function ranksOf(values, better) {
  const sign = better === "higher" ? -1 : 1;
  const tied = (a, b) => Math.abs(a - b) <= EQUAL_DIGITS * Math.max(Math.abs(a), Math.abs(b));
  return values.map((value) => {
    const ahead = values.filter((other) => sign * other < sign * value && !tied(other, value)).length;
    return ahead + (values.filter((other) => tied(other, value)).length + 1) / 2;
  });
}

/** The precomputed leaderboard of exactly this selection, if there is one. */
function precomputed(view) {
  if (view.converged) return null;
  const same = (a, b) => a.length === b.length && a.every((value) => b.includes(value));
  const preset = DATA.presets.find((one) => same(one.methods, view.methods) && same(one.sets, view.sets));
  return preset?.scores[view.score.key] ?? null;
}

/** Rows of the leaderboard: ranked methods by average rank, then the others. */
function leaderboardOf(view) {
  const subset = largestSubset(view);
  const column = view.score.column;
  const means = subset.sets.map((d) => subset.methods.map((m) => mean(valuesOf(m, d, column))));
  const ranks = means.map((row) => ranksOf(row, view.score.better));
  const higher = view.score.better === "higher";
  const losses = means.map((row, i) => {
    if (view.score.unbounded.includes(DATA.datasets[subset.sets[i]].name)) return null;
    const valid = row.filter((_, j) => hasConverged(subset.methods[j], subset.sets[i]));
    const best = (higher ? Math.max : Math.min)(...(valid.length ? valid : row));
    if (higher) return row.map((value) => best - value);
    return Math.min(...row) > 0 ? row.map((value) => Math.log(value / best)) : null; // no ratios of errors of 0
  }).filter((one) => one !== null);
  const lossOf = (place) => {
    const found = mean(losses.map((one) => one[place]));
    return losses.length ? (higher ? found : Math.exp(found) - 1) : null;
  };
  const stored = precomputed(view);
  const intervals = new Map((stored?.rows ?? []).map(([method, , low, high]) => [method, low === null ? null : [low, high]]));
  const rows = view.methods.map((method) => {
    const place = subset.methods.indexOf(method);
    const row = { method, ...counts(method, view), rank: null };
    if (place < 0) return row;
    const over = (name) => subset.sets.map((d) => valuesOf(method, d, name)).filter((values) => values.length);
    const errors = over("pit_error").map(mean);
    const seconds = over("seconds").flat();
    return {
      ...row,
      rank: mean(ranks.map((one) => one[place])),
      loss: lossOf(place),
      interval: intervals.get(method) ?? null,
      calibration: errors.length ? mean(errors) : null,
      seconds: seconds.length ? median(seconds) : null,
    };
  });
  const block = (row) => (row.rank === null ? 2 : hasConvergedOn(row.method, subset.sets) ? 0 : 1);
  rows.sort((a, b) => block(a) - block(b) || (a.rank ?? 0) - (b.rank ?? 0) || b.finished / b.planned - a.finished / a.planned);
  return { subset, rows: rows.filter((row) => row.planned), stored };
}

/** Finished and planned splits of a method on the chosen data sets, and its counts of convergence. */
function counts(method, view) {
  const total = { finished: 0, planned: 0, without: 0, counts: [0, 0, 0] };
  for (const d of view.sets) {
    const entry = entryOf(method, d);
    if (!entry || DATA.datasets[d].task !== view.score.task) continue;
    total.finished += valuesOf(method, d, view.score.column).length;
    total.without += entry.w?.[view.score.key] ?? 0;
    total.planned += entry.p;
    total.counts = total.counts.map((count, i) => count + (entry.c?.[i] ?? 0));
  }
  return total;
}

/** Counts of converged, nearly converged and other splits in words, as in convergence.py. */
function convergenceText([converged, judged, not]) {
  if (!judged) return "–";
  const nearly = judged - converged - not;
  return `${converged} of ${judged}${nearly ? `, ${nearly} nearly` : ""}, ${not} not`;
}

/** Points that no other point beats in both time and loss. */
const paretoFront = (points) =>
  points
    .filter((p) => !points.some((q) => q.x <= p.x && q.y <= p.y && (q.x < p.x || q.y < p.y)))
    .sort((a, b) => a.x - b.x);
