#include "kernels/model_compare/plain_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/system/threads.h"
#include "kernels/harness/made_weight.h"
#include "kernels/model_compare/plain_dot.h"
#include "kernels/operands/rounded_operands.h"
#include "refimpl/ops/support.h"
#include "refimpl/ops/w8a8.h"

namespace assay {
namespace {

// Evenly spread, mean 0, mean square 1; by splitmix64 (Steele, Lea & Flood 2014) of seed and place.
double noise_at(std::uint64_t seed, std::uint64_t place) {
  std::uint64_t z = seed + (place + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  return std::sqrt(12.0) * (static_cast<double>(z >> 11) * 0x1p-53 - 0.5);
}

std::uint64_t seed_of(const WeightView& weight, int order) {
  std::uint64_t hash = 0xCBF29CE484222325ull + static_cast<std::uint64_t>(order);
  for (const char c : *weight.name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash;
}

// A row's elements move by noise of the row's own size: small ones more than float codes would, large ones
// less, all together as much.
template <class T>
void add_noise(const WeightView& w, std::size_t first, double noise, int order, std::span<T> rows) {
  if (noise == 0 || w.columns == 0) return;
  const std::uint64_t seed = seed_of(w, order);
  for (std::size_t r = 0; r * w.columns < rows.size(); ++r) {
    const std::span<T> row = rows.subspan(r * w.columns, w.columns);
    double square = 0;
    for (const T value : row) square += static_cast<double>(value) * value;
    const double size = noise * std::sqrt(square / static_cast<double>(w.columns));
    const std::uint64_t place = (w.first_row + w.reader_row + first + r) * w.columns;
    for (std::size_t c = 0; c < w.columns; ++c)
      row[c] = static_cast<T>(static_cast<double>(row[c]) + size * noise_at(seed, place + c));
  }
}

// Rows of W as [outputs, inputs], requantized, as the arithmetic multiplies them.
template <class T>
std::vector<T> outputs_of(const WeightView& w, std::size_t first, std::size_t count, double noise, int order,
                          const Arithmetic& arithmetic) {
  std::vector<T> out(count * w.inputs());
  if (!w.input_major) {
    decode_rows(w, first, count, out.data());
    add_noise<T>(w, first, noise, order, out);
  } else {
    std::vector<T> row(w.columns);
    for (std::size_t i = 0; i < w.rows; ++i) {
      decode_rows(w, i, 1, row.data());
      add_noise<T>(w, i, noise, order, row);
      for (std::size_t o = 0; o < count; ++o) out[o * w.rows + i] = row[first + o];
    }
  }
  if constexpr (std::is_same_v<T, float>) {
    const auto how = rounded_operands(w, arithmetic);
    for (std::size_t o = 0; how && how->weights && o < count; ++o)
      how->weights->round(std::span(out).subspan(o * w.inputs(), w.inputs()));
  }
  for (T& value : out) value = static_cast<T>(arithmetic.round(value));
  return out;
}

template <class T>
void attend(const AttentionCall& call, const SequenceMetadata& span, std::size_t query, std::size_t head,
            double sink, const Arithmetic& arithmetic, int order, T* out) {
  const auto stage = [&](T x) { return static_cast<T>(arithmetic.stage(x)); };
  const std::size_t position = span.keys - span.queries + query, kv = head / (call.heads / call.kv_heads);
  const std::size_t first = call.window != 0 && position + 1 > call.window ? position + 1 - call.window : 0;
  const T* q = call.q.row<T>(span.first + query) + head * call.qk_dim;
  std::vector<T> p;
  for (std::size_t k = first; k <= position; ++k) {
    const T* key = span.key_rows.base.row<T>(span.key_rows.row(k)) + kv * call.qk_dim;
    T s = stage(stage(plain_dot(q, key, call.qk_dim, order)) * static_cast<T>(call.scale));
    const T cap = static_cast<T>(call.soft_cap);
    if (cap != 0) s = stage(stage(std::tanh(stage(s / cap))) * cap);
    if (!call.slopes.empty()) s = stage(s + static_cast<T>(call.slopes[head]) * static_cast<T>(k));
    p.push_back(s);
  }
  T most = static_cast<T>(sink);
  for (const T s : p) most = std::max(most, s);
  T sum = std::isinf(sink) ? T(0) : std::exp(static_cast<T>(sink) - most);
  for (T& s : p) sum += s = std::exp(s - most);
  std::vector<T> mixed(call.v_dim);
  for (std::size_t k = first; k <= position; ++k) {
    const T* value = span.value_rows.base.row<T>(span.value_rows.row(k)) + kv * call.v_dim;
    const T weight = stage(p[k - first] / sum);
    for (std::size_t i = 0; i < call.v_dim; ++i) mixed[i] += weight * value[i];
  }
  for (std::size_t i = 0; i < call.v_dim; ++i) out[i] = static_cast<T>(arithmetic.round(mixed[i]));
}

}  // namespace

QuantizationNoise PlainOps::noise_of(const WeightView& weight) const {
  if (!weight) return {};
  const auto it = noises_.find(*weight.name);
  return it == noises_.end() ? QuantizationNoise{} : it->second;
}

std::vector<double> PlainOps::vector(const WeightView& weight) const {
  if (!weight) return {};
  std::vector<double> values = decode_vector(weight);
  const double noise = noise_of(weight).noise;
  const std::uint64_t seed = seed_of(weight, order_);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = arithmetic().round(values[i] * (1 + noise * noise_at(seed, i)));
  return values;
}

Matrix PlainOps::run(const EmbeddingCall& call) {
  const WeightView& table = call.table;
  Matrix y = ReferenceOps::run(call);
  const double noise = noise_of(table).noise;
  if (noise == 0) return y;
  with_elements(y.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t t = 0; t < y.rows(); ++t) {
      T* row = y.row<T>(t);
      add_noise<T>(table, call.tokens[t], noise, order_, std::span<T>(row, y.columns()));
      for (std::size_t i = 0; i < y.columns(); ++i) row[i] = static_cast<T>(arithmetic().round(row[i]));
    }
  });
  return y;
}

// Activations as they are multiplied under this arithmetic, by kernels if not by the reference.
Matrix PlainOps::multiplied(const Matrix& x, const WeightView& weight) {
  if (noise_of(weight).narrow_inputs) {
    const bool int8 = arithmetic().precision == Precision::int8;
    return dequantize(quantize(x, {.codes = int8 ? ElementType::I8 : ElementType::F8_E4M3,
                                   .block_columns = int8 ? std::size_t{0} : std::size_t{128}}));
  }
  const auto how = rule_(weight, arithmetic());
  if (!how || x.columns() != weight.inputs()) return x;
  Matrix y = allocate(x.rows(), x.columns());
  for (std::size_t r = 0; r < x.rows(); ++r) {
    const std::span row(y.row<float>(r), y.columns());
    std::copy_n(x.row<float>(r), row.size(), row.begin());
    how->inputs.round(row);
  }
  return y;
}

Matrix PlainOps::run(const LinearCall& call) {
  const WeightView& weight = call.weight;
  const QuantizationNoise noise = noise_of(weight);
  if (is_w8a8(weight, arithmetic())) return ReferenceOps::run(call);
  const Matrix x = multiplied(call.x, weight);
  const std::size_t inputs = weight.inputs(), outputs = weight.outputs();
  if (x.columns() != inputs) return ReferenceOps::run(call);  // which says so
  Matrix y = allocate(x.rows(), outputs);
  const std::vector<double> b = vector(call.bias);
  const std::size_t block = weight.input_major ? std::max<std::size_t>(1, outputs) : 16;
  with_elements(y.real(), [&](auto element) {
    using T = decltype(element);
    parallel_for(jobs(), (outputs + block - 1) / block, [&](std::size_t at) {
      const std::size_t first = at * block, count = std::min(block, outputs - first);
      const std::vector<T> w = outputs_of<T>(weight, first, count, noise.noise, order_, arithmetic());
      for (std::size_t t = 0; t < x.rows(); ++t) {
        for (std::size_t o = 0; o < count; ++o) {
          T sum = plain_dot(x.row<T>(t), &w[o * inputs], inputs, order_);
          if (!b.empty()) sum += static_cast<T>(b[first + o]);
          y.row<T>(t)[first + o] =
              call.rounding == ResultRounding::float32 ? sum : static_cast<T>(arithmetic().round(sum));
        }
      }
    });
  });
  return y;
}

Matrix PlainOps::run(const RmsNormCall& call) {
  const Matrix& x = call.x;
  const NormForm form = call.form;
  const std::vector<double> w = vector(call.weight);
  if (w.empty() || x.columns() % w.size() != 0) return ReferenceOps::run(call);
  Matrix y = allocate(x.rows(), x.columns());
  with_elements(x.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t r = 0; r < x.rows(); ++r) {
      for (std::size_t first = 0; first < x.columns(); first += w.size()) {
        const T* in = x.row<T>(r) + first;
        T* out = y.row<T>(r) + first;
        const T mean = plain_dot(in, in, w.size(), order_) / static_cast<T>(w.size());
        const T factor = 1 / std::sqrt(mean + static_cast<T>(call.epsilon));
        for (std::size_t i = 0; i < w.size(); ++i) {
          const T scaled = in[i] * factor, by = static_cast<T>(w[i]);
          const T staged =
              form == NormForm::weight_last ? static_cast<T>(arithmetic().stage(scaled)) : scaled;
          out[i] =
              static_cast<T>(arithmetic().round(staged * (form == NormForm::one_plus_weight ? 1 + by : by)));
        }
      }
    }
  });
  return y;
}

