// Zamba (Zyphra, arXiv 2405.16712) and Zamba2 (arXiv 2411.15242): a state space in every layer, and in front of it in some a
// transformer block that reads the stream beside the embedding. One such block serves all those layers; in Zamba2 a few take
// turns, and each time q, k, v and gate_up have a matrix of low rank of their own.
//
//   t = linear(mlp(norm(attention(norm([x | embedding])))))   in hybrid layers, else 0
//   x = x + mamba(norm(x + t))
//
// Heads are twice as wide as the stream's share of them, and scores are divided by the root of half their width.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "refimpl/models/activation_name.h"
#include "refimpl/models/kin_rules.h"
#include "refimpl/models/own_layers.h"

namespace assay {
namespace {

constexpr double kScanEpsilon = 1e-5;

// W x + B A x, the second where there is one.
struct Adapted {
  WeightView weight, bias, down, up;

  Matrix operator()(const Matrix& x, Ops& ops) const {
    const Matrix y = ops.linear(x, weight, bias);
    return down ? ops.add(y, ops.linear(ops.linear(x, down), up)) : y;
  }
};

struct SharedBlock {
  Norm input_norm, mlp_norm;
  Adapted q, k, v, gate_up;
  WeightView gate, up;  // in place of gate_up
  WeightView o, down, down_bias, linear;
};

struct ZambaLayer {
  std::optional<SharedBlock> block;
  Norm norm;
  std::unique_ptr<RecurrentMixer> mamba;
};

// What the two have of their own.
struct ZambaForm {
  std::string_view block;  // path within a layer
  std::size_t blocks = 1;  // that take turns
  std::function<std::unique_ptr<RecurrentMixer>(std::size_t layer)> mamba;
};

// `first`: the layer that keeps the block; `turn`: how many hybrid layers are in front of this one.
SharedBlock read_block(const Weights& weights, const ZambaForm& form, std::size_t layer, std::size_t first,
                       std::size_t turn, const NormRule& rule) {
  const std::string block = fmt::format("model.layers.{}.{}.", first, form.block);
  const auto get = [&](const std::string& name) { return named_weight(weights, block + name); };
  const auto adapted = [&](const std::string& matrix, const std::string& adapter) {
    const std::string of_turn = fmt::format("{}{}_adapter_list.{}.", block, adapter, turn);
    return Adapted{get(matrix + ".weight"), weights.find_named(block + matrix + ".bias"),
                   weights.find_named(of_turn + "0.weight"), weights.find_named(of_turn + "1.weight")};
  };
  SharedBlock b;
  b.input_norm = Norm(get("input_layernorm.weight"), {}, rule);
  b.mlp_norm = Norm(get("pre_ff_layernorm.weight"), {}, rule);
  b.q = adapted("self_attn.q_proj", "self_attn.linear_q");
  b.k = adapted("self_attn.k_proj", "self_attn.linear_k");
  b.v = adapted("self_attn.v_proj", "self_attn.linear_v");
  b.gate = weights.find_named(block + "feed_forward.gate_proj.weight");
  if (b.gate)
    b.up = get("feed_forward.up_proj.weight");
  else
    b.gate_up = adapted("feed_forward.gate_up_proj", "feed_forward.gate_up_proj");
  b.o = get("self_attn.o_proj.weight");
  b.down = get("feed_forward.down_proj.weight");
  b.down_bias = weights.find_named(block + "feed_forward.down_proj.bias");
  b.linear = named_weight(weights, fmt::format("model.layers.{}.linear.weight", layer));
  return b;
}

// Blocks are stored with one layer and used by others, so that a stage of a pipeline would lack them.
class Zamba final : public OwnLayers {
 public:
  Zamba(const Weights& weights, const ZambaForm& form)
      : OwnLayers(weights, {.epsilon = hyperparameters(weights.tree()).epsilon}),
        activation_{.activation = activation_of(settings(), weights.config())} {
    const NormRule rule = {.epsilon = settings().epsilon};
    std::vector<std::uint64_t> hybrid;
    if (!weights.tree().attention.empty()) {
      geometry_ = weights.tree().attention.front();
      hybrid = geometry_.layers;
    }
    for (std::size_t i = 0; i < weights.tree().layers; ++i) {
      ZambaLayer layer;
      const auto place = std::find(hybrid.begin(), hybrid.end(), i);
      const bool attends = place != hybrid.end();
      if (attends) {
        const auto turn = static_cast<std::size_t>(place - hybrid.begin());
        layer.block = read_block(weights, form, i, hybrid[turn % form.blocks], turn, rule);
      }
      layer.norm = Norm(named_weight(weights, fmt::format("model.layers.{}.{}input_layernorm.weight", i,
                                                          attends ? "mamba_decoder." : "")),
                        {}, rule);
      layer.mamba = form.mamba(i);
      layers_.push_back(std::move(layer));
    }
  }

