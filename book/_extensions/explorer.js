// The explorer: what the page's data holds, chosen by set, network, target and stage; a plot drawn here and a table.
(() => {
  const box = document.getElementById("explorer-box");
  const data = JSON.parse(document.getElementById("explorer-data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const KINDS = { intra: "within classes (intra)", inter: "between classes (inter)" };
  const BOTH = "before and after";
  const WAYS = { set: "Analysis set", network: "Network", target: "Finetuned on", stage: "Stage" };

  // ---- small tools
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }
  function draw(tag, attributes = {}, text) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }
  const unique = values => [...new Set(values)];
  const shown = (value, digits = 2) => (value === null || value === undefined ? "–" : value.toFixed(digits).replace("-", "−"));
  const probability = p => (p === null || p === undefined ? "–" : p < 1e-15 ? "< 1e-15" : Number(p.toPrecision(2)).toString());
  const readable = item => item.replaceAll("+", " + ").replace("|", " vs ");
  const cosine = value => Math.max(-1, Math.min(1, value)); // intervals of few pictures run past it
  const stageOf = row => (row.stage === "finetuned" ? `after, seed ${row.seed}` : "before");

  // ---- what can be chosen, and what is
  const chosen = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const selects = {};
  const sets = data.map(entry => `${entry.set}, run ${entry.run}`);
  const entryOf = () => data[sets.indexOf(chosen.set)];
  const rowsOf = table => entryOf()[table].filter(row => row.backbone === chosen.network);

  function options() {
    const found = { set: sets };
    chosen.set ??= sets[data.findIndex(entry => entry.association.length)]; // one with both measures comes first
    pick("set", found);
    found.network = unique(entryOf().similarity.map(row => row.backbone));
    pick("network", found);
    const after = rowsOf("similarity").filter(row => row.stage === "finetuned");
    found.target = after.length ? unique(after.map(row => row.target)) : ["not finetuned"];
    pick("target", found);
    const seeds = unique(after.filter(row => row.target === chosen.target).map(stageOf));
    found.stage = seeds.length ? [BOTH, "before", ...seeds] : ["before"];
    pick("stage", found);
    return found;
  }
  function pick(way, found) {
    if (!found[way].includes(chosen[way])) chosen[way] = found[way][0];
  }
  const visible = table =>
    rowsOf(table).filter(
      row =>
        (row.stage !== "finetuned" || row.target === chosen.target) &&
        (chosen.stage === BOTH || stageOf(row) === chosen.stage)
    );

  // ---- the plot
  function plot(rows) {
    const width = Math.max(280, Math.min(box.clientWidth, 760));
    const narrow = width < 560;
    const entry = entryOf();
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `13px ${getComputedStyle(box).fontFamily}`;
    const longest = Math.max(...rows.map(row => pen.measureText(readable(row.item)).width));
    const labels = narrow ? 14 : Math.ceil(longest) + 22, right = 16, top = 26, lane = narrow ? 46 : 30;
    const values = rows.flatMap(row => [row.value, row.low, row.high]);
    const bands = unique(rows.map(row => row.item)).flatMap(item => entry.untrained[item]?.slice(0, 3) ?? []);
    const all = [...values, ...bands].filter(value => value !== null && value !== undefined).map(cosine);
    const step = [0.05, 0.1, 0.2, 0.5].find(size => (Math.max(...all) - Math.min(...all)) / size <= (narrow ? 6 : 10)) ?? 1;
    const low = Math.floor(Math.min(...all) / step) * step, high = Math.ceil(Math.max(...all) / step) * step;
    const x = value => labels + ((value - low) / (high - low || 1)) * (width - labels - right);
    const picture = draw("svg", { role: "img", width, class: "explorer-plot" });
    let y = 0;
    for (const [kind, title] of Object.entries(KINDS)) {
      const items = unique(rows.filter(row => row.kind === kind).map(row => row.item));
      if (!items.length) continue;
      picture.append(draw("text", { x: narrow ? 4 : labels, y: y + 16, class: "title" }, title));
      const start = y + top, end = start + items.length * lane;
      for (let tick = low; tick <= high + step / 2; tick += step) {
        const at = x(tick);
        picture.append(draw("line", { x1: at, x2: at, y1: start, y2: end, class: Math.abs(tick) < step / 2 ? "zero" : "grid" }));
        picture.append(draw("text", { x: at, y: end + 15, class: "tick" }, shown(tick, step < 0.1 ? 2 : 1)));
      }
      items.forEach((item, number) => row(picture, rows.filter(one => one.item === item), item, start + number * lane, lane, x, labels, narrow, entry));
      y = end + 34;
    }
    picture.append(draw("text", { x: (labels + width - right) / 2, y: y - 2, class: "tick" }, "mean cosine similarity"));
    picture.setAttribute("height", y + 8);
    picture.setAttribute("viewBox", `0 0 ${width} ${y + 8}`);
    picture.setAttribute("aria-label", `Dot plot of mean cosine similarities: ${chosen.network} on ${chosen.set}, ${chosen.stage}. The numbers are in the table below it.`);
    return picture;
  }
  function row(picture, rows, item, y, lane, x, labels, narrow, entry) {
    const middle = narrow ? y + lane - 14 : y + lane / 2;
    picture.append(draw("text", narrow ? { x: 4, y: y + 16, class: "item start" } : { x: labels - 10, y: middle + 4, class: "item" }, readable(item)));
    const band = entry.untrained[item];
    if (band) {
      const grey = draw("rect", { x: x(band[0]) - 1, width: Math.max(2, x(band[2]) - x(band[0]) + 2), y: middle - 9, height: 18, class: "untrained" });
      grey.append(draw("title", {}, `${band[3]} untrained networks: ${shown(band[0])} to ${shown(band[2])}`));
      picture.append(grey);
    }
    rows.forEach((one, number) => {
      if (one.value === null) return;
      const at = middle + (number - (rows.length - 1) / 2) * Math.min(8, 16 / rows.length);
      const group = draw("g", { class: one.stage === "finetuned" ? "after" : "before" });
      group.append(draw("title", {}, `${stageOf(one)}: ${shown(one.value)} (${shown(one.low)} to ${shown(one.high)}), ${one.n} pictures`));
      if (one.low !== null) group.append(draw("line", { x1: x(cosine(one.low)), x2: x(cosine(one.high)), y1: at, y2: at }));
      const cx = x(one.value);
      group.append(
        one.stage === "finetuned"
          ? draw("path", { d: `M${cx} ${at - 5.5}L${cx + 5.5} ${at}L${cx} ${at + 5.5}L${cx - 5.5} ${at}Z` })
          : draw("circle", { cx, cy: at, r: 4.8 })
      );
      picture.append(group);
    });
  }
  function legend(rows) {
    const stages = unique(rows.map(row => row.stage === "finetuned"));
    const marks = [];
    if (stages.includes(false)) marks.push(["before", "before finetuning"]);
    if (stages.includes(true)) marks.push(["after", "after finetuning, one marker a seed"]);
    const untrained = Object.values(entryOf().untrained)[0];
    if (untrained) marks.push(["untrained", `range of ${untrained[3]} untrained networks`]);
    const list = make("ul", { class: "explorer-legend" });
    for (const [kind, text] of marks) {
      const mark = draw("svg", { width: 16, height: 16, viewBox: "0 0 16 16", "aria-hidden": "true" });
      const group = draw("g", { class: kind });
      group.append(
        kind === "before" ? draw("circle", { cx: 8, cy: 8, r: 4.8 })
        : kind === "after" ? draw("path", { d: "M8 2L14 8L8 14L2 8Z" })
        : draw("rect", { x: 0, y: 2, width: 16, height: 12, class: "untrained" })
      );
      mark.append(group);
      list.append(make("li", {}, mark, text));
    }
    return list;
  }

  // ---- tables
  function table(caption, heads, rows) {
    const head = make("tr", {}, ...heads.map(text => make("th", { scope: "col" }, text)));
    const body = rows.map(cells => make("tr", {}, ...cells.map(text => make("td", {}, text))));
    const made = make("table", { class: "dataframe" }, make("thead", {}, head), make("tbody", {}, ...body));
    const scroll = make("div", { class: "table-scroll", role: "region", tabindex: "0", "aria-label": caption }, made);
    return [make("p", { class: "table-caption" }, caption), scroll];
  }
  function similarityTable(rows) {
    const cells = rows.map(row => [readable(row.item), row.kind, stageOf(row), shown(row.value, 3), `${shown(row.low, 3)} to ${shown(row.high, 3)}`, String(row.n)]);
    return table("Mean cosine similarities, 95 % intervals over pictures", ["item", "kind", "stage", "similarity", "95 % interval", "n"], cells);
  }
  function associationTable(rows) {
    if (!rows.length) return [make("p", { class: "not-built" }, "No association was computed for this choice: take another set or network.")];
    const first = rows[0];
    const caption = `Association of ${first.X} and ${first.Y} with pairs of objects: effect size d is positive where ${first.X} lies closer to the first of the pair. 95 % intervals over pictures; p two-sided, and after Holm’s correction; the range is that of untrained networks.`;
    const judged = rows.some(row => row.verdict);
    const cells = rows.map(row => [
      `${row.A}, ${row.B}`, stageOf(row), shown(row.effect_size), `${shown(row.low)} to ${shown(row.high)}`,
      probability(row.p), probability(row.p_holm), `${shown(row.untrained_low)} to ${shown(row.untrained_high)}`, shown(row.thumbnail),
      ...(judged ? [row.verdict ?? "–"] : []),
    ]);
    const columns = ["pair", "stage", "d", "95 % interval", "p", "Holm", "untrained, range", "colour and layout alone"];
    return table(caption, [...columns, ...(judged ? ["what finetuning did"] : [])], cells);
  }

  // ---- putting it together
  const form = make("form", { class: "explorer-choice" });
  form.addEventListener("submit", event => event.preventDefault());
  for (const [way, name] of Object.entries(WAYS)) {
    selects[way] = make("select", { id: `explorer-${way}`, name: way });
    selects[way].addEventListener("change", () => { chosen[way] = selects[way].value; show(); });
    form.append(make("label", { for: `explorer-${way}` }, name, selects[way]));
  }
  const said = make("p", { role: "status", class: "explorer-said" });
  const figure = make("figure", { class: "explorer-figure" });
  const numbers = make("details", { class: "explorer-numbers" });
  const association = make("div");
  const heads = ["Similarity", "Association"].map(text => make("h2", { id: text.toLowerCase(), tabindex: "-1" }, text));
  box.replaceChildren(form, said, heads[0], figure, numbers, heads[1], association);
  // "On this page" was written before these heads were; the address keeps the choice, so that they are gone to without it.
  const listed = document.querySelector(".page-toc ul > li");
  for (const head of listed ? heads : []) {
    const link = make("a", { class: "reference internal nav-link", href: `#${head.id}` }, head.textContent);
    link.addEventListener("click", event => { event.preventDefault(); head.focus(); });
    listed.before(make("li", { class: "toc-h2 nav-item toc-entry" }, link));
  }

  function show() {
    const found = options();
    for (const [way, select] of Object.entries(selects)) {
      select.replaceChildren(...found[way].map(text => make("option", { value: text }, text)));
      select.value = chosen[way];
      select.disabled = found[way].length < 2;
    }
    const rows = visible("similarity"), tests = visible("association");
    figure.replaceChildren(legend(rows), plot(rows));
    numbers.replaceChildren(make("summary", {}, "The plot’s numbers as a table"), ...similarityTable(rows));
    association.replaceChildren(...associationTable(tests));
    box.querySelectorAll("table").forEach(one => window.sortable && sortable(one));
    said.textContent = `${chosen.network} on ${chosen.set}: ${rows.length} similarities and ${tests.length} association tests, ${chosen.stage}.`;
    history.replaceState(null, "", `#${new URLSearchParams(chosen)}`);
  }
  let width = box.clientWidth;
  addEventListener("resize", () => {
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    figure.lastChild.replaceWith(plot(visible("similarity")));
  });
  show();
})();
