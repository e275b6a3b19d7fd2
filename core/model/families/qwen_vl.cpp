// Qwen2-VL, Qwen2.5-VL: Qwen2 that sees. Qwen3-VL: Qwen3 or Qwen3-MoE that sees, with the experts of a layer stacked
// [experts, in, out].
#include "core/model/families/all.h"
#include "core/model/families/mixture_forward.h"
#include "core/model/families/sparse_layers.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

// transformers saves the language model under this prefix; releases before it wrote none.
void accept_both_prefixes(ModuleTree& tree, const std::string& written, const std::string& other) {
  tree.aliases.push_back({written, other});
}

void describe_2(ConfigReader& config, ModuleTree& tree, bool windowed_tower, const DecoderDefaults& sizes) {
  const Decoder d = read_decoder(config, tree, sizes);
  HeadAttention a = d.attention();
  a.qkv_bias = true;
  const bool windows = config.flag("use_sliding_window", false);
  const auto window = windows ? config.optional_number("sliding_window", 4096) : std::nullopt;
  const std::uint64_t first = window ? config.number("max_window_layers", 80) : 0;
  const auto windowed =
      windowed_layers(config, d.layers, [&](std::uint64_t i) { return window.has_value() && i >= first; });
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), gated_mlp(d.mlp())};
  add_frame(tree, d, {layer});
  add_geometry(tree, a, d.layers, windowed, window.value_or(0));
  add_qwen2_vision(config, tree, "visual", windowed_tower);
  accept_both_prefixes(tree, "model.", "model.language_model.");
  accept_both_prefixes(tree, "visual.", "model.visual.");
}

void describe_qwen2_vl(ConfigReader& config, ModuleTree& tree) {
  describe_2(config, tree, false,
             {.vocabulary = 152064,
              .hidden = 8192,
              .intermediate = 29568,
              .layers = 80,
              .heads = 64,
              .kv_heads = 8});
}
void describe_qwen2_5_vl(ConfigReader& config, ModuleTree& tree) {
  describe_2(config, tree, true,
             {.vocabulary = 152064,
              .hidden = 8192,
              .intermediate = 29568,
              .layers = 80,
              .heads = 64,
              .kv_heads = 8});
}

HeadAttention qwen3_attention(ConfigReader& config, const Decoder& d) {
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  a.qk_norm = QkNorm::per_head;
  return a;
}

void describe_qwen3_vl(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 151936,
                                  .hidden = 4096,
                                  .intermediate = 22016,
                                  .layers = 32,
                                  .heads = 32,
                                  .kv_heads = 32,
                                  .head_dim = 128});
  const HeadAttention a = qwen3_attention(config, d);
  Module layer = layers("model.language_model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), gated_mlp(d.mlp())};
  add_frame(tree, d, {layer}, frame_under("model.language_model."));
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  add_qwen_vision(config, tree, "model.visual", 3);
}

void describe_qwen3_vl_moe(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 151936,
                                  .hidden = 2048,
                                  .intermediate = 5632,
                                  .layers = 24,
                                  .heads = 16,
                                  .kv_heads = 16});
  const HeadAttention a = qwen3_attention(config, d);
  Mixture m{d.hidden,
            read_experts(config, tree, "num_experts|num_local_experts", 60, "num_experts_per_tok", 4),
            config.size("moe_intermediate_size", 1408)};
  m.stacks = Mixture::Stacks::either_way;
  const auto is_sparse = qwen_sparse_layers(config);
  const auto groups = group_layers(
      "model.language_model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return is_sparse(i) ? "MoE layers" : "dense layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {attention(a), is_sparse(i) ? mixture(m) : gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups, frame_under("model.language_model."));
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  add_qwen_vision(config, tree, "model.visual", 3);
}

constexpr std::string_view k2Architectures[] = {"Qwen2VLForConditionalGeneration"};
constexpr std::string_view k2Types[] = {"qwen2_vl"};
constexpr std::string_view k25Architectures[] = {"Qwen2_5_VLForConditionalGeneration"};
constexpr std::string_view k25Types[] = {"qwen2_5_vl"};
constexpr std::string_view k3Architectures[] = {"Qwen3VLForConditionalGeneration"};
constexpr std::string_view k3Types[] = {"qwen3_vl"};
constexpr std::string_view k3MoeArchitectures[] = {"Qwen3VLMoeForConditionalGeneration"};
constexpr std::string_view k3MoeTypes[] = {"qwen3_vl_moe"};

}  // namespace

const Family kQwen2Vl = {"qwen2_vl", "Qwen2-VL",        k2Architectures, k2Types,
                         {},         describe_qwen2_vl, forward_qwen2_vl};
const Family kQwen25Vl = {"qwen2_5_vl", "Qwen2.5-VL",        k25Architectures,  k25Types,
                          {},           describe_qwen2_5_vl, forward_qwen2_5_vl};
const Family kQwen3Vl = {"qwen3_vl", "Qwen3-VL",        k3Architectures, k3Types,
                         {},         describe_qwen3_vl, forward_qwen3_vl};
const Family kQwen3VlMoe = {
    "qwen3_vl_moe",        "Qwen3-VL with experts", k3MoeArchitectures, k3MoeTypes, {},
    describe_qwen3_vl_moe, forward_qwen3_vl};

}  // namespace assay::families
