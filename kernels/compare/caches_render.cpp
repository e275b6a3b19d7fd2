// What `compare caches` found, as a table and JSON.
#include <fmt/format.h>

#include <cmath>

#include "core/system/json.h"
#include "core/system/table.h"
#include "core/system/text.h"
#include "kernels/compare/caches.h"

namespace assay {
namespace {

Json retrieval_json(const RetrievalMap& map) {
  Json rows = Json::array();
  for (const std::vector<RetrievalCell>& row : map) {
    Json cells = Json::array();
    for (const RetrievalCell& cell : row)
      cells.push_back({{"found", cell.found},
                       {"asked", cell.asked},
                       {"log_probability", cell.mean_log_probability()},
                       {"gain", cell.gain()}});
    rows.push_back(std::move(cells));
  }
  return rows;
}

std::string found_of(const RetrievalMap& map) {
  const RetrievalCell all = total(map);
  return all.asked == 0 ? "" : fmt::format("{:.1f}% {:+.2f}", 100 * all.share(), all.gain());
}

const CacheRow* first_measured(const CacheFindings& found) {
  for (const CacheRow& row : found.rows) {
    if (row.refused.empty()) return &row;
  }
  return nullptr;
}

}  // namespace

std::string cache_table(const CacheFindings& found) {
  using Align = Table::Align;
  Table table(
      {"cache", "bytes a token", "of full", "KL, nats", "largest", "same first", "perplexity", "planted"},
      {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right, Align::right,
       Align::right});
  std::string notes;
  if (const CacheRow* any = first_measured(found))
    table.add({"full", fmt::format("{:.1f}", any->report.full_bytes_a_token()), "100.0%", "", "", "",
               fmt::format("{:.5g}", std::exp(any->report.logits.loss_reference)),
               found_of(found.full_retrieval)});
  for (const CacheRow& row : found.rows) {
    if (!row.refused.empty()) {
      notes += fmt::format("not measured: {}\n", escape_for_terminal(row.refused));
      continue;
    }
    const LogitsReport& l = row.report.logits;
    table.add({escape_for_terminal(row.method), fmt::format("{:.1f}", row.report.bytes_a_token()),
               fmt::format("{:.1f}%", 100 * row.report.bytes / row.report.bytes_in_full),
               fmt::format("{:.3g}", l.kl_mean), fmt::format("{:.3g}", l.kl_max),
               fmt::format("{:.2f}%", 100 * l.same_first), fmt::format("{:.5g}", std::exp(l.loss_test)),
               found_of(row.retrieval)});
  }
  std::string out = table.render() + notes;
  out +=
      "bytes: numbers in full are of 2 bytes; planted phrases: foretold by first choice, and nats "
      "that they help";
  return out;
}

Json to_json(const CacheFindings& found) {
  Json rows = Json::array();
  for (const CacheRow& row : found.rows) {
    if (!row.refused.empty()) {
      rows.push_back({{"cache", row.method}, {"refused", row.refused}});
      continue;
    }
    const CacheReport& r = row.report;
    rows.push_back({{"cache", row.method},
                    {"layers_cut", row.layers.cut},
                    {"layers", row.layers.layers},
                    {"bytes_a_token", r.bytes_a_token()},
                    {"full_bytes_a_token", r.full_bytes_a_token()},
                    {"positions", r.logits.positions},
                    {"kl_mean", r.logits.kl_mean},
                    {"kl_max", r.logits.kl_max},
                    {"same_first", r.logits.same_first},
                    {"loss", r.logits.loss_test},
                    {"full_loss", r.logits.loss_reference},
                    {"perplexity", std::exp(r.logits.loss_test)},
                    {"retrieval", retrieval_json(row.retrieval)}});
  }
  return {{"schema", "assay.compare.caches/1"},
          {"model", found.title},
          {"text", found.text},
          {"texts", found.texts},
          {"context", found.context},
          {"prefill", found.prefill},
          {"retrieval",
           {{"lengths", found.plan.lengths},
            {"depths", found.plan.depths},
            {"trials", found.plan.trials},
            {"seed", found.plan.seed},
            {"full", retrieval_json(found.full_retrieval)}}},
          {"caches", rows}};
}

}  // namespace assay