Matrix PlainOps::run(const LayerNormCall& call) {
  const Matrix& x = call.x;
  const std::vector<double> w = vector(call.weight), b = vector(call.bias);
  if (w.empty() || x.columns() % w.size() != 0) return ReferenceOps::run(call);
  Matrix y = allocate(x.rows(), x.columns());
  with_elements(x.real(), [&](auto element) {
    using T = decltype(element);
    const T n = static_cast<T>(w.size());
    for (std::size_t r = 0; r < x.rows(); ++r) {
      for (std::size_t first = 0; first < x.columns(); first += w.size()) {
        const T* in = x.row<T>(r) + first;
        T* out = y.row<T>(r) + first;
        T sum = 0, square = 0;
        for (std::size_t i = 0; i < w.size(); ++i) sum += in[i];
        const T mean = sum / n;
        for (std::size_t i = 0; i < w.size(); ++i) square += (in[i] - mean) * (in[i] - mean);
        const T factor = 1 / std::sqrt(square / n + static_cast<T>(call.epsilon));
        for (std::size_t i = 0; i < w.size(); ++i)
          out[i] = static_cast<T>(arithmetic().round((in[i] - mean) * factor * static_cast<T>(w[i]) +
                                                     (b.empty() ? T(0) : static_cast<T>(b[i]))));
      }
    }
  });
  return y;
}

