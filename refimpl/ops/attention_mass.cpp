#include "refimpl/ops/attention_mass.h"

#include <cmath>

#include "refimpl/ops/softmax.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

std::vector<double> rows_of(Ops& ops, const PagedKvView& rows, std::size_t count) {
  std::vector<std::size_t> places(count);
  for (std::size_t i = 0; i < count; ++i) places[i] = rows.row(i);
  return ops.download(ops.gather(rows.base, places));
}

}  // namespace

double attention_score(const AttentionCall& call, const Arithmetic& arithmetic, double product, double slope,
                       std::size_t key) {
  const auto stage = [&](double x) { return arithmetic.stage(x); };
  double s = stage(stage(product) * call.scale);
  if (call.soft_cap != 0) s = stage(stage(std::tanh(stage(s / call.soft_cap))) * call.soft_cap);
  return slope == 0 ? s : stage(s + slope * static_cast<double>(key));
}

std::vector<std::vector<double>> attention_mass(Ops& ops, const AttentionCall& call,
                                                const SequenceMetadata& span, std::size_t from) {
  const std::size_t group = call.heads / call.kv_heads, d = call.qk_dim;
  const std::vector<double> keys = rows_of(ops, span.key_rows, span.keys),
                            queries = ops.download(call.q.row_range(span.first, span.queries)),
                            sinks = vector_of(call.sinks, ops.arithmetic());
  std::vector<std::vector<double>> mass(call.kv_heads, std::vector<double>(span.keys));
  std::vector<double> p;
  for (std::size_t query = from; query < span.queries; ++query) {
    const std::size_t place = span.keys - span.queries + query;
    const std::size_t first = call.window != 0 && place + 1 > call.window ? place + 1 - call.window : 0;
    for (std::size_t h = 0; h < call.heads; ++h) {
      const double slope = call.slopes.empty() ? 0 : call.slopes[h];
      const double* q = queries.data() + (query * call.heads + h) * d;
      p.clear();
      for (std::size_t k = first; k <= place; ++k) {
        const double* key = keys.data() + (k * call.kv_heads + h / group) * d;
        p.push_back(attention_score(call, ops.arithmetic(), dot(q, key, d), slope, k));
      }
      if (!sinks.empty()) p.push_back(sinks[h]);
      softmax_three_pass(p);
      for (std::size_t k = first; k <= place; ++k) mass[h / group][k] += ops.arithmetic().stage(p[k - first]);
    }
  }
  return mass;
}

}  // namespace assay
