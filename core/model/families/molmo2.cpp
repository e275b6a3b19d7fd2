// Molmo2 (Ai2): a Qwen3 or an OLMo-3 with names of its own and rows for new tokens behind the table of the others, behind
// a ViT whose deep layers are pooled by attention. Source: transformers 5.23 (molmo2) with the names of the checkpoints.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/families/all_2026.h"
#include "core/model/families/forward.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace molmo2 {
namespace {

using namespace blocks;

struct Heads {
  Quantity hidden, q_width, kv_width;
  bool bias;
};

Heads read_heads(ConfigReader& config) {
  const Quantity dim = config.size("head_dim", 72);
  return {config.size("hidden_size", 1152), config.size("num_attention_heads", 16) * dim,
          config.size("num_key_value_heads", 16) * dim, config.flag("attention_bias", true)};
}

void add_heads(Tower& tower, const std::string& path, const Heads& heads, const Quantity& in) {
  tower.matrix(path + ".wq", in, heads.q_width, heads.bias)
      .matrix(path + ".wk", in, heads.kv_width, heads.bias)
      .matrix(path + ".wv", in, heads.kv_width, heads.bias)
      .matrix(path + ".wo", heads.q_width, heads.hidden, heads.bias);
}

// Layers of the ViT whose outputs are pooled; below zero: from its end.
std::vector<std::uint64_t> read_layers_pooled(ConfigReader& adapter, const Quantity& depth) {
  const auto count = static_cast<std::int64_t>(depth.value());
  std::vector<std::uint64_t> layers;
  const ParsedJson& keys = adapter.config().text();
  for (const char* key : {"vision_feature_layer", "vit_layers"}) {
    const auto list = keys.find(key);
    if (list == keys.end() || !list->is_array() || !layers.empty()) continue;
    for (const ParsedJson& one : *list) {
      const bool fits = one.is_number_integer() && one >= -count && one < count;
      adapter.require(fits, std::string(key) + " names a layer that the ViT does not have");
      const auto layer = one.get<std::int64_t>();
      layers.push_back(static_cast<std::uint64_t>(layer < 0 ? layer + count : layer));
    }
  }
  return layers.empty() ? std::vector<std::uint64_t>{24, 18} : layers;
}

// Released weights end with the deepest layer that the adapter reads; their configs count the whole ViT (vit_config).
Quantity stored_layers(const Quantity& all, bool released, const std::vector<std::uint64_t>& read) {
  if (!released) return all;
  return {"max(vit_layers) + 1", *std::max_element(read.begin(), read.end()) + 1};
}

std::uint64_t places_of(ConfigReader& vision) {
  using Sides = std::vector<std::uint64_t>;
  const Sides sides = vision.numbers("image_size|image_default_input_size").value_or(Sides{378, 378});
  const std::uint64_t patch = vision.size("patch_size|image_patch_size", 14).value();
  vision.require(sides.size() == 2, "image_size does not name two sides");
  return (sides[0] / patch) * (sides[1] / patch);
}

Module vit(ConfigReader& vision, const Quantity& depth) {
  const Heads heads = read_heads(vision);
  const Quantity patch = vision.size("patch_size|image_patch_size", 14);
  const Quantity inner = vision.size("intermediate_size", 4304);
  Module tower{"model.vision_backbone.image_vit", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .matrix("patch_embedding", patch * patch * vision.size("num_channels", 3), heads.hidden, true)
      .tensor("positional_embedding",
              {vision.size("num_position_embeddings|image_num_pos", places_of(vision)), heads.hidden});
  Module blocks = layers("transformer.resblocks.{layer}", "blocks", all_layers(depth));
  Tower block(blocks, Part::vision);
  block.norm("attention_norm", heads.hidden, true).norm("ffn_norm", heads.hidden, true);
  add_heads(block, "attention", heads, heads.hidden);
  block.matrix("feed_forward.w1", heads.hidden, inner, true)
      .matrix("feed_forward.w2", inner, heads.hidden, true);
  tower.children = {std::move(blocks)};
  return tower;
}

void add_adapter(ConfigReader& adapter, ModuleTree& tree, std::uint64_t read) {
  const Heads heads = read_heads(adapter);
  const Quantity inner = adapter.size("intermediate_size", 18944);
  const bool bias = adapter.flag("mlp_bias", false);
  Module projector{"model.vision_backbone", "adapter", {}, {}, {}};
  Tower tower(projector, Part::projector);
  add_heads(tower, "image_pooling_2d", heads, Quantity(read) * heads.hidden);
  tower.matrix("image_projector.w1", heads.hidden, inner, bias)
      .matrix("image_projector.w3", heads.hidden, inner, bias)
      .matrix("image_projector.w2", inner, adapter.size("text_hidden_size", 3584), false);
  tree.towers.push_back(std::move(projector));
}

void add_sight(ConfigReader& config, ModuleTree& tree) {
  const bool released = config.config().section("vit_config").has_value();
  TowerConfig vision(config, tree, released ? "vit_config" : "vision_config");
  TowerConfig adapter(config, tree, "adapter_config");
  if (!vision || !adapter) return;
  const Quantity depth = read_layers(*vision, "num_hidden_layers", 25);
  const std::vector<std::uint64_t> read = read_layers_pooled(*adapter, depth);
  tree.towers.push_back(vit(*vision, stored_layers(depth, released, read)));
  add_adapter(*adapter, tree, read.size());
}

// The table of the tokenizer's own tokens, and that of those which were added for images.
void add_table(ConfigReader& config, const Decoder& d, ModuleTree& tree) {
  const Quantity added = config.size("additional_vocab_size", 128);
  Module table{"model.transformer.wte", "embedding", {}, {}, {}};
  table.tensors = {parameter("embedding", {d.vocabulary, d.hidden}, Role::token_embedding, Part::embedding),
                   parameter("new_embedding", {added, d.hidden}, Role::token_embedding, Part::embedding)};
  tree.modules.push_back(std::move(table));
}

void describe(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(config, tree,
                           {.vocabulary = 151936,
                            .hidden = 4096,
                            .intermediate = 12288,
                            .layers = 36,
                            .heads = 32,
                            .kv_heads = 8,
                            .head_dim = 128});
  d.tied = tree.tied_embeddings = false;  // the head has no rows for tokens that are never written
  HeadAttention a = d.attention();
  a.qk_norm = config.text("qk_norm_type", "qwen3") == "olmo" ? QkNorm::full_width : QkNorm::per_head;
  a.qkv_bias = config.flag("attention_bias|qkv_bias", false);
  a.fused = "att_proj", a.o = "attn_out";
  GatedMlp mlp = d.mlp();
  mlp.fused = "ff_proj", mlp.down = "ff_out";
  Module layer = layers("model.transformer.blocks.{layer}", "layers", all_layers(d.layers));
  const bool behind = config.flag("norm_after", false);
  add_norm(layer, "attn_norm", d.hidden, behind ? Role::post_attention_norm : Role::input_norm);
  add_norm(layer, "ff_norm", d.hidden, behind ? Role::post_feedforward_norm : Role::pre_feedforward_norm);
  layer.children = {attention(a), gated_mlp(mlp)};
  add_table(config, d, tree);
  tree.modules.push_back(std::move(layer));
  tree.modules.push_back(norm("model.transformer.ln_f", d.hidden, Role::final_norm));
  tree.modules.push_back(
      output_head("lm_head", d.vocabulary, d.hidden, d.tied, "model.transformer.wte.embedding"));
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  add_sight(config, tree);
}

constexpr ForwardClass kForward = {.rope = {.context = 36864}, .epsilon_key = "rms_norm_eps|layer_norm_eps"};

// Layers outside of rope_scaling_layers rotate by the same base, unstretched.
Hyperparameters forward(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kForward);
  const auto stretched = config.numbers("rope_scaling_layers");
  if (!stretched) return h;
  RopeRule plain = h.ropes.front();
  plain.type = RopeRule::Type::standard;
  h.ropes.push_back(plain);
  for (std::uint64_t i = 0; i < tree.layers; ++i) {
    if (std::find(stretched->begin(), stretched->end(), i) == stretched->end()) h.rope_of.at(i) = 1;
  }
  return h;
}

constexpr std::string_view kArchitectures[] = {"Molmo2ForConditionalGeneration"};
constexpr std::string_view kTypes[] = {"molmo2", "molmo2_text"};

}  // namespace
}  // namespace molmo2

const Family kMolmo2 = {"molmo2", "Molmo2",         molmo2::kArchitectures, molmo2::kTypes,
                        {},       molmo2::describe, molmo2::forward};

}  // namespace assay::families
