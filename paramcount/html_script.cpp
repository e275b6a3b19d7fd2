// The page's script. Names from files reach the page as text nodes only, never as markup.
#include "paramcount/html_page.h"

namespace assay::html {

const std::string_view kHelperScript = R"js("use strict";
const doc = JSON.parse(document.getElementById("document").textContent);
const main = document.getElementById("main");
const plain = new Intl.NumberFormat("en-US");
const exact = n => plain.format(n);
const compact = n => {
  for (const [unit, size] of [["T", 1e12], ["B", 1e9], ["M", 1e6], ["K", 1e3]])
    if (n >= size) return (n / size).toPrecision(4).replace(/\.?0+$/, "") + " " + unit;
  return String(n);
};
const bytes = n => {
  for (const [unit, size] of [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["KB", 1e3]])
    if (n >= size) return (n / size).toPrecision(4).replace(/\.?0+$/, "") + " " + unit;
  return n + " B";
};
const el = (tag, properties = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties))
    key in node && key !== "style" ? node[key] = value : node.setAttribute(key, value);
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
};
const section = (title, ...children) => main.append(el("h2", {}, title), ...children);

// A table whose columns sort: {title, number: bool, show: row => text, key: row => value}.
function table(columns, rows, initial) {
  const body = el("tbody"), head = el("tr");
  let sorted = initial ?? null, down = true;
  const draw = () => {
    const order = [...rows];
    if (sorted !== null) {
      const key = columns[sorted].key;
      order.sort((a, b) => {
        const x = key(a), y = key(b), c = x < y ? -1 : x > y ? 1 : 0;
        return down ? -c : c;
      });
    }
    body.replaceChildren(...order.map(row => el("tr", {}, ...columns.map(c =>
      el("td", {className: c.className ?? (c.number ? "number" : ""), "data-label": c.title}, c.show(row))))));
    [...head.children].forEach((th, i) => i === sorted
      ? th.setAttribute("aria-sort", down ? "descending" : "ascending") : th.removeAttribute("aria-sort"));
  };
  columns.forEach((c, i) => {
    const th = el("th", {className: c.number ? "number" : "", tabIndex: 0, scope: "col", title: "sort"}, c.title);
    const sort = () => {
      if (sorted === i && down) down = false;
      else if (sorted === i) sorted = null, down = true;
      else sorted = i, down = true;
      draw();
    };
    th.onclick = sort;
    th.onkeydown = e => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); sort(); } };
    head.append(th);
  });
  draw();
  // Many columns do not fit a phone: there each row becomes a small block.
  return el("div", {className: "scroll"}, el("table", {className: columns.length > 4 ? "stack" : ""}, el("thead", {}, head), body));
}
const text = (title, get, className) => ({title, show: get, key: get, className});
const count = (title, get) => ({title, number: true, show: r => get(r) === null ? "" : exact(get(r)), key: r => get(r) ?? -1});
const size = (title, get) => ({title, number: true, show: r => get(r) ? bytes(get(r)) : "", key: get});

)js";

const std::string_view kScript = R"js(
// ---- summary
document.title = doc.page.name + " · assay paramcount";
const bad = (doc.plan && !doc.plan.feasible) || (doc.plans && !doc.plans.length) || doc.findings.some(f => f.severity === "error");
main.append(
  el("div", {className: "masthead"}, el("h1", {}, doc.page.name), themeSwitch()),
  el("p", {className: "soft"}, `${doc.model.title} · ${doc.model.architecture}`),
  el("p", {className: "soft"}, `${doc.model.layers} layers · hidden size ${exact(doc.model.hidden_size)} · vocabulary ${exact(doc.model.vocabulary)}` +
    (doc.model.experts ? ` · ${doc.model.experts} experts, ${doc.model.experts_per_token ?? "it is not known how many"} a token` : "") + ` · stored as ${doc.model.stored_as}`),
  el("p", {className: "verdict " + (bad ? "bad" : "good")}, doc.verdict));
