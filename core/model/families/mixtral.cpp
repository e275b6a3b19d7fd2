// Mixtral: Mistral's attention, eight experts of which two; w1 is the gate, w3 up, w2 down. Phi-3.5-MoE keeps
// the names and has LayerNorms with biases instead of RMSNorms.
#include "core/model/blocks.h"
#include "core/model/families/all.h"
#include "core/model/families/forward.h"
#include "core/model/families/soft_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

void add_layers(ConfigReader& config, ModuleTree& tree, const Decoder& d, const HeadAttention& a,
                const Experts& experts, bool norm_bias, bool head_bias) {
  Mixture m{d.hidden, experts, d.intermediate};
  m.path = "block_sparse_moe";
  m.gate = "w1", m.up = "w3", m.down = "w2";
  Module layer = layers("model.layers.{layer}", "MoE layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden, norm_bias);
  layer.children = {attention(a), mixture(m)};
  Frame frame;
  frame.norm_bias = norm_bias;
  frame.head_bias = head_bias;
  add_frame(tree, d, {layer}, frame);
  const auto window = config.optional_number("sliding_window");
  add_geometry(tree, a, d.layers, window ? all_layers(d.layers) : std::vector<std::uint64_t>{},
               window.value_or(0));
}

void describe_mixtral(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 32000, .hidden = 4096, .intermediate = 14336, .layers = 32, .heads = 32, .kv_heads = 8});
  add_layers(config, tree, d, d.attention(),
             read_experts(config, tree, "num_local_experts|num_experts", 8, "num_experts_per_tok", 2), false,
             false);
}

void describe_phimoe(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 32064, .hidden = 4096, .intermediate = 6400, .layers = 32, .heads = 32, .kv_heads = 8});
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  const bool head_bias = config.flag("lm_head_bias", false);
  add_layers(config, tree, d, a,
             read_experts(config, tree, "num_local_experts|num_experts", 16, "num_experts_per_tok", 2), true,
             head_bias);
}

Hyperparameters read_mixtral(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h =
      read_forward(config, tree, {.epsilon = 1e-5, .rope = {.theta = 1e6, .context = 131072}});
  h.interleaved_pairs = is_gguf(config);
  h.routing.renormalize = true;  // always
  return h;
}

constexpr std::string_view kMixtralBiases[] = {"attention_bias"};
constexpr std::string_view kMixtralCarried[] = {"rms_norm_eps", "rope_theta", "rope_scaling",
                                                "sliding_window"};
constexpr GgufFamily kMixtralInGguf = {.family = "mixtral",
                                       .architecture = "llama",
                                       .hf_class = "MixtralForCausalLM",
                                       .told_by = GgufFamily::ToldBy::experts,
                                       .paired_heads = true,
                                       .writes_widths = true,
                                       .writes_rope_factors = true,
                                       .vocabulary = GgufFamily::Vocabulary::llama,
                                       .experts_key = "num_local_experts",
                                       .bias_keys = kMixtralBiases,
                                       .carried = {kMixtralCarried}};

constexpr std::string_view kMixtralArchitectures[] = {"MixtralForCausalLM"};
constexpr std::string_view kMixtralTypes[] = {"mixtral"};
constexpr std::string_view kMixtralGguf[] = {"llama"};  // llama.cpp reads it as a Llama with experts
constexpr std::string_view kPhimoeArchitectures[] = {"PhiMoEForCausalLM", "PhimoeForCausalLM"};
constexpr std::string_view kPhimoeTypes[] = {"phimoe"};

}  // namespace

const Family kMixtral = {"mixtral",    "Mixtral",        kMixtralArchitectures, kMixtralTypes,
                         kMixtralGguf, describe_mixtral, read_mixtral,          &kMixtralInGguf};
const Family kPhimoe = {"phimoe",     "Phi-3.5-MoE",   kPhimoeArchitectures, kPhimoeTypes,
                        kPhimoeTypes, describe_phimoe, forward_phimoe};

}  // namespace assay::families
