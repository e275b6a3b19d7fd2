// Inkling: attention with scores of relative places, short convolutions behind keys, values and blocks, more key heads where
// there is a window; experts beside shared ones.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/families/all_2026.h"
#include "core/model/families/forward.h"
#include "core/model/families/inkling.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {

using namespace blocks;

InklingSizes read_inkling(ConfigReader& config, ModuleTree& tree, const InklingDefaults& of) {
  InklingSizes s;
  s.d = read_decoder(config, tree,
                     {.vocabulary = 201024,
                      .hidden = of.hidden,
                      .intermediate = 0,
                      .layers = of.layers,
                      .heads = of.heads,
                      .kv_heads = 8,
                      .head_dim = 128});
  s.d.tied = tree.tied_embeddings = false;  // whatever a config says
  s.full = s.narrow = s.d.attention();
  s.narrow.heads = config.size("swa_num_attention_heads", of.heads);
  s.narrow.kv_heads = config.size("swa_num_key_value_heads", of.narrow_kv_heads);
  s.narrow.head_dim = config.size("swa_head_dim", 128);
  config.require_divides(s.narrow.kv_heads, s.narrow.heads);
  s.relative = config.size("d_rel", 16);
  s.full_extent = config.size("rel_extent", 1024);
  s.window = config.size("sliding_window_size|sliding_window", of.window);
  s.kernel = config.size("conv_kernel_size|sconv_kernel_size", 4);
  const auto types = layer_texts(config, "layer_types", s.d.layers);
  const auto local = config.numbers("local_layer_ids");
  s.narrow_layers = layers_where(s.d.layers, [&](std::uint64_t i) {
    if (types) return (*types)[i] == "hybrid_sliding";
    if (local) return std::find(local->begin(), local->end(), i) != local->end();
    return (i + 1) % 6 != 0;
  });
  return s;
}

void add_short_convolution(Module& module, const std::string& name, const Quantity& channels,
                           const Quantity& kernel, Part part) {
  module.tensors.push_back(parameter(name, {channels, 1, kernel}, Role::convolution, part));
}

void note_inkling_layers(ModuleTree& tree, const InklingSizes& s, const std::vector<std::uint64_t>& layers) {
  std::vector<std::uint64_t> full, narrow;
  for (const std::uint64_t i : layers) (s.is_narrow(i) ? narrow : full).push_back(i);
  const auto note = [&](const HeadAttention& a, const std::vector<std::uint64_t>& of, std::uint64_t window) {
    if (of.empty()) return;
    tree.attention.push_back(geometry(a, of, window));
    const Quantity channels = Quantity(2) * (a.kv_heads * a.head_dim + s.d.hidden);
    tree.recurrent.push_back({.title = "short convolutions",
                              .layers = of,
                              .heads = a.kv_heads.value(),
                              .conv_values = channels.value() * (s.kernel.value() - 1)});
  };
  note(s.full, full, 0);
  note(s.narrow, narrow, s.window.value());
}

void add_relative_scores(Module& attend, const HeadAttention& a, const std::string& projection,
                         const InklingSizes& s, bool narrow) {
  add_linear(attend, {.name = projection,
                      .in = a.hidden,
                      .out = a.heads * s.relative,
                      .role = Role::attention_gate,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .units = a.heads.value()});
  attend.tensors.push_back(parameter("rel_logits_proj.proj", {s.relative, narrow ? s.window : s.full_extent},
                                     Role::attention_gate, Part::attention));
}

