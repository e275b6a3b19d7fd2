#include "core/model/families/forward_2026.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/model/blocks.h"
#include "core/model/families/forward.h"
#include "core/model/families/mixture_forward.h"

namespace assay::families {
namespace {

constexpr ForwardClass kAriaClass = {};
constexpr ForwardClass kBitnetClass = {.epsilon = 1e-5, .rope = {.theta = 500000}, .activation = "relu2"};
constexpr ForwardClass kDiffllamaClass = {.epsilon = 1e-5};
constexpr ForwardClass kEmu3Class = {.epsilon = 1e-5, .rope = {.theta = 1e6, .context = 9216}};
constexpr ForwardClass kMllamaClass = {.epsilon = 1e-5, .rope = {.theta = 500000, .context = 131072}};
constexpr ForwardClass kGraniteSwaClass = {.epsilon = 1e-5,
                                           .rope = {.context = 8192},
                                           .attention_scale = {"attention_multiplier"},
                                           .embedding_scale = {"embedding_multiplier"},
                                           .residual_scale = {"residual_multiplier"},
                                           .head_divisor = {"logits_scaling"}};
constexpr ForwardClass kGraniteMoeSwaClass = {.attention_scale = {"attention_multiplier"},
                                              .embedding_scale = {"embedding_multiplier"},
                                              .residual_scale = {"residual_multiplier"},
                                              .head_divisor = {"logits_scaling"}};
// Whose bases and parts stand in rope_parameters alone.
constexpr std::string_view kNoKey = "rope_of_no_kind";
constexpr RopeClass kLagunaFull = {.theta = 500000,
                                   .context = 131072,
                                   .partial = true,
                                   .part = 0.5,
                                   .part_keys = kNoKey,
                                   .theta_key = kNoKey};
constexpr RopeClass kModernbertFull = {.theta = 160000, .context = 8192, .theta_key = "global_rope_theta"},
                    kModernbertLocal = {.theta = 10000, .context = 8192, .theta_key = "local_rope_theta"};

void rotate_windows_only(const ModuleTree& tree, Hyperparameters& h) {
  for (const AttentionGeometry& g : tree.attention) {
    if (g.window != 0) continue;
    for (const std::uint64_t layer : g.layers) h.rope_of.at(layer).reset();
  }
}

// The nearest number of bfloat16, of two the even one.
double as_bfloat16(double x) {
  auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  bits += 0x7FFFU + ((bits >> 16) & 1U);
  return static_cast<double>(std::bit_cast<float>(bits & 0xFFFF0000U));
}

// Is rope_parameters told by kinds of layers?
bool tells_kinds(const ConfigReader& config) {
  const ParsedJson* ropes = object_in(config, "rope_parameters");
  return ropes != nullptr && !ropes->empty();
}

// The first rope is of layers that see all; layers with a window have this one.
void add_window_rope(ConfigReader& config, const ModuleTree& tree, RopeRule rule,
                     const std::function<bool(std::uint64_t)>& otherwise, Hyperparameters& h) {
  h.ropes.push_back(std::move(rule));
  const Quantity layers("num_hidden_layers", tree.layers);
  for (const std::uint64_t layer : blocks::windowed_layers(config, layers, otherwise))
    h.rope_of.at(layer) = 1;
}

// layer_rope_theta: a base for each layer, 0 where nothing rotates.
void read_layer_thetas(ConfigReader& config, const ModuleTree& tree, Hyperparameters& h) {
  const ParsedJson& text = config.config().text();
  const auto told = text.find("layer_rope_theta");
  if (told == text.end() || told->is_null()) return;
  config.require(told->is_array() && told->size() >= tree.layers,
                 "layer_rope_theta is no list with a base for each layer");
  const RopeRule common = h.ropes.front();
  h.ropes.clear();
  for (std::uint64_t layer = 0; layer < tree.layers; ++layer) {
    const double theta = config.to_real((*told)[layer], "layer_rope_theta", 0, 1e15);
    if (theta == 0) {
      h.rope_of.at(layer).reset();
      continue;
    }
    const auto same = std::find_if(h.ropes.begin(), h.ropes.end(),
                                   [&](const RopeRule& rule) { return rule.theta == theta; });
    h.rope_of.at(layer) = static_cast<std::size_t>(same - h.ropes.begin());
    if (same != h.ropes.end()) continue;
    h.ropes.push_back(common);
    h.ropes.back().theta = theta;
  }
}

}  // namespace

Hyperparameters forward_aria_text(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kAriaClass);
}
// DeepSeek-V3's choice, under Kimi's keys as well.
Hyperparameters forward_bailing_hybrid(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h =
      read_forward(config, tree, {.rope = {.theta = 6e6, .context = 262144}, .interleaved = true});
  h.routing.renormalize = config.flag("norm_topk_prob|moe_renormalize", true);
  h.routing.scale = config.real("routed_scaling_factor", 2.5, -1e6, 1e6);
  h.routing.groups = config.number("n_group|num_expert_group", 8);
  h.routing.chosen_groups = config.number("topk_group", 4);
  require_groups(config, tree, h.routing);
  return h;
}
Hyperparameters forward_bitnet(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kBitnetClass);
}
// A kind of layers without rope_parameters rotates nothing.
Hyperparameters forward_cohere_compass(ConfigReader& config, const ModuleTree& tree) {
  constexpr ForwardClass kCompassClass = {.epsilon = 1e-5,
                                          .rope = {.context = 8192},
                                          .epsilon_key = "layer_norm_eps",
                                          .rotates = false,
                                          .head_scale = {"logit_scale", 1}};
  Hyperparameters h = read_forward(config, tree, kCompassClass);
  h.parallel_branches = true;
  const ParsedJson* ropes = object_in(config, "rope_parameters");
  const auto narrow = blocks::windowed_layers(config, Quantity("num_hidden_layers", tree.layers),
                                              [](std::uint64_t) { return false; });
  for (const bool windows : {false, true}) {
    const std::string kind = windows ? "sliding_attention" : "full_attention";
    if (ropes == nullptr || !ropes->contains(kind) || (*ropes)[kind].is_null()) continue;
    h.ropes.push_back(read_rope(config, tree.attention.at(0).qk_head_dim, kCompassClass.rope, kind));
    for (std::uint64_t i = 0; i < tree.layers; ++i) {
      const bool is_narrow = std::find(narrow.begin(), narrow.end(), i) != narrow.end();
      if (is_narrow == windows) h.rope_of.at(i) = h.ropes.size() - 1;
    }
  }
  return h;
}
Hyperparameters forward_diffllama(ConfigReader& config, const ModuleTree& tree) {
  const AttentionGeometry& heads = tree.attention.at(0);
  config.require(heads.kv_heads % 2 == 0 && heads.heads % 2 == 0,
                 "num_key_value_heads is odd: there are no two halves of heads");
  return read_forward(config, tree, kDiffllamaClass);
}
Hyperparameters forward_emu3(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kEmu3Class);
}
// Layers without a window rotate nothing.
Hyperparameters forward_flint(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.rope = {.context = 262144}});
  rotate_windows_only(tree, h);
  h.routing.renormalize = config.flag("norm_topk_prob", true);
  return h;
}
Hyperparameters forward_granite_swa(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kGraniteSwaClass);
  read_layer_thetas(config, tree, h);
  return h;
}
Hyperparameters forward_granitemoe_swa(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, kGraniteMoeSwaClass);
  read_layer_thetas(config, tree, h);
  return h;
}

