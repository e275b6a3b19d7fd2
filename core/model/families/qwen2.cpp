// Qwen1.5, Qwen2 and Qwen2.5: a Llama with biases on q, k and v. Qwen3: no biases, but a norm on each head's
// q and k.
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/forward.h"

namespace assay::families {
namespace {

using namespace blocks;

void describe_with(ConfigReader& config, ModuleTree& tree, const Decoder& d, const HeadAttention& a) {
  const bool windows = config.flag("use_sliding_window", false);
  const auto window = windows ? config.optional_number("sliding_window", 4096) : std::nullopt;
  const std::uint64_t first = window ? config.number("max_window_layers", 28) : 0;
  const auto windowed =
      windowed_layers(config, d.layers, [&](std::uint64_t i) { return window.has_value() && i >= first; });
  config.require(windowed.empty() || window,
                 "layer_types names windows, and use_sliding_window or sliding_window takes them away");

  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), gated_mlp(d.mlp())};
  add_frame(tree, d, {layer});
  add_geometry(tree, a, d.layers, windowed, window.value_or(0));
}

void describe_qwen2(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 151936,
                                  .hidden = 4096,
                                  .intermediate = 22016,
                                  .layers = 32,
                                  .heads = 32,
                                  .kv_heads = 32});
  HeadAttention a = d.attention();
  a.qkv_bias = true;
  describe_with(config, tree, d, a);
}

void describe_qwen3(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 151936,
                                  .hidden = 4096,
                                  .intermediate = 22016,
                                  .layers = 32,
                                  .heads = 32,
                                  .kv_heads = 32,
                                  .head_dim = 128});
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  a.qk_norm = QkNorm::per_head;
  describe_with(config, tree, d, a);
}

Hyperparameters read_qwen(ConfigReader& config, const ModuleTree& tree) {
  return read_forward(config, tree, {.rope = {.context = 32768}});
}

// Qwen2's biases are always there, and no key says so.
constexpr GgufFamily kQwen2InGguf = {.family = "qwen2",
                                     .architecture = "qwen2",
                                     .hf_class = "Qwen2ForCausalLM",
                                     .vocabulary = GgufFamily::Vocabulary::sentencepiece_first};
constexpr std::string_view kQwen3Biases[] = {"attention_bias"};
constexpr GgufFamily kQwen3InGguf = {.family = "qwen3",
                                     .architecture = "qwen3",
                                     .hf_class = "Qwen3ForCausalLM",
                                     .vocabulary = GgufFamily::Vocabulary::sentencepiece_first,
                                     .bias_keys = kQwen3Biases};

constexpr std::string_view kQwen2Architectures[] = {"Qwen2ForCausalLM"};
constexpr std::string_view kQwen2Types[] = {"qwen2"};
constexpr std::string_view kQwen3Architectures[] = {"Qwen3ForCausalLM"};
// The second stands within Qwen3-ASR's own code.
constexpr std::string_view kQwen3Types[] = {"qwen3", "qwen3_asr_text"};
constexpr std::string_view kQwen3Gguf[] = {"qwen3"};

}  // namespace

const Family kQwen2 = {"qwen2",
                       "Qwen1.5, Qwen2, Qwen2.5",
                       kQwen2Architectures,
                       kQwen2Types,
                       kQwen2Types,
                       describe_qwen2,
                       read_qwen,
                       &kQwen2InGguf};
const Family kQwen3 = {"qwen3",    "Qwen3",        kQwen3Architectures, kQwen3Types,
                       kQwen3Gguf, describe_qwen3, read_qwen,           &kQwen3InGguf};

}  // namespace assay::families
