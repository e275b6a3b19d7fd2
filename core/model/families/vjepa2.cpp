// V-JEPA 2, which sees films: a ViT over tubelets without a table of places, what guesses the encoding of hidden ones, and
// attention that pools, where it tells classes. Source: transformers 5.23.
#include "core/model/families/all_watchers.h"
#include "core/model/families/encoder_heads.h"
#include "core/model/families/image_parts.h"

namespace assay::families {
namespace {

using namespace blocks;

Quantity jepa_width(ConfigReader& config, const std::string& key, const Quantity& hidden) {
  const auto wide =
      static_cast<std::uint64_t>(static_cast<double>(hidden.value()) * config.real(key, 4, 1e-3, 1000));
  config.require(wide > 0, key + " leaves no width");
  return {key + " × width", wide};
}

Module jepa_layers(ConfigReader& config, const std::string& path, const Quantity& depth,
                   const Quantity& hidden, const Quantity& wide) {
  EncoderBlock block{hidden, wide};
  block.q = "attention.query", block.k = "attention.key", block.v = "attention.value";
  block.o = "attention.proj";
  Module blocks = encoder_blocks(path, depth, block, Part::vision);
  if (!config.flag("qkv_bias", true)) {
    std::erase_if(blocks.tensors, [](const TensorSpec& spec) {
      return spec.name.starts_with("attention.") && spec.name.ends_with(".bias") &&
             !spec.name.starts_with("attention.proj.");
    });
  }
  return blocks;
}

void add_jepa_encoder(ConfigReader& config, ModuleTree& tree, const std::string& prefix,
                      const Quantity& hidden) {
  const Sides patch = pixel_sides(config, "patch_size", 16);
  const std::string path = prefix + "encoder";
  const Quantity depth = read_layers(config, "num_hidden_layers", 24);
  tree.layers = depth.value();
  tree.modules.push_back(
      jepa_layers(config, path + ".layer.{layer}", depth, hidden, jepa_width(config, "mlp_ratio", hidden)));
  Tower(add_image_module(tree, path, "encoder of films"), Part::vision)
      .tensor("embeddings.patch_embeddings.proj.weight",
              {hidden, config.size("in_chans", 3), config.size("tubelet_size", 2), patch.height, patch.width})
      .tensor("embeddings.patch_embeddings.proj.bias", {hidden})
      .norm("layernorm", hidden, true);
}

void add_jepa_predictor(ConfigReader& config, ModuleTree& tree, const std::string& prefix,
                        const Quantity& hidden) {
  const Quantity narrow = config.size("pred_hidden_size", 384);
  config.require_divides(config.size("pred_num_attention_heads", 12), narrow);
  const std::string path = prefix + "predictor";
  tree.modules.push_back(jepa_layers(config, path + ".layer.{layer}",
                                     read_layers(config, "pred_num_hidden_layers", 12), narrow,
                                     jepa_width(config, "pred_mlp_ratio", narrow)));
  Tower(add_image_module(tree, path, "what guesses the hidden"), Part::vision)
      .tensor("embeddings.mask_tokens", {config.size("pred_num_mask_tokens", 10), 1, 1, narrow})
      .matrix("embeddings.predictor_embeddings", hidden, narrow, true)
      .norm("layernorm", narrow, true)
      .matrix("proj", narrow, hidden, true);
}

// One query looks at what layers made of all patches.
void add_jepa_pooler(ConfigReader& config, ModuleTree& tree, const Quantity& hidden) {
  const Quantity wide = Quantity(4) * hidden;  // by the class, whatever mlp_ratio says
  EncoderBlock block{hidden, wide};
  block.norm1 = "layer_norm1", block.norm2 = "layer_norm2";
  const std::uint64_t depth = config.number("num_pooler_layers", 3);
  config.require(depth <= 1000, "num_pooler_layers is no number of layers");
  if (depth > 0)
    tree.modules.push_back(encoder_blocks("pooler.self_attention_layers.{layer}",
                                          {"num_pooler_layers", depth}, block, Part::vision));
  Tower looks(add_image_module(tree, "pooler", "what pools"), Part::vision);
  looks.tensor("query_tokens", {1, 1, hidden});
  const std::string path = "cross_attention_layer.";
  for (const char* name : {"cross_attn.q_proj", "cross_attn.k_proj", "cross_attn.v_proj"})
    looks.matrix(path + name, hidden, hidden, true);
  looks.norm(path + "layer_norm1", hidden, true)
      .norm(path + "layer_norm2", hidden, true)
      .matrix(path + "mlp.fc1", hidden, wide, true)
      .matrix(path + "mlp.fc2", wide, hidden, true);
}

void describe_vjepa2(ConfigReader& config, ModuleTree& tree) {
  const std::string prefix = add_prefix(config, tree, {"vjepa2.", "VJEPA2"});
  const Quantity hidden = config.size("hidden_size", 1024);
  config.require_divides(config.size("num_attention_heads", 16), hidden);
  tree.hidden_size = hidden.value();
  add_jepa_encoder(config, tree, prefix, hidden);
  add_jepa_predictor(config, tree, prefix, hidden);
  if (prefix.empty()) return;
  add_jepa_pooler(config, tree, hidden);
  add_image_classifier(config, tree, {"classifier"}, hidden);
}

constexpr std::string_view kVjepa2Architectures[] = {"VJEPA2Model", "VJEPA2ForVideoClassification"},
                           kVjepa2Types[] = {"vjepa2"};

}  // namespace

const Family kVjepa2 = {"vjepa2", "V-JEPA 2", kVjepa2Architectures, kVjepa2Types, {}, describe_vjepa2};

}  // namespace assay::families
