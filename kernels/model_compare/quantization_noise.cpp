#include "kernels/model_compare/quantization_noise.h"

#include <algorithm>
#include <cmath>

#include "core/numeric/codec.h"
#include "refimpl/ops/w8a8.h"

namespace assay {
namespace {

const double kUniformSpread = std::sqrt(1.0 / 12);  // of an error spread evenly over one spacing
constexpr std::size_t kRowsSampled = 256;           // spacings of more rows tell nothing new

// Bits of an integer code. What is packed into words or looked up in a table has 4.
int code_bits(const WeightView& w) {
  if (w.kind == FormKind::packed || w.kind == FormKind::codebook) return 4;
  const ElementInfo& type = info(w.type);
  const int bits = static_cast<int>(8 * type.block_bytes / std::max(1u, type.block_elements));
  return std::clamp(bits, 1, 8);
}

// Spacings of one row's values: of a scaled code its scale; else the range of what shares a scale, over the
// codes there are. Sub-blocks of GGUF and groups of packed integers are 32 wide, or wider.
double squared_spacings(const WeightView& w, std::size_t row, std::span<const float> values) {
  double sum = 0;
  if (w.kind == FormKind::scaled && w.codes != nullptr) {
    std::vector<float> scales(w.scale_columns);
    decode_scales(w, row, scales.data());
    for (std::size_t c = 0; c < values.size(); ++c) {
      const double step = scales[w.block_columns == 0 ? 0 : c / w.block_columns];
      sum += step * step;
    }
    return sum;
  }
  constexpr std::size_t kTogether = 32;
  const double levels = std::exp2(code_bits(w)) - 1;
  for (std::size_t first = 0; first < values.size(); first += kTogether) {
    const std::span<const float> block = values.subspan(first, std::min(kTogether, values.size() - first));
    const auto [low, high] = std::minmax_element(block.begin(), block.end());
    const double step = (static_cast<double>(*high) - *low) / levels;
    sum += step * step * static_cast<double>(block.size());
  }
  return sum;
}

double integer_noise(const WeightView& w) {
  const std::size_t rows = std::min(w.rows, kRowsSampled);
  std::vector<float> values(w.columns);
  double spacing = 0, square = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::size_t row = i * w.rows / rows;
    decode_rows(w, row, 1, values.data());
    spacing += squared_spacings(w, row, values);
    for (const float value : values) square += static_cast<double>(value) * value;
  }
  return square == 0 ? 0 : kUniformSpread * std::sqrt(spacing / square);
}

void append(std::vector<WeightView>& all, const std::vector<WeightView>& more) {
  for (const WeightView& w : more) {
    if (w) all.push_back(w);
  }
}

void match(const std::vector<WeightView>& reference, const std::vector<WeightView>& test,
           const Arithmetic& arithmetic, QuantizationNoises& noises) {
  const auto raise = [&](const WeightView& of, const QuantizationNoise& noise) {
    QuantizationNoise& known = noises[*of.name];
    known.noise = std::max(known.noise, noise.noise);
    known.narrow_inputs |= noise.narrow_inputs;
  };
  const auto noise_of = [&](const WeightView& r, const WeightView& t) {
    return QuantizationNoise{copies_exactly(r, t) ? 0 : rounding_noise(t),
                             is_w8a8(t, arithmetic) && !is_w8a8(r, arithmetic)};
  };
  if (reference.size() == test.size()) {
    for (std::size_t i = 0; i < reference.size(); ++i) raise(reference[i], noise_of(reference[i], test[i]));
    return;
  }
  for (const WeightView& r : reference) {
    for (const WeightView& t : test) raise(r, noise_of(r, t));
  }
}

bool has_exponential(Activation activation) {
  switch (activation) {
    case Activation::relu:
    case Activation::relu_squared:
    case Activation::identity:
    case Activation::relu6:
    case Activation::leaky_relu:
    case Activation::hard_silu: return false;
    default: return true;
  }
}

}  // namespace

double rounding_noise(const WeightView& w) {
  const FloatFormat* format = float_format(w.type);
  if (w.codes != nullptr && format != nullptr) return kUniformSpread * power_of_two(-format->mantissa_bits);
  if (w.codes != nullptr && w.type == ElementType::F32) return kUniformSpread * 0x1p-23;
  if (w.codes != nullptr && w.type == ElementType::F64) return kUniformSpread * 0x1p-52;
  return integer_noise(w);
}

