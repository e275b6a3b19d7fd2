// Which keys are attended to: score[t, s] = Σ_h w[t, h] relu(q[t, h] · k[s]), the best top_k of those a query may see
// (DeepSeek-V3.2-Exp, inference/model.py: Indexer). Its factors, 1/√head_dim and 1/√heads, change no order and are
// left out; so are the Hadamard rotation of q and k and their rounding to FP8, as in transformers. Of equal scores
// the earlier key comes first.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "refimpl/ops/reference.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

double key_score(const IndexCall& call, const double* q, const double* weights, const double* key) {
  double sum = 0;
  for (std::size_t h = 0; h < call.heads; ++h) {
    const double product = dot(q + h * call.head_dim, key, call.head_dim);
    if (!(product <= 0)) sum += weights[h] * product;
  }
  return sum;
}

// The keys of a sequence, in their order: [keys, head_dim].
std::vector<double> keys_of(Ops& ops, const IndexSequence& s, std::size_t tokens_a_key) {
  std::vector<std::size_t> rows((s.position + s.queries) / tokens_a_key);
  for (std::size_t k = 0; k < rows.size(); ++k) rows[k] = s.key_rows.row(k);
  return ops.download(ops.gather(s.key_rows.base, rows));
}

}  // namespace

void check_index(const IndexCall& call) {
  bool fits = call.top_k > 0 && call.tokens_a_key > 0 && call.q.columns() == call.heads * call.head_dim &&
              call.weights.columns() == call.heads && call.weights.rows() == call.q.rows();
  for (const IndexSequence& s : call.sequences) fits = fits && s.first + s.queries <= call.q.rows();
  if (!fits)
    throw Error::internal(fmt::format("index: q [{}, {}] and weights [{}, {}] for {} heads of {}",
                                      call.q.rows(), call.q.columns(), call.weights.rows(),
                                      call.weights.columns(), call.heads, call.head_dim));
}

std::vector<std::int32_t> best_keys(std::span<const double> scores, std::size_t count) {
  std::vector<std::int32_t> keys(scores.size());
  std::iota(keys.begin(), keys.end(), 0);
  if (keys.size() <= count) return keys;
  const auto score = [&](std::int32_t key) { return scores[static_cast<std::size_t>(key)]; };
  const auto before = [&](std::int32_t a, std::int32_t b) {
    const bool a_nan = std::isnan(score(a)), b_nan = std::isnan(score(b));
    if (a_nan || b_nan) return a_nan == b_nan ? a < b : b_nan;
    return score(a) != score(b) ? score(a) > score(b) : a < b;
  };
  const auto end = keys.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(keys.begin(), end, keys.end(), before);
  keys.erase(end, keys.end());
  std::sort(keys.begin(), keys.end());
  return keys;
}

void visit_key_scores(Ops& ops, const IndexCall& call,
                      const std::function<void(std::size_t row, std::span<const double> scores)>& visit) {
  check_index(call);
  const std::vector<double> q = ops.download(call.q), weights = ops.download(call.weights);
  for (const IndexSequence& s : call.sequences) {
    const std::vector<double> keys = keys_of(ops, s, call.tokens_a_key);
    parallel_for(ops.jobs(), s.queries, [&](std::size_t i) {
      const std::size_t row = s.first + i;
      std::vector<double> scores((s.position + i + 1) / call.tokens_a_key);
      for (std::size_t k = 0; k < scores.size(); ++k)
        scores[k] =
            key_score(call, &q[row * call.q.columns()], &weights[row * call.heads], &keys[k * call.head_dim]);
      visit(row, scores);
    });
  }
}

KeyChoice with_positions(Ops& ops, std::vector<std::vector<std::int32_t>> keys, std::size_t top_k) {
  std::vector<double> positions(keys.size() * top_k, -1);
  for (std::size_t row = 0; row < keys.size(); ++row)
    std::copy_n(keys[row].begin(), std::min(keys[row].size(), top_k),
                positions.begin() + static_cast<std::ptrdiff_t>(row * top_k));
  Matrix as_matrix = ops.upload(positions, keys.size(), top_k);
  return {std::move(keys), std::move(as_matrix)};
}

KeyChoice ReferenceOps::run(const IndexCall& call) {
  std::vector<std::vector<std::int32_t>> keys(call.q.rows());
  visit_key_scores(*this, call, [&](std::size_t row, std::span<const double> scores) {
    keys[row] = best_keys(scores, call.top_k);
  });
  return with_positions(*this, std::move(keys), call.top_k);
}

}  // namespace assay
