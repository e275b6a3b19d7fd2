// MiMo-7B: Qwen2 with layers for multi-token prediction. MiMo-V2-Flash: windows in most layers, which have heads of
// their own and sinks, values narrower than keys, DeepSeek-V3's experts, three dense layers for prediction.
// V2.5 and V2-Omni: that with queries, keys and values in one matrix, eyes and ears.
// Naive-N0.5-Flash: that with an indexer where a layer sees all, and nothing that predicts.
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/all_hub.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/mixture_forward.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

// modeling_mimo.py and vLLM's mimo_mtp.py.
void describe_mimo(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 151680,
                                  .hidden = 4096,
                                  .intermediate = 11008,
                                  .layers = 36,
                                  .heads = 32,
                                  .kv_heads = 8,
                                  .head_dim = 128});
  HeadAttention a = d.attention();
  a.qkv_bias = config.flag("attention_bias", true);
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), gated_mlp(d.mlp())};
  add_frame(tree, d, {layer});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
  const std::uint64_t predicted = read_mtp_layers(config, 0);
  if (predicted == 0) return;
  Module mtp = layers("model.mtp_layers.{layer}", "multi-token prediction", all_layers(Quantity(predicted)));
  mtp.tensors = layer.tensors;
  mtp.children = layer.children;
  mtp.children.push_back(
      mtp_own(d.hidden, {"token_layernorm", "hidden_layernorm", "input_proj", "final_layernorm"}));
  tree.mtp.push_back(std::move(mtp));
  tree.mtp_attention.push_back(geometry(a, layers_after(d.layers, predicted)));
}

struct MimoHeads {
  HeadAttention full, windowed;
  bool fused = false;
};
MimoHeads read_mimo_heads(ConfigReader& config, const Decoder& d) {
  MimoHeads k;
  k.full = d.attention();
  k.full.v_head_dim = config.size("v_head_dim", 128);
  k.full.qkv_bias = config.flag("attention_bias", false);
  const std::string layout = config.text("attention_projection_layout", "split");
  config.require(layout == "split" || layout == "fused_qkv",
                 "attention_projection_layout: \"" + layout + "\" is neither split nor fused_qkv");
  k.fused = layout == "fused_qkv";
  k.windowed = k.full;
  k.windowed.heads = config.size("swa_num_attention_heads", d.heads);
  k.windowed.kv_heads = config.size("swa_num_key_value_heads", Quantity(2) * d.kv_heads);
  config.require_divides(k.windowed.kv_heads, k.windowed.heads);
  k.windowed.head_dim = config.size("swa_head_dim", d.head_dim);
  k.windowed.v_head_dim = config.size("swa_v_head_dim", *k.full.v_head_dim);
  k.full.sinks_name = k.windowed.sinks_name = "attention_sink_bias";
  k.windowed.sinks = config.flag("add_swa_attention_sink_bias", true);
  k.full.sinks = config.flag("add_full_attention_sink_bias", false);
  return k;
}

// Queries, keys and values, which are narrower, in one matrix where `fused`.
Module mimo_attention(const HeadAttention& a, bool fused) {
  Module module = attention(a);
  if (!fused) return module;
  std::erase_if(module.tensors, [](const TensorSpec& spec) {
    return spec.role == Role::q || spec.role == Role::k || spec.role == Role::v;
  });
  const Quantity q = a.heads * a.head_dim, k = a.kv_heads * a.head_dim, v = a.kv_heads * *a.v_head_dim;
  const std::uint64_t heads = a.heads.value(), keys = a.kv_heads.value();
  Module joined;
  add_linear(
      joined,
      {.name = "qkv_proj",
       .in = a.hidden,
       .out = q + k + v,
       .role = Role::qkv,
       .part = Part::attention,
       .partition = Partition::columns,
       .members = {{Role::q, q.value(), heads}, {Role::k, k.value(), keys}, {Role::v, v.value(), keys}},
       .bias = a.qkv_bias});
  module.tensors.insert(module.tensors.begin(), joined.tensors.begin(), joined.tensors.end());
  return module;
}

// hybrid_layer_pattern: 1 is a window; transformers writes layer_types, and takes every sixth layer and the first for
// those that see all where neither is there.
std::function<bool(std::uint64_t)> windows(ConfigReader& config, const Quantity& count) {
  if (const auto pattern = layer_numbers(config, "hybrid_layer_pattern", count, true))
    return [pattern](std::uint64_t i) { return (*pattern)[i] != 0; };
  const auto types = layer_texts(config, "layer_types", count, true);
  if (!types) return [](std::uint64_t i) { return i != 0 && (i + 1) % 6 != 0; };
  return [types](std::uint64_t i) { return (*types)[i] == "sliding_attention"; };
}

std::function<bool(std::uint64_t)> experts_in(ConfigReader& config, const Quantity& count) {
  if (const auto freq = layer_numbers(config, "moe_layer_freq", count, true))
    return [freq](std::uint64_t i) { return (*freq)[i] != 0; };
  if (const auto types = layer_texts(config, "mlp_layer_types", count, true))
    return [types](std::uint64_t i) { return (*types)[i] == "sparse"; };
  return [](std::uint64_t i) { return i > 0; };
}

