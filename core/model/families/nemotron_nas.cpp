// Llama-Nemotron Super and Ultra: a Llama 3 from which a search has cut attention and narrowed MLPs, layer by layer
// (block_configs). Code: modeling_decilm.py of the releases.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/forward_2026.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Block {
  enum class Kind { none, linear, full } attention = Kind::full, mlp = Kind::full;
  std::uint64_t heads_in_group = 1;  // query heads to one of keys
  std::uint64_t intermediate = 0;
};

// Two thirds of the multiple, up to whole 256s.
std::uint64_t mlp_width(double multiple, std::uint64_t hidden) {
  const auto width = static_cast<std::uint64_t>(2 * multiple * static_cast<double>(hidden) / 3);
  return (width + 255) / 256 * 256;
}

Block::Kind kind_of(ConfigReader& side) {
  if (side.flag("no_op", false)) return Block::Kind::none;
  return side.flag("replace_with_linear", false) ? Block::Kind::linear : Block::Kind::full;
}

std::vector<Block> read_blocks(ConfigReader& config, const Decoder& d) {
  auto sections = config.config().text_sections("block_configs");
  config.require(sections.size() >= d.layers.value(),
                 fmt::format("block_configs lists {} layers, {} says {}", sections.size(), d.layers.name(),
                             d.layers.value()));
  sections.erase(sections.begin() + static_cast<std::ptrdiff_t>(d.layers.value()), sections.end());
  std::vector<Block> blocks;
  for (const ModelConfig& section : sections) {
    Block block;
    const auto attends = section.section("attention"), mlp = section.section("ffn");
    config.require(attends && mlp, "an entry of block_configs lacks attention or ffn");
    ConfigReader attention_side(*attends, "block_configs.attention"), mlp_side(*mlp, "block_configs.ffn");
    block.attention = kind_of(attention_side);
    block.mlp = kind_of(mlp_side);
    if (block.attention == Block::Kind::full) {
      const Quantity group = attention_side.size("n_heads_in_group");
      config.require_divides(group, d.heads);
      block.heads_in_group = group.value();
    }
    if (block.mlp == Block::Kind::full) {
      const auto width = mlp_side.optional_number("intermediate_size");
      const auto multiple = mlp_side.optional_real("ffn_mult", 1e-3, 1e3);
      config.require(width || multiple,
                     "an entry of block_configs has neither ffn_mult nor intermediate_size");
      block.intermediate = width ? *width : mlp_width(*multiple, d.hidden.value());
      config.require(block.intermediate > 0, "an entry of block_configs has an MLP without width");
    }
    blocks.push_back(block);
  }
  return blocks;
}

std::string title_of(const Block& b) {
  const std::string attends = b.attention == Block::Kind::none ? "no attention"
                              : b.attention == Block::Kind::linear
                                  ? "a linear map for attention"
                                  : fmt::format("{} heads a group", b.heads_in_group);
  return "layers, " + attends + ", " +
         (b.mlp == Block::Kind::none     ? "no MLP"
          : b.mlp == Block::Kind::linear ? "a linear map for MLP"
                                         : fmt::format("MLP of {}", b.intermediate));
}

Module linear_map(const std::string& path, const std::string& name, const Quantity& hidden, Role role,
                  Part part) {
  Module module{path, std::string(title(part)), {}, {}, {}};
  add_linear(module, {.name = name, .in = hidden, .out = hidden, .role = role, .part = part});
  return module;
}

HeadAttention attention_of(const Decoder& d, const Block& b, bool bias) {
  HeadAttention a = d.attention();
  a.kv_heads = Quantity("heads / n_heads_in_group", d.heads.value() / b.heads_in_group);
  a.qkv_bias = a.output_bias = bias;
  return a;
}

void describe_nemotron_nas(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(
      config, tree, {.vocabulary = 128256, .hidden = 8192, .intermediate = 0, .layers = 80, .heads = 64},
      HeadDim::unused);
  d.head_dim = config.quotient(d.hidden, d.heads, "head_dim");
  const bool bias = config.flag("attention_bias", false), mlp_bias = config.flag("mlp_bias", false);
  const std::vector<Block> found = read_blocks(config, d);
  const auto fill = [&](Module& layer, std::uint64_t i) {
    const Block& b = found[i];
    if (b.attention != Block::Kind::none) add_norm(layer, "input_layernorm", d.hidden, Role::input_norm);
    if (b.attention == Block::Kind::full) layer.children.push_back(attention(attention_of(d, b, bias)));
    if (b.attention == Block::Kind::linear)
      layer.children.push_back(
          linear_map("self_attn", "linear_attn", d.hidden, Role::attention_output, Part::attention));
    if (b.mlp != Block::Kind::none)
      add_norm(layer, "post_attention_layernorm", d.hidden, Role::pre_feedforward_norm);
    if (b.mlp == Block::Kind::linear)
      layer.children.push_back(linear_map("mlp", "linear_mlp", d.hidden, Role::mlp_down, Part::dense_mlp));
    if (b.mlp != Block::Kind::full) return;
    GatedMlp mlp{d.hidden, Quantity("ffn_mult × hidden_size × 2 / 3", b.intermediate)};
    mlp.bias = mlp_bias;
    layer.children.push_back(gated_mlp(mlp));
  };
  add_frame(tree, d,
            group_layers(
                "model.layers.{layer}", d.layers, [&](std::uint64_t i) { return title_of(found[i]); }, fill));
  std::vector<std::uint64_t> groups;
  for (const Block& b : found) {
    if (b.attention == Block::Kind::full &&
        std::find(groups.begin(), groups.end(), b.heads_in_group) == groups.end())
      groups.push_back(b.heads_in_group);
  }
  for (const std::uint64_t group : groups) {
    const auto has = [&](std::uint64_t i) {
      return found[i].attention == Block::Kind::full && found[i].heads_in_group == group;
    };
    Block one;
    one.heads_in_group = group;
    tree.attention.push_back(geometry(attention_of(d, one, bias), layers_where(d.layers, has)));
  }
}

constexpr std::string_view kNasArchitectures[] = {"DeciLMForCausalLM"};
constexpr std::string_view kNasTypes[] = {"nemotron-nas"};

}  // namespace

const Family kNemotronNas = {
    "nemotron_nas",        "Llama-Nemotron Super, Ultra", kNasArchitectures, kNasTypes, {},
    describe_nemotron_nas, forward_nemotron_nas};

}  // namespace assay::families
