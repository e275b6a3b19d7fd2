// How llama.cpp keeps the language models of Qwen's models that see (conversion/qwenvl.py, qwen3vl.py); their towers are
// another file (mmproj), which is not written here.
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/gguf_transforms.h"

namespace assay::families {
namespace vision_in_gguf {
namespace {

using Keys = GgufRules::Keys;
using Vocabulary = GgufFamily::Vocabulary;
using namespace gguf_transforms;

// Into so many of the first layers the tower's values go.
ParsedJson deepstack_layers(const GgufFacts& facts) {
  const ParsedJson* indexes = facts.find("vision_config.deepstack_visual_indexes");
  return indexes == nullptr ? std::size_t{0} : indexes->size();
}
constexpr GgufOwnKey kQwen3Keys[] = {
    {.key = "n_deepstack_layers", .made = deepstack_layers, .of_tower = true},
};
constexpr GgufOwnKey kQwen3MoeKeys[] = {
    {.key = "expert_feed_forward_length", .config = "moe_intermediate_size"},
    {.key = "n_deepstack_layers", .made = deepstack_layers, .of_tower = true},
};
constexpr GgufOwnName kQwen3MoeNames[] = {
    {"experts.gate_up_proj", "ffn_gate_exps.weight|ffn_up_exps.weight", transposed_halves},
    {"experts.down_proj", "ffn_down_exps.weight", transposed_experts}};
constexpr GgufRules kQwen2Vl = {.base = {.family = "qwen2_vl",
                                         .architecture = "qwen2vl",
                                         .hf_class = "Qwen2VLForConditionalGeneration",
                                         .vocabulary = Vocabulary::sentencepiece_first},
                                .keys_of = Keys::of_config,
                                .rope_types = "mrope"};
constexpr GgufRules kQwen25Vl = {.base = {.family = "qwen2_5_vl",
                                          .architecture = "qwen2vl",
                                          .hf_class = "Qwen2_5_VLForConditionalGeneration",
                                          .told_by = GgufFamily::ToldBy::nothing,
                                          .vocabulary = Vocabulary::sentencepiece_first},
                                 .keys_of = Keys::of_config,
                                 .rope_types = "mrope"};
constexpr GgufRules kQwen3Vl = {.base = {.family = "qwen3_vl",
                                         .architecture = "qwen3vl",
                                         .hf_class = "Qwen3VLForConditionalGeneration",
                                         .vocabulary = Vocabulary::sentencepiece_first},
                                .keys_of = Keys::of_config,
                                .keys = kQwen3Keys,
                                .rope_types = "mrope"};
constexpr GgufRules kQwen3VlMoe = {.base = {.family = "qwen3_vl_moe",
                                            .architecture = "qwen3vlmoe",
                                            .hf_class = "Qwen3VLMoeForConditionalGeneration"},
                                   .keys_of = Keys::of_config,
                                   .keys = kQwen3MoeKeys,
                                   .names = kQwen3MoeNames,
                                   .rope_types = "mrope"};

constexpr const GgufRules* kGroup[] = {&kQwen2Vl, &kQwen25Vl, &kQwen3Vl, &kQwen3VlMoe};

}  // namespace
}  // namespace vision_in_gguf

GgufGroup gguf_vision() {
  return vision_in_gguf::kGroup;
}

}  // namespace assay::families
