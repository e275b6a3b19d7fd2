// The page of a conversion: verdict, figures, plots, every changed tensor with the worst first.
#include <fmt/format.h>

#include <algorithm>

#include "convert/report.h"
#include "convert/report_plot.h"
#include "core/model/stored_checks.h"
#include "core/system/html_page.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::size_t kRowsShown = 1000;

// A colour a role, repeated from the seventeenth on.
constexpr std::string_view kLight =
    "--c0: #2f6fd0; --c1: #d5702a; --c2: #2c8a57; --c3: #b03a48; --c4: #7d58c2; --c5: #8a6d1f; --c6: #c2569b;"
    "--c7: #2b8c94; --c8: #6b7280; --c9: #96a31c; --c10: #a05a2c; --c11: #4a4fb5; --c12: #0f5f4a;"
    "--c13: #e08bb0; --c14: #6a1f2b; --c15: #7fb2e5;";
constexpr std::string_view kDark =
    "--c0: #7fb0ff; --c1: #f2a066; --c2: #66cf97; --c3: #f0808c; --c4: #b79cf5; --c5: #d8b95c; --c6: #f093cb;"
    "--c7: #64cdd6; --c8: #a9b0bd; --c9: #ccd85e; --c10: #d79a6e; --c11: #9da1f5; --c12: #3fae8e;"
    "--c13: #a64f78; --c14: #c96f7c; --c15: #3f79b5;";
constexpr std::string_view kPlots = R"css(th, td { white-space: nowrap; }
svg { display: block; width: 100%; height: auto; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .tick { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
svg .range { stroke: var(--c); stroke-width: 1.2; opacity: .55; }
svg .mark { fill: var(--c); }
svg .bar { fill: var(--c0); }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 50%; margin-right: 5px; }
)css";

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
    out += fmt::format("<p class=\"bad\">{}</p>\n", html::escape(fault));
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
        html::escape(worst_first[i].name), e.relative_frobenius(), e.largest_error, decibels(e),
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
  out += html::tile(with_thousands(tensors.size()), "tensors converted");
  out += html::tile(with_thousands(all.elements), "values");
  out += html::tile(all.error_squares == 0 ? "exact" : decibels(all) + " dB", "SQNR of all together");
  out += html::tile(decibels(tensors.front().sums) + (tensors.front().sums.error_squares == 0 ? "" : " dB"),
                    "SQNR of the worst tensor");
  out += html::tile(with_thousands(all.clamped), "values clamped");
  out += html::tile(with_thousands(all.zero_blocks), "blocks of zeros");
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
  for (const WorkError& error : result.errors) tensors.push_back({plan.name_of(error.work), error.sums});
  std::string page =
      html::head({.title = "assay convert", .style = kPlots, .light = kLight, .dark = kDark}) + "<main>\n";
  page += fmt::format("<h1>{} to {}</h1>\n<p class=\"soft\">{}, {} in {} files</p>\n",
                      html::escape(in.lexically_normal().filename().string()), html::escape(plan.spec.text),
                      html::escape(out.string()), human_bytes(plan.file_bytes), plan.shards.size());
  if (!tensors.empty()) {
    page += error_sections(std::move(tensors));
    page +=
        "<p class=\"soft\">SQNR: 10 log₁₀(Σ before² / Σ (after − before)²). A mark stands for all tensors of "
        "a role in "
        "a layer, its line for the range of them.</p>\n";
  }
  if (result.proof) page += proof_section(*result.proof);
  if (!result.note.empty()) page += fmt::format("<p class=\"soft\">{}</p>\n", html::escape(result.note));
  return page + "</main>\n" + std::string(html::kEnd);
}

}  // namespace assay
