// Zamba2 (Zyphra, arXiv 2411.15242): Mamba-2 in every layer, and in front of it in some a transformer block that reads the stream
// beside the embedding. A few such blocks take turns; each time q, k, v and gate_up have a matrix of low rank of their own.
//
//   t = linear(mlp(norm(attention(norm([x | embedding])))))   in hybrid layers, else 0
//   x = x + mamba(norm(x + t))
//
// Heads are twice as wide as the stream's share of them, and scores are divided by the root of half their width.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "refimpl/models/activation_name.h"
#include "refimpl/models/kin_rules.h"

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

class NamedWeights {
 public:
  explicit NamedWeights(const Weights& weights) : weights_(weights) {}
  WeightView get(const std::string& name) const {
    const WeightView view = weights_.find_named(name);
    if (!view) throw Error::input("is missing").tensor(name);
    return view;
  }
  WeightView find(const std::string& name) const { return weights_.find_named(name); }

 private:
  const Weights& weights_;
};

struct SharedBlock {
  Norm input_norm, mlp_norm;
  Adapted q, k, v, gate_up;
  WeightView o, down, down_bias, linear;
};

struct ZambaLayer {
  std::optional<SharedBlock> block;
  Norm norm;
  std::unique_ptr<RecurrentMixer> mamba;
};

// `first`: the layer that keeps the block; `turn`: how many hybrid layers are in front of this one.
SharedBlock read_block(const NamedWeights& named, std::size_t layer, std::size_t first, std::size_t turn,
                       const NormRule& rule) {
  const std::string block = fmt::format("model.layers.{}.shared_transformer.", first);
  const auto adapted = [&](const std::string& matrix, const std::string& adapter) {
    const std::string of_turn = fmt::format("{}{}_adapter_list.{}.", block, adapter, turn);
    return Adapted{named.get(block + matrix + ".weight"), named.find(block + matrix + ".bias"),
                   named.find(of_turn + "0.weight"), named.find(of_turn + "1.weight")};
  };
  SharedBlock b;
  b.input_norm = Norm(named.get(block + "input_layernorm.weight"), {}, rule);
  b.mlp_norm = Norm(named.get(block + "pre_ff_layernorm.weight"), {}, rule);
  b.q = adapted("self_attn.q_proj", "self_attn.linear_q");
  b.k = adapted("self_attn.k_proj", "self_attn.linear_k");
  b.v = adapted("self_attn.v_proj", "self_attn.linear_v");
  b.gate_up = adapted("feed_forward.gate_up_proj", "feed_forward.gate_up_proj");
  b.o = named.get(block + "self_attn.o_proj.weight");
  b.down = named.get(block + "feed_forward.down_proj.weight");
  b.down_bias = named.find(block + "feed_forward.down_proj.bias");
  b.linear = named.get(fmt::format("model.layers.{}.linear.weight", layer));
  return b;
}