namespace {

Module inkling_attention(const InklingSizes& s, bool narrow) {
  HeadAttention a = narrow ? s.narrow : s.full;
  a.qk_norm = QkNorm::per_head;
  Module module = attention(a);
  add_relative_scores(module, a, "r_proj", s, narrow);
  for (const char* name : {"k_sconv.conv1d.weight", "v_sconv.conv1d.weight"})
    add_short_convolution(module, name, a.kv_heads * a.head_dim, s.kernel);
  return module;
}

// Its router scores the shared experts, too.
Module inkling_experts(const Decoder& d, const Experts& e, const Quantity& width, const Quantity& shared) {
  Module module{"mlp", "mixture of experts", {}, {}, {}};
  Module router{"gate", std::string(title(Part::router)), {}, {}, {}};
  router.tensors.push_back(parameter("weight", {e.count + shared, d.hidden}, Role::router, Part::router));
  router.tensors.push_back(parameter("global_scale", {1}, Role::router_scale, Part::router));
  router.tensors.push_back(
      parameter("e_score_correction_bias", {e.count}, Role::router_correction, Part::router));
  router.tensors.back().bias = true;
  Module stacks = stacked_experts({.hidden = d.hidden,
                                   .width = width,
                                   .experts = {shared, shared.value()},
                                   .path = "shared_experts",
                                   .down = "down_proj",
                                   .gate = "gate_proj",
                                   .up = "up_proj"});
  stacks.title = std::string(title(Part::shared_expert));
  for (TensorSpec& spec : stacks.tensors) spec.part = Part::shared_expert;
  module.children = {std::move(router), std::move(stacks),
                     stacked_experts({.hidden = d.hidden, .width = width, .experts = e})};
  return module;
}

// num_mtp_layers, and what belongs to it; or, as published, an object beside the text's (mtp_config).
struct InklingPrediction {
  std::uint64_t count = 0;
  std::vector<std::uint64_t> narrow;  // which have a window
  bool chained = false;               // one norm behind every layer
};
InklingPrediction read_inkling_prediction(ConfigReader& config) {
  const auto from = [](ConfigReader& said, std::string_view narrow, std::uint64_t otherwise) {
    return InklingPrediction{read_mtp_layers(said, otherwise),
                             said.numbers(narrow).value_or(std::vector<std::uint64_t>{}),
                             said.flag("chain_hidden_post_norm", false)};
  };
  const InklingPrediction own = from(config, "mtp_local_layer_ids", 0);
  const auto beside = config.config().section("mtp_config");
  if (own.count > 0 || !beside) return own;
  ConfigReader published(*beside, "mtp_config");
  return from(published, "local_layer_ids", 0);
}

// In the names of the published weights, with gates and ups row by row (vLLM 0.32, models/inkling/nvidia/mtp.py).
Module inkling_prediction_block(const InklingSizes& s, const Quantity& width, bool narrow) {
  HeadAttention a = narrow ? s.narrow : s.full;
  a.qk_norm = QkNorm::per_head;
  a.path = "attn", a.q = "wq_du", a.k = "wk_dv", a.v = "wv_dv", a.o = "wo_ud";
  Module attend = attention(a);
  add_relative_scores(attend, a, "wr_du", s, narrow);
  for (const char* name : {"k_sconv.weight", "v_sconv.weight"})
    add_short_convolution(attend, name, a.kv_heads * a.head_dim, s.kernel);
  blocks::GatedMlp dense{s.d.hidden, width};
  dense.fused = "w13_dn", dense.down = "w2_md";
  Module mlp = gated_mlp(dense);
  mlp.tensors.front().parallel.interleaved = true;
  mlp.tensors.push_back(parameter("global_scale", {1}, Role::layer_scale, Part::dense_mlp));
  Module block{"transformer_block", "layer", {}, {}, {}};
  add_norm(block, "attn_norm", s.d.hidden, Role::input_norm);
  add_norm(block, "mlp_norm", s.d.hidden, Role::pre_feedforward_norm);
  for (const char* name : {"attn_sconv.weight", "mlp_sconv.weight"})
    add_short_convolution(block, name, s.d.hidden, s.kernel, Part::norm);
  block.children = {std::move(attend), std::move(mlp)};
  return block;
}

void add_inkling_prediction(ConfigReader& config, ModuleTree& tree, const InklingSizes& s,
                            const Quantity& width) {
  const InklingPrediction p = read_inkling_prediction(config);
  for (const bool narrow : {false, true}) {
    const auto where = layers_where(Quantity(p.count), [&](std::uint64_t i) {
      return (std::find(p.narrow.begin(), p.narrow.end(), i) != p.narrow.end()) == narrow;
    });
    if (where.empty()) continue;
    Module layer = layers("model.mtp.layers.{layer}",
                          narrow ? "multi-token prediction with a window" : "multi-token prediction", where);
    layer.children = {mtp_own(s.d.hidden, {"embed_norm", "hidden_norm", "input_proj", ""}),
                      inkling_prediction_block(s, width, narrow)};
    tree.mtp.push_back(std::move(layer));
    std::vector<std::uint64_t> behind;
    for (const std::uint64_t i : where) behind.push_back(s.d.layers.value() + i);
    tree.mtp_attention.push_back(
        geometry(narrow ? s.narrow : s.full, std::move(behind), narrow ? s.window.value() : 0));
  }
  if (p.count == 0 || !p.chained) return;
  Module chain{"model.mtp", "norm behind every layer of prediction", {}, {}, {}};
  add_norm(chain, "chain_norm", s.d.hidden, Role::final_norm, false, Part::mtp);
  tree.mtp.push_back(std::move(chain));
}

void describe_inkling(ConfigReader& config, ModuleTree& tree) {
  InklingSizes s = read_inkling(
      config, tree, {.hidden = 6144, .layers = 66, .heads = 64, .narrow_kv_heads = 16, .window = 512});
  const Decoder& d = s.d;
  const Experts e =
      read_experts(config, tree, "n_routed_experts|num_local_experts", 256, "num_experts_per_tok", 6);
  // An older spelling: intermediate_size was that of the experts.
  const bool old = config.has("dense_intermediate_size");
  const Quantity width = old ? config.size("intermediate_size", 24576)
                             : config.size("moe_intermediate_size", 3072),
                 dense_width =
                     old ? config.size("dense_intermediate_size") : config.size("intermediate_size", 24576),
                 shared = config.size("n_shared_experts", 2);
  const auto types = layer_texts(config, "mlp_layer_types", d.layers);
  const std::uint64_t dense_first = config.number("dense_mlp_idx", 0);
  const auto is_sparse = [&](std::uint64_t i) { return types ? (*types)[i] == "sparse" : i >= dense_first; };
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return std::string(is_sparse(i) ? "MoE" : "dense") + " layers" +
               (s.is_narrow(i) ? " with a window" : "");
      },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        for (const char* name : {"attn_sconv.conv1d.weight", "mlp_sconv.conv1d.weight"})
          add_short_convolution(layer, name, d.hidden, s.kernel, Part::norm);
        Module dense = gated_mlp({d.hidden, dense_width});
        dense.tensors.push_back(parameter("global_scale", {1}, Role::layer_scale, Part::dense_mlp));
        layer.children = {inkling_attention(s, s.is_narrow(i)),
                          is_sparse(i) ? inkling_experts(d, e, width, shared) : std::move(dense)};
      });
  add_frame(tree, d, groups);
  tree.modules.insert(tree.modules.begin() + 1,
                      norm("model.embed_tokens.embed_norm", d.hidden, Role::embedding_norm));
  note_inkling_layers(tree, s, all_layers(d.layers));
  add_inkling_prediction(config, tree, s, dense_width);
}

// Nothing rotates, and scores are scaled by the width of a head, which layers with a window have their own of.
Hyperparameters forward_inkling(ConfigReader& config, const ModuleTree& tree) {
  constexpr ForwardClass kClass = {.rope = {.context = 131072},
                                   .rotates = false,
                                   .head_divisor = {"logits_mup_width_multiplier|embedding_multiplier", 24}};
  Hyperparameters h = read_forward(config, tree, kClass);
  if (config.has("model_max_length")) h.context = config.size("model_max_length").value();
  return h;
}

constexpr std::string_view kInklingArchitectures[] = {"InklingForCausalLM"},
                           kInklingTypes[] = {"inkling_text"};

}  // namespace

const Family kInkling = {"inkling", "Inkling (text)", kInklingArchitectures, kInklingTypes,
                         {},        describe_inkling, forward_inkling};
}  // namespace assay::families
