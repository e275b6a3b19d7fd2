// Two models side by side.
#include "paramcount/html_page.h"

namespace assay::html {

const std::string_view kPairScript = R"js(
const [one, two] = doc.pair;
document.title = `${one.page.name} and ${two.page.name} · assay paramcount`;
main.append(el("div", {className: "masthead"}, el("h1", {}, one.page.name, el("span", {className: "soft"}, " and "), two.page.name), themeSwitch()));

const times = (a, b) => !a || !b ? "" : a === b ? "the same" : b > a ? `${(b / a).toPrecision(3)} ×` : `${(100 * b / a).toPrecision(3)}%`;
const facts = [
  ["architecture", d => d.model.architecture],
  ["parameters", d => d.total, compact], ["activated a token", d => d.active, compact],
  ["multi-token prediction, beside", d => d.mtp.own, compact], ["towers, beside", d => d.towers, compact],
  ["layers", d => d.model.layers, exact], ["hidden size", d => d.model.hidden_size, exact], ["vocabulary", d => d.model.vocabulary, exact],
  ["experts", d => d.model.experts, exact], ["experts a token", d => d.model.experts_per_token, exact],
  ["longest context", d => d.page.curve.longest, tokens], ["weights", d => d.model.bytes, bytes], ["stored as", d => d.model.stored_as],
  ["KV cache a token", d => d.memory.kv.bytes_per_token, bytes], ["recurrent state a sequence", d => d.memory.kv.state_bytes_per_sequence, bytes],
];
const show = (value, how) => !value ? "–" : how ? how(value) : value;
main.append(el("div", {className: "scroll facts"}, el("table", {},
  el("thead", {}, el("tr", {}, el("th", {}), el("th", {scope: "col"}, one.page.name), el("th", {scope: "col"}, two.page.name), el("th", {scope: "col"}, "second of first"))),
  el("tbody", {}, ...facts.filter(([, get]) => get(one) || get(two)).map(([name, get, how]) => el("tr", {}, el("th", {scope: "row"}, name),
    el("td", {}, show(get(one), how)), el("td", {}, show(get(two), how)), el("td", {className: "soft"}, how && how !== tokens ? times(get(one), get(two)) : "")))))));

section("Floor plans", el("div", {className: "sides"}, ...doc.pair.map(d => el("div", {}, el("h3", {}, d.page.name), floorPlan(d)))));
section("Memory against context", memoryPicture(doc.pair));
section("Runs on", machineTable(doc.pair));

section("Module by module", table([
  {title: "module", className: "name", key: r => r.name, show: r => el("span", {style: `padding-left: ${r.depth * 14}px; display: block`}, r.name)},
  count(one.page.name, r => r.left), count(two.page.name, r => r.right),
  {title: "difference", number: true, show: r => (r.difference > 0 ? "+" : "") + exact(r.difference), key: r => r.difference}], doc.modules));
main.append(el("footer", {}, "Written by assay paramcount. Click a column to sort."));
)js";

}  // namespace assay::html
