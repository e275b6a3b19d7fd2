// Muse Spark: windows in three layers of four, gates on attention, experts in a narrower space behind a norm each way, a
// gate on each residual. Muse Glimmer: that with MLPs, and without gates on residuals. Source: transformers 5.23
// (muse_spark, muse_glimmer).
#include <nlohmann/json.hpp>

#include "core/model/families/all_2026.h"
#include "core/model/families/forward.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace muse {
namespace {

using namespace blocks;

void add_vision(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden) {
  TowerConfig vision(config, tree, "vision_config");
  if (!vision) return;
  const Quantity hidden = vision->size("hidden_size", 1536), patch = vision->size("patch_size", 14);
  const Quantity places = vision->size("pos_emb_height", 32) * vision->size("pos_emb_width", 32);
  Module tower{"model.vision_tower", "vision tower", {}, {}, {}};
  Tower(tower, Part::vision)
      .matrix("patch_embedder.patch_embedding",
              Quantity(3) * vision->size("patch_temporal", 2) * patch * patch, hidden, false)
      .tensor("patch_embedder.position_embedding_table.weight", {places, hidden})
      .norm("ln_pre", hidden, true)
      .norm("ln_post", hidden, true);
  EncoderBlock block{hidden, vision->size("intermediate_size", 8960)};
  block.q = "attn.q_proj", block.k = "attn.k_proj", block.v = "attn.v_proj", block.o = "attn.proj";
  tower.children = {
      encoder_blocks("layers.{layer}", read_layers(*vision, "num_hidden_layers", 50), block, Part::vision)};
  const ModelConfig outer = config.config().document_only();
  ConfigReader document(outer, "muse_spark");
  const Quantity width = document.size("projector_hidden_size", 4096);
  Module projector{"model", "projector", {}, {}, {}};
  Tower(projector, Part::projector)
      .matrix("vision_adapter.fc1", document.size("out_hidden_size", 6144), width, false)
      .matrix("vision_adapter.fc2", width, width, false)
      .matrix("vision_projection", width, text_hidden, false);
  tree.towers.push_back(std::move(tower));
  tree.towers.push_back(std::move(projector));
}

Module convolutions(const Quantity& width, const Quantity& inner, const Quantity& kernel,
                    std::uint64_t depth) {
  Module blocks = layers("conv_blocks.{layer}", "blocks", all_layers(depth));
  Tower(blocks, Part::audio)
      .tensor("conv.weight", {width, 1, kernel})
      .tensor("conv.bias", {width})
      .norm("norm", width, false)
      .matrix("mlp.fc1", width, inner, true)
      .matrix("mlp.fc2", inner, width, true);
  return blocks;
}

// Each layer joins a few frames, and convolves them.
void add_audio(ConfigReader& config, ModuleTree& tree) {
  TowerConfig audio(config, tree, "audio_config");
  if (!audio) return;
  using Sizes = std::vector<std::uint64_t>;
  const Sizes patches = audio->numbers("patch_sizes").value_or(Sizes{16, 6, 5, 4});
  const Sizes widths = audio->numbers("hidden_sizes").value_or(Sizes{256, 512, 1024, 2048});
  const Sizes depths = audio->numbers("depths").value_or(Sizes{2, 2, 2, 2});
  const std::uint64_t count = audio->size("num_hidden_layers", 4).value();
  audio->require(patches.size() == count && widths.size() == count && depths.size() == count,
                 "patch_sizes, hidden_sizes and depths do not list num_hidden_layers layers");
  const double ratio = audio->real("mlp_ratio", 4, 1e-3, 1e3);
  const Quantity kernel = audio->size("conv_kernel_size", 7), out = audio->size("out_hidden_size", 8192);
  Module tower{"model.audio_tower", "audio tower", {}, {}, {}};
  for (std::uint64_t i = 0; i < count; ++i) {
    const Quantity width = widths[i], in = Quantity(i == 0 ? 1 : widths[i - 1]) * Quantity(patches[i]);
    Module layer{"layers." + std::to_string(i), "layer", {}, {}, {}};
    Tower(layer, Part::audio)
        .matrix("patch_embedder.proj", in, width, true)
        .norm("patch_embedder.norm", width, false);
    const auto inner = static_cast<std::uint64_t>(static_cast<double>(widths[i]) * ratio);
    layer.children = {convolutions(width, inner, kernel, depths[i])};
    tower.children.push_back(std::move(layer));
  }
  Module last{"", "projection", {}, {}, {}};
  Tower(last, Part::audio)
      .norm("norm", Quantity(widths.back()), false)
      .matrix("proj", Quantity(widths.back()), out, true)
      .norm("post_proj_norm", out, false);
  tower.children.push_back(std::move(last));
  tree.towers.push_back(std::move(tower));
}

Mixture read_mixture_of(ConfigReader& config, ModuleTree& tree, const Decoder& d) {
  Mixture m{d.hidden,
            read_experts(config, tree, "num_local_experts|num_experts", 256, "num_experts_per_tok", 8),
            config.size("moe_intermediate_size", 4096)};
  m.correction = "gate.e_score_correction_bias";
  m.stacks = Mixture::Stacks::output_major;
  m.latent = config.size("moe_hidden_size", 4096);
  m.latent_down = "pre_expert_proj", m.latent_up = "post_expert_proj", m.latent_norm = "pre_expert_norm";
  return m;
}

HeadAttention gated_attention(const Decoder& d) {
  HeadAttention a = d.attention();
  a.gate = "gate_proj", a.wide_gate = true;
  return a;
}

void fill_layer(Module& layer, const Decoder& d, const Mixture* m) {
  add_norm(layer, "input_layernorm", d.hidden, Role::input_norm);
  add_norm(layer, "pre_feedforward_layernorm", d.hidden, Role::pre_feedforward_norm);
  add_norm(layer, "post_feedforward_layernorm", d.hidden, Role::post_feedforward_norm);
  for (const char* name : {"post_attention_residual_gate.gate", "post_feedforward_residual_gate.gate"})
    layer.tensors.push_back(parameter(name, {d.hidden}, Role::residual_mix, Part::norm));
  layer.children = {attention(gated_attention(d)), m != nullptr ? mixture(*m) : gated_mlp(d.mlp())};
  if (m != nullptr) add_norm(layer.children[1], "experts.post_expert_norm", *m->latent, Role::latent_norm);
}

void fill_dense_layer(Module& layer, const Decoder& d) {
  for (const auto& [name, role] : {std::pair{"input_layernorm", Role::input_norm},
                                   {"post_attention_layernorm", Role::post_attention_norm},
                                   {"pre_feedforward_layernorm", Role::pre_feedforward_norm},
                                   {"post_feedforward_layernorm", Role::post_feedforward_norm}})
    add_norm(layer, name, d.hidden, role);
  layer.children = {attention(gated_attention(d)), gated_mlp(d.mlp())};
}

// What both have around their layers. Where layer_types is silent, every fourth layer back from the last sees all.
void finish(ConfigReader& config, ModuleTree& tree, const Decoder& d, const std::string& prefix,
            const std::vector<Module>& groups) {
  config.require(!config.flag("attention_bias", false),
                 "attention_bias is true: which matrices have one is not described here");
  add_frame(tree, d, groups, frame_under(prefix));
  const std::uint64_t last = d.layers.value() - 1;
  const auto windowed =
      windowed_layers(config, d.layers, [&](std::uint64_t i) { return (last - i) % 4 != 0; });
  add_geometry(tree, d.attention(), d.layers, windowed,
               config.optional_number("sliding_window", 2048).value_or(0));
  add_vision(config, tree, d.hidden);
}

std::string prefix_of(const ConfigReader& config) {
  return is_nested(config) ? "model.language_model." : "model.";
}

void describe_spark(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(config, tree,
                           {.vocabulary = 202048,
                            .hidden = 8192,
                            .intermediate = 16384,
                            .layers = 62,
                            .heads = 128,
                            .kv_heads = 16,
                            .head_dim = 64});
  d.tied = tree.tied_embeddings = false;  // the class ties nothing: it norms what it embeds
  const Mixture m = read_mixture_of(config, tree, d);
  const auto kinds = layer_texts(config, "mlp_layer_types", d.layers);
  const auto is_sparse = [&](std::uint64_t i) { return !kinds || (*kinds)[i] == "sparse"; };
  const std::string prefix = prefix_of(config);
  const auto groups = group_layers(
      prefix + "layers.{layer}", d.layers,
      [&](std::uint64_t i) { return is_sparse(i) ? "MoE layers" : "dense layers"; },
      [&](Module& layer, std::uint64_t i) { fill_layer(layer, d, is_sparse(i) ? &m : nullptr); });
  finish(config, tree, d, prefix, groups);
  add_audio(config, tree);
}

void describe_glimmer(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 202048,
                                  .hidden = 6656,
                                  .intermediate = 19968,
                                  .layers = 52,
                                  .heads = 32,
                                  .kv_heads = 2,
                                  .head_dim = 128});
  const std::string prefix = prefix_of(config);
  Module layer = layers(prefix + "layers.{layer}", "layers", all_layers(d.layers));
  fill_dense_layer(layer, d);
  finish(config, tree, d, prefix, {layer});
}

