// The panel of one entry: the splits of a method on a data set, compared with another method and with published numbers.
const splitsWith = (entry, column) => new Map((entry?.s ?? []).map((split, i) => [split, entry[column]?.[i] ?? null])
  .filter(([, value]) => value !== null));
function median(values) {
  const sorted = [...values].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
const secondsOf = (entry) => (entry?.seconds ?? []).filter((value) => value !== null);

/** The p-value of the paired test of two methods on a data set, null if there is none. */
function pairP(score, dataset, first, second) {
  const [methods, p] = DATA.pairs[score.key]?.[dataset] ?? [[], []];
  const [i, j] = [methods.indexOf(first), methods.indexOf(second)].sort((a, b) => a - b);
  return i < 0 || i === j ? null : p[i * methods.length - (i * (i + 1)) / 2 + j - i - 1] / 10000;
}

/** Fill the dialog with one entry; `open` shows another one. */
function fillPanel(dialog, { method, dataset, versus }, score, open) {
  const entry = entryOf(method, dataset);
  const has = (m, d) => Boolean(entryOf(m, d)?.a?.[score.key]);
  const places = (list) => list.map((_, place) => place);
  const others = places(DATA.methods).filter((m) => m !== method && has(m, dataset));
  const compared = others.includes(versus) ? versus : null;
  const menu = (label, id, list, chosen, action) => el("label", {}, `${label} `, el("select", { id, onchange: (event) => action(event.target.value) },
    list.map(([value, words]) => el("option", { value, selected: String(value) === String(chosen ?? "") }, words))));
  const names = (list, from) => list.map((place) => [place, from[place].name]);
  dialog.replaceChildren();
  fill(dialog, {}, [
    el("form", { method: "dialog", class: "close" }, el("button", { class: "download" }, "close")),
    el("h2", {}, `${DATA.methods[method].name} on ${DATA.datasets[dataset].name}`),
    el("p", { class: "filters" },
      menu("Method", "cell-method", names(places(DATA.methods).filter((m) => entryOf(m, dataset)), DATA.methods), method, (m) => open({ method: Number(m), dataset, versus })),
      menu("Data set", "cell-set", names(places(DATA.datasets).filter((d) => entryOf(method, d)), DATA.datasets), dataset, (d) => open({ method, dataset: Number(d), versus })),
      menu("Compare with", "cell-versus", [["", "no method"], ...names(others, DATA.methods)], compared,
        (m) => open({ method, dataset, versus: m === "" ? null : Number(m) }))),
    el("ul", {}, [comparison(method, compared, dataset, score), ...facts(entry, method, dataset, score)]
      .filter(Boolean).map((line) => el("li", {}, line))),
    splitCharts(entry, method, compared, dataset, score),
    traceCharts(entry),
    splitTable(entry, compared, dataset, score),
  ]);
}

const publishedOf = (method, dataset, score) =>
  DATA.published.filter(([m, d, name]) => m === method && d === dataset && name === score.column);

/** Sentences on an entry: its mean, cost, convergence, options and published numbers. */
function facts(entry, method, dataset, score) {
  const [, , words] = entry.a?.[score.key] ?? [];
  const count = splitsWith(entry, score.column).size;
  const lines = [words
    ? `${score.axis}: ${words}, mean ± standard error over ${count} of ${plural(DATA.datasets[dataset].plan, "split")}.`
    : `No split has this score: ${score.title}.`];
  const seconds = secondsOf(entry);
  if (seconds.length) lines.push(`Median CPU time of a split: ${duration(median(seconds))}.`);
  if (entry.calibration) lines.push(entry.calibration);
  if (entry.c) lines.push(`Splits: ${entry.c}.`);
  const options = (entry.o ?? []).map((place) => DATA.options[place]);
  lines.push(`Method ${DATA.methods[method].uses || "unknown"}${options.length ? `, options of these cells: ${options.join("; or ")}` : ""}.`);
  if (entry.search) lines.push(`Searched options: ${entry.search}.`);
  for (const [, , , source, value, error, ours, verdict, reason] of publishedOf(method, dataset, score))
    lines.push(`Published (${source}): ${signed(String(value))}${error === null ? "" : ` ± ${error === 0 ? "0" : digits(error, 2)}`}; ours in its units ${digits(ours, 4)}: ${verdict}${reason ? `, ${reason}` : ""}.`);
  return lines;
}

/** The difference from another method, and its test, in one sentence. */
function comparison(method, versus, dataset, score) {
  if (versus === null) return null;
  const [own, other] = [method, versus].map((m) => entryOf(m, dataset));
  const p = pairP(score, dataset, method, versus);
  const ratio = median(secondsOf(own)) / median(secondsOf(other));
  const cost = Number.isFinite(ratio) ? ` It takes ${digits(ratio, 2)} times the CPU time.` : "";
  const names = [method, versus].map((m) => DATA.methods[m].name);
  if (p === null) return `${names[0]} and ${names[1]} are not tested: one of them lacks splits, or there is one split only.${cost}`;
  const gap = own.a[score.key][0] - other.a[score.key][0];
  const better = score.better === "higher" ? gap > 0 : gap < 0;
  const size = score.better === "higher" ? `${digits(Math.abs(gap))} nats` : digits(Math.abs(gap));
  return `${names[0]} is ${gap === 0 ? "equal to" : better ? "better than" : "worse than"} ${names[1]} by ${size}; ` +
    `paired test: p ${p < 0.001 ? "< 0.001" : `= ${p.toFixed(3)}`}, ${p < 0.05 ? "different" : "not distinguished"} at level 0.05 (one comparison, without correction).${cost}`;
}

function splitCharts(entry, method, versus, dataset, score) {
  const scores = splitsWith(entry, score.column);
  if (!scores.size) return null;
  const own = entry.a?.[score.key];
  const row = (m, found) => ({ label: DATA.methods[m].name, splits: [...found.keys()], values: [...found.values()], colour: colourOf(m), mean: entryOf(m, dataset).a?.[score.key] });
  // A published number is drawn if its units are those of the report: our mean in the comparison is the same number.
  const bands = publishedOf(method, dataset, score).filter((one) => own && one[6] !== null && Math.abs(one[6] - own[0]) <= 1e-4 * Math.abs(own[0]))
    .map((one) => ({ mean: one[4], error: one[5], title: `${one[3]}: ${one[4]} ± ${one[5] ?? "unknown"}` }));
  const rows = [{ ...row(method, scores), bands }];
  const found = [];
  if (versus !== null) {
    const other = splitsWith(entryOf(versus, dataset), score.column);
    rows.push(row(versus, other));
    const common = [...scores.keys()].filter((split) => other.has(split));
    if (common.length) found.push([[{ label: "difference", splits: common, values: common.map((split) => scores.get(split) - other.get(split)), colour: "currentColor", zero: true }],
      `difference, ${score.axis}`, `${rows[0].label} minus ${rows[1].label} on ${plural(common.length, "common split")}. `, "cell-difference"]);
  }
  found.unshift([rows, score.axis, `Dots: splits. Below them: mean and standard error.${bands.length ? " Shaded: published mean ± standard error." : ""} `, "cell-splits"]);
  return found.map(([lines, axis, words, name]) => {
    const chart = dotChart(lines, axis, words);
    return el("figure", { id: name }, el("div", { class: "scroll chart" }, chart), el("figcaption", {}, words));
  });
}

/** All splits of the entry with their scores, time, seed, convergence, chosen options and reason. */
function splitTable(entry, versus, dataset, score) {
  const other = versus === null ? null : splitsWith(entryOf(versus, dataset), score.column);
  const number = (words, value) => ({ text: words, value: value ?? "", class: "number" });
  const states = ["–", "converged", "nearly", "not converged"];
  const head = ["split", score.title, ...(other ? [DATA.methods[versus].name] : []), "CPU seconds", "seed", "convergence", ...(entry.chosen ? ["chosen options"] : []), "reason"];
  const rows = entry.s.map((split, i) => {
    const value = entry[score.column]?.[i] ?? null;
    return [{ text: String(split), value: split }, number(digits(value, 4), value),
      ...(other ? [number(digits(other.get(split) ?? null, 4), other.get(split))] : []),
      number(digits(entry.seconds?.[i] ?? null), entry.seconds?.[i]), number(String(entry.seed?.[i] ?? "–"), entry.seed?.[i]),
      { text: states[entry.v?.[i] ?? 0], class: "word" }, ...(entry.chosen ? [{ text: entry.chosen[i] || "–", class: "text" }] : []),
      { text: DATA.reasons[entry.r?.[i] ?? 0] || "–", class: "text" }];
  });
  return el("details", {}, el("summary", {}, `All ${plural(rows.length, "split")}: scores, seeds and reasons`), tableOf(head, rows, "Splits", "splits"));
}