 protected:
  CacheWidth cache_width(std::size_t index) const override {
    const ZambaLayer& layer = layers_[index];
    CacheWidth width =
        cache_of_heads(layer.block ? geometry_.kv_heads : 0, geometry_.qk_head_dim, geometry_.qk_head_dim);
    width.states = layer.mamba->states();
    return width;
  }

  Matrix layer(std::size_t index, const Matrix& x, const OwnStep& step, const TapScope& at,
               std::vector<Matrix>&) const override {
    const ZambaLayer& l = layers_[index];
    Ops& ops = step.ops;
    const Matrix seen = l.block ? ops.add(x, block(*l.block, index, x, step, at)) : x;
    const Matrix normed = l.norm(seen, ops);
    at("mixer_norm", normed);
    const Matrix mixed = l.mamba->forward(normed, index, step.batch, ops, at);
    at("mixer_out", mixed);
    return ops.add(x, mixed);
  }

 private:
  Matrix block(const SharedBlock& b, std::size_t index, const Matrix& x, const OwnStep& step,
               const TapScope& at) const {
    Ops& ops = step.ops;
    const Matrix wide = b.input_norm(ops.concatenate(x, step.embedding), ops);  // [tokens, 2 hidden]
    at("attn_norm", wide);
    const Matrix attended = ops.linear(attend(b, index, wide, step, at), b.o);
    at("attn_out", attended);
    const Matrix fed = b.mlp_norm(attended, ops);
    at("mlp_norm", fed);
    const Matrix out = ops.linear(inner(b, fed, ops), b.down, b.down_bias);
    at("mlp_out", out);
    return ops.linear(out, b.linear);
  }

  Matrix inner(const SharedBlock& b, const Matrix& x, Ops& ops) const {
    if (b.gate) return ops.gated_activation(ops.linear(x, b.gate), ops.linear(x, b.up), activation_);
    const Matrix both = b.gate_up(x, ops);
    const std::size_t width = both.columns() / 2;
    return ops.gated_activation(both.part(0, width), both.part(width, width), activation_);
  }

  Matrix attend(const SharedBlock& b, std::size_t index, const Matrix& x, const OwnStep& step,
                const TapScope& at) const {
    Ops& ops = step.ops;
    const Matrix q = b.q(x, ops), k = b.k(x, ops), v = b.v(x, ops);
    const std::size_t width = geometry_.qk_head_dim;
    if (!step.angles.empty()) {
      const RopeAngles& angles = step.angles.front();
      for (const auto& [of, heads] : {std::pair{q, geometry_.heads}, {k, geometry_.kv_heads}})
        ops.rope(of, {.heads = heads, .head_dim = width, .cos = angles.cos, .sin = angles.sin});
    }
    at("q", q), at("k", k), at("v", v);
    AttentionCall call = {.q = q,
                          .sequences = {},
                          .heads = geometry_.heads,
                          .kv_heads = geometry_.kv_heads,
                          .qk_dim = width,
                          .v_dim = width,
                          .scale = 1 / std::sqrt(static_cast<double>(width) / 2)};
    const Matrix context = attend_to_cache(std::move(call), k, v, index, step.batch, ops);
    at("attn_context", context);
    return context;
  }

