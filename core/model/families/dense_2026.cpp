// Dense decoders told by what differs from a Llama, and described since 2025: Emu3's text, Cohere Compass's text, Doge,
// ModernBERT as a decoder, HRM-Text.
#include <fmt/format.h>

#include <cmath>

#include "core/model/families/all_2026.h"
#include "core/model/families/forward.h"
#include "core/model/families/forward_2026.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/own_layers_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_emu3(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 184622,
                          .hidden = 4096,
                          .intermediate = 14336,
                          .layers = 32,
                          .heads = 32,
                          .kv_heads = 8},
                .mlp_bias_keys = "mlp_bias"});
}

// One norm a layer: attention and MLP read the same.
void describe_cohere_compass(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 256000,
                          .hidden = 8192,
                          .intermediate = 22528,
                          .layers = 40,
                          .heads = 64,
                          .tied = true},
                .mlp_norm = {},
                .windows = true,
                .window = 4096});
}

// Experts of one hidden unit each, picked by the sums of two halves of a key (arXiv 2407.04153), beside the MLP.
void add_doge_experts(ConfigReader& config, ModuleTree& tree, Module& mlp, const Decoder& d) {
  const Experts e = read_experts(config, tree, "num_experts", 16384, "num_experts_per_tok", 64);
  const auto keys = static_cast<std::uint64_t>(std::floor(std::sqrt(static_cast<double>(e.count.value()))));
  add_router(mlp, "router_gate", d.hidden, Quantity("2 × √num_experts", 2 * keys));
  for (const auto& [name, role] : {std::pair{"down_embed", Role::mlp_up}, {"up_embed", Role::mlp_down}}) {
    TensorSpec table =
        parameter(std::string(name) + ".weight", {e.count, d.hidden}, role, Part::routed_expert);
    table.stacked = e.count.value();
    table.stacked_active = e.active;
    mlp.tensors.push_back(std::move(table));
  }
}

// Values make a mask that is added to the scores; what a block passes by is scaled.
void describe_doge(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {
      .sizes = {.vocabulary = 32768, .hidden = 1024, .intermediate = 2048, .layers = 32, .heads = 8},
      .mlp_bias_keys = "mlp_bias",
      .windows = true,
      .windowed = [](std::uint64_t) { return true; }};
  kin.heads.qk_norm = QkNorm::per_head;
  const Decoder d = read_decoder(config, tree, kin.sizes);
  describe_kin(config, tree, kin, d);
  const bool bias = config.flag("attention_bias", false), experts = config.flag("is_moe", false);
  for (Module& layer : tree.modules) {
    if (layer.repeat.over != Repeat::Over::layers) continue;
    for (const char* name : {"input_residual", "post_attention_residual"})
      layer.tensors.push_back(parameter(name, {d.hidden}, Role::layer_scale, Part::norm));
    Module& attend = layer.children[0];
    attend.tensors.push_back(parameter("A", {d.kv_heads}, Role::attention_gate, Part::attention));
    add_linear(attend, {.name = "dt_proj",
                        .in = d.kv_heads * d.head_dim,
                        .out = d.kv_heads,
                        .role = Role::attention_gate,
                        .part = Part::attention,
                        .bias = bias,
                        .quantizable = false});
    if (experts) add_doge_experts(config, tree, layer.children[1], d);
  }
}

// A norm behind the embedding serves the first layer; the head has a matrix and a norm in front of the tied one.
void describe_modernbert_decoder(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 50368, .hidden = 768, .intermediate = 1152, .layers = 22, .heads = 12, .tied = true});
  const bool norm_bias = config.flag("norm_bias", false), bias = config.flag("attention_bias", false);
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = bias;
  a.path = "attn", a.o = "Wo";
  GatedMlp mlp = d.mlp();
  mlp.fused = "Wi", mlp.down = "Wo";
  mlp.bias = config.flag("mlp_bias", false);
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers, [](std::uint64_t i) { return i == 0 ? "first layer" : "layers"; },
      [&](Module& layer, std::uint64_t i) {
        if (i > 0) add_norm(layer, "attn_norm", d.hidden, Role::input_norm, norm_bias);
        add_norm(layer, "mlp_norm", d.hidden, Role::pre_feedforward_norm, norm_bias);
        layer.children = {attention(a), gated_mlp(mlp)};
      });
  add_frame(tree, d, groups,
            {.embedding = "model.embeddings.tok_embeddings",
             .final_norm = "model.final_norm",
             .head = "decoder",
             .norm_bias = norm_bias,
             .head_bias = config.flag("decoder_bias", true)});
  Module behind{"model.embeddings", "norm of the embedding", {}, {}, {}};
  add_norm(behind, "norm", d.hidden, Role::embedding_norm, norm_bias);
  tree.modules.insert(tree.modules.begin() + 1, std::move(behind));
  Module head{"lm_head", "in front of the head", {}, {}, {}};
  add_linear(head, {.name = "dense",
                    .in = d.hidden,
                    .out = d.hidden,
                    .role = Role::other,
                    .part = Part::output,
                    .bias = config.flag("classifier_bias", false)});
  add_norm(head, "norm", d.hidden, Role::other, norm_bias);
  tree.modules.insert(tree.modules.end() - 1, std::move(head));
  const std::uint64_t every = config.size("global_attn_every_n_layers", 3).value(),
                      window = config.number("sliding_window", config.number("local_attention", 128) / 2);
  add_geometry(tree, a, d.layers,
               windowed_layers(config, d.layers, [=](std::uint64_t i) { return i % every != 0; }), window);
}

