// How llama.cpp keeps Llama-Nemotron Super and Ultra (conversion/deci.py): a Llama of whose layers some have no attention, or
// a matrix in its place, and MLPs of widths of their own, or none. Heads and widths are lists.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/families/gguf.h"
#include "core/model/families/gguf_back.h"
#include "core/model/gguf_own_keys.h"
#include "core/model/gguf_transforms.h"

namespace assay::families {
namespace nemotron_nas_in_gguf {
namespace {

using Form = GgufOwnKey::Form;
using Keys = GgufRules::Keys;

// `of` the tensor of that ending in each layer, 0 where there is none.
template <class Of>
ParsedJson by_layer(const GgufFacts& facts, std::string_view ending, const Of& of) {
  ParsedJson list = ParsedJson::array();
  for (std::uint64_t i = 0; i < facts.tree.layers; ++i) list.push_back(0U);
  for_each_spec(facts.tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (!where.main() || !spec.name.ends_with(ending)) return;
    for (const Module* module : where.path) {
      if (module->repeat.over != Repeat::Over::layers) continue;
      for (const std::uint64_t layer : module->repeat.indices) list[layer] = of(spec);
    }
  });
  return list;
}
std::uint64_t width_of_head(const GgufFacts& facts) {
  return facts.tree.attention.empty() ? 0 : facts.tree.attention.front().qk_head_dim;
}
ParsedJson key_heads(const GgufFacts& facts) {
  const std::uint64_t width = std::max<std::uint64_t>(1, width_of_head(facts));
  return by_layer(facts, "self_attn.k_proj.weight",
                  [&](const TensorSpec& spec) { return spec.shape.front() / width; });
}
// Those of a matrix in the place of attention are all there would be.
ParsedJson heads(const GgufFacts& facts) {
  const auto all = static_cast<std::uint64_t>(facts.number("num_attention_heads", 64));
  return by_layer(facts, "input_layernorm.weight", [&](const TensorSpec&) { return all; });
}
ParsedJson widths(const GgufFacts& facts) {
  return by_layer(facts, "mlp.gate_proj.weight", [](const TensorSpec& spec) { return spec.shape.front(); });
}
ParsedJson theta(const GgufFacts& facts) {
  return facts.rope_number("rope_theta", 10000);
}
ParsedJson head_width(const GgufFacts& facts) {
  return width_of_head(facts);
}
constexpr GgufOwnKey kKeys[] = {
    {.key = "rope.freq_base", .form = Form::f32, .made = theta},
    {.key = "attention.head_count_kv", .form = Form::i32s, .made = key_heads},
    {.key = "attention.head_count", .form = Form::i32s, .made = heads},
    {.key = "feed_forward_length", .form = Form::i32s, .made = widths},
    {.key = "block_count", .config = "num_hidden_layers"},
    {.key = "context_length", .config = "max_position_embeddings"},
    {.key = "embedding_length", .config = "hidden_size"},
    {.key = "attention.layer_norm_rms_epsilon", .form = Form::f32, .config = "rms_norm_eps"},
    {.key = "attention.key_length", .made = head_width},
    {.key = "attention.value_length", .made = head_width},
    {.key = "general", .form = Form::file_type},
    {.key = "vocab_size", .config = "vocab_size"},
    {.key = "rope.dimension_count", .made = own_keys::head_width}};
constexpr GgufOwnName kNames[] = {{"mlp.linear_mlp.weight", "ffn_down", gguf_transforms::refused}};
constexpr GgufRules kNemotronNas = {.base = {.family = "nemotron_nas",
                                             .architecture = "deci",
                                             .hf_class = "DeciLMForCausalLM",
                                             .paired_heads = true,
                                             .writes_rope_factors = true},
                                    .keys_of = Keys::own,
                                    .keys = kKeys,
                                    .names = kNames,
                                    .rope_types = "llama3",
                                    .back = back::nemotron_nas};

constexpr const GgufRules* kGroup[] = {&kNemotronNas};

}  // namespace
}  // namespace nemotron_nas_in_gguf

GgufGroup gguf_nemotron_nas() {
  return nemotron_nas_in_gguf::kGroup;
}

}  // namespace assay::families
