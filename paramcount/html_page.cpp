// What this page has beyond the frame of all pages (core/system/html_page.h).
#include "paramcount/html_page.h"

namespace assay::html {

const std::string_view kLight =
    "--on-cell: #10131a; --embedding: #f2b872; --attention: #8fb4f0; --dense_mlp: #9bd3ae; --router: #e2d16a;"
    "--shared_expert: #7cc9c0; --routed_expert: #b9a5ea; --norm: #c3c6cd; --output: #ef9f9f; --mtp: #e3a7d5;"
    "--vision: #a8d5e2; --audio: #d8b7a0; --projector: #c9d19a;"
    "--buffer: #d8d8d8;"
    "--mix-full: #3b6fd4; --mix-latent: #4f57c9; --mix-window: #86b4ee; --mix-state: #1d9a8c; --mix-both: "
    "#2f86b0;"
    "--mlp: #58a877; --shared: #b266c4; --lit: #f0811a; --dim: #e6e2f1; --weights: #c3cfe6; --cache: #f6c48d;"
    "--first: #2f66cc; --second: #d4631a; --halo: #ffffff;";
const std::string_view kDark =
    "--on-cell: #f4f5f8; --embedding: #8a5a1c; --attention: #2f568f; --dense_mlp: #2c6b43; --router: #6d6117;"
    "--shared_expert: #1d655e; --routed_expert: #57438f; --norm: #4c515d; --output: #8b3a3f; --mtp: #7b3f6d;"
    "--vision: #2a6273; --audio: #6d4a34; --projector: #59611f;"
    "--buffer: #444444;"
    "--mix-full: #5f92f0; --mix-latent: #7d85f2; --mix-window: #34598f; --mix-state: #33b7a7; --mix-both: "
    "#4aa3cf;"
    "--mlp: #3f9161; --shared: #c587d6; --lit: #ffa63d; --dim: #302d40; --weights: #33435f; --cache: #a3672a;"
    "--first: #7fabff; --second: #ff9a55; --halo: #1d2027;";

const std::string_view kStyle = R"html(.card { padding: 12px; }
.bar { display: flex; flex-wrap: wrap; gap: 6px 10px; align-items: center; margin-bottom: 8px; }
.bar .crumbs { flex: 1 1 220px; min-width: 0; }
button { font: inherit; color: var(--accent); background: none; border: 0; padding: 2px 4px; cursor: pointer; border-radius: 5px; text-align: left; }
button:hover { text-decoration: underline; }
button:focus-visible, g:focus-visible, th:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.switch { display: inline-flex; border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
.switch button { border-radius: 0; padding: 3px 10px; color: var(--ink); }
.switch button[aria-pressed=true] { background: var(--accent); color: var(--card); }
svg { display: block; width: 100%; height: auto; touch-action: manipulation; }
svg text { fill: var(--on-cell); font-size: 12px; pointer-events: none; }
svg text.count { font-size: 11px; opacity: .85; }
svg g.cell { cursor: pointer; }
svg rect { stroke: var(--card); stroke-width: 1.5; }
svg g.cell:hover > rect.own, svg g.cell:focus-visible > rect.own { stroke: var(--ink); stroke-width: 2; }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 5px; }
#hover { min-height: 4.6em; margin-top: 8px; font-size: .88rem; }
#hover code, td.formula { font: 12.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
th, td { vertical-align: top; }
th { position: sticky; top: 0; background: var(--card); cursor: pointer; user-select: none; }
th::after { content: ""; display: inline-block; width: .9em; }
th[aria-sort=ascending]::after { content: " \2191"; } th[aria-sort=descending]::after { content: " \2193"; }
td.formula { min-width: 300px; color: var(--soft); }
td.name { min-width: 170px; }
.masthead { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: flex-start; justify-content: space-between; }
.masthead h1 { font-size: 1.9rem; letter-spacing: -.015em; flex: 1 1 300px; } .theme { font-size: .8rem; }
h3 { font-size: .98rem; margin: 6px 0; overflow-wrap: anywhere; }
.lead { flex: 1 1 260px; font-weight: 600; } .small { font-size: .82rem; }
button.plain { border: 1px solid var(--line); border-radius: 8px; padding: 3px 10px; }
.frame { overflow: hidden; } .frame svg { width: auto; max-width: 100%; }
svg text.axis { fill: var(--soft); font-size: 12px; opacity: 1; }
svg text.halo { fill: var(--ink); paint-order: stroke; stroke: var(--halo); stroke-width: 3.5px; stroke-linejoin: round; }
svg rect.flat { stroke: none; } svg rect.strip:hover { fill: color-mix(in srgb, var(--ink) 10%, transparent); }
svg line.grid { stroke: var(--line); stroke-width: 1; } svg line.limit { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 5 4; opacity: .55; }
.machines small { display: block; } .machines b { display: inline-block; min-width: 2.9em; } .machines td small { display: inline; } .machines td small span::before { content: " · "; } .machines small { color: var(--soft); font-weight: 400; font-size: .78rem; white-space: normal; }
.machines td, .machines th { min-width: 92px; white-space: normal; position: static; cursor: auto; } .machines th::after, .facts th::after { content: none; }
.machines b { font-size: 1.08rem; font-variant-numeric: tabular-nums; } .machines td.none { color: var(--soft); font-size: .82rem; }
.machines tbody th { color: var(--ink); } .facts th { white-space: normal; cursor: auto; position: static; } .facts tbody th { font-weight: 400; }
.facts { margin-top: 14px; } .facts tr:last-child th, .machines tr:last-child th { border-bottom: 0; } .machines thead th, .facts thead th { border-bottom: 1px solid var(--line) !important; } .facts table { table-layout: fixed; } .facts th:last-child, .facts td:last-child { width: 15%; } .asked { display: inline-flex; gap: 8px; align-items: center; white-space: nowrap; } .facts td { font-weight: 600; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; } .facts td.soft { font-weight: 400; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 14px; }
ul { margin: 4px 0; padding-left: 20px; } li { overflow-wrap: anywhere; }
footer { margin-top: 34px; color: var(--soft); font-size: .82rem; }
@media (max-width: 700px) { .machines td small, .machines td small span { display: block; } .machines td small span::before { content: none; } .machines td, .machines th { padding: 5px 7px; min-width: 78px; } }
@media (max-width: 520px) {
  main { padding: 14px 12px 36px; } .masthead h1 { font-size: 1.45rem; }
  .facts th:last-child, .facts td:last-child { display: none; } .facts td, .facts th { font-size: .82rem; }
  .tiles { grid-template-columns: 1fr 1fr; } .tile b { font-size: 1.02rem; }
  th, td { padding: 5px 7px; } td.formula { min-width: 0; } td.name { min-width: 0; }
  table.stack thead tr { display: flex; flex-wrap: wrap; } table.stack th { position: static; border: 0; }
  table.stack tbody tr { display: grid; grid-template-columns: 1fr 1fr; gap: 0 12px; padding: 7px 9px; border-bottom: 1px solid var(--line); }
  table.stack td { border: 0; padding: 1px 0; } table.stack td:empty { display: none; }
  table.stack td.name, table.stack td.formula { grid-column: 1 / -1; font-weight: 600; } table.stack td.formula { font-weight: 400; }
  table.stack td.number { display: flex; justify-content: space-between; gap: 8px; }
  table.stack td.number::before { content: attr(data-label); color: var(--soft); font-size: .92em; }
}
@media print {
  .scroll { overflow: visible; } .theme, button.plain { display: none; } th { position: static; }
  .card, .tile, tr { break-inside: avoid; } h2 { break-after: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
)html";

const std::string_view kBody = R"html(<main id="main">
<noscript>This page draws its tables with a script it carries itself; nothing is fetched.</noscript>
</main>
<script type="application/json" id="document">)html";

const std::string_view kScriptStart = "</script>\n<script>\n";
const std::string_view kScriptEnd = "</script>\n";

}  // namespace assay::html
