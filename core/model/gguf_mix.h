// Which type each tensor of a GGUF file gets: llama.cpp's mixes ("Q4_K_M": mostly Q4_K, some tensors Q6_K),
// as llama-quantize chooses them (src/llama-quant.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/numeric/element_type.h"

namespace assay {

// The number is what `general.file_type` stores (llama.h, enum llama_ftype).
enum class GgufFileType : std::uint32_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q8_0 = 7,
  Q5_0 = 8,
  Q5_1 = 9,
  Q2_K = 10,
  Q3_K_S = 11,
  Q3_K_M = 12,
  Q3_K_L = 13,
  Q4_K_S = 14,
  Q4_K_M = 15,
  Q5_K_S = 16,
  Q5_K_M = 17,
  Q6_K = 18,
  IQ4_NL = 25,
  IQ4_XS = 30,
  BF16 = 32,
  TQ1_0 = 36,
  TQ2_0 = 37,
  MXFP4_MOE = 38,
  NVFP4 = 39,
  Q1_0 = 40,
  Q2_0 = 41,
  MXFP4 = 0x10000 + MXFP4_MOE,  // stored under that number: llama.cpp has one for both
};

// Files whose FP4 is that of the source, block by block: nothing is quantized for them.
inline bool keeps_fp4(GgufFileType type) {
  return type == GgufFileType::NVFP4 || type == GgufFileType::MXFP4;
}
// general.file_type.
inline std::uint32_t stored_number(GgufFileType type) {
  return static_cast<std::uint32_t>(type) & 0xFFFF;
}

// "q4_k_m", "Q4_K_M"; llama-quantize's aliases Q3_K, Q4_K, Q5_K for the _M mixes.
std::optional<GgufFileType> gguf_file_type_from_text(std::string_view text);
std::string_view name(GgufFileType type);
const std::vector<GgufFileType>& gguf_file_types();

// The type of most tensors of such a file.
ElementType gguf_default_type(GgufFileType type);

// What the rules ask about a model; GGUF's keys in parentheses.
struct MixModel {
  std::string architecture;      // general.architecture: "llama", "qwen2", "deepseek2"
  std::uint32_t layers = 0;      // ….block_count, next-token layers included
  std::uint32_t mtp_layers = 0;  // ….nextn_predict_layers
  std::uint32_t experts = 0;     // ….expert_count
  std::uint32_t heads = 0;       // ….attention.head_count, of the first layer
  std::uint32_t heads_kv = 0;    // ….attention.head_count_kv, of the first layer
};

// What they ask about its architecture: core/model/families/mix_architectures.cpp.
struct MixArchitecture {
  std::string_view name = {};
  std::uint32_t layers_of_70b = 0;  // so many are a model that llama.cpp calls 70B; 0: none are
  bool only_grouped_is_70b =
      false;                       // and of these only with fewer key heads than heads, and not eight experts
  bool lean = false;               // fewer bits for attention's outputs and the way down (Falcon)
  bool stacked_attention = false;  // attention's matrices have three dimensions, too, and are no experts
  std::span<const std::string_view> kept_parts = {};       // never quantized, by a part of their name
  std::span<const std::string_view> eight_bit_parts = {};  // Q8_0 in every mix
};
MixArchitecture mix_architecture(std::string_view name);

struct MixTensor {
  std::string name;                       // GGUF's: "blk.0.attn_q.weight"
  std::vector<std::uint64_t> dimensions;  // GGUF's order: columns first
  ElementType stored;  // of the unquantized GGUF file; kept by tensors that are not to be quantized
};

// What llama-quantize is told beside the mix.
struct MixChoices {
  std::function<std::optional<ElementType>(std::string_view tensor)> by_hand = {};  // --tensor-type
  bool importance = false;  // an importance matrix is at hand, which some mixes ask
};

// One type per tensor, in the order given. The rules count tensors ("the first eighth of all attn_v") in the
// order of gguf_tensor_order, whatever order they come in here, so all must come at once. A tensor of a
// mixture of experts whose name holds no valid layer is refused (Error), and one whose rows are no whole
// number of blocks where llama-quantize has no other type for it.
std::vector<ElementType> gguf_mix(GgufFileType type, const MixModel& model,
                                  std::span<const MixTensor> tensors, const MixChoices& choices = {});

// llama-quantize writes tensors by layer (those of none first), then by name, byte for byte.
bool gguf_tensor_order(std::string_view a, std::string_view b);

}  // namespace assay
