// Faults of the operations that touch each element once or twice, of normalization and of quantization; and
// of what the comparator is handed.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "core/numeric/codec.h"
#include "kernels/harness/made_weight.h"
#include "kernels/harness/mutants.h"

namespace assay {
namespace {

constexpr std::size_t kThreadPiece = 1 << 15;  // elements that kernels give a thread

// Element by element from a row, its group's length and a place in it.
using RowFunction = std::function<float(const float* group, std::size_t size, std::size_t i)>;
Matrix by_groups(ReferenceOps& ops, const Matrix& x, std::size_t group, const RowFunction& function) {
  Matrix y = ops.allocate(x.rows(), x.columns());
  for (std::size_t r = 0; r < x.rows(); ++r) {
    for (std::size_t c = 0; c < x.columns(); ++c)
      y.row<float>(r)[c] = function(x.row<float>(r) + c / group * group, group, c % group);
  }
  return y;
}

Matrix rounded_to_bf16(ReferenceOps& ops, const Matrix& x) {
  return by_groups(ops, x, 1, [](const float* g, std::size_t, std::size_t) {
    return decode(kBF16, encode(kBF16, *g, Overflow::special));
  });
}

// Under arithmetics of bfloat16 alone.
template <class Call>
Mutant<Call> one_step_short() {
  return {.name = "every third bfloat16 number cut off in place of rounded",
          .family = "rounding",
          .run = [](ReferenceOps& ops, const Call& call, double) {
            Matrix y = run_reference(ops, call);
            for (std::size_t r = 0; ops.arithmetic().bfloat16() && r < y.rows(); ++r) {
              for (std::size_t c = 0; c < y.columns(); c += 3) {
                const auto bits = std::bit_cast<std::uint32_t>(y.row<float>(r)[c]);
                if ((bits & 0x7FFFFFFF) >= 0x10000) y.row<float>(r)[c] = std::bit_cast<float>(bits - 0x10000);
              }
            }
            return y;
          }};
}

double mean_of(const float* x, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
  return sum / static_cast<double>(n);
}

double mean_square_of(const float* x, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum / static_cast<double>(n);
}

}  // namespace

template <>
std::vector<Mutant<EmbeddingCall>> mutants_of() {
  return {on_wrong_call<EmbeddingCall>("the row after the token's", "indexing",
                                       [](ReferenceOps&, EmbeddingCall& c) {
                                         for (TokenId& t : c.tokens)
                                           t = static_cast<TokenId>((static_cast<std::size_t>(t) + 1) %
                                                                    c.table.rows);
                                       }),
          on_wrong_call<EmbeddingCall>("token numbers cut to 8 bits", "offset overflow (19)",
                                       [](ReferenceOps&, EmbeddingCall& c) {
                                         for (TokenId& t : c.tokens) t &= 0xFF;
                                       })};
}

template <>
std::vector<Mutant<RmsNormCall>> mutants_of() {
  std::vector<Mutant<RmsNormCall>> all = {
      on_wrong_call<RmsNormCall>("epsilon left out", "norms",
                                 [](ReferenceOps&, RmsNormCall& c) { c.epsilon = 0; }),
      on_wrong_call<RmsNormCall>("w taken for 1 + w, and the other way round", "norms",
                                 [](ReferenceOps&, RmsNormCall& c) {
                                   c.form = c.form == NormForm::one_plus_weight ? NormForm::weight_last
                                                                                : NormForm::one_plus_weight;
                                 }),
      on_wrong_call<RmsNormCall>("x rounded to BF16 before the weight", "norms (3.4: HF casts first)",
                                 [](ReferenceOps& ops, RmsNormCall& c) { c.x = rounded_to_bf16(ops, c.x); }),
      without_last_piece<RmsNormCall>(kThreadPiece), one_step_short<RmsNormCall>()};
  const auto with_mean =
      [](const std::function<double(const float*, std::size_t, std::size_t, const Matrix&)>& mean_square) {
        return [mean_square](ReferenceOps& ops, const RmsNormCall& c, double) {
          const std::vector<double> w = decode_vector(c.weight);
          return by_groups(ops, c.x, w.size(), [&](const float* g, std::size_t n, std::size_t i) {
            const double weight = c.form == NormForm::one_plus_weight ? 1 + w[i] : w[i];
            return static_cast<float>(g[i] / std::sqrt(mean_square(g, n, i, c.x) + c.epsilon) * weight);
          });
        };
      };
  all.push_back({.name = "the mean over n - 1",
                 .family = "norms",
                 .run = with_mean([](const float* g, std::size_t n, std::size_t, const Matrix&) {
                   return mean_square_of(g, n) * static_cast<double>(n) /
                          static_cast<double>(std::max<std::size_t>(1, n - 1));
                 })});
  all.push_back({.name = "the mean subtracted",
                 .family = "norms",
                 .run = with_mean([](const float* g, std::size_t n, std::size_t, const Matrix&) {
                   const double mean = mean_of(g, n);
                   return mean_square_of(g, n) - mean * mean;
                 })});
  all.push_back({.name = "the last element not in the mean",
                 .family = "norms",
                 .run = with_mean([](const float* g, std::size_t n, std::size_t, const Matrix&) {
                   return mean_square_of(g, n) -
                          static_cast<double>(g[n - 1]) * g[n - 1] / static_cast<double>(n);
                 })});
  all.push_back({.name = "another order of sums from 256 tokens on",
                 .family = "batch invariance (22)",
                 .bits = true,
                 .run = [](ReferenceOps& ops, const RmsNormCall& c, double) {
                   Matrix y = run_reference(ops, c);
                   for (std::size_t r = 0; r < y.rows() && c.x.rows() >= 256; ++r) {
                     for (std::size_t i = 0; i < y.columns(); i += 7)
                       y.row<float>(r)[i] = std::nextafter(y.row<float>(r)[i], 0.0F);
                   }
                   return y;
                 }});
  return all;
}

template <>
std::vector<Mutant<LayerNormCall>> mutants_of() {
  const auto general = [](double bessel, bool one_pass) {
    return [=](ReferenceOps& ops, const LayerNormCall& c, double) {
      const std::vector<double> w = decode_vector(c.weight), b = decode_vector(c.bias);
      return by_groups(ops, c.x, w.size(), [&](const float* g, std::size_t n, std::size_t i) {
        float sum = 0, squares = 0;
        for (std::size_t k = 0; k < n; ++k) {
          sum += g[k];
          squares += g[k] * g[k];
        }
        const double mean = mean_of(g, n), count = static_cast<double>(n);
        double variance = (mean_square_of(g, n) - mean * mean) * count / std::max(1.0, count - bessel);
        if (one_pass)
          variance =
              squares / static_cast<float>(n) - (sum / static_cast<float>(n)) * (sum / static_cast<float>(n));
        const double bias = b.empty() ? 0 : b[i];
        return static_cast<float>((g[i] - mean) / std::sqrt(variance + c.epsilon) * w[i] + bias);
      });
    };
  };
  return {{.name = "the variance over n - 1", .family = "norms", .run = general(1, false)},
          {.name = "the variance in one pass", .family = "cancellation", .run = general(0, true)},
          on_wrong_call<LayerNormCall>("epsilon left out", "norms",
                                       [](ReferenceOps&, LayerNormCall& c) { c.epsilon = 0; }),
          on_wrong_call<LayerNormCall>("the bias left out", "bias (25)",
                                       [](ReferenceOps&, LayerNormCall& c) { c.bias = {}; })};
}

template <>
std::vector<Mutant<RotaryCall>> mutants_of() {
  const auto table = [](Matrix RopeCall::*which,
                        const std::function<float(const Matrix&, std::size_t, std::size_t)>& change) {
    return [=](ReferenceOps& ops, RotaryCall& c) {
      const Matrix from = c.angles.*which;
      const Matrix to = ops.allocate(from.rows(), from.columns());
      for (std::size_t r = 0; r < to.rows(); ++r) {
        for (std::size_t i = 0; i < to.columns(); ++i) to.row<float>(r)[i] = change(from, r, i);
      }
      c.angles.*which = to;
    };
  };
  const auto before = [](const Matrix& m, std::size_t r, std::size_t i) {
    return m.row<float>(r == 0 ? 0 : r - 1)[i];
  };
  const auto negative = [](const Matrix& m, std::size_t r, std::size_t i) { return -m.row<float>(r)[i]; };
  const auto cut = [](const Matrix& m, std::size_t r, std::size_t i) {
    return decode(kBF16, encode(kBF16, m.row<float>(r)[i], Overflow::special));
  };
  const auto half = [](const Matrix& m, std::size_t r, std::size_t) { return m.row<float>(r)[0]; };
  return {
      on_wrong_call<RotaryCall>("the layouts mistaken for each other", "rope layout (6)",
                                [](ReferenceOps&, RotaryCall& c) {
                                  c.angles.layout = c.angles.layout == RopeLayout::half_split
                                                        ? RopeLayout::interleaved
                                                        : RopeLayout::half_split;
                                }),
      on_wrong_call<RotaryCall>("cosines of the position before", "positions", table(&RopeCall::cos, before)),
      on_wrong_call<RotaryCall>("rotated the other way", "rope sign", table(&RopeCall::sin, negative)),
      on_wrong_call<RotaryCall>("sines in BF16", "silent BF16", table(&RopeCall::sin, cut)),
      on_wrong_call<RotaryCall>("one frequency for all pairs", "rope frequencies (8)",
                                table(&RopeCall::cos, half)),
      on_wrong_call<RotaryCall>("the part before the offset rotated", "partial rope",
                                [](ReferenceOps&, RotaryCall& c) { c.angles.offset = 0; }),
      without_last_piece<RotaryCall>(kThreadPiece),
      without_subnormals<RotaryCall>(),
      one_step_short<RotaryCall>()};
}

template <>
std::vector<Mutant<ActivationCall>> mutants_of() {
  return {without_subnormals<ActivationCall>()};
}

template <>
std::vector<Mutant<GatedActivationCall>> mutants_of() {
  const auto scaled = [](ReferenceOps& ops, const GatedActivationCall& c, double size) {
    Matrix y = run_reference(ops, c);
    return by_groups(ops, y, 1, [&](const float* g, std::size_t, std::size_t) {
      return static_cast<float>(*g * (1 + size));
    });
  };
  return {
      on_wrong_call<GatedActivationCall>(
          "gate and up mistaken for each other", "gates",
          [](ReferenceOps&, GatedActivationCall& c) { std::swap(c.gate, c.up); }),
      on_wrong_call<GatedActivationCall>("GELU by tanh taken for the one by erf", "gates",
                                         [](ReferenceOps&, GatedActivationCall& c) {
                                           if (c.form.activation == Activation::gelu)
                                             c.form.activation = Activation::gelu_tanh;
                                         }),
      on_wrong_call<GatedActivationCall>("the limit ignored", "gates",
                                         [](ReferenceOps&, GatedActivationCall& c) { c.form.limit = 1e30; }),
      {.name = "all × (1 + size)",
       .family = "gates",
       .unit = "× 1 +",
       .sizes = {0x1p-8, 0x1p-12, 0x1p-16, 0x1p-18, 0x1p-20, 0x1p-22},
       .run = scaled},
      without_last_piece<GatedActivationCall>(kThreadPiece),
      one_step_short<GatedActivationCall>()};
}

template <>
std::vector<Mutant<SoftmaxCall>> mutants_of() {
  const auto direct = [](bool with_maximum, std::size_t left_out) {
    return [=](ReferenceOps& ops, const SoftmaxCall& c, double) {
      return by_groups(ops, c.x, std::max<std::size_t>(1, c.x.columns()),
                       [&](const float* g, std::size_t n, std::size_t i) {
                         const float largest = with_maximum ? *std::max_element(g, g + n) : 0.0F;
                         float sum = 0;
                         for (std::size_t k = 0; k + left_out < n || k == 0; ++k)
                           sum += std::exp(g[k] - largest);
                         return std::exp(g[i] - largest) / sum;
                       });
    };
  };
  return {{.name = "exponentials without the maximum", .family = "overflow (24)", .run = direct(false, 0)},
          {.name = "the last element not in the sum", .family = "softmax", .run = direct(true, 1)},
          without_last_piece<SoftmaxCall>(kThreadPiece / 2)};
}

template <>
std::vector<Mutant<QuantizeCall>> mutants_of() {
  using Result = QuantizedMatrix;
  const auto on_result = [](std::string_view name, std::string_view family,
                            const std::function<void(const QuantizeCall&, Result&)>& change) {
    return Mutant<QuantizeCall>{
        .name = name, .family = family, .run = [change](ReferenceOps& ops, const QuantizeCall& c, double) {
          Result q = run_reference(ops, c);
          change(c, q);
          return q;
        }};
  };
  return {on_wrong_call<QuantizeCall>("one scale for the whole row", "block scales (18)",
                                      [](ReferenceOps&, QuantizeCall& c) { c.rule.block_columns = 0; }),
          on_result("codes rounded towards zero", "rounding (18)",
                    [](const QuantizeCall& c, Result& q) {
                      for (std::size_t i = 0; i < q.codes.size(); ++i) {
                        const float x = c.x.row<float>(i / q.columns)[i % q.columns];
                        const std::size_t down = q.rule.block_rows == 0 ? q.rows : q.rule.block_rows;
                        const std::size_t across =
                            q.rule.block_columns == 0 ? q.columns : q.rule.block_columns;
                        const float s = q.scales[i / q.columns / down * ((q.columns + across - 1) / across) +
                                                 i % q.columns / across];
                        if (q.rule.codes == ElementType::I8)
                          q.codes[i] = static_cast<std::byte>(static_cast<std::int8_t>(x / s));
                      }
                    }),
          on_result("scales rounded down to a power of two", "scale format (27)",
                    [](const QuantizeCall&, Result& q) {
                      for (float& s : q.scales) s = q.rule.power_of_two ? s / 2 : s;
                    }),
          on_result("scales of the block before", "block scales (18)",
                    [](const QuantizeCall&, Result& q) {
                      if (q.scales.size() > 1)
                        std::rotate(q.scales.begin(), q.scales.end() - 1, q.scales.end());
                    }),
          on_result("a block of zeros divides zero by zero", "zero blocks (28)",
                    [](const QuantizeCall& c, Result& q) {
                      for (std::size_t i = 0; i < q.scales.size(); ++i) {
                        const bool zero = c.x.columns() != 0 && c.x.row<float>(0)[0] == 0 && i == 0;
                        if (zero) q.scales[i] = std::numeric_limits<float>::quiet_NaN();
                      }
                    })};
}

template <>
std::vector<Mutant<DequantizeCall>> mutants_of() {
  return {on_wrong_call<DequantizeCall>("E4M3 taken for its FNUZ twin", "element types",
                                        [](ReferenceOps&, DequantizeCall& c) {
                                          if (c.x.rule.codes == ElementType::F8_E4M3)
                                            c.x.rule.codes = ElementType::F8_E4M3FNUZ;
                                        }),
          on_wrong_call<DequantizeCall>("scales of the block before", "block scales (18)",
                                        [](ReferenceOps&, DequantizeCall& c) {
                                          if (c.x.scales.size() > 1)
                                            std::rotate(c.x.scales.begin(), c.x.scales.end() - 1,
                                                        c.x.scales.end());
                                        }),
          on_wrong_call<DequantizeCall>("scales applied twice", "block scales (18)",
                                        [](ReferenceOps&, DequantizeCall& c) {
                                          for (float& s : c.x.scales) s *= s;
                                        }),
          on_wrong_call<DequantizeCall>("scales rounded to BF16", "silent BF16",
                                        [](ReferenceOps&, DequantizeCall& c) {
                                          for (float& s : c.x.scales)
                                            s = decode(kBF16, encode(kBF16, s, Overflow::special));
                                        }),
          without_subnormals<DequantizeCall>()};
}

const std::vector<InputMutant>& input_mutants() {
  static const std::vector<InputMutant> all = {
      {"a dump of zeros on both sides", "zero dump",
       [](Truth& t, std::vector<OutputPart>& o) {
         std::fill(t[0].values.begin(), t[0].values.end(), 0.0);
         std::fill(o[0].values.begin(), o[0].values.end(), 0.0F);
       }},
      {"a dump of zeros on one side", "zero dump",
       [](Truth&, std::vector<OutputPart>& o) { std::fill(o[0].values.begin(), o[0].values.end(), 0.0F); }},
      {"NaN on both sides", "NaN mask",
       [](Truth& t, std::vector<OutputPart>& o) {
         std::fill(t[0].values.begin(), t[0].values.end(), std::numeric_limits<double>::quiet_NaN());
         std::fill(o[0].values.begin(), o[0].values.end(), std::numeric_limits<float>::quiet_NaN());
       }},
      {"one NaN in truth alone", "NaN mask",
       [](Truth& t, std::vector<OutputPart>&) { t[0].values[7] = std::numeric_limits<double>::quiet_NaN(); }},
      {"infinity of the other sign", "NaN mask",
       [](Truth& t, std::vector<OutputPart>& o) {
         t[0].values[7] = std::numeric_limits<double>::infinity();
         o[0].values[7] = -std::numeric_limits<float>::infinity();
       }},
      {"the output compared with itself", "swapped operands",
       [](Truth& t, std::vector<OutputPart>& o) {
         t[0].values.assign(o[0].values.begin(), o[0].values.end());
       }},
      {"the output of another token", "misaligned dump",
       [](Truth& t, std::vector<OutputPart>& o) {
         std::rotate(o[0].values.begin(), o[0].values.begin() + static_cast<std::ptrdiff_t>(t[0].columns),
                     o[0].values.end());
       }},
      {"one element off", "misaligned dump",
       [](Truth&, std::vector<OutputPart>& o) {
         std::rotate(o[0].values.begin(), o[0].values.begin() + 1, o[0].values.end());
       }},
      {"transposed", "misaligned dump",
       [](Truth&, std::vector<OutputPart>& o) {
         const std::vector<float> from = o[0].values;
         for (std::size_t i = 0; i < from.size(); ++i)
           o[0].values[i] = from[i % o[0].rows * o[0].columns + i / o[0].rows];
       }},
      {"transposed, its shape as well", "misaligned dump",
       [](Truth&, std::vector<OutputPart>& o) { std::swap(o[0].rows, o[0].columns); }},
      {"the last token missing", "cut dump",
       [](Truth&, std::vector<OutputPart>& o) {
         o[0].values.resize(o[0].values.size() - o[0].columns);
         --o[0].rows;
       }},
      {"rounded to BF16 on the way", "tag of another type",
       [](Truth&, std::vector<OutputPart>& o) {
         for (float& x : o[0].values) x = decode(kBF16, encode(kBF16, x, Overflow::special));
       }},
      {"no parts at all", "cut dump", [](Truth&, std::vector<OutputPart>& o) { o.clear(); }},
  };
  return all;
}

}  // namespace assay