const tile = (value, label, title) => value ? el("div", {className: "tile", title: title ?? ""}, el("b", {}, value), el("span", {}, label)) : null;
main.append(el("div", {className: "tiles"},
  tile(compact(doc.total), exact(doc.total) + " parameters"),
  doc.active_known ? tile(compact(doc.active), exact(doc.active) + " activated a token") : tile("not known", "how many of them a token activates"),
  doc.active_known ? tile(compact(doc.active_without_embedding), exact(doc.active_without_embedding) + " activated, without input embedding") : null,
  doc.mtp.own ? tile(compact(doc.mtp.own), exact(doc.mtp.own) + " in the MTP layer, beside the total") : null,
  doc.towers ? tile(compact(doc.towers), exact(doc.towers) + " in towers and projectors, beside the total") : null,
  doc.all !== doc.total ? tile(compact(doc.all), exact(doc.all) + " in all") : null,
  tile(bytes(doc.model.bytes), exact(doc.model.bytes) + " bytes of weights"),
  doc.memory.kv.bytes_per_token !== null ? tile(bytes(doc.memory.kv.bytes_per_token), "KV cache a token, " + doc.memory.kv.dtype) : null,
  doc.memory.kv.state_bytes_per_sequence ? tile(bytes(doc.memory.kv.state_bytes_per_sequence), "recurrent state a sequence") : null));

section("What one token lights up", floorPlan(doc));
section("Memory against context", memoryPicture([doc]));
section("Runs on", machineTable([doc]));

// ---- treemap: squarified (Bruls, Huizing, van Wijk 2000)
function squarify(items, x, y, w, h, place) {
  const total = items.reduce((sum, item) => sum + item.value, 0);
  if (total <= 0 || w <= 0 || h <= 0) return;
  const scale = w * h / total;
  let i = 0;
  while (i < items.length) {
    const side = Math.min(w, h);
    let row = [], area = 0, worst = Infinity;
    while (i + row.length < items.length) {
      const next = items[i + row.length], grown = area + next.value * scale;
      const largest = Math.max(...row.map(r => r.value), next.value) * scale;
      const smallest = Math.min(...row.map(r => r.value), next.value) * scale;
      const ratio = Math.max(side * side * largest / (grown * grown), grown * grown / (side * side * smallest));
      if (row.length && ratio > worst) break;
      worst = ratio; area = grown; row.push(next);
    }
    const thick = area / side;
    let at = 0;
    for (const item of row) {
      const length = item.value * scale / thick;
      w >= h ? place(item, x, y + at, thick, length) : place(item, x + at, y, length, thick);
      at += length;
    }
    if (w >= h) x += thick, w -= thick; else y += thick, h -= thick;
    i += row.length;
  }
}
const root = {name: "all modules", children: doc.modules, total: doc.all, active: doc.active, bytes: doc.model.bytes, params: doc.total, count: 1, formula: ""};
(function parents(node) { for (const child of node.children) child.parent = node, parents(child); })(root);
let measure = "total", current = root;
const kinds = [...new Set(doc.modules.flatMap(function collect(n) { return n.children.length ? n.children.flatMap(collect) : [n.part]; }))];
const colour = node => `var(--${/^[a-z_]+$/.test(node.part ?? "") ? node.part : "buffer"})`;
const crumbs = el("div", {className: "crumbs"}), hover = el("div", {id: "hover", "aria-live": "polite"});
const picture = shape("svg", {role: "img", "aria-label": "treemap of the modules by size"});
const switches = el("div", {className: "switch", role: "group"});
for (const [key, label] of [["total", "parameters"], ["active", "activated"], ["bytes", "bytes"]]) {
  const button = el("button", {type: "button", onclick: () => { measure = key; drawMap(); }}, label);
  button.dataset.key = key;
  switches.append(button);
}
function explain(node) {
  const lines = [el("b", {}, node.name + (node.count > 1 ? `  × ${exact(node.count)}` : ""))];
  const all = [`${exact(node.total)} parameters`,
    node === root ? "main model" + (doc.mtp.own ? ", multi-token prediction" : "") + (doc.towers ? ", towers" : "") : `${(100 * node.total / root.total).toPrecision(3)}% of all`,
    `${exact(node.active)} activated`, bytes(node.bytes)];
  lines.push(el("div", {className: "soft"}, all.join(" · ")));
  if (node.formula) lines.push(el("code", {}, (node.count > 1 ? "each " : "") + `${node.formula} = ${exact(node.params)}`));
  hover.replaceChildren(...lines);
}
function zoom(node) { current = node; drawMap(); explain(node); }
function cell(node, x, y, w, h, nested) {
  const g = shape("g", {class: "cell", tabindex: 0});
  const label = node.name + (node.count > 1 ? ` × ${exact(node.count)}` : "");
  g.append(shape("title", {}, document.createTextNode(`${label}: ${exact(node[measure])}`)),
    shape("rect", {class: "own", x, y, width: Math.max(0, w), height: Math.max(0, h), fill: colour(node), rx: 3}));
  const inner = node.children.filter(c => c[measure] > 0);
  const head = h > 34 && w > 70 ? 34 : 0;
  if (nested && inner.length > 1 && w > 90 && h > 90) {
    const items = inner.map(n => ({node: n, value: n[measure]})).sort((a, b) => b.value - a.value);
    squarify(items, x + 3, y + head, w - 6, h - head - 3, (item, a, b, c, d) => g.append(cell(item.node, a, b, c, d, nested - 1)));
  }
  if (w > 46 && h > 17) {
    const room = Math.floor((w - 10) / 6.6);
    const line = (string, dy, cls) => {
      const shown = string.length > room ? string.slice(0, Math.max(1, room - 1)) + "…" : string;
      g.append(shape("text", {x: x + 6, y: y + dy, class: cls}, document.createTextNode(shown)));
    };
    line(label, 14, "");
    if (h > 32) line(measure === "bytes" ? bytes(node.bytes) : compact(node[measure]), 28, "count");
  }
  const go = e => { e.stopPropagation(); const into = node.children.length ? node : node.parent; zoom(into === current && node.parent ? node.parent : into); };
  g.onclick = go;
  g.onkeydown = e => { if (e.key === "Enter") go(e); if (e.key === "Escape" && current.parent) zoom(current.parent); };
  g.onmouseover = g.onfocus = e => { e.stopPropagation(); explain(node); };
  return g;
}
function drawMap() {
  for (const button of switches.children) button.setAttribute("aria-pressed", button.dataset.key === measure);
  const trail = [];
  for (let node = current; node; node = node.parent) trail.unshift(node);
  crumbs.replaceChildren(...trail.flatMap((node, i) => [i ? " › " : "", el("button", {type: "button", onclick: () => zoom(node)}, node.name)]));
  const width = Math.max(280, map.clientWidth - 26), height = width < 560 ? Math.round(width * 1.25) : Math.min(560, Math.round(width * .52));
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const items = current.children.filter(n => n[measure] > 0).map(n => ({node: n, value: n[measure]})).sort((a, b) => b.value - a.value);
  picture.replaceChildren();
  const drawn = items.length ? items : [{node: current, value: 1}];
  squarify(drawn, 0, 0, width, height, (item, x, y, w, h) => picture.append(cell(item.node, x, y, w, h, 3)));
}
const names = {embedding: "embedding", attention: "attention", dense_mlp: "dense MLP", router: "router", shared_expert: "shared experts",
  routed_expert: "routed experts", norm: "norms", output: "output head", mtp: "multi-token prediction",
  vision: "vision", audio: "audio", projector: "projector", buffer: "buffers"};
