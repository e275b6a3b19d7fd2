// Inkling 2 (thinkingmachines): Inkling's attention behind norms of its own, with gates, and filters made of each token where all
// is seen; each input is a sum of earlier blocks' outputs. Inkling 2 Mini passes a part of its layers several times. Sources:
// transformers 5.24, models/inkling2 and inkling2_loop; names are those of the released weights, as it reads them.
#include <fmt/format.h>

#include <optional>

#include "core/model/families/all_2026.h"
#include "core/model/families/all_kin.h"
#include "core/model/families/inkling.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {

using namespace blocks;

namespace {

// Filters of the convolution where all is seen are made of what the token says.
Module inkling2_attention(const InklingSizes& s, bool narrow) {
  HeadAttention a = narrow ? s.narrow : s.full;
  a.path = "attn", a.q = "wq_du", a.k = "wk_dv", a.v = "wv_dv", a.o = "wo_ud";
  a.gate = "gate_attn", a.wide_gate = true;
  Module module = attention(a);
  add_relative_scores(module, a, "wr_du", s, narrow);
  add_linear(module, {.name = "attn_sink_proj",
                      .in = a.hidden,
                      .out = a.heads,
                      .role = Role::sinks,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .units = a.heads.value(),
                      .quantizable = false});
  module.tensors.push_back(
      parameter("q_l2_clip.scale", {a.heads, a.head_dim}, Role::q_norm, Part::attention));
  module.tensors.push_back(
      parameter("rel_l2_clip.scale", {a.heads, s.relative}, Role::q_norm, Part::attention));
  const Quantity channels = a.kv_heads * a.head_dim;
  for (const std::string name : {"k_sconv", "v_sconv"}) {
    if (narrow) {
      add_short_convolution(module, name + ".weight", channels, s.kernel);
      continue;
    }
    module.tensors.push_back(
        parameter(name + ".static_w", {s.kernel, channels}, Role::convolution, Part::attention));
    module.tensors.push_back(parameter(name + ".weight_proj", {a.kv_heads * s.kernel, a.hidden},
                                       Role::convolution, Part::attention));
  }
  return module;
}

// What an input reads of earlier blocks: a query for attention (three where q, k and v read apart) and one for the MLP.
void add_block_queries(const InklingSizes& s, std::vector<Module>& groups) {
  const auto add = [&](const std::string& name, const std::string& about, std::vector<std::uint64_t> indices,
                       const std::vector<Quantity>& shape) {
    if (indices.empty()) return;
    Module queries = layers("model.llm.attn_res", about, std::move(indices));
    queries.tensors.push_back(parameter(name, shape, Role::residual_mix, Part::norm));
    groups.push_back(std::move(queries));
  };
  std::vector<std::uint64_t> one, three;
  for (std::uint64_t i = 1; i < s.d.layers.value(); ++i) (s.is_narrow(i) ? one : three).push_back(i - 1);
  add("attn_queries.{layer}", "queries of attention's inputs", one, {s.d.hidden});
  add("attn_queries.{layer}", "queries of attention's three inputs", three, {3, s.d.hidden});
  add("mlp_queries.{layer}", "queries of the MLPs' inputs", all_layers(s.d.layers), {s.d.hidden});
}

// Layers that a token passes several times: from the second pass on, each reads messages of the pass before through gates.
struct Loop {
  Quantity first = 0, end = 0, passes = 0, rank = 0;
  bool holds(std::uint64_t i) const { return i >= first.value() && i < end.value(); }
  std::vector<std::uint64_t> layers() const {
    return layers_where(end, [&](std::uint64_t i) { return holds(i); });
  }
  void require_within(ConfigReader& config, const Quantity& count) const {
    config.require(first.value() <= end.value() && end.value() <= count.value(),
                   "the layers that are looped are none of the model's");
  }
};

constexpr std::uint64_t kMostPasses = 100;

// As published, an object of its own (loop_config).
Loop read_loop(ConfigReader& config) {
  const auto section = config.config().text_section("loop_config");
  std::optional<ConfigReader> own;
  if (section) own.emplace(*section, "loop_config");
  const auto read = [&](const char* within, const char* beside, std::uint64_t otherwise) {
    return own && own->has(within) ? own->size(within) : config.size(beside, otherwise);
  };
  const Loop loop{read("core_start", "loop_layer_index_start", 6),
                  read("core_end", "loop_layer_index_end", 18), read("num_passes", "loop_num_passes", 3),
                  read("gate_rank", "loop_gate_rank", 64)};
  config.require(loop.passes.value() <= kMostPasses, "loop_num_passes: no model passes its layers so often");
  return loop;
}

// How much of a message enters, and how much of what was there is forgotten, for queries, keys, values and the MLP.
void add_message_gates(Module& layer, const Decoder& d, const Quantity& rank) {
  Module gates{"controllers", "gates of messages", {}, {}, {}};
  for (const std::string reader : {"attn", "k", "v", "mlp"}) {
    const auto add = [&](const char* name, const std::vector<Quantity>& shape) {
      gates.tensors.push_back(parameter(reader + name, shape, Role::residual_mix, Part::norm));
    };
    add(".down_weight", {rank, Quantity(2) * d.hidden});
    add(".forget_weight", {d.hidden, rank}), add(".gain_weight", {d.hidden, rank});
  }
  layer.children.push_back(std::move(gates));
}

// What messages are asked for by, and the caches of the further passes.
void add_loop(ModuleTree& tree, const InklingSizes& s, const Loop& loop) {
  const auto looped = loop.layers();
  const Quantity queries("queries of looped layers", 2 * looped.size());
  Module asks{"model.llm", "queries of messages", {}, {}, {}};
  for (const char* name : {"middle_cycle_cross_pass_queries", "middle_cycle_cross_pass_kv_queries"})
    asks.tensors.push_back(parameter(name, {queries, s.d.hidden}, Role::residual_mix, Part::norm));
  if (!looped.empty()) tree.modules.insert(tree.modules.end() - 2, std::move(asks));
  for (std::uint64_t pass = 1; pass < loop.passes.value(); ++pass) note_inkling_layers(tree, s, looped);
  if (loop.passes.value() == 1) return;
  tree.not_counted.push_back(
      {fmt::format("passes behind the first: a token passes {} layers {} times, and what is "
                   "computed is told of one",
                   looped.size(), loop.passes.value()),
       0});
}

struct Inkling2Defaults {
  InklingDefaults sizes;
  std::uint64_t experts, width;
};
constexpr Inkling2Defaults kOnce = {
    {.hidden = 4608, .layers = 48, .heads = 48, .narrow_kv_heads = 8, .window = 1024}, 384, 2304};
constexpr Inkling2Defaults kLooped = {
    {.hidden = 2304, .layers = 24, .heads = 24, .narrow_kv_heads = 8, .window = 1024}, 128, 1152};

void describe_inkling2_layers(ConfigReader& config, ModuleTree& tree, const Inkling2Defaults& of,
                              const Loop& loop) {
  const InklingSizes s = read_inkling(config, tree, of.sizes);
  loop.require_within(config, s.d.layers);
  const Decoder& d = s.d;
  Mixture m{
      d.hidden,
      read_experts(config, tree, "n_routed_experts|num_local_experts", of.experts, "num_experts_per_tok", 8),
      config.size("moe_intermediate_size|intermediate_size", of.width)};
  m.correction = "gate.bias";
  m.stacks = Mixture::Stacks::output_major;
  m.stacked_gate_up = "w13_weight", m.stacked_down = "w2_weight";
  auto groups = group_layers(
      "model.llm.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return std::string(loop.holds(i) ? "looped " : "") + "MoE layers" +
               (s.is_narrow(i) ? " with a window" : "");
      },
      [&](Module& layer, std::uint64_t i) {
        if (s.is_narrow(i)) {
          add_norm(layer, "attn_norm", d.hidden, Role::input_norm);
        } else {
          for (const char* name : {"q_input_norm", "k_input_norm", "v_input_norm"})
            add_norm(layer, name, d.hidden, Role::input_norm);
        }
        add_norm(layer, "mlp_norm", d.hidden, Role::pre_feedforward_norm);
        for (const char* name : {"attn_sconv.weight", "mlp_sconv.weight"})
          add_short_convolution(layer, name, d.hidden, s.kernel, Part::norm);
        layer.children = {inkling2_attention(s, s.is_narrow(i)), mixture(m)};
        if (loop.holds(i)) add_message_gates(layer, d, loop.rank);
      });
  add_block_queries(s, groups);
  add_frame(tree, d, groups,
            {.embedding = "model.llm.embed", .final_norm = "model.llm.norm", .head = "model.llm.unembed"});
  tree.modules.insert(tree.modules.begin() + 1, norm("model.llm.embed_norm", d.hidden, Role::embedding_norm));
  Module last{"model.llm.attn_res", "query of the output", {}, {}, {}};
  last.tensors.push_back(parameter("output_query", {d.hidden}, Role::residual_mix, Part::norm));
  tree.modules.insert(tree.modules.end() - 2, std::move(last));
  note_inkling_layers(tree, s, all_layers(d.layers));
  if (loop.passes.value() > 0) add_loop(tree, s, loop);
}

