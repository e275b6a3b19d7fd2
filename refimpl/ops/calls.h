// The arguments of each operation as one value: what models ask for, what kernels take, are measured with and
// sabotaged by. A call names its operation (kOp) and what comes of it (Result).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "refimpl/ops/arithmetic.h"
#include "refimpl/ops/matrix.h"
#include "refimpl/ops/weight_view.h"

namespace assay {

using TokenId = std::uint32_t;

// Under arithmetics that round to bfloat16: some results stay float32 in the references (a router's logits).
enum class ResultRounding : std::uint8_t { as_arithmetic, float32 };

// y = x / rms(x) · w. What is rounded before the weight comes in differs from family to family:
//   weight_last     round(round(x / rms) · w)        Llama, Qwen, DeepSeek
//   weight_inside   round(x / rms · w)               gpt-oss, OLMo-2
//   one_plus_weight round(x / rms · (1 + w))         Gemma
enum class NormForm : std::uint8_t { weight_last, weight_inside, one_plus_weight };

// Which elements of a head rotate together: (i, i + d/2), or (2i, 2i + 1).
enum class RopeLayout : std::uint8_t { half_split, interleaved };
struct RopeCall {
  std::size_t heads = 1, head_dim = 0;
  std::size_t offset = 0;  // where the rotary part of a head begins
  Matrix cos, sin;         // [tokens, rotary part / 2]: it is 2 · cos.columns() wide
  RopeLayout layout = RopeLayout::half_split;
};

enum class Activation : std::uint8_t {
  silu,       // x σ(x)
  gelu,       // x Φ(x)
  gelu_tanh,  // ½ x (1 + tanh(√(2/π) (x + 0.044715 x³)))
  relu,
  gpt_oss,       // only gated: g = min(gate, limit), u = clamp(up, ±limit): g σ(1.702 g) (u + 1)
  relu_squared,  // max(x, 0)²
  sigmoid,
  // The rest of what transformers has a name for and no weight.
  gelu_cut,       // gelu_tanh, whose √(2/π) is written with ten digits
  gelu_clipped,   // gelu within ±10
  gelu_logistic,  // x σ(1.702 x)
  tanh,
  identity,
  relu6,          // relu up to 6
  leaky_relu,     // below 0, x / 100
  hard_silu,      // x relu6(x + 3) / 6
  mish,           // x tanh(ln(1 + eˣ))
  laplace,        // ½ (1 + erf((x - 0.707107) / (0.282095 √2)))
  softplus_root,  // √(ln(1 + eˣ))
};
struct GatedActivation {
  Activation activation = Activation::silu;
  double limit = 7;  // gpt_oss
};

// Rows of keys or values of one sequence in one layer, by position. Page p of the sequence is page
// pages[p] of `base`; without a table all rows lie on end.
struct PagedKvView {
  Matrix base;                          // [pages × page_rows, width], or [capacity, width]
  const std::int32_t* pages = nullptr;  // in ordinary memory
  std::size_t page_rows = 0;
  std::size_t row(std::size_t position) const {
    if (pages == nullptr) return position;
    return static_cast<std::size_t>(pages[position / page_rows]) * page_rows + position % page_rows;
  }
};

// The queries of one sequence within a batch, and the keys they may look at: query i of `queries` stands at
// position keys - queries + i and sees keys 0 … that position (causal, aligned at the end), of these the last
// `window` only.
struct SequenceMetadata {
  std::size_t first = 0, queries = 0;  // rows of AttentionCall::q
  std::size_t keys = 0;                // in the cache, this step's included
  PagedKvView key_rows, value_rows;    // [keys, kv_heads · qk_dim], [keys, kv_heads · v_dim]
};
struct AttentionCall {
  using Result = Matrix;
  static constexpr std::string_view kOp = "attention";
  Matrix q;  // [tokens, heads · qk_dim]
  std::vector<SequenceMetadata> sequences;
  std::size_t heads = 0, kv_heads = 0, qk_dim = 0, v_dim = 0;
  double scale = 1;
  std::size_t window = 0;  // how many keys a query sees, itself included; 0: all
  double soft_cap = 0;     // 0: none; else scores become cap · tanh(score / cap), before the mask
  WeightView sinks;        // [heads], or none: a score that takes its share and gives no value
  // Of each head, or none: a score gets slope · key's position, after its scale (ALiBi, arXiv 2108.12409).
  std::vector<double> slopes = {};
};

// Multi-head latent attention (DeepSeek-V2, §2.1): the cache holds [latent | rotary key part] a token, and
// kv_b expands a latent to the keys' unrotated parts and the values of all heads, head by head.
//   naive     keys and values are expanded, then attention as ever
//   absorbed  queries are taken to the latent space, attention is over 1 shared head, its result taken back
enum class MlaForm : std::uint8_t { naive, absorbed };
struct MlaCall {
  using Result = Matrix;
  static constexpr std::string_view kOp = "mla";
  Matrix q;                                 // [tokens, heads · (nope_dim + rope_dim)], rotated already
  std::vector<SequenceMetadata> sequences;  // key_rows: [keys, kv_rank + rope_dim]; value_rows unused
  WeightView kv_b;                          // [heads · (nope_dim + v_dim), kv_rank]
  WeightView k_b, v_b;  // in place of kv_b, as GGUF has them: [heads · kv_rank, nope_dim] and
                        // [heads · v_dim, kv_rank]
  std::size_t heads = 0, kv_rank = 0, nope_dim = 0, rope_dim = 0, v_dim = 0;
  double scale = 1;
  MlaForm form = MlaForm::absorbed;
};

// How a router's logits become experts and weights.
struct GateRule {
  enum class Score : std::uint8_t { softmax, sigmoid };
  enum class GroupScore : std::uint8_t { largest, sum_of_two };
  Score score = Score::softmax;
  bool top_k_first = false;  // softmax over the chosen logits only (gpt-oss)
  std::size_t top_k = 1;
  bool renormalize = false;  // weights /= their sum + epsilon
  double epsilon = 0;        // transformers' DeepSeek: 1e-20
  double scale = 1;          // routed_scaling_factor
  std::size_t groups = 1, chosen_groups = 1;
  GroupScore group_score = GroupScore::largest;
  bool masked_is_zero = false;  // of groups not chosen: score 0 (transformers 4), else -inf
  ResultRounding rounding = ResultRounding::float32;  // of the weights
};
struct Routing {
  std::size_t top_k = 0;
  std::vector<std::int32_t> experts;  // [tokens, top_k], in ordinary memory; best first
  Matrix weights;                     // [tokens, top_k]
};

// The matrices of all experts of a layer: gate and up, or the two fused in gate_up.
struct ExpertWeights {
  std::vector<WeightView> gate, up, gate_up, down;
  std::vector<WeightView> gate_bias, up_bias, gate_up_bias, down_bias;  // empty: none
  bool interleaved = false;  // gate_up: rows gate, up, gate, up … (gpt-oss), not all gates first
  GatedActivation form;
};
// sparse: each expert sees its tokens only. dense: all experts see all tokens, weights of those not chosen
// are 0. soft: as dense, and the routing names every expert. Sums run over a token's experts in the order of
// their numbers.
enum class MoeForm : std::uint8_t { sparse, dense, soft };

// Quantized activations: codes with a scale for 1 × block_columns of them (0: the whole row).
struct QuantizeRule {
  ElementType codes = ElementType::F8_E4M3;  // or F8_E5M2, I8
  std::size_t block_rows = 1;                // 0: all rows
  std::size_t block_columns = 128;           // 0: the whole row
  bool power_of_two = false;                 // scales rounded up to 2^n (ue8m0)
};
struct QuantizedMatrix {
  QuantizeRule rule;
  std::size_t rows = 0, columns = 0;
  std::vector<std::byte> codes;
  std::vector<float> scales;  // [ceil(rows / block_rows), ceil(columns / block_columns)]
};

// Rows of a table: [tokens, hidden]
struct EmbeddingCall {
  using Result = Matrix;
  static constexpr std::string_view kOp = "embedding";
  std::vector<TokenId> tokens;
  WeightView table;
};

// x · Wᵀ + bias: [tokens, outputs]
struct LinearCall {
  using Result = Matrix;
  static constexpr std::string_view kOp = "linear";
  Matrix x;
  WeightView weight, bias;
  ResultRounding rounding = ResultRounding::as_arithmetic;
};

// Over groups of `weight.columns` columns: a whole row, or each head of it.
struct RmsNormCall {
  using Result = Matrix;
  static constexpr std::string_view kOp = "rms_norm";
  Matrix x;
  WeightView weight;
  double epsilon = 0;
  NormForm form = NormForm::weight_last;
};

struct LayerNormCall {
  using Result = Matrix;
  static constexpr std::string_view kOp = "layer_norm";
  Matrix x;
  WeightView weight, bias;
  double epsilon = 0;
};

// Changes x, which is the result.
struct RotaryCall {
  using Result = Matrix;
  static constexpr std::string_view kOp = "rope";
  Matrix x;
  RopeCall angles;
};

struct ActivationCall {
  using Result = Matrix;
  static constexpr std::string_view kOp = "activation";
  Matrix x;
  Activation kind = Activation::silu;
};

struct GatedActivationCall {
  using Result = Matrix;
  static constexpr std::string_view kOp = "gated_activation";
  Matrix gate, up;
  GatedActivation form;
};

// Over each row.
struct SoftmaxCall {
  using Result = Matrix;
  static constexpr std::string_view kOp = "softmax";
  Matrix x;
};

struct MoeGateCall {
  using Result = Routing;
  static constexpr std::string_view kOp = "moe_gate";
  Matrix logits;
  WeightView correction;
  GateRule rule;
};

struct FusedMoeCall {
  using Result = Matrix;
  static constexpr std::string_view kOp = "fused_moe";
  Matrix x;
  Routing routing;
  ExpertWeights experts;
  MoeForm form = MoeForm::sparse;
};

struct QuantizeCall {
  using Result = QuantizedMatrix;
  static constexpr std::string_view kOp = "quantize";
  Matrix x;
  QuantizeRule rule;
};

struct DequantizeCall {
  using Result = Matrix;
  static constexpr std::string_view kOp = "dequantize";
  QuantizedMatrix x;
};

template <class Call>
using ResultOf = typename Call::Result;

}  // namespace assay