// As EXAONE 4: where there are windows, layers without one rotate nothing.
Hyperparameters forward_kolibri1(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.rope = {.context = 262144}});
  if (!config.is_null("sliding_window")) rotate_windows_only(tree, h);
  h.routing.renormalize = config.flag("norm_topk_prob", false);
  return h;
}

// Kinds of layers have a base and a rotating part each: those of the class where the config tells of none.
Hyperparameters forward_laguna(ConfigReader& config, const ModuleTree& tree) {
  const bool told = tells_kinds(config);
  ForwardClass of_class = {.rope = kLagunaFull};
  RopeClass local = {
      .theta = 10000, .context = 131072, .partial = true, .part_keys = kNoKey, .theta_key = kNoKey};
  if (told) of_class.layer_type = "full_attention", of_class.rope.part = 1;
  Hyperparameters h = read_forward(config, tree, of_class);
  add_window_rope(
      config, tree,
      read_rope(config, tree.attention.at(0).qk_head_dim, local, told ? "sliding_attention" : ""),
      [](std::uint64_t) { return false; }, h);
  h.routing.renormalize = true;
  h.routing.scale = config.real("moe_routed_scaling_factor", 1, 0, 1e6);
  return h;
}

// Both kinds of layers that attend have a rope: of those that see all half of the pairs turn.
Hyperparameters forward_lfm3(ConfigReader& config, const ModuleTree& tree) {
  const bool told = tells_kinds(config);
  constexpr RopeClass kFull = {.theta = 1e6, .context = 128000}, kLocal = {.theta = 10000, .context = 128000};
  Hyperparameters h = read_forward(config, tree,
                                   {.epsilon = 1e-5,
                                    .rope = kFull,
                                    .activation_key = {},
                                    .layer_type = told ? "full_attention" : "",
                                    .epsilon_key = "norm_eps|rms_norm_eps"});
  if (h.ropes.empty()) return h;
  const std::size_t width = tree.attention.front().qk_head_dim;
  if (!told) {
    h.ropes.front().type = RopeRule::Type::proportional;
    h.ropes.front().moving_pairs = width / 4;
  }
  h.ropes.push_back(read_rope(config, width, kLocal, told ? "sliding_attention" : ""));
  const auto kinds = config.texts("layer_types");
  for (std::uint64_t i = 0; i < tree.layers; ++i) {
    const bool narrow = kinds ? (*kinds)[i] == "sliding_attention" : i % 4 == 0 && i > 0;
    if (narrow) h.rope_of.at(i) = 1;
  }
  return h;
}