  GatedActivation activation_;
  AttentionGeometry geometry_;
  std::vector<ZambaLayer> layers_;
};

std::unique_ptr<LanguageModel> make_zamba(const Weights& weights, const ModelOptions& options) {
  require_safetensors(weights);
  require_all_heads(weights);
  const std::size_t groups = ConfigReader(weights.config(), "Zamba").size("n_mamba_heads", 2).value();
  const RecurrentForm recurrent = {.scan = options.scan};
  return std::make_unique<Zamba>(weights, ZambaForm{"shared_transf", 1, [&](std::size_t layer) {
                                                      return read_grouped_mamba(weights, layer, groups,
                                                                                recurrent);
                                                    }});
}

std::unique_ptr<LanguageModel> make_zamba2(const Weights& weights, const ModelOptions& options) {
  require_safetensors(weights);
  require_all_heads(weights);
  ConfigReader config(weights.config(), "Zamba2");
  RecurrentForm recurrent = {.epsilon = kScanEpsilon, .scan = options.scan};
  recurrent.least_step = config.real("time_step_min", 0.001, 0, 1e9);
  return std::make_unique<Zamba>(
      weights, ZambaForm{"shared_transformer", config.size("num_mem_blocks", 1).value(),
                         [&](std::size_t layer) { return read_mamba2(weights, layer, recurrent); }});
}

constexpr std::string_view kZambaFamilies[] = {"zamba"}, kZamba2Families[] = {"zamba2"};
constexpr std::string_view kZambaUsed[] = {"vocab_size",
                                           "hidden_size",
                                           "intermediate_size",
                                           "num_hidden_layers",
                                           "num_attention_heads",
                                           "rms_norm_eps",
                                           "max_position_embeddings",
                                           "tie_word_embeddings",
                                           "hidden_act",
                                           "num_key_value_heads",
                                           "attention_head_dim",
                                           "head_dim",
                                           "attention_hidden_size",
                                           "layers_block_type",
                                           "layer_types",
                                           "attn_layer_period",
                                           "attn_layer_offset",
                                           "n_mamba_heads",
                                           "mamba_d_state",
                                           "mamba_d_conv",
                                           "mamba_expand",
                                           "mamba_dt_rank",
                                           "mamba_conv_bias",
                                           "mamba_proj_bias"};
constexpr auto kZamba2Used = decoder_keys(
    {"hidden_act", "num_key_value_heads", "layers_block_type", "layer_types", "mamba_d_state", "mamba_d_conv",
     "mamba_expand", "mamba_ngroups", "n_mamba_heads", "time_step_min", "add_bias_linear", "num_mem_blocks",
     "use_shared_attention_adapter", "adapter_rank", "use_mem_rope"});
// Widths that follow from others; how a scan is dealt out; what makes steps at the beginning of training.
constexpr std::string_view kZambaIdle[] = {"use_mamba_kernels", "use_associative_scan", "time_step_min",
                                           "time_step_max",     "time_step_floor",      "num_logits_to_keep"};
constexpr std::string_view kZamba2Idle[] = {
    "attention_head_dim", "head_dim",         "attention_hidden_size", "mamba_headdim",
    "kv_channels",        "num_query_groups", "use_conv_bias",         "use_mamba_kernels",
    "use_mem_eff_path",   "chunk_size",       "time_step_max",         "time_step_floor",
    "time_step_limit",    "hybrid_layer_ids", "num_logits_to_keep",    "conv_dimension",
    "ffn_hidden_size",    "lora_rank",        "mamba_chunk_size"};
constexpr FixedKey kZambaFixed[] = {{"hidden_mamba_act", "\"silu\""}};
constexpr FixedKey kZamba2Fixed[] = {{"use_long_context", "false"}};

}  // namespace

const ModelRule kZambaRule = {kZambaFamilies, {}, {kZambaUsed, kZambaIdle, kZambaFixed}, make_zamba};
const ModelRule kZamba2Rule = {kZamba2Families, {}, {kZamba2Used, kZamba2Idle, kZamba2Fixed}, make_zamba2};

}  // namespace assay
