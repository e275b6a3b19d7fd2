// Decoders that fill masks in place of predicting the next token: LLaDA, LLaDA-MoE, LLaDA 2, Dream, SDAR. Their tensors are
// those of OLMo, Ling 2, Qwen2 and Qwen3, partly under other names; what a text costs is several passes over a block of it.
// Sources: GSAI-ML's, inclusionAI's, Dream-org's and JetLM's own code; SGLang 0.5.23's sdar.py, sdar_moe.py and llada2.py.
#include "core/model/families/all_hub.h"
#include "core/model/families/bailing.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/sparse_layers.h"

namespace assay::families {
namespace {

using namespace blocks;

void note_passes(ModuleTree& tree) {
  tree.not_counted.push_back(
      {"passes behind the first: masks are filled in several, and what is computed is told of one", 0});
}

// OLMo's first code under a base class: attention, MLP and norms stand side by side in a block.
void describe_llada(ConfigReader& config, ModuleTree& tree) {
  config.require(
      config.text("block_type", "llama") == "llama" && config.text("layer_norm_type", "rms") == "rms" &&
          config.text("activation_type", "silu") == "silu",
      "block_type is not llama, layer_norm_type not rms or activation_type not silu: no published LLaDA "
      "has such layers");
  config.require(
      !config.flag("include_bias", false) && !config.flag("bias_for_layer_norm", false) &&
          !config.flag("attention_layer_norm", false),
      "include_bias, bias_for_layer_norm or attention_layer_norm is true: LLaDA has been described "
      "without");
  Decoder d;
  d.vocabulary = config.size("embedding_size|vocab_size", 126464);
  d.hidden = config.size("d_model|hidden_size", 4096);
  d.layers = read_layers(config, "n_layers|num_hidden_layers", 32);
  d.heads = config.size("n_heads|num_attention_heads", 32);
  d.kv_heads = config.size("n_kv_heads|num_key_value_heads", d.heads);
  config.require_divides(d.kv_heads, d.heads);
  d.head_dim = config.quotient(d.hidden, d.heads, "head_dim");
  d.intermediate =
      config.has("mlp_hidden_size") ? config.size("mlp_hidden_size") : config.size("mlp_ratio", 4) * d.hidden;
  d.tied = config.flag("weight_tying", false);
  note_sizes(tree, d);
  LlamaKin kin = {.sizes = {},
                  .bias_keys = "include_qkv_bias",
                  .output_bias_keys = "",
                  .input_norm = "attn_norm",
                  .mlp_norm = "ff_norm",
                  .layer_path = "model.transformer.blocks.{layer}",
                  .frame = {.embedding = "model.transformer.wte",
                            .final_norm = "model.transformer.ln_f",
                            .head = "model.transformer.ff_out"}};
  kin.heads.path = kin.mlp.path = "";
  kin.heads.o = "attn_out";
  kin.mlp.gate = "ff_proj", kin.mlp.down = "ff_out";
  describe_kin(config, tree, kin, d);
  note_passes(tree);
}

// A size or count without which no source tells what the class would take.
void require_sizes(ConfigReader& config, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) config.size(key);
}

// OLMoE's layers, but that q and k are normed head by head; expert_bias is a buffer of its own code, and no published
// config switches it on.
void describe_llada_moe(ConfigReader& config, ModuleTree& tree) {
  require_sizes(config, {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
                         "num_experts", "num_experts_per_tok", "expert_intermediate_size"});
  config.require(
      !config.flag("moe_router_enable_expert_bias", false) && !config.flag("attention_bias", false),
      "moe_router_enable_expert_bias or attention_bias is true: LLaDA-MoE has been described without");
  LlamaKin kin = {.sizes = {.vocabulary = 0, .hidden = 0, .intermediate = 0, .layers = 0, .heads = 0},
                  .experts = ExpertKin{.count_keys = "num_experts",
                                       .count = 0,
                                       .active_keys = "num_experts_per_tok",
                                       .active = 0,
                                       .width_keys = "expert_intermediate_size",
                                       .width = 0,
                                       .shared_width_keys = "shared_expert_intermediate_size",
                                       .names = {.shared_path = "shared_expert"}}};
  if (config.flag("qk_layernorm", true)) kin.heads.qk_norm = QkNorm::per_head;
  Decoder d = read_decoder(config, tree, kin.sizes);
  const auto every = layer_numbers(config, "moe_layer_freq", d.layers);
  const auto is_sparse = [&](std::uint64_t i) { return !every || (*every)[i] != 0; };
  const bool dense = !layers_where(d.layers, [&](std::uint64_t i) { return !is_sparse(i); }).empty();
  d.intermediate = dense ? config.size("dense_intermediate_size") : Quantity(1);
  describe_kin(config, tree, kin, d, is_sparse);
  note_passes(tree);
}

// Ling 2 whole. Sources disagree about whether a silent config has the bias for choosing experts.
void describe_llada2(ConfigReader& config, ModuleTree& tree) {
  config.require(config.has("moe_router_enable_expert_bias"),
                 "moe_router_enable_expert_bias is missing, and sources disagree about what is meant then");
  describe_ling(config, tree,
                {.sizes = {.vocabulary = 157184,
                           .hidden = 2048,
                           .intermediate = 5120,
                           .layers = 20,
                           .heads = 16,
                           .kv_heads = 4},
                 .experts = {.count = 256, .width = 512},
                 .dense_first = 1});
  note_passes(tree);
}

// Qwen2's matrices, q, k and v biased.
void describe_dream(ConfigReader& config, ModuleTree& tree) {
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 151936, .hidden = 4096, .intermediate = 22016, .layers = 32, .heads = 32},
       .bias_keys = "",
       .bias = true,
       .output_bias_keys = ""});
  note_passes(tree);
}