const legend = el("div", {className: "legend"}, ...kinds.map(kind => el("span", {}, el("i", {style: `background: var(--${kind in names ? kind : "buffer"})`}), names[kind] ?? kind)));
const map = el("div", {className: "card"}, el("div", {className: "bar"}, crumbs, switches), picture, legend, hover);
section("Where the parameters are", map);
drawMap();
explain(root);
let settle;
addEventListener("resize", () => { clearTimeout(settle); settle = setTimeout(drawMap, 120); });

// ---- tables
section("By part", table([text("part", r => r.name, "name"), count("parameters", r => r.total),
  {title: "share", number: true, show: r => r.beside ? "" : (100 * r.total / doc.total).toFixed(2) + "%", key: r => r.total},
  count("activated", r => r.active), size("bytes", r => r.bytes)], doc.parts));

const flat = [];
(function walk(list, depth) { for (const row of list) { flat.push({...row, depth}); walk(row.children, depth + 1); } })(doc.modules, 0);
section("Modules and their arithmetic", table([
  {title: "module", className: "name", key: r => r.name, show: r => el("span", {style: `padding-left: ${r.depth * 14}px; display: block`}, r.name)},
  count("times", r => r.count), count("each", r => r.params), count("total", r => r.total), count("activated", r => r.active),
  size("bytes", r => r.bytes), text("arithmetic of each", r => r.formula ? `${r.formula} = ${exact(r.params)}` : "", "formula")], flat));

if (doc.not_counted.length) section("Not counted", el("ul", {}, ...doc.not_counted.map(p =>
  el("li", {}, p.parameters === null ? p.what : `${p.what}: ${exact(p.parameters)} parameters`))));
if (doc.defaults.length) section("Taken from the model class, for the config does not say",
  el("p", {className: "soft"}, doc.defaults.map(d => `${d.key} = ${d.value}`).join(", ")));

