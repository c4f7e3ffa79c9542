// One entry: the splits of a method on a data set, compared with another method and with published numbers.
const splitsWith = (entry, column) => new Map((entry?.s ?? []).map((split, i) => [split, entry[column]?.[i] ?? null])
  .filter(([, value]) => value !== null));

function cellPanel(view, show) {
  const { method, dataset } = view.cell;
  const entry = entryOf(method, dataset);
  const { column } = view.score;
  const scores = splitsWith(entry, column);
  const others = view.methods.filter((m) => m !== method && valuesOf(m, dataset, column).length);
  const versus = others.includes(view.versus) ? view.versus : null;
  const published = DATA.published.filter(([m, d, name]) => m === method && d === dataset && name === column);
  const own = scores.size ? mean([...scores.values()]) : null;
  // A published number is drawn if its units are those of the report: our mean in the comparison is the same number.
  const bands = published.filter((row) => own !== null && row[6] !== null && Math.abs(row[6] - own) <= 1e-4 * Math.abs(own))
    .map((row) => ({ mean: row[4], error: row[5], title: `${row[3]}: ${row[4]} ± ${row[5] ?? "unknown"}` }));
  const menu = (label, list, chosen, action, id) => el("label", {}, `${label} `, el("select", { id, onchange: (event) => action(event.target.value) },
    list.map(([value, words]) => el("option", { value, selected: String(value) === String(chosen) }, words))));
  const here = DATA.datasets.map((_, d) => d).filter((d) => entryOf(method, d));
  const methods = indices(DATA.methods).filter((m) => entryOf(m, dataset));
  return el("section", { id: "cell", "aria-label": "One entry" },
    el("h3", {}, `${labelOn(method, [dataset])} on ${DATA.datasets[dataset].name} `,
      el("button", { type: "button", class: "download", onclick: () => show({ cell: null, versus: null }) }, "close")),
    el("p", { class: "filters" },
      menu("Method", methods.map((m) => [m, labelOf(m)]), method, (m) => show({ cell: { method: Number(m), dataset } }), "cell-method"),
      menu("Data set", here.map((d) => [d, DATA.datasets[d].name]), dataset, (d) => show({ cell: { method, dataset: Number(d) } }), "cell-set"),
      menu("Compare with", [["", "no method"], ...others.map((m) => [m, labelOf(m)])], versus ?? "",
        (m) => show({ versus: m === "" ? null : Number(m) }), "cell-versus")),
    el("ul", {}, facts(view, entry, scores, published).map((line) => el("li", {}, line))),
    charts(view, scores, versus, bands),
    traceCharts(entry),
    splitTable(view, entry, versus));
}

/** How many times as long as the compared method an entry takes, in words. */
function costRatio(view, seconds) {
  const other = view.versus === null ? [] : valuesOf(view.versus, view.cell.dataset, "seconds");
  return other.length ? `, ${digits(median(seconds) / median(other), 2)} times that of ${labelOn(view.versus, [view.cell.dataset])} (${duration(median(other))})` : "";
}

/** Sentences on an entry: its mean, options, published numbers and reasons. */
function facts(view, entry, scores, published) {
  const method = DATA.methods[view.cell.method];
  const values = [...scores.values()];
  const lines = [];
  lines.push(values.length
    ? `${view.score.axis}: ${values.length > 1 ? withError(mean(values), standardError(values)) : digits(values[0], 4)} over ${values.length} of ${DATA.datasets[view.cell.dataset].plan} splits (mean ± standard error).`
    : `No split has a ${view.score.title}.`);
  const seconds = known(entry.seconds);
  if (seconds.length) lines.push(`Median CPU time of a split: ${duration(median(seconds))}${costRatio(view, seconds)}.`);
  if (entry.c?.[1]) lines.push(`Converged splits: ${convergenceText(entry.c)}.`);
  lines.push(`Method ${method.uses || "unknown"}, options ${method.options === "{}" ? "at their defaults" : method.options}; tuning: ${method.tuning}.`);
  for (const [, , , source, value, error, ours, verdict, reason] of published)
    lines.push(`Published (${source}): ${signed(String(value))}${error === null ? "" : ` ± ${error === 0 ? "0" : digits(error, 2)}`}; ours in its units ${digits(ours, 4)}: ${verdict}${reason ? `, ${reason}` : ""}.`);
  return lines;
}

function charts(view, scores, versus, bands) {
  if (!scores.size) return null;
  const { method, dataset } = view.cell;
  const rows = [{ label: labelOf(method), splits: [...scores.keys()], values: [...scores.values()], colour: colourOf(method), bands }];
  const found = [];
  if (versus !== null) {
    const other = splitsWith(entryOf(versus, dataset), view.score.column);
    rows.push({ label: labelOf(versus), splits: [...other.keys()], values: [...other.values()], colour: colourOf(versus) });
    const common = [...scores.keys()].filter((split) => other.has(split));
    const gaps = common.map((split) => scores.get(split) - other.get(split));
    if (gaps.length) {
      const words = gaps.length > 1 ? withError(mean(gaps), standardError(gaps)) : digits(gaps[0], 4);
      const better = gaps.filter((gap) => (view.score.better === "higher" ? gap > 0 : gap < 0)).length;
      const caption = `Paired difference, ${labelOf(method)} minus ${labelOf(versus)}: ${words} over ${plural(gaps.length, "common split")}; ` +
        `better on ${better}. The command compare tests pairs. `;
      found.push([dotChart([{ label: "difference", splits: common, values: gaps, colour: "currentColor", zero: true }],
        `difference, ${view.score.axis}`, caption), caption, "cell-difference"]);
    }
  }
  const caption = `Dots: splits. Below them: mean and standard error.${bands.length ? " Shaded: published mean ± standard error." : ""} `;
  found.unshift([dotChart(rows, view.score.axis, `${view.score.title} of ${rows.map((row) => row.label).join(" and ")} by split.`), caption, "cell-splits"]);
  return found.map(([chart, words, name]) => el("figure", { id: name }, el("div", { class: "scroll chart" }, chart),
    el("figcaption", {}, words, svgButton(() => chart, name))));
}

/** All splits of the entry with their scores, time, seed, convergence and reason. */
function splitTable(view, entry, versus) {
  const { column } = view.score;
  const other = versus === null ? null : splitsWith(entryOf(versus, view.cell.dataset), column);
  const states = ["–", "converged", "nearly", "not converged"];
  const head = ["split", view.score.title, ...(other ? [labelOf(versus)] : []), "CPU time", "seed", "convergence", "reason"];
  const rows = entry.s.map((split, i) => {
    const value = entry[column]?.[i] ?? null;
    const compared = other?.get(split) ?? null;
    return [{ text: String(split), value: split }, number(digits(value, 4), value),
      ...(other ? [number(digits(compared, 4), compared)] : []),
      number(duration(entry.seconds?.[i] ?? null), entry.seconds?.[i]), number(String(entry.seed?.[i] ?? "–"), entry.seed?.[i]),
      { text: states[entry.v?.[i] ?? 0], class: "word" }, { text: DATA.reasons[entry.r?.[i] ?? 0] || "–", class: "text" }];
  });
  return el("details", { "data-keep": "splits" }, el("summary", {}, `All ${plural(rows.length, "split")}: scores, seeds and reasons`),
    tableOf(head, rows, "Splits", "splits"));
}
