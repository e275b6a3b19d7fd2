// What errors of kinds that engines have shipped look like.
#include <fmt/format.h>

#include <cmath>

#include "kernels/logprobs/judge.h"

namespace assay::logprobs {
namespace {

constexpr std::size_t kEnough = 8;
constexpr double kExplained = 0.1;  // of the error may be left

// Differences of ln p within a row, the side's against the truth's: log-softmax of x/T has 1/T times those of x.
struct SlopeSums {
  double xy = 0, xx = 0, yy = 0, before = 0;  // before: Σ (y - x)²
  std::size_t rows = 0;
  void add_row(const std::vector<std::pair<double, double>>& row) {
    if (row.size() < 2) return;
    double mean_x = 0, mean_y = 0;
    for (const auto& [x, y] : row) {
      mean_x += x / static_cast<double>(row.size());
      mean_y += y / static_cast<double>(row.size());
    }
    for (const auto& [x, y] : row) {
      const double dx = x - mean_x, dy = y - mean_y;
      xy += dx * dy;
      xx += dx * dx;
      yy += dy * dy;
      before += (dy - dx) * (dy - dx);
    }
    ++rows;
  }
  double slope() const { return xy / xx; }
  double left() const { return yy - xy * xy / xx; }
};

std::string temperature(const SideTruths& side) {
  SlopeSums sums;
  for (std::size_t t = 0; t < side.truths.size(); ++t) {
    if (side.truths[t] == nullptr) continue;
    const std::vector<SavedToken>& tokens = side.saved->texts[t].tokens;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::size_t at = i + side.before[t];
      if (at == 0 || at >= side.truths[t]->tokens.size()) continue;
      std::vector<std::pair<double, double>> row;
      for (const SavedCandidate& candidate : tokens[i].top) {
        const auto truth = candidate.id ? side.truths[t]->tokens[at].of(*candidate.id) : std::nullopt;
        if (truth && std::isfinite(candidate.logprob)) row.emplace_back(*truth, candidate.logprob);
      }
      sums.add_row(row);
    }
  }
  if (sums.rows < kEnough || !(sums.xx > 0) || !(sums.slope() > 0)) return {};
  if (!(sums.left() <= kExplained * kExplained * sums.before)) return {};
  return fmt::format(
      "log-probabilities lie {:.4g} times as far apart as the model's, as after a temperature of {:.4g}: ask "
      "for those "
      "of before",
      sums.slope(), 1 / sums.slope());
}

// Each value is right for the token `by` places further on.
std::string shifted(const SideTruths& side, std::span<const JudgedToken> tokens, int by) {
  double before = 0, after = 0;
  std::size_t count = 0;
  for (const JudgedToken& token : tokens) {
    const auto at = static_cast<std::ptrdiff_t>(token.position + side.before[token.text]) + by;
    const std::vector<TrueToken>& truths = side.truths[token.text]->tokens;
    if (at < 1 || at >= static_cast<std::ptrdiff_t>(truths.size()) || !std::isfinite(token.value)) continue;
    const double other = token.value - truths[static_cast<std::size_t>(at)].logprob;
    before += (token.value - token.truth) * (token.value - token.truth);
    after += other * other;
    ++count;
  }
  if (count < kEnough || !(after <= kExplained * kExplained * before)) return {};
  return fmt::format("each value is that of the token {} it: the lists are off by one",
                     by > 0 ? "behind" : "before");
}

bool is_bfloat16(double value) {
  return Arithmetic{Precision::bf16}.round(value) == value;
}

std::string coarse(std::span<const JudgedToken> tokens) {
  std::size_t count = 0;
  for (const JudgedToken& token : tokens) {
    if (!std::isfinite(token.value) || token.value == 0) continue;
    if (!is_bfloat16(token.value)) return {};
    ++count;
  }
  if (count < kEnough) return {};
  return "all values are numbers of bfloat16: the log-softmax was computed or kept in it, and is good to 3 "
         "digits";
}

}  // namespace

std::vector<std::string> explain_errors(const SideTruths& side, std::span<const JudgedToken> tokens) {
  std::vector<std::string> hints;
  for (std::string hint :
       {temperature(side), shifted(side, tokens, 1), shifted(side, tokens, -1), coarse(tokens)})
    if (!hint.empty()) hints.push_back(std::move(hint));
  return hints;
}

}  // namespace assay::logprobs
