// Decoders of 2026 without new blocks: Laguna (heads by layer, a gate of their outputs, experts), MiniMax-01 and M1
// (lightning attention beside softmax), Granite with windows and sinks; and DiffLlama.
#include <set>
#include <utility>

#include "core/model/families/all.h"
#include "core/model/families/forward_2026.h"
#include "core/model/families/llama_kin.h"
#include "core/system/json.h"

namespace assay::families {
namespace {

using namespace blocks;

// True or "per-head": one value a head; else one for each of a head's outputs.
bool gates_are_wide(ConfigReader& config) {
  const ParsedJson& text = config.config().text();
  const auto found = text.find("gating");
  if (found == text.end()) return false;
  return !(*found == true || *found == "per-head");
}

Mixture read_laguna_experts(ConfigReader& config, ModuleTree& tree, const Decoder& d) {
  Mixture m{d.hidden,
            read_experts(config, tree, "num_experts|num_local_experts", 256, "num_experts_per_tok", 8),
            config.size("moe_intermediate_size", 512)};
  m.shared_width = config.size("shared_expert_intermediate_size", 512);
  m.shared_path = "shared_expert";
  m.correction = "experts.e_score_correction_bias";
  return m;
}

// Its gates have no bias where the other matrices have one.
Module gated_attention(const HeadAttention& a, bool wide) {
  Module module = attention(a);
  add_linear(module, {.name = "g_proj",
                      .in = a.hidden,
                      .out = wide ? a.heads * a.head_dim : a.heads,
                      .role = Role::attention_gate,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .units = a.heads.value()});
  return module;
}

void describe_laguna(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 100352,
                                  .hidden = 2048,
                                  .intermediate = 8192,
                                  .layers = 40,
                                  .heads = 48,
                                  .kv_heads = 8,
                                  .head_dim = 128});
  const Mixture experts = read_laguna_experts(config, tree, d);
  HeadAttention a = d.attention();
  a.qk_norm = QkNorm::per_head;
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  const bool wide = gates_are_wide(config);
  const auto heads = layer_numbers(config, "num_attention_heads_per_layer", d.layers);
  const auto types = layer_texts(config, "mlp_layer_types", d.layers);
  const auto heads_of = [&](std::uint64_t i) { return heads ? (*heads)[i] : d.heads.value(); };
  const auto is_sparse = [&](std::uint64_t i) { return types ? (*types)[i] == "sparse" : i > 0; };
  const auto attention_of = [&](std::uint64_t i) {
    HeadAttention of_layer = a;
    if (heads) of_layer.heads = Quantity("num_attention_heads_per_layer", heads_of(i));
    config.require_divides(of_layer.kv_heads, of_layer.heads);
    return of_layer;
  };
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        const std::string kind = is_sparse(i) ? "MoE layers" : "dense layers";
        return heads ? kind + " of " + std::to_string(heads_of(i)) + " heads" : kind;
      },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {gated_attention(attention_of(i), wide),
                          is_sparse(i) ? mixture(experts) : gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups);

  const std::uint64_t window = config.optional_number("sliding_window", 512).value_or(0);
  const auto windowed = windowed_layers(config, d.layers, [](std::uint64_t) { return false; });
  const std::set<std::uint64_t> narrow(windowed.begin(), windowed.end());
  std::set<std::pair<std::uint64_t, bool>> kinds;
  for (std::uint64_t i = 0; i < d.layers.value(); ++i) kinds.insert({heads_of(i), narrow.contains(i)});
  for (const auto& [count, is_narrow] : kinds) {
    const auto same = layers_where(d.layers, [&, count = count, is_narrow = is_narrow](std::uint64_t i) {
      return heads_of(i) == count && narrow.contains(i) == is_narrow;
    });
    tree.attention.push_back(geometry(attention_of(same.front()), same, is_narrow ? window : 0));
  }
}

// Lightning attention (arXiv 2501.08313): S ← λS + kᵀv with a decay λ of the head, o = qS; its decays are computed.
Module lightning_attention(const HeadAttention& a, const Quantity& block) {
  Module module{"self_attn", "lightning attention", {}, {}, {}};
  const Quantity width = a.heads * a.head_dim;
  const std::uint64_t w = width.value(), h = a.heads.value(), b = block.value();
  add_linear(module, {.name = "qkv_proj",
                      .in = a.hidden,
                      .out = Quantity(3) * width,
                      .role = Role::recurrent_in,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .members = {{Role::q, w, h}, {Role::k, w, h}, {Role::v, w, h}},
                      .interleaved = true});
  add_linear(module, {.name = "output_gate",
                      .in = a.hidden,
                      .out = width,
                      .role = Role::recurrent_gate,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .units = h});
  add_norm(module, "norm", width, Role::recurrent_norm, false, Part::attention);
  add_linear(module, {.name = "out_proj",
                      .in = width,
                      .out = a.hidden,
                      .role = Role::recurrent_out,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = h});
  add_buffer(module, "slope_rate", {h, 1, 1});
  add_buffer(module, "query_decay", {h, b, 1});
  add_buffer(module, "key_decay", {h, b, 1});
  add_buffer(module, "diagonal_decay", {1, h, b, b});
  return module;
}

