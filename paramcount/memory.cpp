#include "paramcount/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/numeric/ceil_div.h"
#include "core/system/error.h"

namespace assay {
namespace {

std::uint64_t checked(double bytes) {
  if (!(bytes < 9e18)) throw Error::usage("--context × --batch asks for more than 2^63 bytes of cache");
  return static_cast<std::uint64_t>(std::round(bytes));
}

constexpr std::uint64_t kActivationBytes = 2, kStateBytes = 4;  // BF16, F32 (mamba_ssm_dtype's default)

std::uint64_t values_per_token(const AttentionGeometry& g, std::uint64_t tensor_parallel) {
  if (!g.cached) return 0;
  if (g.keys_are_values) return ceil_div(g.kv_heads, tensor_parallel) * g.qk_head_dim;
  if (g.kind == AttentionGeometry::Kind::latent) return g.kv_lora_rank + g.rope_head_dim;
  return ceil_div(g.kv_heads, tensor_parallel) * (g.qk_head_dim + g.v_head_dim);
}

double layers_between(const std::vector<std::uint64_t>& layers, const KvOptions& o) {
  return static_cast<double>(std::count_if(layers.begin(), layers.end(), [&](std::uint64_t layer) {
    return layer >= o.first_layer && layer < o.end_layer;
  }));
}

// Entries kept of a context: its tokens, no more of them than the window, and the compressed ones behind it.
double entries_kept(const AttentionGeometry& g, std::uint64_t context) {
  const std::uint64_t tokens = g.window == 0 ? context : std::min(context, g.window);
  return static_cast<double>(tokens + (g.compressed == 0 ? 0 : context / g.compressed));
}

void add_states(const ModuleTree& tree, const KvOptions& options, KvCache& cache) {
  double convolutions = 0, states = 0;
  for (const RecurrentGeometry& r : tree.recurrent) {
    const double layers = layers_between(r.layers, options);
    const auto share = [&](std::uint64_t values) {
      return layers * static_cast<double>(ceil_div(values, options.tensor_parallel));
    };
    convolutions += share(r.conv_values) * kActivationBytes;
    states += share(r.state_values) * kStateBytes;
  }
  cache.state_convolutions = checked(convolutions);
  cache.state_per_sequence = checked(convolutions + states);
}

}  // namespace

KvCache kv_cache(const ModuleTree& tree, const KvOptions& options) {
  KvCache cache;
  add_states(tree, options, cache);
  double bytes = static_cast<double>(cache.state_per_sequence), per_token = 0, beyond = 0, expanded = 0;
  for (const AttentionGeometry& g : tree.attention) {
    const double layers = layers_between(g.layers, options);
    const double token =
        layers * static_cast<double>(values_per_token(g, options.tensor_parallel)) * options.bytes_per_value;
    const double thinned = g.compressed == 0 ? 0 : token / static_cast<double>(g.compressed);
    per_token += token + thinned;
    beyond += g.window == 0 ? token : thinned;
    bytes += token * entries_kept(g, options.context);
    if (g.kind == AttentionGeometry::Kind::latent)
      expanded +=
          layers * static_cast<double>(g.heads * (g.qk_head_dim + g.v_head_dim)) * options.bytes_per_value;
    const double indexer = layers *
                           static_cast<double>(g.indexer_head_dim + 4 * ceil_div(g.indexer_head_dim, 128)) /
                           static_cast<double>(std::max<std::uint64_t>(1, g.compressed));
    cache.indexer_per_token += checked(indexer);
    bytes += indexer * static_cast<double>(options.context);
  }
  cache.per_token = checked(per_token);
  cache.per_token_beyond = checked(beyond);
  cache.expanded_per_token = checked(expanded);
  cache.bytes = checked(bytes * static_cast<double>(options.batch));
  return cache;
}

bool knows_cache(const ModuleTree& tree) {
  return !tree.derived || !tree.attention.empty();
}

bool knows_activation(const ModuleTree& tree) {
  return !tree.derived || tree.experts == 0 || tree.experts_per_token > 0;
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
    if (spec.shape.size() < 2 || spec.bias || spec.storage == Storage::buffer || !where.main()) return;
    if (spec.part == Part::embedding || spec.part == Part::output) return;
    std::uint64_t out = spec.input_major ? spec.shape.back() : spec.shape[spec.shape.size() - 2];
    if (spec.role == Role::mlp_gate || spec.role == Role::mlp_up) out *= 2;  // gate and up live together
    if (spec.part == Part::routed_expert)
      out *= std::max<std::uint64_t>(1, knows_activation(tree) ? tree.experts_per_token : tree.experts);
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
