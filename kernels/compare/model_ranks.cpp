#include "kernels/compare/model_ranks.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/table.h"
#include "core/system/text.h"
#include "refimpl/claims/rank_claims.h"

namespace assay {
namespace {

RankClaimRequest request_of(const CompareModelSettings& s, std::span<const TokenId> tokens) {
  RankClaimRequest request;
  request.path = s.model;
  request.settings.options.variant = s.variant;
  request.settings.arithmetic = {precision_from_text(s.precision).value()};
  request.settings.grid = {.tp = s.tp, .pp = s.pp, .ep = s.ep, .dp = s.dp};
  request.tokens.assign(tokens.begin(), tokens.end());
  check_ranks(request.settings.grid);
  return request;
}

Json to_json(const Claim& claim) {
  return {{"name", claim.name},   {"statement", claim.statement}, {"measure", claim.measure},
          {"error", claim.error}, {"budget", claim.budget},       {"holds", claim.holds()}};
}

int show_verdict(const CompareModelSettings& s, const RankClaimRequest& request, const std::string& about,
                 const Output& output) {
  const RankVerdict seen = rank_claims(request);
  Table table({"", "error", "budget", "of"},
              {Table::Align::left, Table::Align::right, Table::Align::right, Table::Align::left});
  Json claims = Json::array(), ranks = Json::array();
  bool good = true;
  for (const Claim& claim : seen.claims) {
    good = good && claim.holds();
    table.add({claim.statement, claim.error == 0 ? "0" : fmt::format("{:.2e}", claim.error),
               claim.budget == 0 ? "0" : fmt::format("{:.2g}", claim.budget), claim.measure});
    claims.push_back(to_json(claim));
  }
  std::string held;
  for (const RankReport& rank : seen.ranks) {
    held += fmt::format("{}rank {} {}", held.empty() ? "" : ", ", rank.place.rank,
                        with_thousands(rank.held_bytes));
    ranks.push_back({{"rank", rank.place.rank},
                     {"held_bytes", rank.held_bytes},
                     {"cache_bytes_a_token", rank.cache_bytes},
                     {"sent_bytes", 8 * rank.doubles_sent}});
  }
  const std::string verdict =
      good ? fmt::format("OK: {} in {}, cut into {}, computes what one process does",
                         escape_for_terminal(s.model), s.precision, request.settings.grid.text())
      : seen.first_divergence.empty()
          ? fmt::format("FAILED: {} cut into {}", escape_for_terminal(s.model), request.settings.grid.text())
          : fmt::format("FAILED: they part first at {}", seen.first_divergence);
  if (output.text_wanted()) {
    output.line(escape_for_terminal(about));
    const std::string lines = table.render();
    output.line(std::string_view(lines).substr(0, lines.size() - 1));
    output.line("bytes of weights: " + held);
    output.paint(verdict, good ? Style::green : Style::red);
  }
  output.json({{"schema", "assay.compare/1"},
               {"tool", "assay " ASSAY_VERSION},
               {"verdict", good ? "ok" : "failed"},
               {"verdict_line", verdict},
               {"grid", request.settings.grid.text()},
               {"text", about},
               {"first_divergence", seen.first_divergence},
               {"claims", std::move(claims)},
               {"ranks", std::move(ranks)}});
  return good ? kExitOk : kExitCheckFailed;
}

int show_planted(const CompareModelSettings& s, const RankClaimRequest& request, const Output& output) {
  Table table(
      {"", "shipped in", "fault", "", "seen"},
      {Table::Align::right, Table::Align::left, Table::Align::left, Table::Align::left, Table::Align::left});
  Json list = Json::array();
  std::size_t planted = 0, caught = 0;
  for (const RankFaultVerdict& verdict : plant_rank_faults(request)) {
    planted += verdict.applies ? 1 : 0;
    caught += verdict.caught ? 1 : 0;
    const std::string fate = !verdict.applies ? "nothing to show" : verdict.caught ? "caught" : "MISSED";
    table.add({std::to_string(verdict.planted->number), verdict.planted->shipped_in, verdict.planted->what,
               fate, verdict.by});
    list.push_back({{"number", verdict.planted->number},
                    {"shipped_in", verdict.planted->shipped_in},
                    {"what", verdict.planted->what},
                    {"applies", verdict.applies},
                    {"caught", verdict.caught},
                    {"by", verdict.by}});
  }
  const bool good = planted == caught && planted > 0;
  const std::string what =
      fmt::format("{} cut into {}", escape_for_terminal(s.model), request.settings.grid.text());
  const std::string verdict =
      planted == 0
          ? fmt::format("FAILED: no fault can be planted in {}, so that nothing is proved", what)
          : fmt::format("{}: {} of {} faults caught in {}", good ? "OK" : "FAILED", caught, planted, what);
  if (output.text_wanted()) {
    const std::string lines = table.render();
    output.line(std::string_view(lines).substr(0, lines.size() - 1));
    output.paint(verdict, good ? Style::green : Style::red);
  }
  output.json({{"schema", "assay.compare/1"},
               {"tool", "assay " ASSAY_VERSION},
               {"verdict", good ? "ok" : "failed"},
               {"verdict_line", verdict},
               {"faults", std::move(list)}});
  return good ? kExitOk : kExitCheckFailed;
}

}  // namespace

int run_compare_ranks(const CompareModelSettings& s, std::span<const TokenId> tokens,
                      const std::string& about, const Output& output) {
  const RankClaimRequest request = request_of(s, tokens);
  return s.mutants ? show_planted(s, request, output) : show_verdict(s, request, about, output);
}

}  // namespace assay