bool copies_exactly(const WeightView& from, const WeightView& to) {
  const auto whole = [](const WeightView& w) { return w.block_columns == 0 ? w.columns : w.block_columns; };
  if (from.codes == nullptr || to.codes == nullptr) return false;
  if (from.kind == FormKind::plain && to.kind == FormKind::plain && !info(from.type).in_safetensors)
    return from.type == to.type;
  if (from.kind == FormKind::plain && to.kind == FormKind::plain) {
    const FloatFormat *a = float_format(from.type), *b = float_format(to.type);
    if (from.type == to.type || to.type == ElementType::F64 || to.type == ElementType::F32) return true;
    return a != nullptr && b != nullptr && a->mantissa_bits <= b->mantissa_bits &&
           a->exponent_bits <= b->exponent_bits;
  }
  if (to.kind == FormKind::plain) return to.type == ElementType::F32 || to.type == ElementType::F64;
  return from.kind == to.kind && from.type == to.type &&
         from.block_rows % std::max<std::size_t>(1, to.block_rows) == 0 &&
         whole(from) % std::max<std::size_t>(1, whole(to)) == 0;
}

QuantizationNoises noises_of(const Segments& reference, const Segments& test, const Arithmetic& arithmetic) {
  QuantizationNoises noises;
  for (const auto& [tap, segment] : reference) {
    const auto other = test.find(tap);
    if (other == test.end()) continue;
    match(segment.matrices, other->second.matrices, arithmetic, noises);
    match(segment.vectors, other->second.vectors, arithmetic, noises);
  }
  return noises;
}

void WeightWatch::see(const std::string& tap, const Matrix&) {
  segments_.try_emplace(tap, std::move(open_));
  open_ = {};
}

void WeightWatch::matrix(const WeightView& weight) {
  if (weight) open_.matrices.push_back(weight);
}
void WeightWatch::vector(const WeightView& weight) {
  if (weight) open_.vectors.push_back(weight);
}

Matrix WeightWatch::run(const EmbeddingCall& call) {
  matrix(call.table);
  return PassingOps::run(call);
}

Matrix WeightWatch::run(const LinearCall& call) {
  matrix(call.weight);
  vector(call.bias);
  return PassingOps::run(call);
}

Matrix WeightWatch::run(const RmsNormCall& call) {
  vector(call.weight);
  return PassingOps::run(call);
}

Matrix WeightWatch::run(const LayerNormCall& call) {
  vector(call.weight);
  vector(call.bias);
  return PassingOps::run(call);
}

Matrix WeightWatch::run(const AttentionCall& call) {
  vector(call.sinks);
  return bent(call);
}

Matrix WeightWatch::run(const MlaCall& call) {
  matrix(call.kv_b);
  matrix(call.k_b);
  matrix(call.v_b);
  return bent(call);
}

Routing WeightWatch::run(const MoeGateCall& call) {
  vector(call.correction);
  return bent(call);
}

Matrix WeightWatch::run(const FusedMoeCall& call) {
  const ExpertWeights& e = call.experts;
  for (const auto* all : {&e.gate, &e.up, &e.gate_up, &e.down}) append(open_.matrices, *all);
  for (const auto* all : {&e.gate_bias, &e.up_bias, &e.gate_up_bias, &e.down_bias})
    append(open_.vectors, *all);
  return bent(call);
}

Matrix WeightWatch::run(const ActivationCall& call) {
  return bent(call, has_exponential(call.kind));
}
Matrix WeightWatch::run(const GatedActivationCall& call) {
  return bent(call, has_exponential(call.form.activation));
}
Matrix WeightWatch::run(const SoftmaxCall& call) {
  return bent(call);
}
Matrix WeightWatch::run(const ConvolutionCall& call) {
  return bent(call, call.silu);
}
Matrix WeightWatch::run(const DeltaRuleCall& call) {
  return bent(call);
}
Matrix WeightWatch::run(const StateSpaceCall& call) {
  return bent(call);
}
Matrix WeightWatch::run(const GatedNormCall& call) {
  return bent(call, call.gate_form != GateForm::identity);
}
Matrix WeightWatch::run(const OutputGateCall& call) {
  return bent(call, call.form != GateForm::identity);
}
Matrix WeightWatch::soft_cap(const Matrix& x, double cap) {
  open_.bends = true;
  return PassingOps::soft_cap(x, cap);
}

}  // namespace assay
