#include "paramcount/tower_cut.h"

#include <algorithm>

#include "core/numeric/ceil_div.h"

namespace assay {
namespace {

using Names = std::string_view[];

constexpr Names kQwen2 = {"Qwen2VLForConditionalGeneration"};
constexpr Names kQwen2Outputs = {"attn.qkv", "mlp.fc1", "merger.mlp.0"},
                kQwen2Inputs = {"attn.proj", "mlp.fc2", "merger.mlp.2"};

constexpr Names kQwen25 = {"Qwen2_5_VLForConditionalGeneration"};
constexpr Names kQwen25Outputs = {"attn.qkv", "mlp.gate_proj", "mlp.up_proj", "merger.mlp.0"},
                kQwen25Inputs = {"attn.proj", "mlp.down_proj", "merger.mlp.2"};

constexpr Names kQwen3 = {"Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration",
                          "Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration"};
constexpr Names kQwen3Outputs = {"attn.qkv", "linear_fc1"}, kQwen3Inputs = {"attn.proj", "linear_fc2"};

constexpr Names kGlm4v = {"Glm4vForConditionalGeneration", "Glm4vMoeForConditionalGeneration"};
constexpr Names kGlm4vOutputs = {"attn.qkv",    "mlp.gate_proj",    "mlp.up_proj",
                                 "merger.proj", "merger.gate_proj", "merger.up_proj"},
                kGlm4vInputs = {"attn.proj", "mlp.down_proj", "merger.down_proj"};

constexpr Names kLlama4 = {"Llama4ForConditionalGeneration"};
constexpr Names kLlama4Outputs = {"self_attn.q_proj",       "self_attn.k_proj",
                                  "self_attn.v_proj",       "mlp.fc1",
                                  "patch_embedding.linear", "multi_modal_projector.linear_1"},
                kLlama4Inputs = {"self_attn.o_proj", "mlp.fc2"};

constexpr Names kSiglip = {"Gemma3ForConditionalGeneration", "PaliGemmaForConditionalGeneration"};
constexpr Names kSiglipOutputs = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.fc1"},
                kSiglipInputs = {"self_attn.out_proj", "mlp.fc2"};

constexpr Names kPixtral = {"Mistral3ForConditionalGeneration"};
constexpr Names kPixtralOutputs = {"attention.q_proj",     "attention.k_proj",
                                   "attention.v_proj",     "feed_forward.gate_proj",
                                   "feed_forward.up_proj", "multi_modal_projector.linear_1"},
                kPixtralInputs = {"attention.o_proj", "feed_forward.down_proj",
                                  "multi_modal_projector.linear_2"};

constexpr Names kIntern = {"InternVLChatModel"};
constexpr Names kInternOutputs = {"attn.qkv", "mlp.fc1"}, kInternInputs = {"attn.proj", "mlp.fc2"};

constexpr Names kMoonVit = {"KimiK25ForConditionalGeneration", "KimiK3ForConditionalGeneration"};
constexpr Names kMoonVitOutputs = {"wqkv", "mlp.fc0"}, kMoonVitInputs = {"wo", "mlp.fc1"};

constexpr Names kMiniMax = {"MiniMaxM3SparseForConditionalGeneration"};
constexpr Names kMiniMaxOutputs = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.fc1",
                                   "linear_1"},
                kMiniMaxInputs = {"self_attn.out_proj", "mlp.fc2", "linear_2"};

constexpr TowerClass kClasses[] = {
    {kQwen2, 16, ".attn.", kQwen2Outputs, kQwen2Inputs},
    {kQwen25, 16, ".attn.", kQwen25Outputs, kQwen25Inputs},
    {kQwen3, 16, ".attn.", kQwen3Outputs, kQwen3Inputs},
    {kGlm4v, 12, ".attn.", kGlm4vOutputs, kGlm4vInputs},
    {kLlama4, 16, ".self_attn.", kLlama4Outputs, kLlama4Inputs},
    {kSiglip, 12, ".self_attn.", kSiglipOutputs, kSiglipInputs},
    {kPixtral, 16, ".attention.", kPixtralOutputs, kPixtralInputs},
    {kIntern, 25, ".attn.", kInternOutputs, kInternInputs},
    {kMoonVit, 16, ".wqkv.", kMoonVitOutputs, kMoonVitInputs},
    {kMiniMax, 16, ".self_attn.", kMiniMaxOutputs, kMiniMaxInputs},
};

std::string_view module_of(const TensorSpec& spec) {
  return std::string_view(spec.name).substr(0, spec.name.rfind('.'));
}

// Ends with one of `ends`, at a dot.
bool is_among(std::string_view module, std::span<const std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) {
    return module.ends_with(end) &&
           (module.size() == end.size() || module[module.size() - end.size() - 1] == '.');
  });
}

}  // namespace

const TowerClass* tower_class(std::string_view architecture) {
  for (const TowerClass& c : kClasses)
    if (std::find(c.architectures.begin(), c.architectures.end(), architecture) != c.architectures.end())
      return &c;
  return nullptr;
}

TowerCut::TowerCut(const ModuleTree& tree, const Layout& layout, const EngineAt& engine, bool whole)
    : tp_(layout.tp) {
  const auto has = [&](Rule rule) { return find_rule(engine, rule, tree.architecture) != nullptr; };
  if (!has(Rule::tower_cut)) return;
  class_ = tower_class(tree.architecture);
  if (class_ == nullptr) return;
  heads_ = tree.vision_heads == 0 ? class_->heads : tree.vision_heads;
  const bool told = whole && has(Rule::tower_data);
  whole_ = tp_ == 1 || told || (!heads_divide() && has(Rule::tower_whole));
  attention_whole_ = !heads_divide() && has(Rule::tower_attention_whole);
}

bool TowerCut::of_attention(const TensorSpec& spec) const {
  return class_ != nullptr && spec.name.find(class_->attention) != std::string::npos;
}

std::optional<std::size_t> TowerCut::dimension(const TensorSpec& spec) const {
  if (whole_ || (attention_whole_ && of_attention(spec))) return std::nullopt;
  const std::string_view module = module_of(spec);
  if (is_among(module, class_->outputs)) return 0;
  // What is added to sums of all ranks is added once.
  if (!spec.bias && spec.shape.size() == 2 && is_among(module, class_->inputs)) return 1;
  return std::nullopt;
}

std::vector<std::uint64_t> TowerCut::rank_shape(const TensorSpec& spec) const {
  std::vector<std::uint64_t> shape = spec.shape;
  if (const auto at = dimension(spec)) shape[*at] = ceil_div(shape[*at], tp_);
  return shape;
}

}  // namespace assay
