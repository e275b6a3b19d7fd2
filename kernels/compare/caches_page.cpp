// The page of `compare caches`: the table, and for every cache a map of what is still found, depth by length.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/html_page.h"
#include "kernels/compare/caches.h"
#include "kernels/compare/heat_map.h"

namespace assay {
namespace {

constexpr std::string_view kStyle = R"css(
.maps { display: grid; grid-template-columns: repeat(auto-fill, minmax(300px, 1fr)); gap: 14px; }
.maps .heat table { width: 100%; }
.maps h3 { font-size: .92rem; margin: 0 0 6px; overflow-wrap: anywhere; }
)css";

HeatMap map_of(const RetrievalMap& cells, const RetrievalPlan& plan, double high) {
  HeatMap map = {.corner = "depth", .columns = {}, .rows = {}, .scale = {.low = high / 16, .high = high}};
  for (const std::size_t length : plan.lengths) map.columns.push_back(fmt::format("{} tokens", length));
  for (std::size_t d = 0; d < cells.size(); ++d) {
    HeatRow row = {fmt::format("{:.0f}%", 100 * plan.depths[d]), {}};
    for (const RetrievalCell& cell : cells[d])
      row.cells.push_back({std::max(0.0, cell.gain()), fmt::format("{:+.2f}", cell.gain()),
                           fmt::format("{} of {} foretold, mean ln p {:.2f}", cell.found, cell.asked,
                                       cell.mean_log_probability())});
    map.rows.push_back(std::move(row));
  }
  return map;
}

// Where the strongest colour begins: the same in all maps.
double largest_gain(const RetrievalMap& cells) {
  double largest = 0.1;
  for (const std::vector<RetrievalCell>& row : cells) {
    for (const RetrievalCell& cell : row) largest = std::max(largest, cell.gain());
  }
  return largest;
}

std::string map_card(const std::string& title, const RetrievalMap& cells, const RetrievalPlan& plan,
                     double high) {
  const RetrievalCell all = total(cells);
  return fmt::format(
      "<section class=\"card\"><h3>{}</h3>\n{}<p class=\"soft\">{:+.2f} nats; {:.1f}% of {} "
      "foretold</p></section>\n",
      html::escape(title), heat_map(map_of(cells, plan, high)), all.gain(), 100 * all.share(), all.asked);
}

std::string table_row(const std::string& name, double bytes, double share, const LogitsReport* l,
                      double loss) {
  std::string out = fmt::format(
      "<tr><td><code>{}</code></td><td class=\"number\">{:.1f}</td><td class=\"number\">{:.1f}%</td>",
      html::escape(name), bytes, 100 * share);
  if (l == nullptr)
    out += "<td></td><td></td><td></td>";
  else
    out += fmt::format(
        "<td class=\"number\">{:.3g}</td><td class=\"number\">{:.3g}</td><td class=\"number\">{:.2f}%</td>",
        l->kl_mean, l->kl_max, 100 * l->same_first);
  return out + fmt::format("<td class=\"number\">{:.5g}</td></tr>\n", std::exp(loss));
}

std::string table_of(const CacheFindings& found) {
  std::string out =
      "<div class=\"scroll\"><table>\n<thead><tr><th>cache</th><th class=\"number\">bytes a token</th><th "
      "class=\"number\">of full</th><th class=\"number\">KL, nats a token</th><th "
      "class=\"number\">largest</th><th "
      "class=\"number\">same first choice</th><th class=\"number\">perplexity</th></tr></thead>\n<tbody>\n";
  bool first = true;
  for (const CacheRow& row : found.rows) {
    if (!row.refused.empty()) {
      out += fmt::format("<tr><td><code>{}</code></td><td colspan=\"6\" class=\"soft\">{}</td></tr>\n",
                         html::escape(row.method), html::escape(row.refused));
      continue;
    }
    const LogitsReport& l = row.report.logits;
    if (first) out += table_row("full", row.report.full_bytes_a_token(), 1, nullptr, l.loss_reference);
    first = false;
    out += table_row(row.method, row.report.bytes_a_token(), row.report.bytes / row.report.bytes_in_full, &l,
                     l.loss_test);
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace

std::string to_page(const CacheFindings& found) {
  const std::string style = std::string(kHeatMapStyle) + std::string(kStyle);
  std::string page = html::head({.title = "assay compare caches", .style = style}) + "<main>\n";
  page += fmt::format(
      "<h1>Caches kept smaller</h1>\n<p class=\"soft\">{}</p>\n<p class=\"soft\">{} texts of at most {} "
      "tokens, {} of "
      "them read at once and the others one by one; {}</p>\n",
      html::escape(found.title), found.texts, found.context, found.prefill, html::escape(found.text));
  page += "<h2>Against the full cache</h2>\n" + table_of(found);
  page += "<p class=\"soft\">Bytes at the texts' ends; numbers in full are of 2 bytes.</p>\n";
  if (!found.full_retrieval.empty()) {
    page += fmt::format(
        "<h2>What is still found</h2>\n<p class=\"soft\">A phrase of four tokens, planted at a depth of a "
        "text that "
        "ends with the phrase's first. Told is by how many nats the phrase makes its third and fourth token "
        "likelier, "
        "once those before are there, than the same text without it does with the full cache. {} trials a "
        "cell; 0% is "
        "the text's beginning. Hover for figures.</p>\n<div class=\"maps\">\n",
        found.plan.trials);
    const double high = largest_gain(found.full_retrieval);
    page += map_card("full", found.full_retrieval, found.plan, high);
    for (const CacheRow& row : found.rows) {
      if (row.refused.empty()) page += map_card(row.method, row.retrieval, found.plan, high);
    }
    page += "</div>\n";
  }
  return page + "</main>\n" + std::string(html::kEnd);
}

}  // namespace assay
