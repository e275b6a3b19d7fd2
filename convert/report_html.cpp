// The page of a conversion: verdict, figures, plots, every changed tensor with the worst first.
#include <fmt/format.h>

#include <algorithm>

#include "convert/report.h"
#include "convert/report_plot.h"
#include "core/model/stored_checks.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::size_t kRowsShown = 1000;

constexpr std::string_view kFrame = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>assay convert</title>
<style>
:root {
  --page: #f7f7f5; --card: #ffffff; --ink: #1c1d21; --soft: #5c606b; --line: #dedfe3; --accent: #2456c5;
  --good: #1a7f4b; --bad: #c02b32;
  --c0: #2f6fd0; --c1: #d5702a; --c2: #2c8a57; --c3: #b03a48; --c4: #7d58c2; --c5: #8a6d1f;
  --c6: #c2569b; --c7: #2b8c94; --c8: #6b7280; --c9: #96a31c; --c10: #a05a2c; --c11: #4a4fb5;
  --c12: #0f5f4a; --c13: #e08bb0; --c14: #6a1f2b; --c15: #7fb2e5;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14161b; --card: #1d2027; --ink: #e9eaee; --soft: #a2a7b4; --line: #343946; --accent: #8db2ff;
    --good: #5fd097; --bad: #ff8b8b;
    --c0: #7fb0ff; --c1: #f2a066; --c2: #66cf97; --c3: #f0808c; --c4: #b79cf5; --c5: #d8b95c;
    --c6: #f093cb; --c7: #64cdd6; --c8: #a9b0bd; --c9: #ccd85e; --c10: #d79a6e; --c11: #9da1f5;
    --c12: #3fae8e; --c13: #a64f78; --c14: #c96f7c; --c15: #3f79b5;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 20px 16px 48px; }
h1 { font-size: 1.45rem; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 30px 0 8px; }
p { margin: 4px 0; }
.soft { color: var(--soft); overflow-wrap: anywhere; }
.verdict { font-weight: 600; } .good { color: var(--good); } .bad { color: var(--bad); }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(165px, 1fr)); gap: 10px; margin: 16px 0 4px; }
.tile, .card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 10px 12px; }
.tile b { display: block; font-size: 1.22rem; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: .82rem; display: block; }
svg { display: block; width: 100%; height: auto; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .tick { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
svg .range { stroke: var(--c); stroke-width: 1.2; opacity: .55; }
svg .mark { fill: var(--c); }
svg .bar { fill: var(--c0); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 14px; margin-top: 8px; font-size: .85rem; color: var(--soft); }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 50%; margin-right: 5px; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 10px; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th, td { padding: 5px 10px; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
th { color: var(--soft); font-weight: 600; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
code { font: 12.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
</style>
</head>
<body>
<main>
)html";

std::string tile(const std::string& figure, const std::string& what) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", figure, what);
}

std::string decibels(const ErrorSums& sums) {
  return sums.error_squares == 0 ? "exact" : fmt::format("{:.2f}", sums.sqnr_db());
}

std::string proof_section(const Proof& proof) {
  std::string out = "<h2>Proof</h2>\n<div class=\"card\">\n";
  out += fmt::format("<p class=\"verdict {}\">{}</p>\n", proof.holds() ? "good" : "bad",
                     proof.holds() ? "Every stored byte that was to stay is what it was."
                                   : "The output is not what was asked for.");
  out += fmt::format(
      "<p>{} tensors, {} bytes unchanged; {} scales, each that of its block; {} values equal.</p>\n",
      with_thousands(proof.tensors), with_thousands(proof.code_bytes), with_thousands(proof.scales),
      with_thousands(proof.values));
  out += fmt::format(
      "<p class=\"soft\">sha256 of them before <code>{}</code></p>\n<p class=\"soft\">sha256 of them after "
      "<code>{}</code></p>\n",
      proof.before.hex(), proof.after.hex());
  for (const std::string& fault : proof.faults)
    out += fmt::format("<p class=\"bad\">{}</p>\n", escape_html(fault));
  return out + "</div>\n";
}

std::string table_of(const std::vector<PlottedTensor>& worst_first) {
  std::string out =
      "<div class=\"scroll\"><table>\n<thead><tr><th>tensor</th><th class=\"number\">rel. error</th>"
      "<th class=\"number\">max abs</th><th class=\"number\">SQNR dB</th><th class=\"number\">1 − cos</th>"
      "<th class=\"number\">clamped</th><th class=\"number\">zero blocks</th></tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < std::min(kRowsShown, worst_first.size()); ++i) {
    const ErrorSums& e = worst_first[i].sums;
    out += fmt::format(
        "<tr><td>{}</td><td class=\"number\">{:.3e}</td><td class=\"number\">{:.3e}</td>"
        "<td class=\"number\">{}</td><td class=\"number\">{:.2e}</td><td class=\"number\">{}</td>"
        "<td class=\"number\">{}</td></tr>\n",
        escape_html(worst_first[i].name), e.relative_frobenius(), e.largest_error, decibels(e),
        e.one_minus_cosine(), with_thousands(e.clamped), with_thousands(e.zero_blocks));
  }
  out += "</tbody></table></div>\n";
  if (worst_first.size() > kRowsShown)
    out +=
        fmt::format("<p class=\"soft\">The worst {} of {}; --report with a .json name lists them all.</p>\n",
                    with_thousands(kRowsShown), with_thousands(worst_first.size()));
  return out;
}

std::string error_sections(std::vector<PlottedTensor> tensors) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const PlottedTensor& a, const PlottedTensor& b) {
    return a.sums.relative_frobenius() > b.sums.relative_frobenius();
  });
  ErrorSums all;
  for (const PlottedTensor& tensor : tensors) all.add(tensor.sums);
  std::string out = "<div class=\"tiles\">\n";
  out += tile(with_thousands(tensors.size()), "tensors converted");
  out += tile(with_thousands(all.elements), "values");
  out += tile(all.error_squares == 0 ? "exact" : decibels(all) + " dB", "SQNR of all together");
  out += tile(decibels(tensors.front().sums) + (tensors.front().sums.error_squares == 0 ? "" : " dB"),
              "SQNR of the worst tensor");
  out += tile(with_thousands(all.clamped), "values clamped");
  out += tile(with_thousands(all.zero_blocks), "blocks of zeros");
  out +=
      "</div>\n<h2>Signal to noise by layer and role</h2>\n<div class=\"card\">\n" + plot_by_layer(tensors);
  out += "</div>\n<h2>Tensors by signal to noise</h2>\n<div class=\"card\">\n" + plot_histogram(tensors);
  out += "</div>\n<h2>Every tensor, the worst first</h2>\n" + table_of(tensors);
  return out;
}

}  // namespace

std::string conversion_page(const ConversionPlan& plan, const fs::path& in, const fs::path& out,
                            const ConvertResult& result) {
  std::vector<PlottedTensor> tensors;
  for (const WorkError& error : result.errors)
    tensors.push_back({plan.stored.tensors[plan.works[error.work].tensor].name, error.sums});
  std::string page(kFrame);
  page += fmt::format("<h1>{} to {}</h1>\n<p class=\"soft\">{}, {} in {} files</p>\n",
                      escape_html(in.lexically_normal().filename().string()), escape_html(plan.spec.text),
                      escape_html(out.string()), human_bytes(plan.file_bytes), plan.shards.size());
  if (!tensors.empty()) {
    page += error_sections(std::move(tensors));
    page +=
        "<p class=\"soft\">SQNR: 10 log₁₀(Σ before² / Σ (after − before)²). A mark stands for all tensors of "
        "a role in "
        "a layer, its line for the range of them.</p>\n";
  }
  if (result.proof) page += proof_section(*result.proof);
  if (!result.note.empty()) page += fmt::format("<p class=\"soft\">{}</p>\n", escape_html(result.note));
  return page + "</main>\n</body>\n</html>\n";
}

}  // namespace assay