if (doc.checkpoint) {
  const c = doc.checkpoint;
  const rows = [...c.lines.map(l => [l.what, l.tensors, l.elements]), ["expected", null, c.expected], ["stored", c.tensors, c.stored], ["difference", null, c.difference]];
  section("Config against checkpoint", table([text("", r => r[0], "name"), count("tensors", r => r[1] || null), count("elements", r => r[2])], rows),
    el("p", {className: "soft"}, `${exact(c.bytes)} bytes in ${c.shards_here} of ${c.shards_told} files`));
}
if (doc.findings.length) section("Findings", el("ul", {}, ...doc.findings.map(f =>
  el("li", {className: f.severity === "error" ? "bad" : ""}, `${f.severity}: ${[f.file, f.tensor, f.message, f.remedy].filter(Boolean).join(": ")}`))));

section("Weights, by the form they are stored in", table([text("form", r => r.title, "name"), size("main model", r => r.main),
  count("bytes", r => r.main), {title: "bits each", number: true, show: r => (8 * r.main / doc.total).toFixed(2), key: r => r.main}], doc.memory.weights));
const kv = doc.memory.kv;
section("Memory beside the weights", el("ul", {},
  kv.bytes_per_token === null ? el("li", {}, "KV cache: not known") : el("li", {}, `KV cache: ${exact(kv.bytes_per_token)} bytes a token (${kv.dtype})` + (kv.bytes_per_token_beyond_windows !== kv.bytes_per_token ? `, ${exact(kv.bytes_per_token_beyond_windows)} once windows are full` : "")),
  kv.indexer_bytes_per_token ? el("li", {}, `indexer: ${exact(kv.indexer_bytes_per_token)} bytes a token`) : null,
  kv.expanded_bytes_per_token ? el("li", {}, `cached per head instead of latent: ${exact(kv.expanded_bytes_per_token)} bytes a token`) : null,
  kv.bytes === null ? null : el("li", {}, `${exact(kv.batch)} × ${exact(kv.context)} tokens: ${bytes(kv.bytes)}`),
  el("li", {}, `activations, an estimate: ${bytes(doc.memory.activations_estimate.bytes)} = ${doc.memory.activations_estimate.formula}`)));

const work = doc.compute;
section(`Compute at a context of ${exact(work.context)} tokens`, table([text("", r => r.name, "name"), count("FLOP, next token", r => r.decode),
  {title: "whole prompt", number: true, show: r => compact(r.prefill) + "FLOP", key: r => r.prefill}],
  [...work.modules, {name: "all", decode: work.decode_flops, prefill: work.prefill_flops}]));
if (work.crossings.length) section("Where attention catches up with the MLP (keys a query sees)", table([
  text("layers", r => r.layers + (r.absorbed ? ", absorbed" : "") + (r.window ? `, window ${r.window}` : ""), "name"),
  ...[["attention = MLP", "attention_equals_mlp"], ["scores = MLP", "scores_equal_mlp"], ["scores = all matrices", "scores_equal_matrices"]]
    .map(([title, key]) => count(title, r => Math.round(r[key])))], work.crossings));

if (doc.plan) {
  const p = doc.plan;
  section(`Plan ${p.layout} on ${p.gpus} GPUs`, el("p", {className: "verdict " + (p.feasible ? "good" : "bad")}, p.feasible ? "launches" : "does not launch"));
  if (p.refusals.length) main.append(table([text("engine", r => r.engine), text("part", r => `${r.part} (${r.tensors})`, "name"),
    text("arithmetic", r => r.arithmetic, "formula"), text("message", r => r.message, "formula")], p.refusals));
  if (p.notes.length) main.append(el("ul", {}, ...p.notes.map(n => el("li", {}, n))));
  const k = p.rank;
  section("The fullest rank", el("ul", {}, el("li", {}, `${exact(k.parameters)} parameters, ${bytes(k.weight_bytes)} of weights`),
    el("li", {}, `${bytes(k.kv_bytes)} of KV cache, ${bytes(k.activation_bytes)} of activations (an estimate)`),
    el("li", {}, `${bytes(k.bytes)} together` + (k.usable_bytes ? ` of ${bytes(k.usable_bytes)} usable` : ""))));
  if (p.ways_out.length) section("Ways out, in the order to try", el("ul", {}, ...p.ways_out.map(w =>
    el("li", {className: w.feasible ? "good" : ""}, `${w.what}: ${w.outcome}`, w.feasible && w.command ? el("div", {}, el("code", {}, w.command)) : null))));
}
if (doc.plans) section("Plans that launch, best first", table([text("plan", r => r.layout, "name"), size("weights a GPU", r => r.rank.weight_bytes),
  size("in all", r => r.rank.bytes), count("KV tokens", r => r.rank.kv_tokens_that_fit)], doc.plans));
main.append(el("footer", {}, `Written by assay paramcount from ${doc.model.source}. Click a block to look inside, a column to sort.`));
)js";

}  // namespace assay::html
