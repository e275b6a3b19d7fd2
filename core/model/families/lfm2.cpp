// LFM2 and LFM2-MoE: gated short convolutions in most layers, normed attention in the others.
#include "core/model/families/all.h"
#include "core/model/families/forward.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// block_auto_adjust_ff_dim: two thirds of intermediate_size, times block_ffn_dim_multiplier, rounded up to whole
// block_multiple_of (modeling_lfm2.py, Lfm2MLP).
Quantity adjusted_width(ConfigReader& config, const Quantity& given) {
  if (!config.flag("block_auto_adjust_ff_dim", true)) return given;
  std::uint64_t width = 2 * given.value() / 3;
  if (!config.is_null("block_ffn_dim_multiplier")) {
    const double factor = config.real("block_ffn_dim_multiplier", 1, 0, 1e6);
    const std::uint64_t multiple = config.size("block_multiple_of", 256).value();
    width = static_cast<std::uint64_t>(factor * static_cast<double>(width));
    width = (width + multiple - 1) / multiple * multiple;
  }
  config.require(width > 0 && width <= (std::uint64_t{1} << 32U),
                 "block_ffn_dim_multiplier makes an MLP of no width, or an absurd one");
  return {"adjusted intermediate_size", width};
}

struct Lfm2 {
  Decoder d;
  HeadAttention attention;
  ShortConvolution conv;
  GatedMlp mlp;
};

Lfm2 read_lfm2(ConfigReader& config, ModuleTree& tree, const DecoderDefaults& defaults) {
  Lfm2 l;
  l.d = read_decoder(config, tree, defaults);
  l.d.tied = tree.tied_embeddings = config.flag("tie_embedding", l.d.tied);
  l.attention = l.d.attention();
  l.attention.qk_norm = QkNorm::per_head;
  l.attention.q_norm = "q_layernorm", l.attention.k_norm = "k_layernorm";
  l.attention.o = "out_proj";
  l.conv = {l.d.hidden, config.size("conv_L_cache", 3), config.flag("conv_bias", false)};
  l.mlp = {l.d.hidden, l.d.intermediate, "feed_forward"};
  l.mlp.gate = "w1", l.mlp.up = "w3", l.mlp.down = "w2";
  return l;
}

void add_lfm2_layers(ConfigReader& config, ModuleTree& tree, const Lfm2& l,
                     const std::function<bool(std::uint64_t)>& is_attention,
                     const std::function<Module(std::uint64_t)>& feed_forward,
                     const std::function<bool(std::uint64_t)>& is_sparse) {
  const auto groups = group_layers(
      "model.layers.{layer}", l.d.layers,
      [&](std::uint64_t i) {
        return std::string(is_attention(i) ? "attention" : "convolution") +
               (is_sparse(i) ? " MoE layers" : " layers");
      },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "operator_norm", l.d.hidden, Role::input_norm);
        add_norm(layer, "ffn_norm", l.d.hidden, Role::pre_feedforward_norm);
        layer.children = {is_attention(i) ? attention(l.attention) : short_convolution(l.conv),
                          feed_forward(i)};
      });
  Frame frame;
  frame.final_norm = "model.embedding_norm";
  add_frame(tree, l.d, groups, frame);
  const auto attending = layers_where(l.d.layers, is_attention);
  const auto convolving = layers_where(l.d.layers, [&](std::uint64_t i) { return !is_attention(i); });
  if (!attending.empty()) tree.attention.push_back(geometry(l.attention, attending));
  if (!convolving.empty()) tree.recurrent.push_back(geometry(l.conv, convolving));
  config.require(!attending.empty() || !convolving.empty(), "there are no layers");
}

// layer_types, or full_attn_idxs, or attention everywhere.
std::function<bool(std::uint64_t)> attention_layers(ConfigReader& config, const Quantity& count) {
  if (const auto types = layer_texts(config, "layer_types", count))
    return [types](std::uint64_t i) { return (*types)[i] == "full_attention"; };
  const auto listed = config.numbers("full_attn_idxs");
  if (!listed) return [](std::uint64_t) { return true; };
  return [listed](std::uint64_t i) { return std::find(listed->begin(), listed->end(), i) != listed->end(); };
}

void describe_lfm2(ConfigReader& config, ModuleTree& tree) {
  Lfm2 l = read_lfm2(config, tree,
                     {.vocabulary = 65536,
                      .hidden = 2560,
                      .intermediate = 12288,
                      .layers = 32,
                      .heads = 32,
                      .kv_heads = 8,
                      .tied = true});
  if (config.has("block_ff_dim")) l.mlp.intermediate = config.size("block_ff_dim");
  l.mlp.intermediate = adjusted_width(config, l.mlp.intermediate);
  add_lfm2_layers(
      config, tree, l, attention_layers(config, l.d.layers), [&](std::uint64_t) { return gated_mlp(l.mlp); },
      [](std::uint64_t) { return false; });
}

void describe_lfm2_moe(ConfigReader& config, ModuleTree& tree) {
  const Lfm2 l = read_lfm2(config, tree,
                           {.vocabulary = 65536,
                            .hidden = 2048,
                            .intermediate = 7168,
                            .layers = 32,
                            .heads = 32,
                            .kv_heads = 8,
                            .tied = true});
  Mixture m{l.d.hidden,
            read_experts(config, tree, "num_experts|num_local_experts", 32, "num_experts_per_tok", 4),
            config.size("moe_intermediate_size", 1792)};
  m.path = "feed_forward";
  m.gate = "w1", m.up = "w3", m.down = "w2";
  if (config.flag("use_expert_bias", true)) m.correction = "expert_bias";
  config.require(config.has("layer_types"), "layer_types is missing, and says which layers attend");
  const std::uint64_t dense = config.number("num_dense_layers", 2);
  const auto is_sparse = [=](std::uint64_t i) { return i >= dense; };
  add_lfm2_layers(
      config, tree, l, attention_layers(config, l.d.layers),
      [&](std::uint64_t i) { return is_sparse(i) ? mixture(m) : gated_mlp(l.mlp); }, is_sparse);
}

Hyperparameters read_lfm2_forward(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(
      config, tree, {.rope = {.theta = 1e6, .context = 128000}, .activation_key = "", .activation = "silu"});
  h.epsilon = config.real("norm_eps", 1e-5, 0, 1);
  return h;
}

Hyperparameters read_lfm2_moe_forward(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_lfm2_forward(config, tree);
  h.routing.renormalize = config.flag("norm_topk_prob", true);
  h.routing.scale = config.real("routed_scaling_factor", 1, 0, 1e6);
  return h;
}

constexpr std::string_view kLfm2Architectures[] = {"Lfm2ForCausalLM", "LFM2ForCausalLM"},
                           kLfm2Types[] = {"lfm2"};
constexpr std::string_view kLfm2MoeArchitectures[] = {"Lfm2MoeForCausalLM"}, kLfm2MoeTypes[] = {"lfm2_moe"};

}  // namespace

const Family kLfm2 = {"lfm2", "LFM2", kLfm2Architectures, kLfm2Types, {}, describe_lfm2, read_lfm2_forward};
const Family kLfm2Moe = {"lfm2_moe", "LFM2 with experts", kLfm2MoeArchitectures, kLfm2MoeTypes,
                         {},         describe_lfm2_moe,   read_lfm2_moe_forward};

}  // namespace assay::families
