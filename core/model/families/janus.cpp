// Janus: it sees through a SigLIP of its own, and draws: what it tells of an image are words of a VQ-GAN. As transformers
// saves it, and as DeepSeek's own code (github.com/deepseek-ai/Janus) publishes Janus 1.3B and Janus-Pro.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/timm_towers.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// fc1, and matrices as wide as what it gives.
Module aligner(std::string path, const Quantity& in, const Quantity& out, std::uint64_t depth) {
  Module module{std::move(path), "projector", {}, {}, {}};
  Tower(module, Part::projector).matrix("fc1", in, out, true);
  if (depth <= 1) return module;
  Module hidden = layers("hidden_layers.{layer}", "matrices", all_layers(Quantity(depth - 1)));
  hidden.tensors.clear();
  Tower(hidden, Part::projector).matrix("", out, out, true);
  for (TensorSpec& spec : hidden.tensors) spec.name = spec.name.substr(1);  // of no name of its own
  module.children.push_back(std::move(hidden));
  return module;
}

void add_eye(ConfigReader& vision, ModuleTree& tree) {
  const Quantity hidden = vision.size("hidden_size", 1024), patch = vision.size("patch_size", 16);
  const Quantity side("image_size / patch_size", vision.size("image_size", 384).value() / patch.value());
  const auto wide =
      static_cast<std::uint64_t>(static_cast<double>(hidden.value()) * vision.real("mlp_ratio", 4, 0, 1024));
  const bool bias = vision.flag("attention_bias", true), normed = vision.flag("use_qk_norm", false);
  Module tower{"model.vision_model", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .tensor("embeddings.patch_embedding.weight", {hidden, vision.size("num_channels", 3), patch, patch})
      .tensor("embeddings.patch_embedding.bias", {hidden})
      .tensor("embeddings.position_embedding.weight", {side * side, hidden})
      .norm("post_layernorm", hidden, true);
  Module blocks =
      layers("encoder.layers.{layer}", "blocks", all_layers(read_layers(vision, "num_hidden_layers", 24)));
  Tower block(blocks, Part::vision);
  for (const char* matrix : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"})
    block.matrix(matrix, hidden, hidden, bias);
  if (normed) block.norm("self_attn.q_norm", hidden, true).norm("self_attn.k_norm", hidden, true);
  block.matrix("self_attn.projection_layer", hidden, hidden, true)
      .norm("layer_norm1", hidden, true)
      .norm("layer_norm2", hidden, true)
      .matrix("mlp.fc1", hidden, {"hidden_size × mlp_ratio", wide}, true)
      .matrix("mlp.fc2", {"hidden_size × mlp_ratio", wide}, hidden, true);
  tower.children.push_back(std::move(blocks));
  add_tower(tree, std::move(tower));
  add_tower(tree, aligner("model.aligner", hidden, vision.size("projection_dim", 2048),
                          vision.size("depth", 2).value()));
}

// The convolutions of a VQ-GAN, all with biases.
class Painter {
 public:
  explicit Painter(Module& module) : tower_(module, Part::vision) {}
  void convolve(const std::string& name, const Quantity& in, const Quantity& out, std::uint64_t side) {
    tower_.tensor(name + ".weight", {out, in, side, side}).tensor(name + ".bias", {out});
  }
  void norm(const std::string& name, const Quantity& channels) { tower_.norm(name, channels, true); }
  void residual_block(const std::string& path, const Quantity& in, const Quantity& out) {
    norm(path + ".norm1", in);
    convolve(path + ".conv1", in, out, 3);
    norm(path + ".norm2", out);
    convolve(path + ".conv2", out, out, 3);
    if (in.value() != out.value()) convolve(path + ".nin_shortcut", in, out, 1);
  }
  void attention(const std::string& path, const Quantity& channels) {
    norm(path + ".norm", channels);
    for (const char* name : {".q", ".k", ".v", ".proj_out"}) convolve(path + name, channels, channels, 1);
  }
  void middle(const std::string& path, const std::array<std::string, 3>& parts, const Quantity& channels) {
    residual_block(path + "." + parts[0], channels, channels);
    attention(path + "." + parts[1], channels);
    residual_block(path + "." + parts[2], channels, channels);
  }

 private:
  Tower tower_;
};

struct VqNames {
  std::string path, down, up, block;
  std::array<std::string, 3> middle;
};

struct VqGan {
  VqNames names;
  Quantity base, latent, in, out, embedding, words;
  std::vector<std::uint64_t> multipliers;
  std::uint64_t blocks;
  bool doubled;
  bool words_of_it =
      true;  // what it tells are words of a table; else numbers (a VAE), and its narrowest level attends to nothing
  Quantity channels(std::size_t level) const { return Quantity(multipliers[level]) * base; }
};

// One level: its blocks, those of the narrowest with attention, and a convolution to the next level.
void add_level(Painter& painter, const VqGan& gan, const std::string& path, std::uint64_t blocks,
               const Quantity& in, std::size_t level, const std::string& resampled) {
  const Quantity out = gan.channels(level);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    painter.residual_block(path + "." + gan.names.block + "." + std::to_string(i), i == 0 ? in : out, out);
    if (gan.words_of_it && level + 1 == gan.multipliers.size())
      painter.attention(path + ".attn." + std::to_string(i), out);
  }
  if (!resampled.empty()) painter.convolve(path + "." + resampled + ".conv", out, out, 3);
}

Module vq_gan(const VqGan& gan) {
  const std::size_t levels = gan.multipliers.size();
  const Quantity narrow = gan.channels(levels - 1);
  const VqNames& names = gan.names;
  Module module{names.path, "VQ-GAN", {}, {}, {}};
  Painter painter(module);
  painter.convolve("encoder.conv_in", gan.in, gan.base, 3);
  for (std::size_t i = 0; i < levels; ++i)
    add_level(painter, gan, "encoder." + names.down + "." + std::to_string(i), gan.blocks,
              i == 0 ? gan.base : gan.channels(i - 1), i, i + 1 < levels ? "downsample" : "");
  painter.middle("encoder.mid", names.middle, narrow);
  painter.norm("encoder.norm_out", narrow);
  painter.convolve("encoder.conv_out", narrow, Quantity(gan.doubled ? 2 : 1) * gan.latent, 3);
  painter.convolve("decoder.conv_in", gan.latent, narrow, 3);
  painter.middle("decoder.mid", names.middle, narrow);
  for (std::size_t i = 0; i < levels; ++i) {  // from the narrowest
    const std::size_t level = levels - 1 - i;
    const std::size_t place = gan.words_of_it ? i : level;  // where it stands in the list
    add_level(painter, gan, "decoder." + names.up + "." + std::to_string(place), gan.blocks + 1,
              i == 0 ? narrow : gan.channels(level + 1), level, level > 0 ? "upsample" : "");
  }
  painter.norm("decoder.norm_out", gan.channels(0));
  painter.convolve("decoder.conv_out", gan.channels(0), gan.out, 3);
  if (!gan.words_of_it) return module;
  painter.convolve("quant_conv", gan.latent, gan.embedding, 1);
  painter.convolve("post_quant_conv", gan.embedding, gan.latent, 1);
  Tower(module, Part::vision).tensor("quantize.embedding.weight", {gan.words, gan.embedding});
  return module;
}

}  // namespace

