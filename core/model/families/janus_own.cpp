// Models of DeepSeek that see, as its own code (github.com/deepseek-ai/Janus, …/DeepSeek-VL) publishes them: Janus 1.3B, Janus-Pro,
// DeepSeek-VL 1.3B and, behind a SAM and a SigLIP, 7B, and JanusFlow, whose images flow out of noise.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "core/model/families/sighted_own_code.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/timm_towers.h"
#include "core/model/families/towers.h"
#include "core/model/families/vq_gan.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

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
constexpr std::array<SiglipSizes, 4> kSiglips = {{{"siglip_large_patch16_384", 1024, 24, 4096, 16},
                                                  {"siglip_large_patch16_256", 1024, 24, 4096, 16},
                                                  {"siglip_so400m_patch14_384", 1152, 27, 4304, 14},
                                                  {"siglip_so400m_patch14_224", 1152, 27, 4304, 14}}};

// select_layer: how many blocks are made, or, where it is not above 0, how many from the end the last one stands.
std::uint64_t blocks_made(const ConfigReader& params, std::uint64_t depth) {
  const double selected = params.real("select_layer", -2, -1000, 1000);
  const double made = selected > 0 ? selected : static_cast<double>(depth) + selected + 1;
  params.require(made >= 1 && made == std::floor(made), "select_layer leaves no block");
  return std::min(depth, static_cast<std::uint64_t>(made));
}

void add_siglip(ConfigReader& params, const std::string& name, const std::string& path, ModuleTree& tree) {
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
                           path));
}

struct SamSizes {
  std::string_view name;
  std::uint64_t width, depth, heads;
  bool narrowed;  // two convolutions behind it
};
// sam.py
constexpr std::array<SamSizes, 4> kSams = {{{"sam_vit_b", 768, 12, 12, false},
                                            {"sam_b_downsample", 768, 12, 12, true},
                                            {"sam_vit_l", 1024, 24, 16, false},
                                            {"sam_vit_h", 1280, 32, 16, false}}};

// One block in each quarter sees all. What leaves the first of these is narrowed by a neck of its own, and weighed.
void add_sam(ConfigReader& params, const std::string& name, const std::string& path, ModuleTree& tree) {
  const auto sizes =
      std::find_if(kSams.begin(), kSams.end(), [&](const SamSizes& known) { return known.name == name; });
  params.require(sizes != kSams.end(), "model_name: \"" + name + "\" is not described");
  const Quantity side("image_size / 16", params.size("image_size", 336).value() / 16);
  params.require(side.value() > 0, "image_size is less than a patch");
  Module tower = sam_of_sizes(
      {.hidden = sizes->width, .depth = sizes->depth, .heads = sizes->heads, .side = side}, path);
  Tower more(tower, Part::vision);
  add_counted_neck(more, "neck_hd", sizes->width, 256);
  more.tensor("hd_alpha_downsamples", {1});
  if (sizes->narrowed)
    more.tensor("downsamples.0.weight", {512, 256, 3, 3}).tensor("downsamples.1.weight", {1024, 512, 3, 3});
  add_tower(tree, std::move(tower));
}

// clip_encoder.py: the model's name tells which.
void add_clip_tower(ConfigReader& params, const std::string& path, ModuleTree& tree) {
  const std::string name = params.text("model_name", "siglip_large_patch16_384");
  if (name.starts_with("sam"))
    add_sam(params, name, path, tree);
  else
    add_siglip(params, name, path, tree);
}

// A tower for large images and one for small ones, each with a norm behind it.
void add_hybrid(ConfigReader& params, ModuleTree& tree) {
  TowerConfig high(params, tree, "high_res_cfg"), low(params, tree, "low_res_cfg");
  params.require(high && low, "high_res_cfg or low_res_cfg is missing");
  add_clip_tower(*high, "vision_model.vision_tower_high.vision_tower", tree);
  add_clip_tower(*low, "vision_model.vision_tower_low.vision_tower", tree);
  Module norms{"vision_model", "norms of what is seen", {}, {}, {}};
  Tower(norms, Part::vision)
      .norm("high_layer_norm", high->size("output_dim", 1024), true)
      .norm("low_layer_norm", low->size("output_dim", 1024), true);
  add_tower(tree, std::move(norms));
}

void add_own_eye(ConfigReader& params, const std::string& made_as, ModuleTree& tree) {
  if (made_as.find("HybridVisionTower") != std::string::npos) return add_hybrid(params, tree);
  params.require(made_as.find("CLIPVisionTower") != std::string::npos,
                 "cls: a vision tower of the class \"" + made_as + "\" is not described");
  add_clip_tower(params, "vision_model.vision_tower", tree);
}

