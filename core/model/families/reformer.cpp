// Reformer (arXiv:2001.04451): attention among what hashes alike in some layers, where keys are queries, and within chunks in others;
// two streams, which both reach the norm and the head; places by two axes. Source: transformers 5.23 (reformer).
#include <algorithm>

#include "core/model/families/all_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

// A table for each axis, whose widths make up that of the layers.
Module reformer_places(ConfigReader& config, const std::string& prefix, const Quantity& hidden) {
  Module module{prefix + "embeddings.position_embeddings", "places", {}, {}, {}};
  const auto add = [&](std::string name, const std::vector<Quantity>& shape) {
    module.tensors.push_back(parameter(std::move(name), shape, Role::position_embedding, Part::embedding));
  };
  if (!config.flag("axial_pos_embds", true)) {
    add("embedding.weight", {config.size("max_position_embeddings", 4096), hidden});
    return module;
  }
  using Sizes = std::vector<std::uint64_t>;
  const Sizes sides = config.numbers("axial_pos_shape").value_or(Sizes{64, 64});
  const Sizes widths = config.numbers("axial_pos_embds_dim").value_or(Sizes{64, 192});
  config.require(sides.size() == widths.size() && !sides.empty() && sides.size() <= 8,
                 "axial_pos_shape and axial_pos_embds_dim are not of one length");
  Quantity whole = 0;
  for (std::size_t axis = 0; axis < sides.size(); ++axis) {
    config.require(sides[axis] > 0 && widths[axis] > 0, "axial_pos_shape or axial_pos_embds_dim holds a 0");
    std::vector<Quantity> shape(sides.size(), Quantity(1));
    shape[axis] = {"axial_pos_shape", sides[axis]};
    shape.push_back({"axial_pos_embds_dim", widths[axis]});
    add("weights." + std::to_string(axis), shape);
    whole = whole + Quantity(widths[axis]);
  }
  config.require(whole.value() == hidden.value(), "axial_pos_embds_dim does not sum to hidden_size");
  return module;
}

Module reformer_attention(const Decoder& d, bool hashes) {
  Module module{"attention", hashes ? "attention by hashes" : "attention in chunks", {}, {}, {}};
  const Quantity width = d.heads * d.head_dim;
  const auto add = [&](const char* name, const Quantity& in, const Quantity& out, Role role, Partition cut) {
    add_linear(module, {.name = name,
                        .in = in,
                        .out = out,
                        .role = role,
                        .part = Part::attention,
                        .partition = cut,
                        .units = d.heads.value()});
  };
  const auto rows = [&](const char* name, Role role) {
    add(name, d.hidden, width, role, Partition::columns);
  };
  if (hashes)
    rows("self_attention.query_key", Role::other);  // which no engine joins with the values
  else
    rows("self_attention.query", Role::q);
  if (!hashes) rows("self_attention.key", Role::k);
  rows("self_attention.value", Role::v);
  add("output.dense", width, d.hidden, Role::attention_output, Partition::rows);
  return module;
}

void describe_reformer(ConfigReader& config, ModuleTree& tree) {
  const bool alone = config.config().architecture() == "ReformerModel";
  const std::string prefix = alone ? "" : "reformer.";
  Decoder d;
  d.vocabulary = config.size("vocab_size", 320), d.hidden = config.size("hidden_size", 256);
  d.intermediate = config.size("feed_forward_size", 512), d.tied = false;
  d.heads = d.kv_heads = config.size("num_attention_heads", 12);
  d.head_dim = config.size("attention_head_size", 64);
  const auto kinds = config.texts("attn_layers")
                         .value_or(std::vector<std::string>{"local", "lsh", "local", "lsh", "local", "lsh"});
  config.require(!kinds.empty() && kinds.size() <= 1000, "attn_layers is empty, or too long");
  config.require(std::all_of(kinds.begin(), kinds.end(),
                             [](const std::string& kind) { return kind == "local" || kind == "lsh"; }),
                 "attn_layers holds what is neither local nor lsh");
  d.layers = {"attn_layers", kinds.size()};
  note_sizes(tree, d);
  tree.modules = {embedding(prefix + "embeddings.word_embeddings", d.vocabulary, d.hidden),
                  reformer_places(config, prefix, d.hidden)};
  for (Module& group : group_layers(
           prefix + "encoder.layers.{layer}", d.layers,
           [&](std::uint64_t i) { return kinds[i] == "lsh" ? "layers that hash" : "layers that look near"; },
           [&](Module&layer, std::uint64_t i) {
             add_norm(layer, "attention.layer_norm", d.hidden, Role::input_norm, true);
             add_norm(layer, "feed_forward.layer_norm", d.hidden, Role::pre_feedforward_norm, true);
             layer.children = {reformer_attention(d, kinds[i] == "lsh"),
                               plain_mlp({.hidden = d.hidden,
                                          .intermediate = d.intermediate,
                                          .path = "feed_forward",
                                          .up = "dense.dense",
                                          .down = "output.dense"})};
           }))
    tree.modules.push_back(std::move(group));
  const Quantity both = Quantity(2) * d.hidden;
  tree.modules.push_back(norm(prefix + "encoder.layer_norm", both, Role::final_norm, true));
  tree.not_counted.push_back({"what it caches: states before attention, and their hashes", std::nullopt});
  if (alone) {
    tree.aliases = {{"", "reformer."}};
    return;
  }
  tree.modules.push_back(output_head("lm_head.decoder", d.vocabulary, both, false, ""));
  Module bias{"lm_head", "bias of the head", {}, {}, {}};
  bias.tensors.push_back(parameter("bias", {d.vocabulary}, Role::output_head, Part::output));
  bias.tensors.back().bias = true;
  tree.modules.push_back(std::move(bias));
}

constexpr std::string_view kReformerArchitectures[] = {"ReformerModelWithLMHead", "ReformerModel"},
                           kReformerTypes[] = {"reformer"};

}  // namespace

const Family kReformer = {"reformer",     "Reformer", kReformerArchitectures,
                          kReformerTypes, {},         describe_reformer};

}  // namespace assay::families
