// Mistral Large 4: latent attention without a latent of queries, some layers without rotation, some that take keys and
// values of another layer, an indexer; experts beside a shared one.
//
// A layer without latents attends to those of the last one before it that rotates as it does and is named as a source: so
// the class computes, whatever kv_source_layers says, and what says otherwise is refused.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/model/families/all_2026.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/forward.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/soft_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Large4Layer {
  bool rotates, has_kv, has_indexer, is_sparse;
  auto operator<=>(const Large4Layer&) const = default;
};

std::function<bool(std::uint64_t)> large4_indexed(ConfigReader& config, const Quantity& count) {
  if (const auto types = layer_texts(config, "indexer_types", count))
    return [types](std::uint64_t i) { return (*types)[i] != "shared"; };
  const std::string pattern = config.has("index_topk_pattern") ? config.text("index_topk_pattern", "") : "";
  if (!pattern.empty()) {
    config.require(pattern.size() >= count.value(), "index_topk_pattern is shorter than the layers are many");
    return [pattern](std::uint64_t i) { return pattern[i] == 'F'; };
  }
  const std::uint64_t every = std::max<std::uint64_t>(config.number("index_topk_freq", 1), 1),
                      offset = config.number("index_skip_topk_offset", 2);
  return [=](std::uint64_t i) { return (i + 1 < offset ? 0 : i + 1 - offset) % every == 0; };
}

// Whose keys and values each layer takes: its own, where the config does not say.
std::vector<std::uint64_t> large4_sources(ConfigReader& config, const Quantity& count) {
  const auto said = layer_numbers(config, "kv_source_layers", count);
  std::vector<std::uint64_t> sources = said ? *said : all_layers(count);
  for (std::uint64_t i = 0; i < count.value(); ++i)
    config.require(sources[i] <= i && sources[sources[i]] == sources[i],
                   "kv_source_layers names a layer that comes later, or keeps no keys and values");
  return sources;
}

std::vector<Large4Layer> large4_layers(ConfigReader& config, const Quantity& count) {
  const auto rotating = layer_numbers(config, "no_rope_layers", count);  // 1 where it does rotate
  const std::uint64_t interval = config.size("no_rope_layer_interval", 4).value();
  const auto mlps = layer_texts(config, "mlp_layer_types", count);
  const std::uint64_t dense = config.number("first_k_dense_replace", 1);
  const auto indexed = large4_indexed(config, count);
  const auto sources = large4_sources(config, count);
  std::vector<Large4Layer> layers;
  for (std::uint64_t i = 0; i < count.value(); ++i)
    layers.push_back({rotating ? (*rotating)[i] != 0 : (i + 1) % interval != 0, sources[i] == i, indexed(i),
                      mlps ? (*mlps)[i] == "sparse" : i >= dense});
  return layers;
}

// Scores are scaled by the logarithm of the place, a scale and a bias a head.
void add_score_scale(Module& module, const Quantity& heads, Role role) {
  for (const char* name : {"ssmax_scaling.s", "ssmax_scaling.b"})
    module.tensors.push_back(parameter(name, {heads}, role, Part::attention));
}

Module large4_indexer(const Quantity& hidden, const Indexer& i) {
  Module module = indexer("wq_b", hidden, hidden, i);
  // The forward rule tells what has one role apart by its order.
  add_norm(module, "q_input_norm", hidden, Role::indexer_k_norm, true, Part::attention);
  add_score_scale(module, i.heads, Role::indexer_weights);
  return module;
}

// Where nothing rotates, the width that would is projected from the latent like the rest.
LatentAttention sizes_in(const LatentAttention& a, const Large4Layer& layer) {
  LatentAttention of = a;
  if (!layer.rotates) of.nope_dim = a.nope_dim + a.rope_dim, of.rope_dim = 0;
  return of;
}

Module large4_attention(const LatentAttention& a, const Large4Layer& layer, const Indexer& index) {
  Module module{"attention", "attention (MLA)", {}, {}, {}};
  const std::uint64_t heads = a.heads.value();
  const auto add = [&](const char* name, const Quantity& in, const Quantity& out, Role role,
                       Partition partition, bool bias) {
    add_linear(module, {.name = name,
                        .in = in,
                        .out = out,
                        .role = role,
                        .part = Part::attention,
                        .partition = partition,
                        .units = partition == Partition::replicated ? 0 : heads,
                        .bias = bias});
  };
  const Quantity latent = layer.rotates ? a.kv_rank + a.rope_dim : a.kv_rank;
  add("wq", a.hidden, a.heads * (layer.rotates ? a.nope_dim + a.rope_dim : a.nope_dim), Role::q,
      Partition::columns, false);
  if (layer.has_kv) {
    add("wkv_a_with_mqa", a.hidden, latent, Role::kv_a, Partition::replicated, a.bias);
    add_norm(module, "kv_a_norm", a.kv_rank, Role::kv_a_norm, false, Part::attention);
  }
  add("wkv_b", a.kv_rank, a.heads * (a.nope_dim + a.v_dim), Role::kv_b, Partition::columns, false);
  add("wo", a.heads * a.v_dim, a.hidden, Role::attention_output, Partition::rows, a.bias);
  add_score_scale(module, a.heads, Role::layer_scale);
  if (layer.has_indexer) module.children = {large4_indexer(a.hidden, index)};
  return module;
}

Mixture read_large4_experts(ConfigReader& config, ModuleTree& tree, const Decoder& d) {
  Mixture m{d.hidden,
            read_experts(config, tree, "num_experts|n_routed_experts|num_local_experts", 128,
                         "num_experts_per_tok", 4),
            config.size("moe_intermediate_size", 6144)};
  m.path = "";
  m.gate = "w1", m.up = "w3", m.down = "w2";
  m.shared_width = config.size("n_shared_experts", 1) * m.expert_width;
  return m;
}

