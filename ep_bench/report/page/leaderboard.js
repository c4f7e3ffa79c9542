// The leaderboard of the view.
const lossText = (loss, score) => (loss === null || loss === undefined ? "–"
  : score.better === "higher" ? fixed(loss, 3) : Number.isFinite(loss) ? `${fixed(100 * loss, 1)} %` : "–");
const number = (text, value) => ({ text, value: value ?? "", class: "number" });

/** One sentence on what is ranked, and whether it is tested. */
function leaderboardNote(view, board) {
  const { subset, stored } = board;
  if (!subset.size) return "No ranks: no two of the chosen methods are complete on a common data set.";
  const plans = subset.sets.map((d) => DATA.datasets[d].plan);
  const splits = Math.min(...plans) === Math.max(...plans) ? plural(plans[0], "split") : `${Math.min(...plans)} to ${Math.max(...plans)} splits`;
  const names = subset.sets.map((d) => DATA.datasets[d].name).join(", ");
  const what = `Ranked: ${plural(subset.methods.length, "method")} on ${plural(subset.sets.length, "data set")} (${names}), ${splits} each.`;
  const ranked = board.rows.filter((row) => row.rank !== null);
  const single = subset.sets.length === 1;
  const words = (row) => single ? `${labelOn(row.method, subset.sets)} (${meanText(row.method, subset.sets[0], view.score)})`
    : `${labelOn(row.method, subset.sets)} (${fixed(row.rank, 2)}${row.interval ? `, ${intervalText(row)}` : ""})`;
  const first = bestOf(board);
  const best = `${single ? `Best by ${inSentence(view.score.title)}` : "Lowest average rank"}: ` +
    (first ? `${words(first)}. ` : `${words(lowestOf(ranked))}, which has not converged on every split. No method is named as the best. `);
  return `${best}${what} ${single ? pairedNote(view, board) : stored ? stored.test : "Descriptive ranks of this selection: not tested, and no intervals."}`;
}

const intervalText = (row) => `${fixed(row.interval[0], 1)} to ${fixed(row.interval[1], 1)}`;

/** The row of the lowest rank without a dagger, undefined if only rows with a dagger have this rank. */
function bestOf(board) {
  const ranked = board.rows.filter((row) => row.rank !== null);
  return ranked.find((row) => row.rank <= lowestOf(ranked).rank && hasConvergedOn(row.method, board.subset.sets));
}

/** The row of the lowest rank, whether it has converged or not. */
const lowestOf = (rows) => rows.reduce((found, row) => (row.rank < found.rank ? row : found));

/** The result of the paired test on one data set, for the methods of the view. */
function pairedNote(view, board) {
  const [d] = board.subset.sets;
  const ranked = board.rows.filter((row) => row.rank !== null);
  const marked = (row) => entryOf(row.method, d)?.e?.includes(view.score.key);
  const best = lowestOf(ranked);
  if (!marked(best)) return "The paired test compares with the best method, which is not in this selection.";
  const equal = ranked.filter((row) => row !== best && marked(row)).map((row) => labelOn(row.method, [d]));
  return equal.length
    ? `By the paired test at level 0.05, ${plural(ranked.length - 1 - equal.length, "method")} of ${ranked.length - 1} differ from it; not distinguished are ${equal.join(", ")}.`
    : `By the paired test at level 0.05, all ${ranked.length - 1} other methods differ from it.`;
}

/** A title within a sentence; abbreviations stay. */
const inSentence = (title) => (/^.[A-Z]/.test(title) ? title : title[0].toLowerCase() + title.slice(1));

/** Mean and standard error of a method on one data set. */
function meanText(method, dataset, score) {
  const values = valuesOf(method, dataset, score.column);
  return values.length > 1 ? withError(mean(values), standardError(values)) : digits(values[0], 4);
}

/** Average rank and its interval, or the mean if there is one data set only. */
function rankCells(row, board, score) {
  const [dataset, ...others] = board.subset.sets;
  if (dataset !== undefined && !others.length)
    return [row.rank === null ? number("–") : number(meanText(row.method, dataset, score), mean(valuesOf(row.method, dataset, score.column)))];
  return [
    number(row.rank === null ? "–" : fixed(row.rank, 2), row.rank),
    number(row.interval ? intervalText(row) : "–", row.interval?.[0]),
  ];
}

function leaderboardTable(view, board, open) {
  const single = board.subset.sets.length === 1;
  const ranks = single ? [`${view.score.title} on ${DATA.datasets[board.subset.sets[0]].name}`] : ["average rank", "interval"];
  const head = ["method", ...ranks, view.score.better === "higher" ? "loss (nats)" : "loss",
    "calibration error", "median CPU time", "finished", "converged", "published numbers (all data sets)", "tuning"];
  const best = bestOf(board);
  const isBest = (row) => best && row.rank <= best.rank && hasConvergedOn(row.method, board.subset.sets);
  const shown = board.rows.filter((row) => !view.complete || row.rank !== null);
  const rows = shown.map((row) => {
    const method = DATA.methods[row.method];
    const first = board.subset.sets[0] ?? view.sets.find((d) => entryOf(row.method, d));
    return [
      { text: labelOn(row.method, row.rank === null ? view.sets : board.subset.sets), value: method.name, class: row.rank === null ? "faint" : isBest(row) ? "best" : null,
        action: () => open(row.method, entryOf(row.method, first) ? first : view.sets.find((d) => entryOf(row.method, d))) },
      ...rankCells(row, board, view.score),
      number(lossText(row.loss ?? null, view.score), row.loss),
      number(row.calibration == null ? "–" : fixed(row.calibration, 3), row.calibration),
      number(row.seconds == null ? "–" : duration(row.seconds), row.seconds),
      number(`${row.finished}/${row.planned}${row.without ? `, ${row.without} without this score` : ""}`, row.finished / row.planned),
      { ...number(convergenceText(row.counts), row.counts[1] ? row.counts[0] / row.counts[1] : null), class: "number counts" },
      { text: method.verdicts || "–", class: "wrap" },
      { text: method.tuning, class: "wrap" },
    ];
  });
  return tableOf(head, rows, `Leaderboard by ${view.score.title}`, `leaderboard-${view.score.key}`);
}
