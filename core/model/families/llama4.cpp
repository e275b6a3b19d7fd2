// Llama 4 (text): experts stacked in one tensor a layer, [experts, in, out], beside a shared expert; in
// Maverick every other layer is dense. Three layers of four attend within chunks. Norms on q and k have no
// weights.
#include <algorithm>

#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/mixture_forward.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

Module experts_module(const Decoder& d, const Experts& experts) {
  Module moe{"feed_forward", "mixture of experts", {}, {}, {}};
  Module router{"", std::string(title(Part::router)), {}, {}, {}};
  add_router(router, "router", d.hidden, experts.count);
  GatedMlp shared = d.mlp();
  shared.path = "shared_expert";
  shared.part = Part::shared_expert;
  moe.children = {std::move(router), gated_mlp(shared),
                  stacked_experts({d.hidden, d.intermediate, experts, true})};
  return moe;
}

// Layers without rotary positions see the whole context, the others one chunk of it.
std::vector<std::uint64_t> chunked_layers(ConfigReader& config, const Quantity& count) {
  const auto rotary = config.numbers("no_rope_layers");
  if (rotary && !rotary->empty()) {
    config.require(rotary->size() == count.value(),
                   "no_rope_layers lists another number of layers than there are");
    return windowed_layers(config, count, [&](std::uint64_t i) { return (*rotary)[i] != 0; });
  }
  const std::uint64_t every = config.size("no_rope_layer_interval", 4).value();
  return windowed_layers(config, count, [&](std::uint64_t i) { return (i + 1) % every != 0; });
}

// config.json calls an expert's width intermediate_size, and the dense layers' intermediate_size_mlp; a GGUF
// has them the other way round.
struct Widths {
  Quantity expert, dense;
};
Widths read_widths(ConfigReader& config, const Decoder& d) {
  if (config.config().origin() != ModelConfig::Origin::gguf || !config.has("moe_intermediate_size"))
    return {d.intermediate, config.size("intermediate_size_mlp", 16384)};
  return {config.size("moe_intermediate_size").named("intermediate_size"),
          d.intermediate.named("intermediate_size_mlp")};
}

void describe_llama4(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_decoder(config, tree,
                           {.vocabulary = 202048,
                            .hidden = 5120,
                            .intermediate = 8192,
                            .layers = 48,
                            .heads = 40,
                            .kv_heads = 8,
                            .head_dim = 128});
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  const Experts experts = read_experts(config, tree, "num_local_experts", 16, "num_experts_per_tok", 1);
  const bool nested = !config.config().nested_in().empty();
  const std::string prefix = nested ? "language_model." : "";

  const std::uint64_t step = config.size("interleave_moe_layer_step", 1).value();
  const auto listed = config.numbers("moe_layers");
  const auto is_sparse = [&](std::uint64_t i) {
    return listed ? std::find(listed->begin(), listed->end(), i) != listed->end() : (i + 1) % step == 0;
  };
  const Widths widths = read_widths(config, d);
  d.intermediate = widths.expert;
  GatedMlp dense_mlp = d.mlp();
  dense_mlp.path = "feed_forward";
  dense_mlp.intermediate = widths.dense;
  Module dense = layers(prefix + "model.layers.{layer}", "dense layers",
                        layers_where(d.layers, [&](std::uint64_t i) { return !is_sparse(i); }));
  add_pre_norms(dense, d.hidden);
  dense.children = {attention(a), gated_mlp(dense_mlp)};
  Module sparse = layers(prefix + "model.layers.{layer}", "MoE layers", layers_where(d.layers, is_sparse));
  add_pre_norms(sparse, d.hidden);
  sparse.children = {attention(a), experts_module(d, experts)};
  add_frame(tree, d, {dense, sparse},
            {.embedding = prefix + "model.embed_tokens",
             .final_norm = prefix + "model.norm",
             .head = prefix + "lm_head"});
  const auto chunk = config.optional_number("attention_chunk_size", 8192);  // null: no layer has one
  add_geometry(tree, a, d.layers, chunk ? chunked_layers(config, d.layers) : std::vector<std::uint64_t>{},
               chunk.value_or(0));
  for (AttentionGeometry& g : tree.attention) g.chunked = g.window != 0;
  if (!nested) return;
  add_llama4_vision(config, tree, d.hidden);
  if (tree.towers.empty())
    tree.not_counted.push_back({"vision tower and multimodal projector", std::nullopt});
}

constexpr std::string_view kLlama4Architectures[] = {"Llama4ForConditionalGeneration", "Llama4ForCausalLM"};
constexpr std::string_view kLlama4Types[] = {"llama4", "llama4_text"};
constexpr std::string_view kLlama4Gguf[] = {"llama4"};

}  // namespace

const Family kLlama4 = {"llama4",    "Llama 4",       kLlama4Architectures, kLlama4Types,
                        kLlama4Gguf, describe_llama4, forward_llama4};

}  // namespace assay::families