Matrix PlainOps::run(const RotaryCall& rotary) {
  if (arithmetic().bfloat16()) return ReferenceOps::run(rotary);
  const Matrix& x = rotary.x;
  const RopeCall& call = rotary.angles;
  const std::size_t pairs = call.cos.columns();
  const bool halves = call.layout == RopeLayout::half_split;
  with_elements(x.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t t = 0; t < x.rows(); ++t) {
      for (std::size_t h = 0; h < call.heads; ++h) {
        T* head = x.row<T>(t) + h * call.head_dim + call.offset;
        for (std::size_t i = 0; i < pairs; ++i) {
          T &first = head[halves ? i : 2 * i], &second = head[halves ? i + pairs : 2 * i + 1];
          const T a = first, b = second, c = call.cos.row<T>(t)[i], s = call.sin.row<T>(t)[i];
          first = a * c - b * s;
          second = b * c + a * s;
        }
      }
    }
  });
  return x;
}

Matrix PlainOps::run(const AttentionCall& call) {
  Matrix out = allocate(call.q.rows(), call.heads * call.v_dim);
  const std::vector<double> sinks = vector(call.sinks);
  with_elements(out.real(), [&](auto element) {
    using T = decltype(element);
    for (const SequenceMetadata& span : call.sequences) {
      parallel_for(jobs(), span.queries * call.heads, [&](std::size_t i) {
        const std::size_t query = i / call.heads, h = i % call.heads;
        const double sink = sinks.empty() ? -std::numeric_limits<double>::infinity() : sinks[h];
        attend<T>(call, span, query, h, sink, arithmetic(), order_,
                  out.row<T>(span.first + query) + h * call.v_dim);
      });
    }
  });
  return out;
}

Routing PlainOps::run(const MoeGateCall& call) {
  if (noise_of(call.correction).noise == 0) return ReferenceOps::run(call);
  const std::vector<double> requantized = vector(call.correction);
  const MadeWeight made({requantized.begin(), requantized.end()}, 1, requantized.size());
  return ReferenceOps::run(MoeGateCall{call.logits, made.view(), call.rule});
}

}  // namespace assay
