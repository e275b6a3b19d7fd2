// The pictures of the page: the floor plan of a model, its memory against context, the GPUs it runs on.
#include "paramcount/html_page.h"

namespace assay::html {

const std::string_view kPictureScript = R"js(
const svgns = "http://www.w3.org/2000/svg";
const shape = (tag, attributes, ...children) => {
  const node = document.createElementNS(svgns, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
};
const label = (x, y, string, attributes = {}) => shape("text", {x, y, ...attributes}, document.createTextNode(string));
// Drawn for the width there is, and again when that changes.
function drawing(draw, description) {
  const picture = shape("svg", {role: "img", "aria-label": description});
  const frame = el("div", {className: "frame"}, picture);
  let last = 0;
  const redraw = () => {
    const width = Math.round(frame.clientWidth);
    if (width < 40) return;
    last = width;
    picture.replaceChildren();
    const height = draw(picture, width);
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.setAttribute("width", width);
    picture.setAttribute("height", height);
  };
  new ResizeObserver(() => { if (Math.round(frame.clientWidth) !== last) redraw(); }).observe(frame);
  frame.redraw = redraw;
  return frame;
}
function choice(options, chosen, take) {
  const group = el("div", {className: "switch", role: "group"});
  const mark = value => { for (const b of group.children) b.setAttribute("aria-pressed", b.value === String(value)); };
  for (const [value, name] of options)
    group.append(el("button", {type: "button", value: String(value), onclick: () => { mark(value); take(value); }}, name));
  mark(chosen);
  return group;
}
const tokens = n => n >= 1048576 ? (n / 1048576).toFixed(n % 1048576 ? 1 : 0).replace(/\.0$/, "") + "M"
  : n >= 1024 ? (n / 1024).toFixed(n % 1024 ? 1 : 0).replace(/\.0$/, "") + "K" : String(n);

// ---- floor plan: a storey a layer; from left to right what mixes tokens, what every token passes, and the experts.
const mixerColour = name => name === "none" ? null : name.startsWith("window") ? "--mix-window" : name.startsWith("latent") ? "--mix-latent"
  : name.startsWith("attention +") ? "--mix-both" : name.startsWith("attention") ? "--mix-full" : "--mix-state";
const most = (list, get) => list.reduce((top, item) => Math.max(top, get(item)), 0);
function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6D2B79F5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
function someOf(count, of, random) {
  const all = Array.from({length: of}, (_, i) => i);
  for (let i = 0; i < count; i++) {
    const j = i + Math.floor(random() * (of - i));
    [all[i], all[j]] = [all[j], all[i]];
  }
  return all.slice(0, count);
}
function floorSentence(doc) {
  const storeys = doc.page.floor, mixtures = storeys.filter(s => s.experts), part = (100 * doc.active / doc.total).toPrecision(3);
  if (!mixtures.length) return `One token passes all of its ${storeys.length} layers: every parameter computes for it.`;
  const experts = most(mixtures, s => s.experts), lit = most(mixtures, s => s.active_experts);
  return `One token passes ${storeys.length} layers and lights up ${lit} of ${experts} experts in ` +
    `${mixtures.length === storeys.length ? "each" : mixtures.length} of them: ${compact(doc.active)} of ${compact(doc.total)} parameters, ${part}%.`;
}
function drawFloor(doc, picture, width, seed) {
  const storeys = doc.page.floor, experts = most(storeys, s => s.experts), left = 40, top = 24, right = 4;
  const room = width - left - right, shared = storeys.some(s => s.shared);
  const mixing = experts ? Math.max(44, Math.round(room * .14)) : 0, middle = experts && shared ? Math.max(34, Math.round(room * .07)) : 0;
  const field = room - (experts ? mixing + middle + 6 + (middle ? 6 : 0) : 0), fieldAt = width - right - field;
  const folds = experts ? Math.max(1, Math.min(6, Math.ceil(1.25 * experts / field))) : 1, across = Math.ceil(experts / folds);
  const high = Math.max(Math.min(15, Math.max(5, Math.floor(560 / storeys.length))), 2.2 * folds), gap = high > 7 ? 2 : 1;
  const widest = most(storeys, s => s.mixing + s.dense) || 1, cell = field / (across || 1);
  const dim = [], lit = [];
  const block = (x, y, w, colour) => picture.append(shape("rect", {x, y, width: Math.max(0, w), height: high - gap, fill: `var(${colour})`, rx: high > 7 ? 2 : 0, class: "flat"}));
  storeys.forEach((s, i) => {
    const y = top + i * high, colour = mixerColour(s.attention);
    if (!experts) {
      const w = room * s.mixing / widest;
      if (colour) block(left, y, w - 2, colour);
      if (s.dense) block(left + (colour ? w : 0), y, room * s.dense / widest, "--mlp");
      return;
    }
    if (colour) block(left, y, mixing, colour);
    if (s.shared && middle) block(left + mixing + 6, y, middle, "--shared");
    if (!s.experts) { if (s.dense) block(left + mixing + 6, y, room - mixing - 6, "--mlp"); return; }
    if (s.dense && middle === 0) block(fieldAt, y + high - gap - 2, field, "--mlp");
    const chosen = new Set(someOf(s.active_experts, s.experts, randomFrom(Math.imul(seed, 0x9E3779B1) ^ Math.imul(i + 1, 0x85EBCA77))));
    const thin = cell > 4 ? 1 : cell > 2 ? .5 : cell > 1.2 ? .25 : 0, tall = (high - gap) / folds;
    for (let e = 0; e < s.experts; e++) {
      const x = fieldAt + (e % across) * cell, at = y + Math.floor(e / across) * tall, on = chosen.has(e), grown = on ? Math.max(cell - thin, 2.2) : cell - thin;
      (on ? lit : dim).push(`M${x.toFixed(2)} ${at.toFixed(2)}h${grown.toFixed(2)}v${(tall - (folds > 1 ? .4 : 0)).toFixed(2)}h${(-grown).toFixed(2)}z`);
    }
  });
  if (dim.length) picture.append(shape("path", {d: dim.join(""), fill: "var(--dim)"}));
  if (lit.length) picture.append(shape("path", {d: lit.join(""), fill: "var(--lit)"}));
  storeys.forEach((s, i) => {
    const inside = [s.attention === "none" ? null : `${s.attention}${s.window ? ` of ${exact(s.window)}` : ""}: ${compact(s.mixing)}`, s.dense ? `MLP: ${compact(s.dense)}` : null,
      s.shared ? `shared experts: ${compact(s.shared)}` : null, s.experts ? `${s.active_experts} of ${s.experts} experts: ${compact(s.routed)} in all` : null];
    const strip = shape("rect", {x: 0, y: top + i * high, width, height: high, fill: "transparent", class: "flat strip"});
    strip.append(shape("title", {}, document.createTextNode(`layer ${i}: ` + inside.filter(Boolean).join(", "))));
    picture.append(strip);
  });
  const step = [1, 2, 5, 10, 20, 25, 50, 100].find(n => n * high >= 26) ?? 200;
  for (let i = 0; i < storeys.length; i += step) picture.append(label(left - 6, top + i * high + high / 2 + 3.5, String(i), {class: "axis", "text-anchor": "end"}));
  picture.append(label(0, 14, "layer", {class: "axis"}));
  if (experts) {
    picture.append(label(left, 14, mixing > 70 ? "token mixing" : "mixing", {class: "axis"}));
    if (middle > 44) picture.append(label(left + mixing + 6, 14, "shared", {class: "axis"}));
    picture.append(label(width - right, 14, `${exact(experts)} experts`, {class: "axis", "text-anchor": "end"}));
  } else
    picture.append(label(left, 14, "token mixing, then MLP, as wide as they have parameters", {class: "axis"}));
  return top + storeys.length * high + 4;
}
function floorPlan(doc) {
  let seed = 1;
  const storeys = doc.page.floor, frame = drawing((picture, width) => drawFloor(doc, picture, width, seed), floorSentence(doc));
  const kinds = [...new Set(storeys.map(s => s.attention).filter(a => mixerColour(a)))];
  const mark = (colour, name) => el("span", {}, el("i", {style: `background: var(${colour})`}), name);
  const often = kind => storeys.filter(s => s.attention === kind).length;
  const sparse = storeys.some(s => s.experts);
  return el("div", {className: "card"},
    el("div", {className: "bar"}, el("span", {className: "lead"}, floorSentence(doc)),
      sparse ? el("button", {type: "button", className: "plain", onclick: () => { seed++; frame.redraw(); }}, "another token") : null),
    frame,
    el("div", {className: "legend"}, ...kinds.map(kind => mark(mixerColour(kind), `${kind} (${often(kind)})`)),
      storeys.some(s => s.dense) ? mark("--mlp", "MLP") : null, storeys.some(s => s.shared) ? mark("--shared", "shared experts") : null,
      sparse ? mark("--lit", "experts lit") : null, sparse ? mark("--dim", "experts not met") : null),
    sparse ? el("p", {className: "soft small"}, "How many experts light up is the model's; which ones is drawn by lot here.") : null);
}

// ---- memory against context
function niceStep(top, ticks) {
  const rough = top / ticks, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 2.5, 5, 10].map(n => n * power).find(n => n >= rough);
}
const machineLines = [[24, "RTX 4090"], [48, "L40S"], [80, "H100"], [141, "H200"], [192, "MI300X"], [640, "8 × H100"], [1128, "8 × H200"], [1536, "8 × MI300X"], [2256, "16 × H200"]];
const seriesColours = ["--first", "--second"];
function drawMemory(docs, picture, width, sequences) {
  const left = 58, right = 14, top = 24, bottom = 44, high = width < 520 ? 280 : 330, w = width - left - right, h = high - top - bottom;
  const longest = most(docs, d => d.page.curve.longest), total = (d, kv) => d.model.bytes + kv * sequences;
  const last = d => d.page.curve.points[d.page.curve.points.length - 1];
  // Up to the next machine that would hold all of it, where one is near.
  const needed = most(docs, d => total(d, last(d)[1])) / 1e9, least = Math.min(...docs.map(d => d.model.bytes)) / 1e9;
  const enough = machineLines.find(([gb]) => gb >= needed * 1.02), peak = enough && enough[0] < needed * 1.8 ? enough[0] * 1.06 : needed * 1.08;
  const x = n => left + w * n / longest, y = gb => top + h - h * gb / peak;
  const step = niceStep(peak, 5);
  for (let gb = 0; gb <= peak; gb += step) {
    picture.append(shape("line", {x1: left, x2: left + w, y1: y(gb), y2: y(gb), class: "grid"}));
    picture.append(label(left - 7, y(gb) + 4, peak < 5 ? gb.toFixed(1) : exact(Math.round(gb * 10) / 10), {class: "axis", "text-anchor": "end"}));
  }
  picture.append(label(left - 7, 12, "GB", {class: "axis", "text-anchor": "end"}));
  const parts = width < 420 ? 2 : 4;
  for (let i = 0; i <= parts; i++)
    picture.append(label(x(longest * i / parts), top + h + 18, tokens(longest * i / parts), {class: "axis", "text-anchor": i === parts ? "end" : i ? "middle" : "start"}));
  picture.append(label(left + w / 2, high - 6, "tokens of context", {class: "axis", "text-anchor": "middle"}));
  const path = (points, get) => points.map(([n, kv], i) => `${i ? "L" : "M"}${x(n).toFixed(1)} ${y(get(kv) / 1e9).toFixed(1)}`).join("");
  docs.forEach((d, i) => {
    const points = d.page.curve.points, base = d.model.bytes / 1e9, end = x(d.page.curve.longest);
    if (docs.length === 1) {
      picture.append(shape("rect", {x: left, y: y(base), width: end - left, height: Math.max(0, top + h - y(base)), fill: "var(--weights)", class: "flat"}));
      picture.append(shape("path", {d: path(points, kv => total(d, kv)) + `L${end} ${y(base)}L${left} ${y(base)}Z`, fill: "var(--cache)"}));
      picture.append(shape("path", {d: path(points, kv => total(d, kv)), fill: "none", stroke: "var(--ink)", "stroke-width": 1.5}));
    } else {
      picture.append(shape("line", {x1: left, x2: end, y1: y(base), y2: y(base), stroke: `var(${seriesColours[i]})`, "stroke-width": 1.5, "stroke-dasharray": "2 4"}));
      picture.append(shape("path", {d: path(points, kv => total(d, kv)), fill: "none", stroke: `var(${seriesColours[i]})`, "stroke-width": 2.5}));
      picture.append(shape("circle", {cx: end, cy: y(total(d, last(d)[1]) / 1e9), r: 4, fill: `var(${seriesColours[i]})`}));
    }
  });
  let lowest = Infinity;
  for (const [gb, name] of machineLines) {
    if (gb > peak || gb < least * .8 || lowest - y(gb) < 17) continue;
    lowest = y(gb);
    picture.append(shape("line", {x1: left, x2: left + w, y1: y(gb), y2: y(gb), class: "limit"}));
    const lines = docs.flatMap(d => [0, .125].map(part => y(total(d, d.page.curve.points[Math.round(d.page.curve.points.length * part)][1]) / 1e9)));
    const crossed = lines.some(line => line < y(gb) && line > y(gb) - 20);
    picture.append(label(left + 6, crossed ? y(gb) + 14 : y(gb) - 4, `${name}, ${exact(gb)} GB`, {class: "axis halo"}));
  }
  return high;
}
function memoryPicture(docs) {
  let sequences = 1;
  const say = () => docs.map(d => {
    const points = d.page.curve.points, [longest, kv] = points[points.length - 1];
    return (docs.length > 1 ? d.page.name + ": " : "") + `${bytes(d.model.bytes)} of weights and ${bytes(kv * sequences)} of ` +
      `${d.memory.kv.state_bytes_per_sequence ? "cache and state" : "cache"} at ${tokens(longest)} tokens`;
  }).join("; ") + ".";
  const lead = el("span", {className: "lead", "aria-live": "polite"}, say());
  const frame = drawing((picture, width) => drawMemory(docs, picture, width, sequences), "memory against context: " + say());
  const take = n => { sequences = n; lead.textContent = say(); frame.firstChild.setAttribute("aria-label", "memory against context: " + say()); frame.redraw(); };
  const mark = (colour, name) => el("span", {}, el("i", {style: `background: var(${colour})`}), name);
  const legend = docs.length === 1
    ? [mark("--weights", `weights, ${docs[0].model.stored_as}`), mark("--cache", `KV cache, ${docs[0].page.curve.dtype}${docs[0].memory.kv.state_bytes_per_sequence ? ", and recurrent state" : ""}`)]
    : docs.map((d, i) => mark(seriesColours[i], d.page.name + " (dotted: weights alone)"));
  return el("div", {className: "card"}, el("div", {className: "bar"}, lead,
    el("span", {className: "asked"}, el("span", {className: "soft small"}, "sequences"), choice([[1, "1"], [8, "8"], [32, "32"], [128, "128"]], 1, take))), frame, el("div", {className: "legend"}, ...legend));
}

// ---- runs on
const rough = n => n < 1000 ? String(n) : compact(Number(n.toPrecision(3)));
function machineTable(docs) {
  const known = docs.filter(d => d.page.machines);
  if (!known.length) return el("p", {className: "soft"}, "Nothing says how matrices of this architecture may be cut.");
  const first = known[0].page.machines, columns = known.flatMap(d => d.page.machines.forms.map((form, i) => ({d, form, i})));
  const head = el("tr", {}, el("th", {scope: "col"}, "GPU"), ...columns.map(c => el("th", {scope: "col"},
    (docs.length > 1 ? c.d.page.name + ", " : "") + c.form.title.replace(/^as stored: /, "as stored, "), el("small", {}, bytes(c.form.bytes) + " of weights"))));
  const cell = fit => fit === null ? el("td", {className: "none"}, `more than ${first.most}`)
    : el("td", {}, el("b", {}, `${fit.gpus} ×`), el("small", {}, fit.layout, fit.tokens ? el("span", {}, `room for ${rough(fit.tokens)} tokens`) : null));
  const rows = first.gpus.map((gpu, g) => el("tr", {}, el("th", {scope: "row"}, gpu.name, el("small", {}, gpu.gigabytes + " GB")),
    ...columns.map(c => cell(c.d.page.machines.gpus[g].fits[c.i]))));
  return el("div", {}, el("div", {className: "scroll machines"}, el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows))),
    el("p", {className: "soft small"}, `The fewest GPUs, in powers of two, on which ${first.engine} would start at a context of ${exact(first.context)} tokens with nine tenths of the memory. ` +
      "Shapes and memory are looked at; whether a GPU has kernels for the type is not. Room: tokens of cache beside the weights." +
      (known.some(d => d.mtp.own) ? " Multi-token prediction is not loaded." : "")));
}

// ---- light and dark
function themeSwitch() {
  const kept = () => { try { return localStorage.getItem("assay-theme"); } catch { return null; } };
  const set = name => { name === "auto" ? delete document.documentElement.dataset.theme : document.documentElement.dataset.theme = name;
    try { localStorage.setItem("assay-theme", name); } catch { /* a page opened from a file may keep nothing */ } };
  const asked = /[?&]theme=(light|dark)\b/.exec(location.search), now = asked ? asked[1] : ["light", "dark"].includes(kept()) ? kept() : "auto";
  set(now);
  const group = choice([["auto", "auto"], ["light", "light"], ["dark", "dark"]], now, set);
  group.setAttribute("aria-label", "colours");
  group.classList.add("theme");
  return group;
}
)js";

}  // namespace assay::html