// Qwen3, dense and with experts.
LlamaKin sdar_kin() {
  LlamaKin kin = {.sizes = {.vocabulary = 151936,
                            .hidden = 4096,
                            .intermediate = 22016,
                            .layers = 32,
                            .heads = 32,
                            .kv_heads = 32,
                            .head_dim = 128}};
  kin.heads.qk_norm = QkNorm::per_head;
  return kin;
}
void describe_sdar(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree, sdar_kin());
  note_passes(tree);
}
void describe_sdar_moe(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = sdar_kin();
  kin.experts = ExpertKin{.count_keys = "num_experts|num_local_experts",
                          .count = 128,
                          .active_keys = "num_experts_per_tok",
                          .active = 8,
                          .width_keys = "moe_intermediate_size",
                          .width = 768};
  require_sizes(config, {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"});
  describe_kin(config, tree, kin, read_decoder(config, tree, kin.sizes), qwen_sparse_layers(config));
  note_passes(tree);
}

constexpr std::string_view kLladaArchitectures[] = {"LLaDAModelLM"}, kLladaTypes[] = {"llada"};
constexpr std::string_view kLladaMoeArchitectures[] = {"LLaDAMoEModelLM", "LLaDAMoEModel"},
                           kLladaMoeTypes[] = {"llada_moe", "lladamoe"};
constexpr std::string_view kLlada2Architectures[] = {"LLaDA2MoeModelLM"}, kLlada2Types[] = {"llada2_moe"};
constexpr std::string_view kDreamArchitectures[] = {"DreamModel"}, kDreamTypes[] = {"Dream", "dream"};
constexpr std::string_view kSdarArchitectures[] = {"SDARForCausalLM"}, kSdarTypes[] = {"sdar"};
constexpr std::string_view kSdarMoeArchitectures[] = {"SDARMoeForCausalLM"}, kSdarMoeTypes[] = {"sdar_moe"};

}  // namespace

const Family kLlada = {"llada", "LLaDA", kLladaArchitectures, kLladaTypes, {}, describe_llada};
const Family kLladaMoe = {"llada_moe",    "LLaDA-MoE", kLladaMoeArchitectures,
                          kLladaMoeTypes, {},          describe_llada_moe};
const Family kLlada2 = {"llada2_moe", "LLaDA 2", kLlada2Architectures, kLlada2Types, {}, describe_llada2};
const Family kDream = {"dream", "Dream", kDreamArchitectures, kDreamTypes, {}, describe_dream};
const Family kSdar = {"sdar", "SDAR", kSdarArchitectures, kSdarTypes, {}, describe_sdar};
const Family kSdarMoe = {"sdar_moe", "SDAR-MoE", kSdarMoeArchitectures, kSdarMoeTypes, {}, describe_sdar_moe};

}  // namespace assay::families
