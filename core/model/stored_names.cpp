#include "core/model/stored_names.h"

#include <algorithm>
#include <array>

namespace assay {
namespace {

struct Ending {
  std::string_view suffix, weight;  // what stands in the name; what stands there in the weight's name
  StoredPart part;
};

// Longer endings before those they end with.
constexpr std::array kEndings = {
    // compressed-tensors, ModelOpt, DeepSeek
    Ending{".weight_scale_inv", ".weight", StoredPart::scale},
    Ending{".weight_global_scale", ".weight", StoredPart::scale},
    Ending{".weight_scale_2", ".weight", StoredPart::scale},
    Ending{".weight_scale", ".weight", StoredPart::scale},
    Ending{".input_global_scale", ".weight", StoredPart::scale},
    Ending{".input_scale_ub", ".weight", StoredPart::scale},  // FBGEMM
    Ending{".input_scale", ".weight", StoredPart::scale},
    Ending{".activation_scale", ".weight", StoredPart::scale},
    Ending{".pre_quant_scale", ".weight", StoredPart::scale},
    Ending{".weight_zero_point", ".weight", StoredPart::zero_point},
    Ending{".input_zero_point", ".weight", StoredPart::zero_point},
    Ending{".weight_packed", ".weight", StoredPart::codes},
    Ending{".weight_shape", ".weight", StoredPart::table},
    Ending{".weight_g_idx", ".weight", StoredPart::table},
    // Mistral's own releases
    Ending{".qscale_weight", ".weight", StoredPart::scale},
    Ending{".qscale_act", ".weight", StoredPart::scale},
    // torchao's tensor subclasses, flattened
    Ending{"._weight_qdata", ".weight", StoredPart::codes},
    Ending{"._weight_scale", ".weight", StoredPart::scale},
    Ending{"._weight_zero_point", ".weight", StoredPart::zero_point},
    Ending{"._weight_per_tensor_scale", ".weight", StoredPart::scale},
    Ending{"._weight_scale_and_zero", ".weight", StoredPart::scale},
    Ending{"._weight_act_per_tensor_scale", ".weight", StoredPart::scale},
    Ending{"._weight_act_quant_scale", ".weight", StoredPart::scale},
    Ending{"._weight_act_quant_zero_point", ".weight", StoredPart::zero_point},
    Ending{"._weight_act_pre_scale", ".weight", StoredPart::scale},
    // GPTQ and AWQ; MLX has .scales and .biases beside .weight
    Ending{".qweight", ".weight", StoredPart::codes},
    Ending{".qzeros", ".weight", StoredPart::zero_point},
    Ending{".g_idx", ".weight", StoredPart::table},
    Ending{"_weight.blocks", "_weight", StoredPart::codes},  // gpt-oss as first released
    Ending{"_weight.scales", "_weight", StoredPart::scale},
    Ending{".scales", ".weight", StoredPart::scale},
    Ending{".biases", ".weight", StoredPart::zero_point},
    Ending{".scale", ".weight", StoredPart::scale},  // DeepSeek V4
    // bitsandbytes
    Ending{".weight.nested_absmax", ".weight", StoredPart::scale},
    Ending{".weight.nested_quant_map", ".weight", StoredPart::table},
    Ending{".weight.absmax", ".weight", StoredPart::scale},
    Ending{".weight.quant_map", ".weight", StoredPart::table},
    Ending{".weight.quant_state.bitsandbytes__nf4", ".weight", StoredPart::table},
    Ending{".weight.quant_state.bitsandbytes__fp4", ".weight", StoredPart::table},
    Ending{".SCB", ".weight", StoredPart::scale},
    Ending{".weight_format", ".weight", StoredPart::table},
    // stacked experts: gpt-oss, Llama 4, transformers' FP8; w13_weight_scale of SGLang and vLLM
    Ending{"_proj_blocks", "_proj", StoredPart::codes},
    Ending{"_proj_scales", "_proj", StoredPart::scale},
    Ending{"_proj_weight_scale_inv", "_proj", StoredPart::scale},
    Ending{"_proj_weight_scale_2", "_proj", StoredPart::scale},
    Ending{"_proj_weight_scale", "_proj", StoredPart::scale},
    Ending{"_proj_input_scale", "_proj", StoredPart::scale},
    Ending{"_proj_scale_inv", "_proj", StoredPart::scale},
    Ending{"_proj_scale", "_proj", StoredPart::scale},
    Ending{"_weight_scale_inv", "_weight", StoredPart::scale},
    Ending{"_weight_scale_2", "_weight", StoredPart::scale},
    Ending{"_weight_scale", "_weight", StoredPart::scale},
    Ending{"_input_scale", "_weight", StoredPart::scale},
};

// Scales of the keys and values in the cache: they belong to no weight.
constexpr std::array<std::string_view, 6> kCacheScales = {".k_scale", ".v_scale",      ".kv_scale",
                                                          ".q_scale", ".output_scale", ".prob_scale"};

constexpr std::array<std::string_view, 6> kBufferEndings = {"rotary_emb.inv_freq", "rotary_pos_emb.inv_freq",
                                                            "attn.bias",           "attn.masked_bias",
                                                            ".position_ids",       "rope_freqs.weight"};

}  // namespace

std::optional<StoredName> parse_stored_name(std::string_view name) {
  for (const Ending& ending : kEndings) {
    if (!name.ends_with(ending.suffix)) continue;
    std::string weight(name.substr(0, name.size() - ending.suffix.size()));
    weight += ending.weight;
    std::string_view suffix = ending.suffix;
    suffix.remove_prefix(1);
    return StoredName{std::move(weight), ending.part, suffix};
  }
  for (const std::string_view suffix : kCacheScales) {
    if (name.ends_with(suffix)) return StoredName{{}, StoredPart::scale, suffix.substr(1)};
  }
  return std::nullopt;
}

bool is_known_buffer(std::string_view name) {
  return std::any_of(kBufferEndings.begin(), kBufferEndings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace assay
