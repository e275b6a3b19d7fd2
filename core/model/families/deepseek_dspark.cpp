// DSpark, which drafts tokens for DeepSeek-V4 (from its 0731 release on) and V4.1: what some layers of the model give, in one
// matrix; layers with a window; a head of low rank that looks at the token before, and one that says how sure it is. Names
// as vLLM 0.33 loads them (vllm/models/deepseek_v4/nvidia/dspark.py, deepseek_v41/nvidia/dspark.py).
#include "core/model/families/deepseek_v4.h"

namespace assay::families {

using namespace blocks;

namespace {

void add_first(Module& own, const V4Sizes& s, std::uint64_t layers_read) {
  add_linear(own, {.name = "main_proj",
                   .in = Quantity("dspark_target_layer_ids", layers_read) * s.d.hidden,
                   .out = s.d.hidden,
                   .role = Role::mtp_projection,
                   .part = Part::mtp});
  add_norm(own, "main_norm", s.d.hidden, Role::mtp_hidden_norm, false, Part::mtp);
}

void add_last(Module& own, const V4Sizes& s, const Drafting& drafting, const Quantity& rank) {
  add_norm(own, "norm", s.d.hidden, Role::final_norm, false, Part::mtp);
  if (drafting.mixes_streams) add_v4_streams(own, "hc_head", s.streams, 1, s);
  for (const std::string& name : {drafting.looked_up, drafting.predicted})
    own.tensors.push_back(parameter("markov_head." + name + ".weight", {s.d.vocabulary, rank},
                                    Role::mtp_projection, Part::mtp));
  own.tensors.push_back(
      parameter("confidence_head.proj.weight", {1, s.d.hidden + rank}, Role::mtp_projection, Part::mtp));
}

}  // namespace

bool drafts(const ConfigReader& config) {
  return config.has("dspark_target_layer_ids");
}

void add_drafting(ConfigReader& config, ModuleTree& tree, const V4Sizes& s, const Drafting& drafting) {
  if (drafting.count == 0) return;
  const auto read = config.numbers("dspark_target_layer_ids").value_or(std::vector<std::uint64_t>());
  config.require(!read.empty() && read.size() <= s.d.layers.value(),
                 "dspark_target_layer_ids names no layers that drafting starts from, or too many");
  const Quantity rank = config.size("dspark_markov_rank", 256);
  auto groups = group_layers(
      "mtp.{layer}", Quantity(drafting.count),
      [&](std::uint64_t j) {
        return std::string("drafting layers") + (j == 0                    ? ", first"
                                                 : j + 1 == drafting.count ? ", last"
                                                                           : "");
      },
      [&](Module& layer, std::uint64_t j) {
        add_v4_frame(layer, s);
        layer.children = {v4_attention(s), drafting.experts};
        Module own{"", "projections and heads", {}, {}, {}};
        if (j == 0) add_first(own, s, read.size());
        if (j + 1 == drafting.count) add_last(own, s, drafting, rank);
        if (!own.tensors.empty()) layer.children.push_back(std::move(own));
      });
  for (Module& group : groups) tree.mtp.push_back(std::move(group));
  const std::uint64_t window = config.size("sliding_window", 128).value();
  tree.mtp_attention.push_back(v4_cache(s, 0, layers_after(s.d.layers, drafting.count), window));
}

}  // namespace assay::families
