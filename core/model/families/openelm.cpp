// OpenELM: as many heads, and an MLP as wide, as the layer says (arXiv 2404.14619). Published configs list both for all
// layers, and those alone are read.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/families/all_hub.h"
#include "core/model/families/hub_forward.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

// The multiple of `divisor` nearest to `value`, but never less than nine tenths of it (make_divisible in Apple's code).
std::uint64_t nearest_multiple(double value, std::uint64_t divisor) {
  const auto half_up = static_cast<std::uint64_t>(value + static_cast<double>(divisor) / 2);
  const std::uint64_t rounded = std::max(divisor, half_up / divisor * divisor);
  return static_cast<double>(rounded) < 0.9 * value ? rounded + divisor : rounded;
}

std::vector<std::uint64_t> read_growing_widths(ConfigReader& config, const Decoder& d) {
  const ParsedJson& keys = config.config().text();
  const auto factors = keys.find("ffn_multipliers");
  config.require(factors != keys.end() && factors->is_array() && factors->size() == d.layers.value(),
                 "ffn_multipliers is no list with a number for each layer");
  const std::uint64_t divisor = config.size("ffn_dim_divisor", 256).value();
  std::vector<std::uint64_t> widths;
  for (const ParsedJson& factor : *factors) {
    const double times = config.to_real(factor, "ffn_multipliers", 0, 1000);
    widths.push_back(nearest_multiple(times * static_cast<double>(d.hidden.value()), divisor));
  }
  return widths;
}

std::vector<std::uint64_t> read_counts(ConfigReader& config, std::string_view key, const Quantity& layers) {
  const auto counts = layer_numbers(config, key, layers);
  config.require(counts.has_value(), fmt::format("{} is missing", key));
  config.require(std::find(counts->begin(), counts->end(), 0) == counts->end(),
                 fmt::format("{} holds a 0", key));
  return *counts;
}

void describe_openelm(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 32000);
  d.hidden = config.size("model_dim|hidden_size", 2048);
  d.layers = read_layers(config, "num_transformer_layers|num_hidden_layers", 12);
  d.head_dim = config.size("head_dim", 128);
  d.tied = config.flag("share_input_output_layers", true);
  note_sizes(tree, d);
  const auto heads = read_counts(config, "num_query_heads", d.layers);
  const auto kv_heads = read_counts(config, "num_kv_heads", d.layers);
  const auto widths = read_growing_widths(config, d);
  const bool gated = config.flag("ffn_with_glu", true),
             normed = config.flag("normalize_qk_projections", true);

  const auto attention_of = [&](std::uint64_t i) {
    HeadAttention a{d.hidden, Quantity("num_query_heads", heads[i]), Quantity("num_kv_heads", kv_heads[i]),
                    d.head_dim};
    config.require_divides(a.kv_heads, a.heads);
    a.path = "attn", a.fused = "qkv_proj", a.o = "out_proj";
    if (normed) a.qk_norm = QkNorm::per_head;
    return a;
  };
  const auto mlp_of = [&](std::uint64_t i) {
    GatedMlp mlp{d.hidden, Quantity("ffn_multipliers × model_dim", widths[i]), "ffn"};
    if (gated)
      mlp.fused = "proj_1";
    else
      mlp.gate.clear();
    mlp.up = "proj_1", mlp.down = "proj_2";
    return gated_mlp(mlp);
  };
  const auto groups = group_layers(
      "transformer.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return fmt::format("layers of {} and {} heads, {} wide", heads[i], kv_heads[i], widths[i]);
      },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "attn_norm", d.hidden, Role::input_norm);
        add_norm(layer, "ffn_norm", d.hidden, Role::pre_feedforward_norm);
        layer.children = {attention(attention_of(i)), mlp_of(i)};
      });
  add_frame(tree, d, groups, {.embedding = "transformer.token_embeddings", .final_norm = "transformer.norm"});
  std::vector<std::pair<std::uint64_t, std::uint64_t>> kinds;
  for (std::uint64_t i = 0; i < d.layers.value(); ++i) {
    const std::pair kind(heads[i], kv_heads[i]);
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  for (const auto& kind : kinds) {
    const auto same =
        layers_where(d.layers, [&](std::uint64_t i) { return std::pair(heads[i], kv_heads[i]) == kind; });
    tree.attention.push_back(geometry(attention_of(same.front()), same));
  }
}

constexpr std::string_view kOpenelmArchitectures[] = {"OpenELMForCausalLM"}, kOpenelmTypes[] = {"openelm"};

}  // namespace

const Family kOpenelm = {"openelm", "OpenELM",        kOpenelmArchitectures, kOpenelmTypes,
                         {},        describe_openelm, forward_openelm};

}  // namespace assay::families