// Two stacks that a token passes many times: every pass has a cache of its own.
Module hrm_layer(const Decoder& d, const Quantity& count, const std::string& stack) {
  Module layer = layers("model." + stack + ".layers.{layer}", "layers of " + stack, all_layers(count));
  const Quantity width = d.heads * d.head_dim;
  const std::uint64_t w = width.value(), h = d.heads.value();
  Module attend{"attn", "attention", {}, {}, {}};
  add_linear(attend,
             {.name = "gqkv_proj",
              .in = d.hidden,
              .out = Quantity(4) * width,
              .role = Role::qkv,
              .part = Part::attention,
              .partition = Partition::columns,
              .members = {{Role::attention_gate, w, h}, {Role::q, w, h}, {Role::k, w, h}, {Role::v, w, h}}});
  add_linear(attend, {.name = "o_proj",
                      .in = width,
                      .out = d.hidden,
                      .role = Role::attention_output,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = h});
  GatedMlp mlp = d.mlp();
  mlp.fused = "gate_up_proj";
  layer.children = {std::move(attend), gated_mlp(mlp)};
  return layer;
}

void describe_hrm_text(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(config, tree,
                           {.vocabulary = 151808,
                            .hidden = 1536,
                            .intermediate = 4096,
                            .layers = 16,
                            .heads = 12,
                            .head_dim = 128});
  d.kv_heads = d.heads;
  config.require(!config.flag("attention_bias", false) && !config.flag("mlp_bias", false),
                 "attention_bias or mlp_bias is true: no checkpoint tells how biases are stored");
  // num_hidden_layers is the number of passes, once the class has written the config.
  const Quantity stack = config.size("num_layers_per_stack", d.layers);
  const std::uint64_t high = config.size("H_cycles", 2).value(), low = config.size("L_cycles", 3).value();
  const Quantity passes = stack * Quantity(high) * Quantity(low + 1);
  config.require(passes.value() <= 100'000, "H_cycles and L_cycles make absurdly many passes");
  tree.layers = passes.value();
  add_frame(tree, d, {hrm_layer(d, stack, "L_module"), hrm_layer(d, stack, "H_module")});
  tree.modules.erase(tree.modules.end() - 2);  // its norms have no weights
  Module start{"model", "start of the low state", {}, {}, {}};
  start.tensors.push_back(parameter("z_L_init", {d.hidden}, Role::other, Part::embedding));
  tree.modules.insert(tree.modules.begin() + 1, std::move(start));
  HeadAttention a = d.attention();
  tree.attention.push_back(geometry(a, all_layers(passes)));
  tree.not_counted.push_back(
      {fmt::format(
           "passes behind the first: a token passes L_module {} times and H_module {} times, and what "
           "is computed is told of one",
           high * low, high),
       0});
}

Hyperparameters forward_hrm_text(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {});
  const double deviation = config.real("initializer_range", 0.02, 1e-9, 1);
  h.embedding_scale = config.real("embedding_scale", 1 / deviation, -1e9, 1e9);
  return h;
}

constexpr std::string_view kEmu3Architectures[] = {"Emu3ForCausalLM"}, kEmu3Types[] = {"emu3_text_model"};
constexpr std::string_view kCompassArchitectures[] = {"CohereCompassForCausalLM"},
                           kCompassTypes[] = {"cohere_compass_text"};
constexpr std::string_view kDogeArchitectures[] = {"DogeForCausalLM"}, kDogeTypes[] = {"doge"};
constexpr std::string_view kModernbertArchitectures[] = {"ModernBertDecoderForCausalLM"},
                           kModernbertTypes[] = {"modernbert-decoder"};
constexpr std::string_view kHrmArchitectures[] = {"HrmTextForCausalLM"}, kHrmTypes[] = {"hrm_text"};

}  // namespace

const Family kEmu3 = {"emu3", "Emu3 (text)", kEmu3Architectures, kEmu3Types, {}, describe_emu3, forward_emu3};
const Family kCohereCompass = {
    "cohere_compass",        "Cohere Compass (text)", kCompassArchitectures, kCompassTypes, {},
    describe_cohere_compass, forward_cohere_compass};
const Family kDoge = {"doge", "Doge", kDogeArchitectures, kDogeTypes, {}, describe_doge, forward_doge};
const Family kModernbertDecoder = {
    "modernbert_decoder",        "ModernBERT as a decoder", kModernbertArchitectures, kModernbertTypes, {},
    describe_modernbert_decoder, forward_modernbert_decoder};
const Family kHrmText = {"hrm_text", "HRM-Text",        kHrmArchitectures, kHrmTypes,
                         {},         describe_hrm_text, forward_hrm_text};

}  // namespace assay::families
