#include "paramcount/compute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/system/error.h"
#include "paramcount/memory.h"

namespace assay {
namespace {

bool is_matrix(const TensorSpec& spec) {
  return spec.shape.size() >= 2 && !spec.bias && spec.storage != Storage::buffer;
}
bool is_lookup(const TensorSpec& spec) {
  return spec.role == Role::token_embedding || spec.role == Role::position_embedding;
}

std::uint64_t keys_seen(const AttentionGeometry& g, std::uint64_t available) {
  std::uint64_t keys = available;
  if (g.window != 0) keys = std::min(keys, g.window);
  if (g.compressed != 0) {
    const std::uint64_t entries = available / g.compressed;
    return keys + (g.indexer_top_k != 0 ? std::min(entries, g.indexer_top_k) : entries);
  }
  if (g.indexer_top_k != 0) keys = std::min(keys, g.indexer_top_k);
  return keys;
}

// Pairs of query and key for a prompt of T tokens, query t seeing min(t, most) keys.
long double pairs_seen(const AttentionGeometry& g, std::uint64_t tokens) {
  const long double t = static_cast<long double>(tokens),
                    most = static_cast<long double>(keys_seen(g, tokens));
  return most * (most + 1) / 2 + (t - most) * most;
}

std::uint64_t flops_per_key(const AttentionGeometry& g, bool absorbed) {
  if (absorbed && g.kind == AttentionGeometry::Kind::latent)
    return 2 * g.heads * (g.kv_lora_rank + g.rope_head_dim + g.kv_lora_rank);
  return 2 * g.heads * (g.qk_head_dim + g.v_head_dim);
}

struct LayerWork {
  std::string title;
  const std::vector<std::uint64_t>* layers;
  std::uint64_t projections = 0, mlp = 0;  // FLOPs a token and layer
};

// The router is no part of the MLP: it only says who computes.
std::vector<LayerWork> layer_kinds(const ModuleTree& tree) {
  std::vector<LayerWork> kinds;
  const Module* current = nullptr;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    const Module* top = where.path.front();
    if (!where.main() || top->repeat.over != Repeat::Over::layers || !is_matrix(spec)) return;
    if (top != current) {
      current = top;
      kinds.push_back({fmt::format("{} {}", top->repeat.count.value(), top->title), &top->repeat.indices});
    }
    const std::uint64_t flops = 2 * active_elements(spec, where) / top->repeat.count.value();
    const bool mlp =
        spec.part == Part::dense_mlp || spec.part == Part::shared_expert || spec.part == Part::routed_expert;
    if (spec.part == Part::attention) kinds.back().projections += flops;
    if (mlp && spec.role != Role::shared_expert_gate) kinds.back().mlp += flops;
  });
  return kinds;
}

void add_crossings(const ModuleTree& tree, ComputeReport& report) {
  for (const LayerWork& kind : layer_kinds(tree)) {
    for (const AttentionGeometry& g : tree.attention) {
      const bool shared = std::any_of(kind.layers->begin(), kind.layers->end(), [&](std::uint64_t layer) {
        return std::binary_search(g.layers.begin(), g.layers.end(), layer);
      });
      if (!shared) continue;
      for (const bool absorbed : {false, true}) {
        if (absorbed && g.kind != AttentionGeometry::Kind::latent) continue;
        const double key = static_cast<double>(flops_per_key(g, absorbed));
        const double mlp = static_cast<double>(kind.mlp), linear = static_cast<double>(kind.projections);
        report.crossings.push_back({kind.title, absorbed, std::max(0.0, (mlp - linear) / key), mlp / key,
                                    (mlp + linear) / key, g.window});
      }
    }
  }
}

void add_linear_rows(const ModuleTree& tree, ComputeReport& report) {
  std::map<Part, std::uint64_t> per_part;  // in the order of Part: as computed
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (!where.main() || !is_matrix(spec) || is_lookup(spec)) return;
    // A tied head, and blocks of layers with the same weights: they compute, whoever holds them.
    const bool computes = spec.storage == Storage::own || spec.storage == Storage::tied;
    if (computes) per_part[spec.part] += 2 * active_elements(spec, where);
  });
  for (const auto& [part, flops] : per_part) {
    const std::string what = part == Part::attention ? "attention: projections" : std::string(title(part));
    report.rows.push_back(
        {what, flops, static_cast<long double>(flops) * static_cast<long double>(report.context)});
    report.matmul_active += flops / 2;
  }
}