// Blocks are stored with one layer and used by others, so that a stage of a pipeline would lack them: it is no StagedModel.
class Zamba2 final : public LanguageModel {
 public:
  Zamba2(const Weights& weights, const RecurrentForm& recurrent, std::size_t blocks)
      : h_(hyperparameters(weights.tree())),
        activation_{.activation = activation_of(h_, weights.config())},
        embedding_(weights.get({.role = Role::token_embedding})),
        head_(weights.get({.role = Role::output_head})) {
    const NormRule rule = {.epsilon = h_.epsilon};
    const NamedWeights named(weights);
    final_norm_ = Norm(weights.get({.role = Role::final_norm}), {}, rule);
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
        layer.block = read_block(named, i, hybrid[turn % blocks], turn, rule);
      }
      layer.norm = Norm(named.get(fmt::format("model.layers.{}.{}input_layernorm.weight", i,
                                              attends ? "mamba_decoder." : "")),
                        {}, rule);
      layer.mamba = read_mamba2(weights, i, recurrent);
      layers_.push_back(std::move(layer));
    }
  }

  std::size_t vocabulary() const override { return head_.outputs(); }
  std::size_t context() const override { return h_.context; }
  std::vector<CacheWidth> cache_widths() const override {
    std::vector<CacheWidth> widths;
    for (const ZambaLayer& layer : layers_) {
      const std::size_t width = layer.block ? geometry_.kv_heads * geometry_.qk_head_dim : 0;
      widths.push_back({width, width, {}, 0, layer.block ? geometry_.kv_heads : 0});
      widths.back().states = layer.mamba->states();
    }
    return widths;
  }
  bool cache_serves(std::size_t length, std::size_t other) const override {
    return std::all_of(h_.ropes.begin(), h_.ropes.end(),
                       [&](const RopeRule& rule) { return same_frequencies(rule, length, other); });
  }

  Matrix hidden(const Batch& batch, Ops& ops, const Taps& taps) const override {
    const Matrix embedding = ops.embed(batch.tokens, embedding_);  // [tokens, hidden]
    taps("embed", embedding);
    const RopeAngles angles = h_.ropes.empty() ? RopeAngles{} : rope_angles(h_.ropes.front(), batch, ops);
    Matrix x = embedding;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const TapScope at(taps, "layers", i);
      batch.go_on();
      const ZambaLayer& layer = layers_[i];
      Matrix seen = x;
      if (layer.block) seen = ops.add(seen, block(*layer.block, i, x, embedding, batch, angles, ops, at));
      const Matrix normed = layer.norm(seen, ops);
      at("mixer_norm", normed);
      const Matrix mixed = layer.mamba->forward(normed, i, batch, ops, at);
      at("mixer_out", mixed);
      at("out", x = ops.add(x, mixed));
    }
    x = final_norm_(x, ops);
    taps("final_norm", x);
    return x;
  }
  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override {
    const Matrix y = ops.linear(hidden, head_);  // [rows, vocabulary]
    taps("logits", y);
    return y;
  }

 private:
  Matrix block(const SharedBlock& b, std::size_t index, const Matrix& x, const Matrix& embedding,
               const Batch& batch, const RopeAngles& angles, Ops& ops, const TapScope& at) const {
    const Matrix wide = b.input_norm(ops.concatenate(x, embedding), ops);  // [tokens, 2 hidden]
    at("attn_norm", wide);
    const Matrix attended = ops.linear(attend(b, index, wide, batch, angles, ops, at), b.o);
    at("attn_out", attended);
    const Matrix fed = b.mlp_norm(attended, ops);
    at("mlp_norm", fed);
    const Matrix both = b.gate_up(fed, ops);
    const std::size_t width = both.columns() / 2;
    const Matrix inner = ops.gated_activation(both.part(0, width), both.part(width, width), activation_);
    const Matrix out = ops.linear(inner, b.down, b.down_bias);
    at("mlp_out", out);
    return ops.linear(out, b.linear);
  }

  Matrix attend(const SharedBlock& b, std::size_t index, const Matrix& x, const Batch& batch,
                const RopeAngles& angles, Ops& ops, const TapScope& at) const {
    const Matrix q = b.q(x, ops), k = b.k(x, ops), v = b.v(x, ops);
    const std::size_t width = geometry_.qk_head_dim;
    if (!angles.cos.empty()) {
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
    for (const Batch::Sequence& s : batch.sequences) {
      const std::size_t keys = s.cache->rows(index) + s.count;
      s.cache->put(index, k.row_range(s.first, s.count), v.row_range(s.first, s.count));
      call.sequences.push_back({s.first, s.count, keys, s.cache->keys(index), s.cache->values(index)});
    }
    const Matrix context = ops.attention(call);  // [tokens, heads · width]
    at("attn_context", context);
    return context;
  }

  Hyperparameters h_;
  GatedActivation activation_;
  AttentionGeometry geometry_;
  WeightView embedding_, head_;
  Norm final_norm_;
  std::vector<ZambaLayer> layers_;
};

std::unique_ptr<LanguageModel> make_zamba2(const Weights& weights, const ModelOptions& options) {
  require_safetensors(weights);
  require_all_heads(weights);
  ConfigReader config(weights.config(), "Zamba2");
  RecurrentForm form = {.epsilon = kScanEpsilon, .scan = options.scan};
  form.least_step = config.real("time_step_min", 0.001, 0, 1e9);
  return std::make_unique<Zamba2>(weights, form, config.size("num_mem_blocks", 1).value());
}

constexpr std::string_view kZamba2Families[] = {"zamba2"};
constexpr auto kZamba2Used = decoder_keys(
    {"hidden_act", "num_key_value_heads", "layers_block_type", "layer_types", "mamba_d_state", "mamba_d_conv",
     "mamba_expand", "mamba_ngroups", "n_mamba_heads", "time_step_min", "add_bias_linear", "num_mem_blocks",
     "use_shared_attention_adapter", "adapter_rank", "use_mem_rope"});
// Widths that follow from others; how a scan is dealt out; what makes steps at the beginning of training.
constexpr std::string_view kZamba2Idle[] = {
    "attention_head_dim", "head_dim",         "attention_hidden_size", "mamba_headdim",
    "kv_channels",        "num_query_groups", "use_conv_bias",         "use_mamba_kernels",
    "use_mem_eff_path",   "chunk_size",       "time_step_max",         "time_step_floor",
    "time_step_limit",    "hybrid_layer_ids", "num_logits_to_keep",    "conv_dimension",
    "ffn_hidden_size",    "lora_rank",        "mamba_chunk_size"};
constexpr FixedKey kZamba2Fixed[] = {{"use_long_context", "false"}};

}  // namespace

const ModelRule kZamba2Rule = {kZamba2Families, {}, {kZamba2Used, kZamba2Idle, kZamba2Fixed}, make_zamba2};

}  // namespace assay