// MiniMax-01 and M1 as they are published rotate a part of a head, rotary_dim, which the class of transformers does not know.
Hyperparameters forward_minimax(ConfigReader& config, const ModuleTree& tree) {
  ForwardClass of_class = {.epsilon = 1e-5, .rope = {.theta = 1e6, .context = 131072}};
  if (!tree.attention.empty() && config.has("rotary_dim") && !config.is_null("rotary_dim")) {
    of_class.rope.partial = true;
    of_class.rope.part =
        config.real("rotary_dim", 0, 0, 1e6) / static_cast<double>(tree.attention.front().qk_head_dim);
  }
  Hyperparameters h = read_forward(config, tree, of_class);
  h.routing.renormalize = true;
  return h;
}

Hyperparameters forward_mllama(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, kMllamaClass);
}

Hyperparameters forward_modernbert_decoder(ConfigReader& config, const ModuleTree& tree) {
  const bool told = tells_kinds(config);
  ForwardClass of_class = {.epsilon = 1e-5,
                           .rope = kModernbertFull,
                           .activation_key = "hidden_activation",
                           .activation = "gelu",
                           .epsilon_key = "norm_eps"};
  if (told) of_class.layer_type = "full_attention";
  Hyperparameters h = read_forward(config, tree, of_class);
  const std::uint64_t every = config.size("global_attn_every_n_layers", 3).value();
  add_window_rope(
      config, tree,
      read_rope(config, tree.attention.at(0).qk_head_dim, kModernbertLocal, told ? "sliding_attention" : ""),
      [=](std::uint64_t i) { return i % every != 0; }, h);
  const bool narrow = std::any_of(h.rope_of.begin(), h.rope_of.end(), [](const auto& of) { return of == 1; });
  config.require(!narrow || config.number("sliding_window", config.number("local_attention", 128) / 2) >= 1,
                 "local_attention is less than 2: a window that shows nothing");
  return h;
}

Hyperparameters forward_nemotron_nas(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, {});
}

// The embedding's factor is a number of bfloat16, whatever the weights are.
Hyperparameters forward_recurrent_gemma(ConfigReader& config, const ModuleTree& tree) {
  constexpr ForwardClass kGriffinClass = {.rope = {.partial = true, .part = 0.5},
                                          .activation_key = "hidden_activation",
                                          .activation = "gelu_pytorch_tanh"};
  Hyperparameters h = read_forward(config, tree, kGriffinClass);
  h.embedding_scale = as_bfloat16(std::sqrt(static_cast<double>(tree.hidden_size)));
  h.final_cap = config.real("logits_soft_cap", 30, 1e-6, 1e9);
  return h;
}

Hyperparameters forward_zamba2(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree,
                      {.epsilon = 1e-5,
                       .rope = {.context = 4096},
                       .activation = "gelu",
                       .rotates = config.flag("use_mem_rope", false)});
}

}  // namespace assay::families
