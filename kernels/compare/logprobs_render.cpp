// Text and JSON of `compare logprobs`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/system/table.h"
#include "core/system/text.h"
#include "kernels/compare/logprobs.h"

namespace assay {
namespace {

using namespace logprobs;
constexpr auto kLeft = Table::Align::left, kRight = Table::Align::right;

std::string count_of(const SavedResponses& saved) {
  std::size_t tokens = 0;
  for (const SavedText& text : saved.texts) tokens += text.tokens.size();
  return fmt::format("{}: {} texts, {} tokens{}", name(saved.format), saved.texts.size(),
                     with_thousands(tokens),
                     saved.processed ? "; probabilities after temperature and samplers" : "");
}

std::string four_digits(double value) {
  return fmt::format("{:.4g}", value);
}

void add_pairs(Table& table, std::string_view who, const PairFigures& f) {
  const auto share = [](std::size_t part, std::size_t of) {
    return of == 0 ? std::string("–") : fmt::format("{} of {}", part, of);
  };
  table.add({std::string(who), with_thousands(f.tokens), four_digits(f.mean), four_digits(f.mean_abs),
             four_digits(f.rms), four_digits(f.max_abs), f.kl_tokens == 0 ? "–" : four_digits(f.kl_mean),
             f.kl_tokens == 0 ? "–" : four_digits(f.kl_max), share(f.rank_flips, f.ranked),
             share(f.firsts - f.same_first, f.firsts)});
}

void print_ratios(const Output& output, const RatioFigures& r) {
  output.line("Importance ratios r = p_B / p_A (A drew the text, B learns from it)");
  output.line(fmt::format("  mean {}, from {} to {}; effective sample {:.2f} %; KL(A ‖ B) by k1 {}, by k3 {}",
                          four_digits(r.mean), four_digits(r.min), four_digits(r.max), 100 * r.effective,
                          four_digits(r.kl_k1), four_digits(r.kl_k3)));
  std::string quantiles;
  for (std::size_t i = 0; i < kRatioQuantiles.size(); ++i)
    quantiles +=
        fmt::format("{}{} % {}", i == 0 ? "" : ", ", 100 * kRatioQuantiles[i], four_digits(r.quantiles[i]));
  output.line("  quantiles: " + quantiles);
  for (std::size_t i = 0; i < kClipRanges.size(); ++i)
    output.line(fmt::format("  outside [{}, {}] ({}): {:.3g} %", kClipRanges[i].low, kClipRanges[i].high,
                            kClipRanges[i].whose, 100 * r.outside[i]));
  output.line(fmt::format("  of whole texts: products from {} to {}, a token's share of them from {} to {}\n",
                          four_digits(r.text_min), four_digits(r.text_max), four_digits(r.text_mean_min),
                          four_digits(r.text_mean_max)));
}

Json pairs_json(const PairFigures& f) {
  return {{"tokens", f.tokens},     {"mean", f.mean},
          {"mean_abs", f.mean_abs}, {"rms", f.rms},
          {"max_abs", f.max_abs},   {"kl_tokens", f.kl_tokens},
          {"kl_mean", f.kl_mean},   {"kl_max", f.kl_max},
          {"ranked", f.ranked},     {"rank_flips", f.rank_flips},
          {"firsts", f.firsts},     {"same_first", f.same_first},
          {"beyond", f.beyond}};
}

Json ratios_json(const RatioFigures& r) {
  Json quantiles = Json::object(), outside = Json::array();
  for (std::size_t i = 0; i < kRatioQuantiles.size(); ++i)
    quantiles[fmt::format("{}", kRatioQuantiles[i])] = r.quantiles[i];
  for (std::size_t i = 0; i < kClipRanges.size(); ++i)
    outside.push_back({{"low", kClipRanges[i].low}, {"high", kClipRanges[i].high}, {"share", r.outside[i]}});
  return {{"tokens", r.tokens},
          {"mean", r.mean},
          {"min", r.min},
          {"max", r.max},
          {"quantiles", quantiles},
          {"outside", outside},
          {"effective_share", r.effective},
          {"kl_k1", r.kl_k1},
          {"kl_k3", r.kl_k3},
          {"probability_mean", r.probability_mean},
          {"probability_max", r.probability_max},
          {"text_min", r.text_min},
          {"text_max", r.text_max},
          {"text_mean_min", r.text_mean_min},
          {"text_mean_max", r.text_mean_max}};
}

Json token_json(const JudgedToken& token, const SavedResponses& saved) {
  Json one = {{"text", saved.texts[token.text].name},
              {"token", token.position},
              {"logprob", token.value},
              {"truth", token.truth},
              {"budget", token.budget},
              {"ratio", token.ratio},
              {"true_rank", token.true_rank}};
  if (token.rank) one["rank"] = *token.rank;
  return one;
}

}  // namespace

std::string_view status_name(CaseStatus status) {
  return status == CaseStatus::passed ? "passed" : status == CaseStatus::failed ? "failed" : "mistrusted";
}

void print_figures(const Output& output,
                   const std::vector<std::pair<std::string, const PairFigures*>>& rows) {
  Table table({"", "tokens", "mean Δ", "mean |Δ|", "rms", "max |Δ|", "KL top", "max", "ranks turned",
               "firsts turned"},
              {kLeft, kRight, kRight, kRight, kRight, kRight, kRight, kRight, kRight, kRight});
  for (const auto& [who, figures] : rows) add_pairs(table, who, *figures);
  output.line(table.render());
}

void print_side(const Output& output, std::string_view who, const SideVerdict& side,
                const SavedResponses& saved) {
  if (side.tokens.empty()) return;
  output.line(fmt::format("{}: {} of {} tokens beyond their budget; root mean square {} where {} may be", who,
                          side.beyond, with_thousands(side.tokens.size()), four_digits(side.rms),
                          four_digits(side.rms_limit)));
  if (side.first_beyond)
    output.line("  the first: " + describe_token(side.tokens[*side.first_beyond], saved));
  if (side.worst && side.worst != side.first_beyond)
    output.line("  the worst: " + describe_token(side.tokens[*side.worst], saved));
  for (const std::string& hint : side.hints) output.line("  " + hint);
  for (const std::string& choice : side.other_experts) output.line("  a router near a tie: " + choice);
  for (const std::string& choice : side.other_keys) output.line("  a choice of keys near a tie: " + choice);
  for (std::size_t i = 1; i < std::min<std::size_t>(side.reasons.size(), 6); ++i)
    output.line("  " + side.reasons[i]);
}

Json side_json(const SideVerdict& side, const SavedResponses& saved) {
  Json document = {{"status", status_name(side.status)},
                   {"reasons", side.reasons},
                   {"hints", side.hints},
                   {"other_experts", side.other_experts},
                   {"other_keys", side.other_keys},
                   {"against_truth", pairs_json(side.figures)},
                   {"beyond", side.beyond},
                   {"rms", side.rms},
                   {"rms_limit", side.rms_limit},
                   {"plain_largest", side.plain_largest}};
  if (side.first_beyond) document["first_beyond"] = token_json(side.tokens[*side.first_beyond], saved);
  if (side.worst) document["worst"] = token_json(side.tokens[*side.worst], saved);
  return document;
}

void print_logprobs(const Output& output, const CompareLogprobsSettings&, const ComparedResponses& compared) {
  const LogprobComparison& found = compared.found;
  output.line("A  " + count_of(compared.a));
  if (compared.b != nullptr) output.line("B  " + count_of(*compared.b));
  output.line("");
  std::vector<std::pair<std::string, const PairFigures*>> rows;
  if (compared.b != nullptr) rows.emplace_back("B − A", &found.figures);
  if (found.a) rows.emplace_back("A − truth", &found.a->figures);
  if (found.b) rows.emplace_back("B − truth", &found.b->figures);
  print_figures(output, rows);
  if (compared.b != nullptr && found.ratios.tokens > 0) print_ratios(output, found.ratios);
  if (found.a) print_side(output, "A", *found.a, compared.a);
  if (found.b) print_side(output, "B", *found.b, *compared.b);
  for (const std::string& note : found.notes) output.line("note: " + note);
}

Json to_json(const CompareLogprobsSettings& settings, const ComparedResponses& compared) {
  const LogprobComparison& found = compared.found;
  Json document = {
      {"schema", "assay.compare.logprobs/1"},
      {"a", {{"file", settings.a}, {"format", name(compared.a.format)}, {"texts", compared.a.texts.size()}}}};
  if (compared.b != nullptr) {
    document["b"] = {
        {"file", settings.b}, {"format", name(compared.b->format)}, {"texts", compared.b->texts.size()}};
    document["b_minus_a"] = pairs_json(found.figures);
    if (found.ratios.tokens > 0) document["ratios"] = ratios_json(found.ratios);
  }
  if (found.a) document["a_against_model"] = side_json(*found.a, compared.a);
  if (found.b) document["b_against_model"] = side_json(*found.b, *compared.b);
  document["notes"] = found.notes;
  document["status"] = status_name(found.status);
  document["verdict"] = found.verdict;
  return document;
}

}  // namespace assay