void add_prediction(ConfigReader& config, ModuleTree& tree, const Decoder& d, const MimoHeads& k,
                    std::uint64_t window, std::uint64_t class_default) {
  const std::uint64_t count = read_mtp_layers(config, class_default);
  if (count == 0) return;
  Module layer = layers("model.mtp.layers.{layer}", "multi-token prediction", all_layers(Quantity(count)));
  add_norm(layer, "input_layernorm", d.hidden, Role::input_norm);
  add_norm(layer, "pre_mlp_layernorm", d.hidden, Role::pre_feedforward_norm);
  layer.children = {mimo_attention(k.windowed, k.fused), gated_mlp(d.mlp()),
                    mtp_own(d.hidden, {.final_norm = "final_layernorm"})};
  tree.mtp.push_back(std::move(layer));
  tree.mtp_attention.push_back(geometry(k.windowed, layers_after(d.layers, count), window));
}

// sliding_window_size counts the tokens before a query, sliding_window the query as well.
std::uint64_t mimo_window(ConfigReader& config) {
  return config.has("sliding_window_size") && !config.is_null("sliding_window_size")
             ? config.size("sliding_window_size").value() + 1
             : config.size("sliding_window", 129).value();
}

void describe_with_windows(ConfigReader& config, ModuleTree& tree, bool indexed) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 152576,
                                  .hidden = 4096,
                                  .intermediate = 16384,
                                  .layers = 48,
                                  .heads = 64,
                                  .kv_heads = 4,
                                  .head_dim = 192});
  const MimoHeads k = read_mimo_heads(config, d);
  Mixture m{d.hidden,
            read_experts(config, tree, "n_routed_experts|num_local_experts", 256, "num_experts_per_tok", 8),
            config.size("moe_intermediate_size", 2048)};
  m.correction = "gate.e_score_correction_bias";
  const std::uint64_t shared = config.optional_number("n_shared_experts").value_or(0);
  if (shared > 0) m.shared_width = Quantity("n_shared_experts", shared) * m.expert_width;
  const auto is_windowed = windows(config, d.layers), is_sparse = experts_in(config, d.layers);
  Module sees_all = mimo_attention(k.full, k.fused);
  std::optional<Indexer> index;
  if (indexed) {
    index = read_indexer(config, 16);
    sees_all.children.push_back(indexer("wq", d.hidden, d.hidden, *index));
  }
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return std::string(is_sparse(i) ? "MoE layers" : "dense layers") +
               (is_windowed(i) ? " with a window" : " that see all");
      },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden);
        layer.children = {is_windowed(i) ? mimo_attention(k.windowed, k.fused) : sees_all,
                          is_sparse(i) ? mixture(m) : gated_mlp(d.mlp())};
      });
  add_frame(tree, d, groups);
  const std::uint64_t window = indexed ? config.size("sliding_window", 128).value() : mimo_window(config);
  const auto windowed = layers_where(d.layers, is_windowed);
  const auto full = layers_where(d.layers, [&](std::uint64_t i) { return !is_windowed(i); });
  if (!full.empty()) tree.attention.push_back(geometry(k.full, full));
  if (!full.empty() && index) index->note(tree.attention.back());
  if (!windowed.empty()) tree.attention.push_back(geometry(k.windowed, windowed, window));
  // Of MiMo the repositories hold three, and no key of the config says so.
  add_prediction(config, tree, d, k, window, indexed ? 0 : 3);
}

void describe_mimo_v2(ConfigReader& config, ModuleTree& tree) {
  describe_with_windows(config, tree, false);
  add_mimo_towers(config, tree);
}
void describe_naive(ConfigReader& config, ModuleTree& tree) {
  describe_with_windows(config, tree, true);
}

constexpr std::string_view kMimoArchitectures[] = {"MiMoForCausalLM"};
constexpr std::string_view kMimoTypes[] = {"mimo"};
constexpr std::string_view kMimoV2Architectures[] = {"MiMoV2FlashForCausalLM", "MiMoV2ForCausalLM",
                                                     "MiMoV2OmniForCausalLM"};
constexpr std::string_view kMimoV2Types[] = {"mimo_v2_flash", "mimo_v2"};
constexpr std::string_view kNaiveArchitectures[] = {"NaiveN05FlashForCausalLM"};
constexpr std::string_view kNaiveTypes[] = {"naive_n05_flash"};

}  // namespace

const Family kMimo = {"mimo", "MiMo-7B", kMimoArchitectures, kMimoTypes, {}, describe_mimo, forward_mimo};
const Family kMimoV2 = {
    "mimo_v2_flash", "MiMo-V2-Flash, V2.5, V2-Omni", kMimoV2Architectures, kMimoV2Types, {}, describe_mimo_v2,
    forward_mimo_v2};
const Family kNaiveN05 = {
    "naive_n05_flash", "Naive-N0.5-Flash", kNaiveArchitectures, kNaiveTypes, {}, describe_naive, nullptr};

}  // namespace assay::families