void describe_inkling2(ConfigReader& config, ModuleTree& tree) {
  describe_inkling2_layers(config, tree, kOnce, {});
}
void describe_inkling2_loop(ConfigReader& config, ModuleTree& tree) {
  describe_inkling2_layers(config, tree, kLooped, read_loop(config));
}

constexpr std::string_view kInkling2Architectures[] = {"Inkling2ForCausalLM"},
                           kInkling2Types[] = {"inkling2_text"},
                           kInkling2LoopArchitectures[] = {"Inkling2LoopForCausalLM"},
                           kInkling2LoopTypes[] = {"inkling2_loop_text"};

}  // namespace

// A ViT with a class token and places learnt on a grid; four patches make a token of the text.
void add_inkling2_vision(ConfigReader& document, ModuleTree& tree) {
  TowerConfig vision(document, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 1024), grid = vision->size("posemb_grid_size", 32),
                 patch = vision->size("native_patch_size|patch_size", 20),
                 merge = vision->size("adapter_merge_size|spatial_merge_size", 2),
                 between = vision->size("projection_hidden_dim", 4096);
  const double ratio = vision->real("mlp_ratio", 4.0, 0.001, 1000.0);
  const Quantity scaled("mlp_ratio × hidden_size",
                        static_cast<std::uint64_t>(static_cast<double>(hidden.value()) * ratio));
  const Quantity wide = vision->size("intermediate_size", scaled);
  const bool bias = vision->flag("projector_bias", false);
  Module tower{"model.visual", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .matrix("backbone.embeddings.patch_embedding", vision->size("num_channels", 3) * patch * patch, hidden,
              false)
      .tensor("backbone.embeddings.position_embedding", {grid * grid, hidden})
      .tensor("backbone.embeddings.class_embedding", {hidden})
      .tensor("backbone.embeddings.cls_position_embedding", {hidden})
      .norm("backbone.ln_pre", hidden, true)
      .matrix("proj_in", merge * merge * hidden, between, bias)
      .matrix("proj_out", between, text_width(tree), bias);
  Module layer = encoder_blocks("backbone.layers.{layer}", vision->size("num_hidden_layers", 23),
                                {.hidden = hidden,
                                 .intermediate = wide,
                                 .norm1 = "ln_1",
                                 .norm2 = "ln_2",
                                 .up = "mlp.c_fc",
                                 .down = "mlp.c_proj"},
                                Part::vision);
  Tower(layer, Part::vision).tensor("ls_1.gamma", {hidden}).tensor("ls_2.gamma", {hidden});
  tower.children = {std::move(layer)};
  add_tower(tree, std::move(tower));
}

const Family kInkling2 = {"inkling2", "Inkling 2 (text)", kInkling2Architectures, kInkling2Types,
                          {},         describe_inkling2};
const Family kInkling2Loop = {
    "inkling2_loop",       "Inkling 2 Mini (text)", kInkling2LoopArchitectures, kInkling2LoopTypes, {},
    describe_inkling2_loop};

}  // namespace assay::families