void add_attention_row(const ModuleTree& tree, ComputeReport& report) {
  ComputeRow scores{"attention: scores and values", 0, 0}, indexer{"attention: indexer", 0, 0};
  std::uint64_t absorbed = 0;
  const std::uint64_t keys = report.context + 1;
  for (const AttentionGeometry& g : tree.attention) {
    const std::uint64_t layers = g.layers.size(), key = flops_per_key(g, false);
    scores.decode += layers * key * keys_seen(g, keys);
    absorbed += layers * flops_per_key(g, true) * keys_seen(g, keys);
    scores.prefill += static_cast<long double>(layers * key) * pairs_seen(g, report.context);
    // Every query scores every key with each of the indexer's small heads.
    const std::uint64_t index_key = 2 * g.indexer_heads * g.indexer_head_dim;
    const long double t = static_cast<long double>(report.context);
    indexer.decode += layers * index_key * keys;
    indexer.prefill += static_cast<long double>(layers * index_key) * t * (t + 1) / 2;
  }
  report.decode_absorbed = absorbed + indexer.decode;
  report.rows.push_back(scores);
  if (indexer.decode > 0) report.rows.push_back(indexer);
}

void add_intensity(const ModuleTree& tree, ComputeReport& report) {
  if (tree.attention.empty()) return;
  const AttentionGeometry& g = tree.attention.front();
  if (g.kind == AttentionGeometry::Kind::latent) {
    const std::uint64_t latent = g.kv_lora_rank + g.rope_head_dim;
    report.attention_intensity =
        static_cast<double>(flops_per_key(g, true)) / static_cast<double>(2 * latent);
    report.intensity_formula = fmt::format("{} × (2 × {} + {}) / ({} + {})", g.heads, g.kv_lora_rank,
                                           g.rope_head_dim, g.kv_lora_rank, g.rope_head_dim);
  } else {
    report.attention_intensity = static_cast<double>(g.heads) / static_cast<double>(g.kv_heads);
    report.intensity_formula = fmt::format("{} / {}", g.heads, g.kv_heads);
  }
}

// Of E experts with k a token, those a batch of B tokens visits if it chooses evenly: E (1 - (1 - k/E)^B).
double experts_visited(double experts, double chosen, double batch) {
  return experts * (1 - std::pow(1 - chosen / experts, batch));
}

}  // namespace

ComputeReport compute(const ModuleTree& tree, std::uint64_t context) {
  // Exact sums in 64 bits end where no machine gets: 2^32 tokens.
  if (context > (1ull << 32)) throw Error::usage(fmt::format("--context {} is beyond 2^32 tokens", context));
  ComputeReport report;
  report.context = context;
  add_linear_rows(tree, report);
  add_attention_row(tree, report);
  long double prefill = 0;
  for (const ComputeRow& row : report.rows) {
    report.decode += row.decode;
    prefill += row.prefill;
  }
  report.decode_absorbed += 2 * report.matmul_active;
  report.prefill = prefill < 1.8e19L ? static_cast<std::uint64_t>(prefill) : UINT64_MAX;
  add_crossings(tree, report);
  add_intensity(tree, report);
  return report;
}

Roofline roofline(const ModuleTree& tree, const WeightFormat& format, const ComputeReport& report,
                  double kv_value_bytes, std::uint64_t batch, const Machine& machine) {
  Roofline result;
  const double b = static_cast<double>(batch);
  double weights = 0;
  const WeightSizes sizes(tree, format);
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (!where.main() || spec.storage != Storage::own) return;
    if (is_lookup(spec) && !(tree.tied_embeddings && spec.role == Role::token_embedding)) return;
    double bytes = static_cast<double>(sizes.of_spec(spec, where));
    if (spec.part == Part::routed_expert && tree.experts > 0) {
      const double e = static_cast<double>(tree.experts),
                   k = knows_activation(tree) ? static_cast<double>(tree.experts_per_token) : e;
      bytes *= experts_visited(e, k, b) / e;
    }
    weights += bytes;
  });
  KvOptions kv;
  kv.bytes_per_value = kv_value_bytes;
  kv.context = report.context;
  kv.batch = batch;
  result.weight_bytes = static_cast<std::uint64_t>(std::round(weights));
  result.kv_bytes = kv_cache(tree, kv).bytes;
  result.flops = report.decode_absorbed * batch;
  const double bytes = weights + static_cast<double>(result.kv_bytes);
  if (machine.bandwidth > 0) result.by_bandwidth = b * machine.bandwidth / bytes;
  if (machine.flops > 0) result.by_flops = b * machine.flops / static_cast<double>(result.flops);
  result.tokens_per_second = result.by_bandwidth == 0 ? result.by_flops
                             : result.by_flops == 0   ? result.by_bandwidth
                                                      : std::min(result.by_bandwidth, result.by_flops);
  return result;
}

}  // namespace assay