void add_janus(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config"), drawn(document, tree, "vq_config");
  if (!vision || !drawn) return;
  add_eye(*vision, tree);
  VqGan gan{{"model.vqmodel", "down", "up", "block", {"block_1", "attn_1", "block_2"}},
            drawn->size("base_channels", 128),
            drawn->size("latent_channels", 256),
            drawn->size("in_channels", 3),
            drawn->size("out_channels", 3),
            drawn->size("embed_dim", 8),
            drawn->size("num_embeddings", 16384),
            {1, 1, 2, 2, 4},
            drawn->size("num_res_blocks", 2).value(),
            drawn->flag("double_latent", false)};
  if (const auto given = drawn->numbers("channel_multiplier")) gan.multipliers = *given;
  drawn->require(!gan.multipliers.empty() && gan.multipliers.size() <= 64 && gan.blocks <= 64,
                 "more levels than an image has");
  add_tower(tree, vq_gan(gan));
  const Quantity width = drawn->size("projection_dim", 2048);
  add_bare(tree, "model.generation_embeddings.weight", {gan.words, gan.embedding});
  add_tower(tree, aligner("model.generation_aligner", gan.embedding, width,
                          drawn->size("num_hidden_layers", 2).value()));
  Module head{"model.generation_head", "head that draws", {}, {}, {}};
  Tower(head, Part::projector)
      .matrix("proj_out", drawn->size("image_token_embed_dim", 2048), width, true)
      .matrix("vision_head", width, gan.words, true);
  add_tower(tree, std::move(head));
}