constexpr ForwardClass kSparkForward = {.epsilon = 1e-5,
                                        .rope = {.theta = 500000, .context = 1048576},
                                        .head_scale = {"output_multiplier", 0.1767766952966369}};
constexpr ForwardClass kGlimmerForward = {.epsilon = 1e-5,
                                          .rope = {.context = 131072},
                                          .activation_key = "hidden_activation",
                                          .head_scale = {"output_multiplier", 0.19611613513818404}};

// Of layer_rope_theta the classes read which layers have none; the base of all others is that of rope_parameters.
Hyperparameters forward_as(ConfigReader& config, const ModuleTree& tree, const ForwardClass& of_class) {
  Hyperparameters h = read_forward(config, tree, of_class);
  h.final_cap = config.real("final_logit_softcapping", 20, 1e-6, 1e9);
  const ParsedJson& keys = config.config().text();
  const auto thetas = keys.find("layer_rope_theta");
  const bool told = thetas != keys.end() && !thetas->is_null();
  config.require(!told || (thetas->is_array() && thetas->size() == tree.layers),
                 "layer_rope_theta is no list with a number for each layer");
  for (std::uint64_t i = 0; i < tree.layers; ++i) {
    const bool rotates = told ? config.to_real((*thetas)[i], "layer_rope_theta", 0, 1e15) != 0
                              : (tree.layers - 1 - i) % 4 != 0;
    if (!rotates) h.rope_of.at(i).reset();
  }
  return h;
}

