// IBM's Granites that see: Granite Docling, a SigLIP whose early layers reach the language model's first ones (DeepStack), by
// a coarse path and, in the 500M, a fine one; Granite 4 Vision, whose image reaches layers of the language model each through
// a Q-Former over windows of patches. Source: transformers 5.24 (granite_docling, granite4_vision).
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "core/model/families/all_more.h"
#include "core/model/families/encoder_towers.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// Patches that are joined in squares of `side`, and of the layers listed as many mergers.
Module docling_path(ConfigReader& vision, std::string path, const Quantity& side, std::uint64_t deep) {
  const Quantity in = side * side * vision.size("hidden_size", 768);
  const Quantity out = vision.size("out_hidden_size", 1024);
  Module module{std::move(path), "path", {}, {}, {}};
  Tower(module, Part::projector).matrix("projection", in, out, false);
  if (deep == 0) return module;
  Module mergers = layers("deepstack_mergers.{layer}", "mergers", all_layers(Quantity(deep)));
  Tower(mergers, Part::projector)
      .norm("layer_norm", in, true)
      .matrix("linear_1", in, out, true)
      .matrix("linear_2", out, out, true);
  module.children.push_back(std::move(mergers));
  return module;
}

Module docling_connector(ConfigReader& vision) {
  const Quantity hidden = vision.size("hidden_size", 768), out = vision.size("out_hidden_size", 1024);
  const auto listed = vision.numbers("deepstack_visual_indexes");
  const std::uint64_t deep = listed ? listed->size() : 3;
  vision.require(deep <= 1000, "deepstack_visual_indexes lists more layers than an encoder has");
  const Quantity side = vision.size("scale_factor", 4);
  Module connector{"model.vision_model.connector", "connector", {}, {}, {}};
  Tower(connector, Part::projector)
      .norm("ln_in", hidden, true)
      .norm("ln_mid", out, true)
      .matrix("mlp_fc2", out, out, false)
      .norm("ln_out", out, true);
  connector.children.push_back(docling_path(vision, "coarse", side, deep));
  if (vision.flag("use_fine_route", true)) {
    const Quantity half("scale_factor / 2", side.value() / 2);
    vision.require(half.value() > 0, "scale_factor is 1, of which the fine path has no half");
    connector.children.push_back(docling_path(vision, "fine", half, deep));
  }
  return connector;
}

}  // namespace

namespace {

void describe_docling_text(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 133800,
                          .hidden = 1024,
                          .intermediate = 2048,
                          .layers = 28,
                          .heads = 16,
                          .kv_heads = 4,
                          .tied = true},
                .mlp_bias_keys = "mlp_bias"});
}

constexpr std::string_view kDoclingTextTypes[] = {"granite_docling_text"};

}  // namespace

const Family kDoclingText = {"granite_docling_text", "Granite Docling (text)", {}, kDoclingTextTypes, {},
                             describe_docling_text};

void add_granite_docling(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  constexpr SiglipClass kClass = {.image = 512};
  add_tower(tree, siglip_tower(*vision, "model.vision_model", kClass));
  add_tower(tree, docling_connector(*vision));
  const auto router = document.optional_size("density_router_hidden_size");
  if (!router) return;
  const Quantity hidden = vision->size("hidden_size", 768);
  Module chooses{"model.density_router", "router between paths", {}, {}, {}};
  Tower(chooses, Part::projector)
      .matrix("att", hidden, 1, true)
      .norm("norm", hidden, true)
      .matrix("fc1", hidden, *router, true)
      .matrix("fc2", *router, 1, true);
  add_tower(tree, std::move(chooses));
}

namespace {

// "4/8": four queries a side look at eight patches a side.
struct Windows {
  Quantity queries, patches;
};
Windows read_query_windows(ConfigReader& document) {
  const std::string rate = document.text("downsample_rate", "");
  const std::size_t bar = rate.find('/');
  const auto side = [&](std::string_view digits, const char* name) -> Quantity {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    document.require(
        error == std::errc() && end == digits.data() + digits.size() && value > 0 && value < 10'000,
        fmt::format("downsample_rate is \"{}\", not two sides like \"4/8\"", rate));
    return {name, value};
  };
  const std::string_view both = rate;
  const bool split = bar != std::string::npos;
  return {side(split ? both.substr(0, bar) : "", "queries a side"),
          side(split ? both.substr(bar + 1) : "", "patches a side")};
}

}  // namespace

void add_granite4_vision(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision || !add_encoder(*vision, tree, "model.vision_tower", "clip_vision_model")) return;
  // The class overwrites the Q-Former's widths by the encoder's; one layer that sees, where the config has no Q-Former.
  const Quantity hidden = vision->size("hidden_size", 768), out = text_width(tree);
  TowerConfig former(document, tree, "qformer_config");
  document.require(
      !former || !former->flag("use_qformer_text_input", false),
      "qformer_config.use_qformer_text_input is true: Granite 4 Vision has been described without");
  QFormer of{hidden, 3072, hidden, 1};
  if (former) {
    of.wide = former->size("intermediate_size", 3072);
    of.depth = read_layers(*former, "num_hidden_layers", 12);
    of.every = former->size("cross_attention_frequency", 2).value();
  }
  const Windows windows = read_query_windows(document);
  const auto add_projectors = [&](const char* list, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      Module each{fmt::format("model.{}.{}", list, i), "projector of windows", {}, {}, {}};
      Tower(each, Part::projector)
          .norm("norm", hidden, true)
          .tensor("query", {1, windows.queries * windows.queries, hidden})
          .tensor("image_positions", {1, windows.patches * windows.patches, hidden})
          .matrix("out_linear", hidden, out, true);
      each.children = {q_former(of)};
      add_tower(tree, std::move(each));
    }
  };
  const ParsedJson& keys = document.config().document();
  const auto map = keys.find("deepstack_layer_map");
  document.require(map != keys.end() && map->is_array() && map->size() <= 1000,
                   "deepstack_layer_map lists no pairs of layers");
  add_projectors("layerwise_projectors", map->size());
  add_projectors("spatial_projectors", 4);  // of every other patch, by row and by column
  add_bare(tree, "model.image_newline", {out});
}

}  // namespace assay::families