// attn_type_list, where the files of the first release have it: 0 is lightning attention.
std::function<bool(std::uint64_t)> lightning_layers(ConfigReader& config, const Decoder& d) {
  if (const auto kinds = layer_numbers(config, "attn_type_list", d.layers))
    return [kinds](std::uint64_t i) { return (*kinds)[i] == 0; };
  if (const auto types = layer_texts(config, "layer_types", d.layers))
    return [types](std::uint64_t i) { return (*types)[i] == "linear_attention"; };
  return [](std::uint64_t i) { return i % 2 == 1; };
}

void describe_minimax(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 32000, .hidden = 4096, .intermediate = 14336, .layers = 32, .heads = 32, .kv_heads = 8});
  Mixture m{d.hidden,
            read_experts(config, tree, "num_local_experts|num_experts", 8, "num_experts_per_tok", 2),
            d.intermediate};
  m.path = "block_sparse_moe";
  m.gate = "w1", m.up = "w3", m.down = "w2";
  const HeadAttention a = d.attention();
  const Quantity block = config.size("block_size", 256);
  const auto is_lightning = lightning_layers(config, d);
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return is_lightning(i) ? "lightning MoE layers" : "attention MoE layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {is_lightning(i) ? lightning_attention(a, block) : attention(a), mixture(m)};
      });
  add_frame(tree, d, groups);
  const auto lightning = layers_where(d.layers, is_lightning);
  const auto others = layers_where(d.layers, [&](std::uint64_t i) { return !is_lightning(i); });
  if (!others.empty()) tree.attention.push_back(geometry(a, others));
  if (lightning.empty()) return;
  tree.recurrent.push_back({.title = "lightning attention",
                            .layers = lightning,
                            .heads = a.heads.value(),
                            .state_values = (a.heads * a.head_dim * a.head_dim).value()});
}

void describe_granite_swa(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {.sizes = {.vocabulary = 100352,
                            .hidden = 2560,
                            .intermediate = 8192,
                            .layers = 24,
                            .heads = 20,
                            .kv_heads = 4,
                            .tied = true},
                  .mlp_bias_keys = "mlp_bias",
                  .windows = true,
                  .window = 128,
                  .windowed = [](std::uint64_t i) { return i % 4 != 0; }};
  kin.heads.sinks = true;
  describe_kin(config, tree, kin);
}

// Two maps of attention, the second taken from the first by a learnt part.
void describe_diffllama(ConfigReader& config, ModuleTree& tree) {
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 32000, .hidden = 2048, .intermediate = 8192, .layers = 16, .heads = 32},
       .more = [](ConfigReader&, const Decoder& d, Module& attention, Module&) {
         for (const char* name : {"lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"})
           attention.tensors.push_back(parameter(name, {d.head_dim}, Role::attention_gate, Part::attention));
       }});
}

constexpr std::string_view kLagunaArchitectures[] = {"LagunaForCausalLM"}, kLagunaTypes[] = {"laguna"};
constexpr std::string_view kMinimaxArchitectures[] = {"MiniMaxForCausalLM", "MiniMaxText01ForCausalLM",
                                                      "MiniMaxM1ForCausalLM"},
                           kMinimaxTypes[] = {"minimax", "minimax_text_01", "minimax_m1"};
constexpr std::string_view kGraniteSwaArchitectures[] = {"GraniteSWAForCausalLM"},
                           kGraniteSwaTypes[] = {"granite_swa"};
constexpr std::string_view kDiffArchitectures[] = {"DiffLlamaForCausalLM"}, kDiffTypes[] = {"diffllama"};

}  // namespace

const Family kLaguna = {"laguna", "Laguna",        kLagunaArchitectures, kLagunaTypes,
                        {},       describe_laguna, forward_laguna};
const Family kMinimax = {"minimax", "MiniMax-01, MiniMax-M1", kMinimaxArchitectures, kMinimaxTypes,
                         {},        describe_minimax,         forward_minimax};
const Family kGraniteSwa = {
    "granite_swa",        "Granite with windows", kGraniteSwaArchitectures, kGraniteSwaTypes, {},
    describe_granite_swa, forward_granite_swa};
const Family kDiffllama = {"diffllama", "DiffLlama",        kDiffArchitectures, kDiffTypes,
                           {},          describe_diffllama, forward_diffllama};

}  // namespace assay::families
