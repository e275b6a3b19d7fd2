// GPT-2 (Radford et al. 2019): learned positions, LayerNorm with bias before attention and MLP, biases
// everywhere, one MLP matrix up and one down with GELU between; matrices are stored [in, out].
#include <array>
#include <cmath>

#include "refimpl/models/activation_name.h"
#include "refimpl/models/rules.h"
#include "refimpl/models/staged_model.h"
#include "refimpl/models/watched_attention.h"

namespace assay {
namespace {

struct Affine {  // of a matrix or a norm
  WeightView weight, bias;
};

struct Block {
  Affine attention_norm, qkv, attention_output, mlp_norm, up, down;
};

class Gpt2 final : public StagedModel {
 public:
  explicit Gpt2(const Weights& weights)
      : heads_(weights.tree().attention.at(0).heads),
        head_dim_(weights.tree().attention.at(0).qk_head_dim),
        h_(hyperparameters(weights.tree())),
        activation_(activation_of(h_, weights.config())),
        tokens_(weights.get({.role = Role::token_embedding})),
        positions_(weights.get({.role = Role::position_embedding})),
        final_norm_(affine(weights, Role::final_norm, 0)),
        head_(weights.get({.role = Role::output_head})) {
    for (std::size_t i = 0; i < weights.tree().layers; ++i)
      blocks_.push_back({affine(weights, Role::input_norm, i), affine(weights, Role::qkv, i),
                         affine(weights, Role::attention_output, i),
                         affine(weights, Role::pre_feedforward_norm, i), affine(weights, Role::mlp_up, i),
                         affine(weights, Role::mlp_down, i)});
  }

  std::size_t vocabulary() const override { return head_.outputs(); }
  std::size_t context() const override { return std::min<std::size_t>(h_.context, positions_.rows); }
  std::vector<CacheWidth> cache_widths() const override {
    const std::size_t width = heads_ * head_dim_;
    return std::vector<CacheWidth>(blocks_.size(),
                                   {.key_width = width, .value_width = width, .kv_heads = heads_});
  }
  bool embeds_positions() const override { return true; }

  std::size_t layer_count() const override { return blocks_.size(); }
  StageStream enter(const Batch& batch, Ops& ops, const Taps& taps) const override {
    const std::vector<TokenId> positions(batch.positions.begin(), batch.positions.end());
    const Matrix x = ops.add(ops.embed(batch.tokens, tokens_), ops.embed(positions, positions_));
    taps("embed", x);  // [tokens, hidden]
    return {x, {}};
  }
  StageStream through(StageStream stream, std::size_t first, std::size_t end, const Batch& batch, Ops& ops,
                      const Taps& taps) const override {
    Matrix& x = stream.x;
    for (std::size_t i = first; i < end; ++i) {
      batch.go_on();
      const TapScope at(taps, "layers", i);
      const Block& block = blocks_[i];
      x = ops.add(x, attention(norm(x, block.attention_norm, "attn_norm", ops, at), i, batch, ops, at));
      at("attn_residual", x);
      x = ops.add(x, mlp(norm(x, block.mlp_norm, "mlp_norm", ops, at), block, ops, at));
      at("out", x);
    }
    return stream;
  }
  Matrix leave(const StageStream& stream, Ops& ops, const Taps& taps) const override {
    const Matrix x = ops.layer_norm(stream.x, final_norm_.weight, final_norm_.bias, h_.epsilon);
    taps("final_norm", x);
    return x;
  }

  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override {
    Matrix y = ops.linear(hidden, head_);  // [rows, vocabulary]
    taps("logits", y);
    return y;
  }

 private:
  static Affine affine(const Weights& weights, Role role, std::size_t layer) {
    return {weights.get({.role = role, .layer = layer}),
            weights.find({.role = role, .layer = layer, .bias = true})};
  }

  Matrix norm(const Matrix& x, const Affine& n, std::string_view tap, Ops& ops, const TapScope& at) const {
    Matrix y = ops.layer_norm(x, n.weight, n.bias, h_.epsilon);  // [tokens, hidden]
    at(tap, y);
    return y;
  }

  Matrix attention(const Matrix& x, std::size_t index, const Batch& batch, Ops& ops,
                   const TapScope& at) const {
    const Block& block = blocks_[index];
    const std::size_t width = heads_ * head_dim_;
    const Matrix qkv = ops.linear(x, block.qkv.weight, block.qkv.bias);  // [tokens, 3 · hidden]
    const Matrix q = qkv.part(0, width), k = qkv.part(width, width), v = qkv.part(2 * width, width);
    at("q", q);
    at("k", k);
    at("v", v);
    AttentionCall call = {.q = q,
                          .sequences = {},
                          .heads = heads_,
                          .kv_heads = heads_,
                          .qk_dim = head_dim_,
                          .v_dim = head_dim_,
                          .scale = score_scale(index),
                          .sinks = {}};
    for (const Batch::Sequence& s : batch.sequences) {
      s.cache->put(index, k.row_range(s.first, s.count), v.row_range(s.first, s.count));
      call.sequences.push_back(
          {s.first, s.count, s.cache->rows(index) + s.count, s.cache->keys(index), s.cache->values(index)});
    }
    const Matrix context = ops.attention(call);  // [tokens, hidden]
    tell_attention(call, batch, index, ops);
    at("attn_context", context);
    Matrix out = ops.linear(context, block.attention_output.weight, block.attention_output.bias);
    at("attn_out", out);
    return out;
  }

  double score_scale(std::size_t layer) const {
    const double by_width =
        h_.attention_scale != 0 ? h_.attention_scale : 1 / std::sqrt(static_cast<double>(head_dim_));
    return h_.scaled_by_layer ? by_width / static_cast<double>(layer + 1) : by_width;
  }

  Matrix mlp(const Matrix& x, const Block& block, Ops& ops, const TapScope& at) const {
    const Matrix up = ops.linear(x, block.up.weight, block.up.bias);  // [tokens, 4 · hidden]
    Matrix out = ops.linear(ops.activation(up, activation_), block.down.weight, block.down.bias);
    at("mlp_out", out);
    return out;
  }

  std::size_t heads_, head_dim_;
  Hyperparameters h_;
  Activation activation_;
  WeightView tokens_, positions_;
  Affine final_norm_;
  WeightView head_;
  std::vector<Block> blocks_;
};

std::unique_ptr<LanguageModel> make_gpt2(const Weights& weights, const ModelOptions&) {
  return std::make_unique<Gpt2>(weights);
}

constexpr std::string_view kGpt2Families[] = {"gpt2"};
constexpr std::string_view kGpt2Used[] = {"vocab_size",
                                          "n_embd",
                                          "hidden_size",
                                          "n_layer",
                                          "num_hidden_layers",
                                          "n_head",
                                          "num_attention_heads",
                                          "n_positions",
                                          "max_position_embeddings",
                                          "n_inner",
                                          "intermediate_size",
                                          "activation_function",
                                          "layer_norm_epsilon",
                                          "scale_attn_weights",
                                          "scale_attn_by_inverse_layer_idx",
                                          "tie_word_embeddings"};
constexpr std::string_view kGpt2Idle[] = {"reorder_and_upcast_attn"};  // how float16 avoids overflow

}  // namespace

const ModelRule kGpt2Rule = {kGpt2Families, {}, {kGpt2Used, kGpt2Idle}, make_gpt2};

}  // namespace assay