void note_large4_attention(ModuleTree& tree, const LatentAttention& a, const Indexer& index,
                           const std::vector<Large4Layer>& kinds) {
  std::map<std::array<bool, 3>, std::vector<std::uint64_t>> alike;
  for (std::uint64_t i = 0; i < kinds.size(); ++i)
    alike[{kinds[i].rotates, kinds[i].has_kv, kinds[i].has_indexer}].push_back(i);
  for (const auto& [key, layers] : alike) {
    const Large4Layer& kind = kinds[layers.front()];
    AttentionGeometry g = geometry(sizes_in(a, kind), layers);
    g.cached = kind.has_kv;
    index.note(g);
    if (!kind.has_indexer) g.indexer_heads = g.indexer_head_dim = 0;
    tree.attention.push_back(std::move(g));
  }
}

void describe_mistral_large4(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 204800, .hidden = 6144, .intermediate = 24576, .layers = 72, .heads = 64},
      HeadDim::unused);
  LatentAttention a = read_latent_attention(config, d, {.q_rank = std::nullopt, .nope_dim = 64});
  a.q_rank = std::nullopt;
  const Indexer index = read_indexer(config, 32);
  const Mixture m = read_large4_experts(config, tree, d);
  GatedMlp mlp{d.hidden, d.intermediate, "feed_forward"};
  mlp.gate = m.gate, mlp.up = m.up, mlp.down = m.down;
  const auto kinds = large4_layers(config, d.layers);
  const auto groups = group_layers(
      "layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        const Large4Layer& kind = kinds[i];
        return fmt::format(
            "{} layers{}{}{}", kind.is_sparse ? "MoE" : "dense", kind.rotates ? "" : " without rotation",
            kind.has_kv ? "" : " without keys and values", kind.has_indexer ? "" : " without indexer");
      },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "attention_norm", d.hidden, Role::input_norm);
        add_norm(layer, "ffn_norm", d.hidden, Role::pre_feedforward_norm);
        layer.children = {large4_attention(sizes_in(a, kinds[i]), kinds[i], index),
                          kinds[i].is_sparse ? mixture(m) : gated_mlp(mlp)};
      });
  add_frame(tree, d, groups, {.embedding = "tok_embeddings", .final_norm = "norm", .head = "output"});
  Module angles{"lerope", "learnt angles", {}, {}, {}};
  angles.tensors.push_back(parameter("alpha", {Quantity("qk_rope_head_dim / 2", a.rope_dim.value() / 2)},
                                     Role::position_embedding, Part::attention));
  tree.modules.insert(tree.modules.begin() + 1, std::move(angles));
  note_large4_attention(tree, a, index, kinds);
  add_mistral_vision(config, tree);
}

void require_last_sources(ConfigReader& config, const Quantity& count,
                          const std::vector<Large4Layer>& kinds) {
  const auto sources = large4_sources(config, count);
  std::map<bool, std::uint64_t> last;
  for (std::uint64_t i = 0; i < sources.size(); ++i) {
    if (sources[i] != i) {
      const auto found = last.find(kinds[i].rotates);
      config.require(found != last.end() && found->second == sources[i],
                     fmt::format("kv_source_layers has {} for layer {}, which is not the last source before "
                                 "it that rotates as it does",
                                 sources[i], i));
    } else if (std::find(sources.begin() + static_cast<std::ptrdiff_t>(i) + 1, sources.end(), i) !=
               sources.end()) {
      last[kinds[i].rotates] = i;
    }
  }
}

// YaRN where the config has no word of ropes.
RopeRule large4_rope(ConfigReader& config, std::size_t width, std::size_t context) {
  RopeRule rule = read_rope(config, width, {.context = context});
  const ParsedJson *said = object_in(config, "rope_scaling"), *newer = object_in(config, "rope_parameters");
  if ((said != nullptr && !said->empty()) || (newer != nullptr && !newer->empty())) return rule;
  rule.type = RopeRule::Type::yarn;
  rule.factor = 2048;
  rule.original_context = 512;
  rule.attention_factor = 1;
  return rule;
}

Hyperparameters forward_mistral_large4(ConfigReader& config, const ModuleTree& tree) {
  constexpr std::size_t kContext = 1 << 20;
  Hyperparameters h = read_forward(
      config, tree, {.epsilon = 1e-5, .rope = {.context = kContext}, .rotates = false, .interleaved = true});
  const Quantity count("num_hidden_layers", tree.layers);
  const auto kinds = large4_layers(config, count);
  require_last_sources(config, count, kinds);
  config.require(kinds.front().has_indexer, "the first layer has no indexer and none before it");
  h.ropes = {large4_rope(config, config.size("qk_rope_head_dim", 64).value(), kContext)};
  for (std::uint64_t i = 0; i < tree.layers; ++i)
    if (kinds[i].rotates) h.rope_of[i] = 0;
  h.final_cap = config.real("final_logit_softcapping", 30, 1e-6, 1e9);
  if (tree.experts > 0) read_choice(config, tree, 1, 1, 1, h);
  h.routing.renormalize = true;
  return h;
}

constexpr std::string_view kLarge4Architectures[] = {"MistralLarge4ForConditionalGeneration"},
                           kLarge4Types[] = {"mistral_large4", "mistral_large4_text"};

}  // namespace

const Family kMistralLarge4 = {
    "mistral_large4",        "Mistral Large 4 (text)", kLarge4Architectures, kLarge4Types, {},
    describe_mistral_large4, forward_mistral_large4};

}  // namespace assay::families