// projector.py: matrices with an activation between each two; the first may be halves, one for each of two towers.
void add_own_aligner(ConfigReader& params, const std::string& path, ModuleTree& tree) {
  const std::string type = params.text("projector_type", "mlp_gelu");
  const bool split = type == "low_high_hybrid_split_mlp_gelu";
  params.require(split || type == "mlp_gelu", "projector_type: \"" + type + "\" is not described");
  const Quantity in = params.size("input_dim"), out = params.size("n_embed");
  const std::uint64_t depth = params.size("depth", 1).value();
  params.require(depth <= 100, "depth asks for more than 100 matrices");
  Module module{path, "projector", {}, {}, {}};
  Tower tower(module, Part::projector);
  if (split) {
    const Quantity half = params.quotient(out, 2, "n_embed / 2");
    tower.matrix("high_up_proj", in, half, true).matrix("low_up_proj", in, half, true);
  } else {
    tower.matrix("layers.0", in, out, true);
  }
  for (std::uint64_t i = 1; i < depth; ++i)
    tower.matrix("layers." + std::to_string(split ? 2 * i - 1 : 2 * i), out, out, true);
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

// uvit.py: ConvNeXt's blocks, which the time of noise scales and shifts.
void add_uvit_blocks(Module& into, ConfigReader& params, const Quantity& channels, const Quantity& hidden,
                     bool bias) {
  if (!params.flag("use_mid_block", true)) return;
  Module blocks = layers("mid_block.res_blocks.{layer}", "blocks",
                         all_layers(read_layers(params, "layers_in_middle", 2)));
  const Quantity wide = Quantity(4) * channels;
  Tower block(blocks, Part::vision);
  block.tensor("depthwise.weight", {channels, 1, 7, 7})
      .norm("norm", channels, false)
      .matrix("channelwise_linear_1", channels, wide, bias)
      .tensor("channelwise_norm.weight", {1, 1, 1, wide})
      .tensor("channelwise_norm.bias", {1, 1, 1, wide})
      .matrix("channelwise_linear_2", wide, channels, bias)
      .matrix("cond_embeds_mapper", hidden, Quantity(2) * channels, bias);
  if (bias) block.tensor("depthwise.bias", {channels});
  into.children.push_back(std::move(blocks));
}

struct UvitChannels {
  Quantity first, last;
};
UvitChannels uvit_channels(ConfigReader& params) {
  const auto listed = params.numbers("block_out_channels").value_or(std::vector<std::uint64_t>{768});
  params.require(!listed.empty() && listed.front() > 0 && listed.back() > 0, "block_out_channels is empty");
  return {{"block_out_channels", listed.front()}, {"block_out_channels", listed.back()}};
}

void add_uvit_encoder(ConfigReader& params, const std::string& made_as, ModuleTree& tree) {
  params.require(made_as.find("ShallowUViTEncoder") != std::string::npos,
                 "cls: an encoder of the class \"" + made_as + "\" is not described");
  const auto [first, last] = uvit_channels(params);
  const Quantity hidden = params.size("hidden_size", 2048), kernel = params.size("kernel_size", 7);
  const bool bias = params.flag("use_bias", true);
  Module module{"vision_gen_enc_model", "encoder of what it draws", {}, {}, {}};
  Tower(module, Part::vision)
      .matrix("time_embed.linear_1", first, hidden, bias)
      .matrix("time_embed.linear_2", hidden, hidden, bias)
      .tensor("in_conv.weight", {first, params.size("input_channels", 3), kernel, kernel})
      .tensor("in_conv.bias", {first});
  add_uvit_blocks(module, params, last, hidden, bias);
  add_tower(tree, std::move(module));
}

void add_uvit_decoder(ConfigReader& params, const std::string& made_as, ModuleTree& tree) {
  params.require(made_as.find("ShallowUViTDecoder") != std::string::npos,
                 "cls: a decoder of the class \"" + made_as + "\" is not described");
  const Quantity last = uvit_channels(params).last, in = params.size("in_channels", 768);
  const Quantity joined = in + last;
  const bool bias = params.flag("use_bias", true);
  const std::uint64_t steps = params.number("upsamples", 2);
  params.require(steps >= 1 && steps <= 16, "upsamples is none, or more than an image has");
  Module module{"vision_gen_dec_model", "decoder of what it draws", {}, {}, {}};
  Tower tower(module, Part::vision);
  tower.norm("input_norm", in, false);
  for (std::uint64_t i = 0; i < steps; ++i) {
    const std::string path = "out_convs." + std::to_string(i);
    const Quantity from = i == 0 ? joined : last,
                   to = Quantity(4) * (i + 1 == steps ? params.size("out_channels", 3) : last);
    tower.norm(path + ".norm", from, false).tensor(path + ".unpatch_conv.weight", {to, from, 1, 1});
    if (bias) tower.tensor(path + ".unpatch_conv.bias", {to});
  }
  add_uvit_blocks(module, params, joined, params.size("hidden_size", 2048), bias);
  add_tower(tree, std::move(module));
}

// The code knows the widths of towers and language model as numbers.
void add_janus_flow(ConfigReader& document, ModuleTree& tree) {
  const Quantity width = text_width(tree), seen = 1024, drawn = 768;
  document.require(width.value() == 2048,
                   "hidden_size of language_config: JanusFlow's code knows 2048 alone");
  with_params(document, tree, "vision_und_enc_config", [&](ConfigReader& params, const std::string& made_as) {
    params.require(made_as.find("CLIPVisionTower") != std::string::npos,
                   "cls: a vision tower of the class \"" + made_as + "\" is not described");
    add_clip_tower(params, "vision_und_enc_model.vision_tower", tree);
  });
  with_params(document, tree, "vision_gen_enc_config", [&](ConfigReader& params, const std::string& made_as) {
    add_uvit_encoder(params, made_as, tree);
  });
  with_params(document, tree, "vision_gen_dec_config", [&](ConfigReader& params, const std::string& made_as) {
    add_uvit_decoder(params, made_as, tree);
  });
  Module projectors{"", "projectors", {}, {}, {}};
  Tower(projectors, Part::projector)
      .matrix("vision_und_enc_aligner", seen, width, true)
      .tensor("beg_of_und_embed", {1, width})
      .matrix("vision_gen_enc_aligner", drawn, width, true)
      .norm("vision_gen_dec_aligner_norm", width, false)
      .matrix("vision_gen_dec_aligner", width, drawn, true);
  add_tower(tree, std::move(projectors));
}

}  // namespace

// DeepSeek-VL is of the same class, and draws nothing.
void add_janus_own(ConfigReader& document, ModuleTree& tree) {
  if (document.has("vision_und_enc_config|vision_gen_enc_config|vision_gen_dec_config"))
    return add_janus_flow(document, tree);
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