namespace {

// What a part of DeepSeek's own configs is made with: its class, and arguments of that.
void with_params(ConfigReader& document, ModuleTree& tree, const std::string& key,
                 const std::function<void(ConfigReader& params, const std::string& made_as)>& fill) {
  TowerConfig part(document, tree, key);
  if (!part) return;
  TowerConfig params(*part, tree, "params");
  document.require(static_cast<bool>(params), key + ".params is missing");
  fill(*params, part->text("cls", ""));
}

struct SiglipSizes {
  std::string_view name;
  std::uint64_t width, depth, wide, patch;
};
// siglip_vit.py; the MLPs of So400m are 3.7362 times as wide as the rest.
constexpr std::array<SiglipSizes, 3> kSiglips = {{{"siglip_large_patch16_384", 1024, 24, 4096, 16},
                                                  {"siglip_so400m_patch14_384", 1152, 27, 4304, 14},
                                                  {"siglip_so400m_patch14_224", 1152, 27, 4304, 14}}};

// select_layer: how many blocks are made, or, where it is not above 0, how many from the end the last one stands.
std::uint64_t blocks_made(const ConfigReader& params, std::uint64_t depth) {
  const double selected = params.real("select_layer", -2, -1000, 1000);
  const double made = selected > 0 ? selected : static_cast<double>(depth) + selected + 1;
  params.require(made >= 1 && made == std::floor(made), "select_layer leaves no block");
  return std::min(depth, static_cast<std::uint64_t>(made));
}

void add_own_eye(ConfigReader& params, const std::string& made_as, ModuleTree& tree) {
  params.require(made_as.find("CLIPVisionTower") != std::string::npos,
                 "cls: a vision tower of the class \"" + made_as + "\" is not described");
  const std::string name = params.text("model_name", "siglip_large_patch16_384");
  const auto sizes = std::find_if(kSiglips.begin(), kSiglips.end(),
                                  [&](const SiglipSizes& known) { return known.name == name; });
  params.require(sizes != kSiglips.end(), "model_name: \"" + name + "\" is not described");
  const Quantity side("image_size / patch_size", params.size("image_size", 336).value() / sizes->patch);
  params.require(side.value() > 0, "image_size is less than a patch");
  add_tower(tree, timm_vit({.width = sizes->width,
                            .depth = blocks_made(params, sizes->depth),
                            .wide = sizes->wide,
                            .patch = sizes->patch,
                            .places = side * side,
                            .pooled = true},
                           "vision_model.vision_tower"));
}

// projector.py: matrices with an activation between each two.
void add_own_aligner(ConfigReader& params, const std::string& path, ModuleTree& tree) {
  const std::string type = params.text("projector_type", "mlp_gelu");
  params.require(type == "mlp_gelu", "projector_type: \"" + type + "\" is not described");
  const Quantity in = params.size("input_dim"), out = params.size("n_embed");
  const std::uint64_t depth = params.size("depth", 1).value();
  params.require(depth <= 100, "depth asks for more than 100 matrices");
  Module module{path, "projector", {}, {}, {}};
  for (std::uint64_t i = 0; i < depth; ++i)
    Tower(module, Part::projector).matrix("layers." + std::to_string(2 * i), i == 0 ? in : out, out, true);
  add_tower(tree, std::move(module));
}

void add_own_drawing(ConfigReader& params, const std::string& made_as, ModuleTree& tree) {
  params.require(made_as == "VQ-16", "cls: a VQ-GAN of the class \"" + made_as + "\" is not described");
  Module module = vq_gan({{"gen_vision_model", "conv_blocks", "conv_blocks", "res", {"0", "1", "2"}},
                          128,
                          256,
                          3,
                          3,
                          8,
                          16384,
                          {1, 1, 2, 2, 4},
                          2,
                          false});
  add_buffer(module, "quantize.codebook_used", {65536});
  add_tower(tree, std::move(module));
  add_bare(tree, "gen_embed.weight", {params.size("image_token_size"), params.size("n_embed")});
}

}  // namespace

void add_flux_autoencoder(ModuleTree& tree) {
  VqGan gan{{"", "down", "up", "block", {"block_1", "attn_1", "block_2"}},
            128,
            16,
            3,
            3,
            0,
            0,
            {1, 2, 4, 4},
            2,
            true,
            false};
  Module module = vq_gan(gan);
  module.title = "VAE it draws with";
  add_tower(tree, std::move(module));
}

// DeepSeek-VL 1.3B is of the same class, and draws nothing.
void add_janus_own(ConfigReader& document, ModuleTree& tree) {
  document.require(!document.has("vision_und_enc_config|vision_gen_enc_config|vision_gen_dec_config"),
                   "JanusFlow, whose images flow out of noise, is not described");
  document.require(document.has("vision_config") && document.has("aligner_config"),
                   "vision_config or aligner_config is missing");
  with_params(document, tree, "vision_config",
              [&](ConfigReader& params, const std::string& made_as) { add_own_eye(params, made_as, tree); });
  with_params(document, tree, "aligner_config",
              [&](ConfigReader& params, const std::string&) { add_own_aligner(params, "aligner", tree); });
  with_params(document, tree, "gen_vision_config", [&](ConfigReader& params, const std::string& made_as) {
    add_own_drawing(params, made_as, tree);
  });
  with_params(document, tree, "gen_aligner_config", [&](ConfigReader& params, const std::string&) {
    add_own_aligner(params, "gen_aligner", tree);
  });
  with_params(document, tree, "gen_head_config", [&](ConfigReader& params, const std::string&) {
    const Quantity in = params.size("n_embed"), between = params.size("image_token_embed");
    Module head{"gen_head", "head that draws", {}, {}, {}};
    Tower(head, Part::projector)
        .matrix("output_mlp_projector", in, between, true)
        .matrix("vision_head", between, params.size("image_token_size"), true);
    add_tower(tree, std::move(head));
  });
}

}  // namespace assay::families
