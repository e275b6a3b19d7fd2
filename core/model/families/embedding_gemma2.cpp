// EmbeddingGemma 2's encoder of words: Gemma 4's layers, attending to both sides, under a signal for each layer that is made of the
// words alone; what the last layer gives becomes the embedding. Where nothing is seen or heard the whole is this under a prefix.
// Source: transformers 5.24.
#include <nlohmann/json.hpp>

#include "core/model/families/all_encoders.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/told_layers.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::string_view kFull = "full_attention";

struct HeadSizes {
  Quantity dim, kv_heads;
  bool operator==(const HeadSizes& other) const {
    return dim.value() == other.dim.value() && kv_heads.value() == other.kv_heads.value();
  }
};

// Which layers see all: the last of each six by the class, and the last of all in any case.
std::vector<bool> seeing_all(ConfigReader& config, const Quantity& count) {
  std::vector<bool> full(count.value());
  const auto types = layer_texts(config, "layer_types", count);
  const std::uint64_t every = types ? 1 : config.size("sliding_window_pattern", 6).value();
  for (std::size_t i = 0; i < full.size(); ++i) full[i] = types ? (*types)[i] == kFull : (i + 1) % every == 0;
  full.back() = true;
  return full;
}

// Layers that see all have heads of their own, which per_layer_config tells ("05", or "5").
std::vector<HeadSizes> head_sizes(ConfigReader& config, const HeadSizes& of_all,
                                  const std::vector<bool>& full) {
  std::vector<HeadSizes> sizes(full.size(), of_all);
  const bool told =
      visit_told_layers(config, sizes.size(), [&](std::size_t layer, const ModelConfig& section) {
        for (const auto& [name, size] : section.document().items())
          config.require(name == "head_dim" || name == "num_key_value_heads",
                         "per_layer_config tells more of a layer than its heads");
        ConfigReader own(section, "per_layer_config");
        if (own.has("head_dim")) sizes[layer].dim = own.size("head_dim");
        if (own.has("num_key_value_heads")) sizes[layer].kv_heads = own.size("num_key_value_heads");
      });
  if (told) return sizes;
  const HeadSizes wide{config.size("global_head_dim", 512), config.size("num_global_key_value_heads", 1)};
  for (std::size_t i = 0; i < full.size(); ++i) {
    if (full[i]) sizes[i] = wide;
  }
  return sizes;
}

void add_signal_matrix(Module& module, std::string name, const Quantity& in, const Quantity& out) {
  add_linear(module, {.name = std::move(name),
                      .in = in,
                      .out = out,
                      .role = Role::per_layer_embedding,
                      .part = Part::embedding});
}

void describe_embedding_gemma2(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 262144,
                                  .hidden = 512,
                                  .intermediate = 2048,
                                  .layers = 24,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .head_dim = 256,
                                  .tied = true});
  config.require(!config.flag("attention_bias", false), "attention_bias is true: it is not described");
  const bool whole = !config.config().nested_in().empty();
  for (const char* tower : {"vision_config", "audio_config"}) {
    const auto& document = config.config().document();
    const auto said = document.find(tower);
    config.require(!whole || said == document.end() || said->is_null(),
                   std::string(tower) + " is there: what sees and hears is not described");
  }
  const std::string prefix = whole ? "language_model." : "";
  const Quantity signal = config.size("hidden_size_per_layer_input", 512);
  const std::vector<bool> full = seeing_all(config, d.layers);
  const std::vector<HeadSizes> sizes = head_sizes(config, {d.head_dim, d.kv_heads}, full);
  const auto heads = [&](std::uint64_t i) {
    HeadAttention a = d.attention();
    a.qk_norm = QkNorm::per_head, a.head_dim = sizes[i].dim, a.kv_heads = sizes[i].kv_heads;
    return a;
  };
  Module signals{prefix + "ple", "signals for each layer", {}, {}, {}};
  add_signal_matrix(signals, "per_layer_model_projection", d.hidden, d.layers * signal);
  add_norm(signals, "per_layer_projection_norm", signal, Role::per_layer_embedding, false, Part::embedding);
  tree.modules = {embedding(prefix + "embed_tokens", d.vocabulary, d.hidden), std::move(signals)};
  for (Module& group : group_layers(
           prefix + "layers.{layer}", d.layers,
           [&](std::uint64_t i) {
             return "layers of heads of " + std::to_string(sizes[i].dim.value()) + " and " +
                    std::to_string(sizes[i].kv_heads.value()) + " for keys";
           },
           [&](Module&layer, std::uint64_t i) {
             add_norm(layer, "input_layernorm", d.hidden, Role::input_norm);
             add_norm(layer, "post_attention_layernorm", d.hidden, Role::post_attention_norm);
             add_norm(layer, "pre_feedforward_layernorm", d.hidden, Role::pre_feedforward_norm);
             add_norm(layer, "post_feedforward_layernorm", d.hidden, Role::post_feedforward_norm);
             layer.tensors.push_back(parameter("layer_scalar", {1}, Role::layer_scale, Part::norm));
             add_signal_matrix(layer, "ple_block.per_layer_input_gate", d.hidden, signal);
             add_signal_matrix(layer, "ple_block.per_layer_projection", signal, d.hidden);
             add_norm(layer, "ple_block.post_per_layer_input_norm", d.hidden, Role::per_layer_embedding);
             layer.children = {attention(heads(i)), gated_mlp(d.mlp())};
           }))
    tree.modules.push_back(std::move(group));
  tree.modules.push_back(norm(prefix + "norm", d.hidden, Role::final_norm));
  Module head{prefix.empty() ? "" : "language_model", "what makes the embedding", {}, {}, {}};
  add_linear(head, {.name = "embedding_projection",
                    .in = d.hidden,
                    .out = config.size("embedding_dim", 768),
                    .role = Role::other,
                    .part = Part::output,
                    .quantizable = false});
  tree.modules.push_back(std::move(head));
}

constexpr std::string_view kEmbeddingGemma2Architectures[] = {"EmbeddingGemma2TextModel",
                                                              "EmbeddingGemma2Model"},
                           kEmbeddingGemma2Types[] = {"embedding_gemma2_text", "embedding_gemma2"};

}  // namespace

const Family kEmbeddingGemma2 = {
    "embedding_gemma2",       "EmbeddingGemma 2", kEmbeddingGemma2Architectures, kEmbeddingGemma2Types, {},
    describe_embedding_gemma2};

}  // namespace assay::families
