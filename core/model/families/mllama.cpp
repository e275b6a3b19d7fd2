// Llama 3.2 Vision: a Llama some of whose layers attend to an image's patches instead of the text, and a tower of two
// encoders. Source: transformers 5.23 (mllama), with the names of the checkpoints.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/families/all_2026.h"
#include "core/model/families/forward_2026.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// Its keys and values are an image's, computed once for all tokens that follow: they do not grow with the text.
void add_cross_layer(Module& layer, const Decoder& d) {
  HeadAttention a = d.attention();
  a.path = "cross_attn";
  a.qk_norm = QkNorm::per_head;
  layer.tensors.push_back(parameter("cross_attn_attn_gate", {1}, Role::layer_scale, Part::norm));
  layer.tensors.push_back(parameter("cross_attn_mlp_gate", {1}, Role::layer_scale, Part::norm));
  layer.children = {attention(a), gated_mlp(d.mlp())};
}

Module gated_blocks(ConfigReader& vision, const std::string& path, std::string_view depth_key,
                    std::uint64_t depth, bool gated) {
  EncoderBlock block{vision.size("hidden_size", 1280), vision.size("intermediate_size", 5120)};
  block.norm1 = "input_layernorm", block.norm2 = "post_attention_layernorm";
  block.o = "self_attn.o_proj", block.attention_bias = false;
  Module blocks =
      encoder_blocks(path + ".layers.{layer}", read_layers(vision, depth_key, depth), block, Part::vision);
  if (gated) Tower(blocks, Part::vision).tensor("gate_attn", {1}).tensor("gate_ffn", {1});
  return blocks;
}

// An image comes in tiles, whose arrangement has embeddings of its own.
void add_tiled_tower(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 1280), patch = vision->size("patch_size", 14);
  const Quantity side("image_size / patch_size", vision->size("image_size", 448).value() / patch.value());
  const Quantity patches = side * side + Quantity(1), tiles = vision->size("max_num_tiles", 4);
  const auto ratios = vision->config().text().find("supported_aspect_ratios");
  const bool told = ratios != vision->config().text().end() && ratios->is_array();
  const Quantity arrangements("aspect ratios + 1", (told ? ratios->size() : 8) + 1);
  Module tower{"vision_model", "vision tower", {}, {}, {}};
  Tower start(tower, Part::vision);
  start.tensor("class_embedding", {hidden})
      .tensor("patch_embedding.weight", {hidden, vision->size("num_channels", 3), patch, patch})
      .tensor("gated_positional_embedding.embedding", {patches, hidden})
      .tensor("gated_positional_embedding.gate", {1})
      .tensor("gated_positional_embedding.tile_embedding.weight", {arrangements, tiles * patches * hidden});
  for (const std::string name : {"pre_tile_positional_embedding", "post_tile_positional_embedding"})
    start.tensor(name + ".embedding.weight", {arrangements, tiles * hidden}).tensor(name + ".gate", {1});
  start.norm("layernorm_pre", hidden, true).norm("layernorm_post", hidden, true);
  tower.children = {gated_blocks(*vision, "transformer", "num_hidden_layers", 32, false),
                    gated_blocks(*vision, "global_transformer", "num_global_layers", 8, true)};
  Module projector{"", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("multi_modal_projector", vision->size("vision_output_dim", 7680), text_hidden, true);
  tree.towers.push_back(std::move(tower));
  tree.towers.push_back(std::move(projector));
}

void describe_mllama(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(config, tree,
                           {.vocabulary = 128256,
                            .hidden = 4096,
                            .intermediate = 14336,
                            .layers = 40,
                            .heads = 32,
                            .kv_heads = 8});
  d.head_dim = config.quotient(d.hidden, d.heads, "head_dim");
  d.tied = tree.tied_embeddings = false;  // the class ties nothing: its embedding has rows for images
  const auto crossing = config.numbers("cross_attention_layers")
                            .value_or(std::vector<std::uint64_t>{3, 8, 13, 18, 23, 28, 33, 38});
  const auto crosses = [&](std::uint64_t i) {
    return std::find(crossing.begin(), crossing.end(), i) != crossing.end();
  };
  // The language model's class by itself sees nothing, and its names stand under nothing.
  const bool alone = config.config().architecture() == "MllamaForCausalLM";
  const std::string before = alone ? "" : "language_model.", prefix = before + "model.";
  const auto groups = group_layers(
      prefix + "layers.{layer}", d.layers,
      [&](std::uint64_t i) { return crosses(i) ? "layers that attend to images" : "layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        if (crosses(i)) return add_cross_layer(layer, d);
        layer.children = {attention(d.attention()), gated_mlp(d.mlp())};
      });
  const Quantity vocabulary = d.vocabulary;
  add_frame(tree, d, groups, frame_under(prefix, before + "lm_head"));
  tree.modules.front() = embedding(prefix + "embed_tokens", vocabulary + Quantity(8), d.hidden);
  for (const bool images : {false, true}) {
    const auto where = layers_where(d.layers, [&](std::uint64_t i) { return crosses(i) == images; });
    if (where.empty()) continue;
    AttentionGeometry g = geometry(d.attention(), where);
    g.cached = !images;
    tree.attention.push_back(std::move(g));
  }
  if (alone) {
    tree.aliases = {{prefix, "language_model.model."}, {"lm_head.", "language_model.lm_head."}};
    return;
  }
  add_tiled_tower(config, tree, d.hidden);
  tree.aliases = {{prefix, "model.language_model."},
                  {before + "lm_head.", "lm_head."},
                  {"vision_model.", "model.vision_model."},
                  {"multi_modal_projector.", "model.multi_modal_projector."}};
}

constexpr std::string_view kMllamaArchitectures[] = {"MllamaForConditionalGeneration", "MllamaForCausalLM"};
constexpr std::string_view kMllamaTypes[] = {"mllama", "mllama_text_model"};

}  // namespace

const Family kMllama = {"mllama", "Llama 3.2 Vision", kMllamaArchitectures, kMllamaTypes,
                        {},       describe_mllama,    forward_mllama};

}  // namespace assay::families
