#include "refimpl/models/hashed_mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/system/error.h"
#include "refimpl/models/experts_one_by_one.h"
#include "refimpl/ops/own_choice.h"

namespace assay {
namespace {

// Experts of every token, out of the checkpoint's whole numbers.
std::vector<std::int32_t> read_table(const WeightView& view, std::size_t experts) {
  const std::size_t size = view.type == ElementType::I64 ? 8 : 4;
  if (view.codes == nullptr || (view.type != ElementType::I64 && view.type != ElementType::I32))
    throw Error::input("is not a table of whole numbers").tensor(*view.name);
  std::vector<std::int32_t> table;
  for (std::size_t r = 0; r < view.rows; ++r) {
    for (std::size_t c = 0; c < view.columns; ++c) {
      std::int64_t wide = 0;
      std::int32_t narrow = 0;
      const std::byte* at = view.codes + r * view.row_bytes + c * size;
      if (size == 8)
        std::memcpy(&wide, at, size);
      else
        std::memcpy(&narrow, at, size), wide = narrow;
      if (wide < 0 || wide >= static_cast<std::int64_t>(experts))
        throw Error::input(fmt::format("sends a token to expert {} of {}", wide, experts)).tensor(*view.name);
      table.push_back(static_cast<std::int32_t>(wide));
    }
  }
  return table;
}

Matrix clamped(Ops& ops, const Matrix& x, double least, double most) {
  std::vector<double> values = ops.download(x);
  for (double& value : values) value = std::isnan(value) ? value : std::clamp(value, least, most);
  return ops.upload(values, x.rows(), x.columns());
}

Matrix limited_mlp(const Matrix& x, const WeightView& gate, const WeightView& up, const WeightView& down,
                   double limit, Ops& ops) {
  const Matrix g = clamped(ops, ops.linear(x, gate), -INFINITY, limit);
  const Matrix u = clamped(ops, ops.linear(x, up), -limit, limit);
  return ops.linear(ops.gated_activation(g, u, {.activation = Activation::silu}), down);
}

std::vector<std::int32_t> best(std::vector<double> choice, std::size_t top_k) {
  std::vector<std::int32_t> order(choice.size());
  std::iota(order.begin(), order.end(), 0);
  for (double& value : choice) value = std::isnan(value) ? -INFINITY : value;
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return choice[static_cast<std::size_t>(a)] > choice[static_cast<std::size_t>(b)];
  });
  order.resize(top_k);
  return order;
}

// √softplus of one row of logits.
std::vector<double> scores_of(std::span<const double> logits, const Arithmetic& arithmetic) {
  std::vector<double> scores;
  for (const double x : logits)
    scores.push_back(arithmetic.stage(
        std::sqrt(arithmetic.stage(std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)))))));
  return scores;
}

}  // namespace

HashedMixture HashedMixture::read(const Weights& weights, std::size_t layer) {
  HashedMixture m;
  m.mixture = Mixture::read(weights, layer, {}, MoeForm::sparse);
  const ModuleTree& tree = weights.tree();
  const Hyperparameters& h = hyperparameters(tree);
  m.mixture.rule.top_k = tree.experts_per_token;
  m.mixture.rule.scale = h.routing.scale;
  m.limit = h.activation_limit;
  const WeightView table = weights.find_named(fmt::format("layers.{}.ffn.gate.tid2eid", layer));
  if (table) m.table = read_table(table, tree.experts);
  return m;
}

Matrix HashedMixture::forward(const Matrix& x, std::span<const TokenId> tokens, Ops& ops,
                              const TapScope& at) const {
  const auto stage = [&](double value) { return ops.arithmetic().stage(value); };
  const std::size_t top_k = mixture.rule.top_k;
  Matrix logits = ops.linear(x, mixture.router);  // [tokens, experts]
  at("router_logits", logits);
  const std::size_t experts = logits.columns();
  const std::vector<double> correction =
      mixture.correction ? decode_vector(mixture.correction) : std::vector<double>(experts);
  const auto by_scores = [top_k, correction, arithmetic = ops.arithmetic()](std::span<const double> row) {
    std::vector<double> choice = scores_of(row, arithmetic);
    for (std::size_t e = 0; e < choice.size(); ++e) choice[e] += correction[e];
    return best(std::move(choice), top_k);
  };
  if (table.empty()) logits = watched_scores(ops, logits, by_scores);
  const std::vector<double> all = ops.download(logits);
  Routing routing = {top_k, {}, {}};
  std::vector<double> weights, dense(all.size());
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const std::span row = std::span(all).subspan(t * experts, experts);
    const std::vector<double> scores = scores_of(row, ops.arithmetic());
    std::vector<std::int32_t> chosen;
    if (table.empty())
      chosen = by_scores(row);
    else
      chosen.assign(table.begin() + static_cast<std::ptrdiff_t>(tokens[t] * top_k),
                    table.begin() + static_cast<std::ptrdiff_t>((tokens[t] + 1) * top_k));
    double sum = 0;
    for (const std::int32_t e : chosen) sum += scores[static_cast<std::size_t>(e)];
    for (const std::int32_t e : chosen) {
      const auto expert = static_cast<std::size_t>(e);
      const double w = stage(stage(scores[expert] / stage(stage(sum) + 1e-20)) * mixture.rule.scale);
      routing.experts.push_back(e);
      weights.push_back(w);
      dense[t * experts + expert] = w;
    }
  }
  if (at.listening()) at("router_weights", ops.upload(dense, x.rows(), experts));

  routing.weights = ops.upload(weights, x.rows(), top_k);
  const ExpertFunction one = [&](const Matrix& rows, std::size_t e) {
    const ExpertWeights& w = mixture.experts;
    return limited_mlp(rows, w.gate[e], w.up[e], w.down[e], limit, ops);
  };
  const Matrix out = experts_one_by_one(x, routing, experts, one, ops);
  if (!mixture.shared) return out;
  const GatedMlp& shared = *mixture.shared;
  return ops.add(out, limited_mlp(x, shared.gate, shared.up, shared.down, limit, ops));
}

}  // namespace assay