Hyperparameters forward_spark(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = forward_as(config, tree, kSparkForward);
  h.routing.renormalize = true;
  h.routing.scale = config.real("routed_scaling_factor", 1, 0, 1e6);
  return h;
}
Hyperparameters forward_glimmer(ConfigReader& config, const ModuleTree& tree) {
  return forward_as(config, tree, kGlimmerForward);
}

constexpr std::string_view kGlimmerArchitectures[] = {"MuseGlimmerForConditionalGeneration",
                                                      "MuseGlimmerForCausalLM"};
constexpr std::string_view kGlimmerTypes[] = {"muse_glimmer", "muse_glimmer_text"};
constexpr std::string_view kArchitectures[] = {"MuseSparkForConditionalGeneration"};
constexpr std::string_view kTypes[] = {"muse_spark", "muse_spark_text"};

}  // namespace
}  // namespace muse

const Family kMuseSpark = {"muse_spark", "Muse Spark",         muse::kArchitectures, muse::kTypes,
                           {},           muse::describe_spark, muse::forward_spark};
const Family kMuseGlimmer = {
    "muse_glimmer",         "Muse Glimmer",       muse::kGlimmerArchitectures, muse::kGlimmerTypes, {},
    muse::describe_glimmer, muse::forward_glimmer};

}  // namespace assay::families
