#include "paramcount/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/numeric/ceil_div.h"
#include "core/system/error.h"

namespace assay {
namespace {

std::uint64_t checked(double bytes) {
  if (!(bytes < 9e18)) throw Error::usage("--context × --batch asks for more than 2^63 bytes of cache");
  return static_cast<std::uint64_t>(bytes + 0.5);
}

std::uint64_t values_per_token(const AttentionGeometry& g, std::uint64_t tensor_parallel) {
  if (g.kind == AttentionGeometry::Kind::latent) return g.kv_lora_rank + g.rope_head_dim;
  return ceil_div(g.kv_heads, tensor_parallel) * (g.qk_head_dim + g.v_head_dim);
}

std::uint64_t layers_between(const AttentionGeometry& g, const KvOptions& o) {
  return static_cast<std::uint64_t>(std::count_if(g.layers.begin(), g.layers.end(), [&](std::uint64_t layer) {
    return layer >= o.first_layer && layer < o.end_layer;
  }));
}

}  // namespace

KvCache kv_cache(const ModuleTree& tree, const KvOptions& options) {
  KvCache cache;
  double bytes = 0, per_token = 0, beyond = 0, expanded = 0;
  for (const AttentionGeometry& g : tree.attention) {
    const double layers = static_cast<double>(layers_between(g, options));
    const double token =
        layers * static_cast<double>(values_per_token(g, options.tensor_parallel)) * options.bytes_per_value;
    const double kept =
        static_cast<double>(g.window == 0 ? options.context : std::min(options.context, g.window));
    per_token += token;
    if (g.window == 0) beyond += token;
    bytes += token * kept;
    if (g.kind == AttentionGeometry::Kind::latent)
      expanded +=
          layers * static_cast<double>(g.heads * (g.qk_head_dim + g.v_head_dim)) * options.bytes_per_value;
    const double indexer =
        layers * static_cast<double>(g.indexer_head_dim + 4 * ceil_div(g.indexer_head_dim, 128));
    cache.indexer_per_token += checked(indexer);
    bytes += indexer * static_cast<double>(options.context);
  }
  cache.per_token = checked(per_token);
  cache.per_token_beyond = checked(beyond);
  cache.expanded_per_token = checked(expanded);
  cache.bytes = checked(bytes * static_cast<double>(options.batch));
  return cache;
}

double kv_value_bytes(const std::string& name) {
  if (name == "bf16" || name == "f16" || name == "auto") return 2;
  if (name == "fp8" || name == "int8" || name == "fp8_e4m3" || name == "fp8_e5m2") return 1;
  if (name == "fp4" || name == "int4") return 0.5;
  if (name == "f32") return 4;
  throw Error::usage(fmt::format("--kv-dtype {}: not a type a cache comes in", name))
      .remedy("use bf16, f16, f32, fp8, int8, fp4 or int4");
}

ActivationEstimate activations(const ModuleTree& tree, std::uint64_t tokens, std::uint64_t sequences,
                               std::uint64_t tensor_parallel) {
  // The widest output of one projection, on one rank; an expert's counts as often as a token visits experts.
  std::uint64_t widest = 0;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (spec.shape.size() < 2 || spec.bias || spec.storage == Storage::buffer || where.mtp) return;
    if (spec.part == Part::embedding || spec.part == Part::output) return;
    std::uint64_t out = spec.input_major ? spec.shape.back() : spec.shape[spec.shape.size() - 2];
    if (spec.role == Role::mlp_gate || spec.role == Role::mlp_up) out *= 2;  // gate and up live together
    if (spec.part == Part::routed_expert) out *= std::max<std::uint64_t>(1, tree.experts_per_token);
    if (spec.parallel.partition == Partition::columns) out = ceil_div(out, tensor_parallel);
    widest = std::max(widest, out);
  });
  ActivationEstimate estimate;
  const std::uint64_t vocabulary = ceil_div(tree.vocabulary, tensor_parallel);
  estimate.layer =
      checked(2.0 * static_cast<double>(tokens) * static_cast<double>(2 * tree.hidden_size + widest));
  estimate.logits = checked(4.0 * static_cast<double>(sequences) * static_cast<double>(vocabulary));
  estimate.bytes = estimate.layer + estimate.logits;
  estimate.formula = fmt::format("{} tokens × (2 × {} + {}) × 2 bytes + {} × {} logits × 4 bytes", tokens,
                                 tree.hidden_size, widest, sequences, vocabulary);
  return estimate;
}

}  // namespace assay
