// The decoder around latent attention and DeepSeek's experts, and what the classes that share it have of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "refimpl/models/model.h"

namespace assay {

inline constexpr std::string_view kTransformers = "transformers", kTransformers4 = "transformers-4",
                                  kDeepseek = "deepseek";

struct DeepseekForm {
  RopeLayout index_layout = RopeLayout::half_split;  // of an indexer's heads
  bool softmax_router =
      false;  // Mistral Small 4: V3's groups of softmax scores, computed as other layers are
  bool latents_as_others = false;  // Sarvam: norms on latents have rms_norm_eps, too
  bool masked_is_zero = false;     // experts outside the chosen groups count 0 in the choice
  // dots3-note: sizes, windows and rotation are each layer's own; latents are scaled behind their norms.
  bool by_layer = false;
  // Mistral Large 4: its softmax_router computes in float32, and layers without latents of their own attend to those of
  // these layers. Looked at while the model is made.
  bool router_in_float32 = false;
  std::span<const std::uint64_t> kv_sources = {};
};

extern const ModelRule kDeepseekV4Rule, kLongcatRule;  // decoders of their own: deepseek_v4.cpp, longcat.cpp

// How V3 chooses experts, and V2 where the tree says so; routing of softmax scores is Mistral Small 4's.
GateRule deepseek_gate(const ModuleTree& tree, std::string_view variant = kTransformers,
                       bool softmax_router = false);
// Of scores of attention, where YaRN stretches the context: m(mscale_all_dim)².
double yarn_score_factor(const RopeRule& rope);

std::unique_ptr<LanguageModel> make_deepseek(const Weights& weights, const ModelOptions& options,
                                             const DeepseekForm& form = {});

}  // namespace assay
