// Mimi (Moshi, arXiv:2410.00037, §3.3): SEANet's convolutions, a transformer on either side of what is quantized, and code books,
// of which the first is of meaning. Names and sizes: transformers 5.24, modeling_mimi.py.
#include "core/model/families/codec_mimi.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/families/all_speakers.h"
#include "core/model/families/codec_seanet.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

Module mimi_transformer(ConfigReader& config, const Quantity& hidden, const std::string& path) {
  const Quantity heads = config.size("num_attention_heads", 8), wide = config.size("intermediate_size", 2048);
  const auto told = config.optional_size("head_dim");
  const Quantity dim = told ? *told : config.quotient(hidden, heads, "hidden_size / num_attention_heads");
  const Quantity kv_width = config.size("num_key_value_heads", 8) * dim;
  const bool bias = config.flag("attention_bias", false);
  Module blocks =
      layers(path + ".layers.{layer}", "blocks", all_layers(read_layers(config, "num_hidden_layers", 8)));
  Tower(blocks, Part::audio)
      .matrix("self_attn.q_proj", hidden, heads * dim, bias)
      .matrix("self_attn.k_proj", hidden, kv_width, bias)
      .matrix("self_attn.v_proj", hidden, kv_width, bias)
      .matrix("self_attn.o_proj", heads * dim, hidden, bias)
      .matrix("mlp.fc1", hidden, wide, false)
      .matrix("mlp.fc2", wide, hidden, false)
      .norm("input_layernorm", hidden, true)
      .norm("post_attention_layernorm", hidden, true)
      .tensor("self_attn_layer_scale.scale", {hidden})
      .tensor("mlp_layer_scale.scale", {hidden});
  return blocks;
}

// A vector of a book is its sum over its usage: both are stored, and no gradient meets them.
Module mimi_books(ConfigReader& config, const Quantity& hidden, const std::string& path,
                  std::uint64_t count) {
  const Quantity size = config.size("codebook_size", 2048),
                 dim = config.optional_size("codebook_dim", 256).value_or(hidden);
  const Quantity between = config.size("vector_quantization_hidden_dimension", 256);
  Module books{path, "code books", {}, {}, {}};
  if (between.value() != hidden.value())
    Tower(books, Part::audio)
        .tensor("input_proj.weight", {between, hidden, 1})
        .tensor("output_proj.weight", {hidden, between, 1});
  Module each = layers("layers.{layer}", "books", all_layers(Quantity("num_quantizers", count)));
  Tower(each, Part::audio).tensor("codebook.embed_sum", {size, dim}).tensor("codebook.cluster_usage", {size});
  add_buffer(each, "codebook.initialized", {1});
  books.children = {std::move(each)};
  return books;
}

// How many frames of the convolutions one frame of codes is made of, where they are more than one.
std::uint64_t mimi_stride(ConfigReader& config, const Seanet& of) {
  double hop = 1;
  for (const std::uint64_t ratio : of.ratios) hop *= static_cast<double>(ratio);
  const double sampling = static_cast<double>(config.size("sampling_rate", 24000).value());
  // frame_size: as the convolutions shorten, and half as much again; frame_rate says otherwise where it is stored.
  const double fast = std::ceil(sampling / hop);
  const double slow = config.real("frame_rate|_frame_rate", sampling / (2 * hop), 1e-6, 1e9);
  if (fast == slow) return 0;
  const double stride = std::floor(fast / slow);
  config.require(stride >= 1 && stride <= 4096, "frame_rate is larger than what upsampling_ratios leave");
  return static_cast<std::uint64_t>(stride);
}

}  // namespace

std::vector<Module> mimi_parts(ConfigReader& config, const std::string& path) {
  const std::string before = path.empty() ? "" : path + ".";
  const Seanet of = read_seanet(
      config, {.hidden = 512, .filters = 64, .last_reach = 3, .ratios = {8, 6, 5, 4}, .shortcut = false});
  std::vector<Module> parts = {seanet_encoder(config, of, before + "encoder"),
                               mimi_transformer(config, of.hidden, before + "encoder_transformer")};
  if (const std::uint64_t stride = mimi_stride(config, of); stride > 0) {
    const Quantity groups = config.size("upsample_groups", 512);
    Module rates{path, "rates of frames", {}, {}, {}};
    Tower(rates, Part::audio)
        .tensor("downsample.conv.weight", {of.hidden, of.hidden, Quantity(2 * stride)})
        .tensor("upsample.conv.weight",
                {of.hidden, config.quotient(of.hidden, groups, "hidden_size / upsample_groups"),
                 Quantity(2 * stride)});
    parts.push_back(std::move(rates));
  }
  const std::uint64_t all = config.size("num_quantizers", 32).value(),
                      semantic = config.size("num_semantic_quantizers", 1).value();
  config.require(semantic < all && all <= kMostSeanetLayers,
                 "num_semantic_quantizers is not below num_quantizers");
  const std::string books = before + "quantizer.";
  parts.push_back(mimi_books(config, of.hidden, books + "semantic_residual_vector_quantizer", semantic));
  parts.push_back(
      mimi_books(config, of.hidden, books + "acoustic_residual_vector_quantizer", all - semantic));
  parts.push_back(mimi_transformer(config, of.hidden, before + "decoder_transformer"));
  parts.push_back(seanet_decoder(config, of, before + "decoder"));
  return parts;
}

void add_mimi(ConfigReader& whole, ModuleTree& tree, const std::string& key, const std::string& path) {
  const auto section = whole.config().section(key);
  const ModelConfig class_defaults =
      ModelConfig::from_json(ParsedJson{{"model_type", "mimi"}}, whole.config().source());
  ConfigReader config(section ? *section : class_defaults, key);
  const std::string type = config.text("model_type", "mimi");
  if (type != "mimi") {
    tree.not_counted.push_back({"a codec of the type " + type, std::nullopt});
    return;
  }
  for (Module& part : mimi_parts(config, path)) add_tower(tree, std::move(part));
}

namespace {

void describe_mimi(ConfigReader& config, ModuleTree& tree) {
  tree.modules = mimi_parts(config, "");
  tree.hidden_size = config.size("hidden_size", 512).value();
}

constexpr std::string_view kMimiArchitectures[] = {"MimiModel"}, kMimiTypes[] = {"mimi"};

}  // namespace

const Family kMimi = {"mimi", "Mimi (a codec of sound)", kMimiArchitectures, kMimiTypes, {}, describe_mimi};

}  // namespace assay::families
