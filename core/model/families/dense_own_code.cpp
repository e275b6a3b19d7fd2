// Dense decoders that transformers has no class for: their checkpoints bring code of their own. EXAONE 3, InternLM3, Orion,
// openPangu Embedded, Solar Pro, TeleChat 2 and 3, Tele-FLM, IQuest-Coder, Rnj-1, Step 1, and the first DeepSeek (dense, or with experts).
// Defaults are those of the config class that is published beside the weights.
#include <fmt/format.h>

#include "core/model/families/all_2026.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/own_code_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

// DeepSeekMoE 16B; a config without n_routed_experts is dense. num_experts_per_tok has no default.
void describe_deepseek_v1(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {
      .sizes = {.vocabulary = 102400, .hidden = 4096, .intermediate = 11008, .layers = 30, .heads = 32}};
  if (config.optional_number("n_routed_experts").value_or(0) == 0) {
    describe_kin(config, tree, kin);
    return;
  }
  config.size("num_experts_per_tok");
  kin.experts = {.count_keys = "n_routed_experts",
                 .count = 0,
                 .active_keys = "num_experts_per_tok",
                 .active = 0,
                 .width_keys = "moe_intermediate_size",
                 .width = 1407,
                 .shared_keys = "n_shared_experts"};
  const std::uint64_t dense = config.number("first_k_dense_replace", 0),
                      every = config.size("moe_layer_freq", 1).value();
  describe_kin(config, tree, kin, read_decoder(config, tree, kin.sizes),
               [=](std::uint64_t i) { return i >= dense && i % every == 0; });
}

// EXAONE 3.0 and 3.5, EXAONE Deep: a Llama under other names, tied unless the config says otherwise.
void describe_exaone3(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {
      .sizes =
          {.vocabulary = 102400, .hidden = 2048, .intermediate = 0, .layers = 32, .heads = 32, .tied = true},
      .bias_keys = "",
      .input_norm = "ln_1",
      .mlp_norm = "ln_2",
      .layer_path = "transformer.h.{layer}",
      .frame = {.embedding = "transformer.wte", .final_norm = "transformer.ln_f"}};
  kin.heads.path = "attn.attention", kin.heads.o = "out_proj";
  kin.mlp.gate = "c_fc_0", kin.mlp.up = "c_fc_1", kin.mlp.down = "c_proj";
  Decoder d = read_decoder(config, tree, kin.sizes);
  d.intermediate = config.size("intermediate_size", Quantity(4) * d.hidden);
  describe_kin(config, tree, kin, d);
}

void describe_internlm3(ConfigReader& config, ModuleTree& tree) {
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 128512, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32},
       .bias_keys = "qkv_bias",
       .output_bias_keys = "bias",
       .mlp_bias_keys = "bias"});
}

// Sizes that a config must state, where no source tells the class's defaults.
constexpr DecoderDefaults kStated = {
    .vocabulary = 0, .hidden = 0, .intermediate = 1, .layers = 0, .heads = 0};
void require_sizes(ConfigReader& config) {
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "num_key_value_heads"})
    config.size(key);
}

// Llama's matrices between LayerNorms with biases.
void describe_orion(ConfigReader& config, ModuleTree& tree) {
  require_sizes(config);
  describe_kin(config, tree, {.sizes = kStated, .bias_keys = "", .norm_bias = true});
}

// Biases on q, k, v and o. What vLLM's class can do beyond the published models is not described.
void describe_pangu_embedded(ConfigReader& config, ModuleTree& tree) {
  const bool bias = config.flag("bias", true);
  config.require(config.flag("qkv_bias", bias) == bias,
                 "qkv_bias differs from bias: no published model tells the names");
  config.require(!config.flag("sandwich_norm", false) &&
                     config.optional_number("n_routed_experts").value_or(0) == 0 &&
                     config.optional_number("param_sink_number").value_or(0) == 0,
                 "sandwich_norm, n_routed_experts or param_sink_number is set: openPangu Embedded has been "
                 "described without");
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 153376,
                          .hidden = 4096,
                          .intermediate = 12800,
                          .layers = 34,
                          .heads = 32,
                          .kv_heads = 8},
                .bias_keys = "",
                .bias = bias,
                .mlp_bias_keys = "mlp_bias"});
}

// Solar Pro: a Llama in which some layers mix their input with that of layers before (bskcn_1 to bskcn_4), without
// weights. The config's sliding_window came with the model it was made of: the cache is told without a window, which is
// the most it can be (vLLM looks at one).
void describe_solar(ConfigReader& config, ModuleTree& tree) {
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32},
       .mlp_bias_keys = "mlp_bias"});
}

// TeleChat 2: k and v in one matrix, a key head's k before its v; o and down are biased.
Module telechat_attention(const HeadAttention& a) {
  Module module{"self_attention", "attention", {}, {}, {}};
  const Quantity q = a.heads * a.head_dim, kv = a.kv_heads * a.head_dim;
  const std::uint64_t h = a.kv_heads.value();
  add_linear(module, {.name = "query",
                      .in = a.hidden,
                      .out = q,
                      .role = Role::q,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .units = a.heads.value()});
  add_linear(module, {.name = "key_value",
                      .in = a.hidden,
                      .out = Quantity(2) * kv,
                      .role = Role::qkv,
                      .part = Part::attention,
                      .partition = Partition::columns,
                      .members = {{Role::k, kv.value(), h}, {Role::v, kv.value(), h}},
                      .interleaved = true});
  add_linear(module, {.name = "dense",
                      .in = q,
                      .out = a.hidden,
                      .role = Role::attention_output,
                      .part = Part::attention,
                      .partition = Partition::rows,
                      .units = a.heads.value(),
                      .bias = true});
  return module;
}

void describe_telechat2(ConfigReader& config, ModuleTree& tree) {
  config.require(!config.flag("embed_layernorm", false),
                 "embed_layernorm is true: no published TeleChat 2 has that norm");
  Decoder d = read_decoder(
      config, tree,
      {.vocabulary = 160256, .hidden = 4096, .intermediate = 0, .layers = 30, .heads = 32, .tied = true});
  d.intermediate = config.size("ffn_hidden_size|intermediate_size", 12288);
  const HeadAttention a = d.attention();
  Module mlp = gated_mlp(d.mlp());
  TensorSpec bias = parameter("down_proj.bias", {d.hidden}, Role::mlp_down, Part::dense_mlp);
  bias.bias = true;
  mlp.tensors.push_back(std::move(bias));
  Module layer = layers("transformer.h.{layer}", "layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {telechat_attention(a), std::move(mlp)};
  add_frame(tree, d, {layer}, {.embedding = "transformer.word_embeddings", .final_norm = "transformer.ln_f"});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

void describe_telechat3(ConfigReader& config, ModuleTree& tree) {
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 131072, .hidden = 6144, .intermediate = 24576, .layers = 64, .heads = 48},
       .mlp_bias_keys = "mlp_bias"});
}

// Tele-FLM: a Llama whose embedding and logits are scaled (µP).
void describe_teleflm(ConfigReader& config, ModuleTree& tree) {
  require_sizes(config);
  describe_kin(config, tree, {.sizes = kStated, .bias_keys = ""});
}

// IQuest-Coder V1: a Llama; max_window_layers counts the layers without the window.
void describe_iquestcoder(ConfigReader& config, ModuleTree& tree) {
  const bool windows = config.flag("use_sliding_window", false);
  const std::uint64_t whole = windows ? config.number("max_window_layers", 0) : 0;
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 76800,
                          .hidden = 5120,
                          .intermediate = 27648,
                          .layers = 80,
                          .heads = 40,
                          .kv_heads = 8,
                          .head_dim = 128},
                .mlp_bias_keys = "mlp_bias",
                .windows = windows,
                .windowed = [=](std::uint64_t i) { return i >= whole; }});
}

// Rnj-1: Gemma 3's layers. chunked_attention looks at its own block and the one before (vLLM's rnj1.py); every other
// type sees all, and so do the published models.
void describe_rnj1(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {.sizes = {.vocabulary = 262208,
                            .hidden = 2304,
                            .intermediate = 9216,
                            .layers = 26,
                            .heads = 8,
                            .kv_heads = 4,
                            .head_dim = 256,
                            .tied = true},
                  .mlp_norm = "pre_feedforward_layernorm",
                  .after_attention = "post_attention_layernorm",
                  .after_mlp = "post_feedforward_layernorm"};
  kin.heads.qk_norm = QkNorm::per_head;
  const Decoder d = read_decoder(config, tree, kin.sizes);
  describe_kin(config, tree, kin, d);
  const auto types = layer_texts(config, "layer_types", d.layers);
  if (!types) return;
  const auto chunked =
      layers_where(d.layers, [&](std::uint64_t i) { return (*types)[i] == "chunked_attention"; });
  if (chunked.empty()) return;
  tree.attention.clear();
  add_geometry(tree, d.attention(), d.layers, chunked, 2 * config.size("sliding_window", 4096).value());
}

// Step 1 (the language model of Step-Audio 130B, Step-Audio-TTS-3B and EditX): a Llama without rotation. vLLM 0.32's step1.py
// takes one key head where num_attention_groups is silent. Sources disagree about whether a silent config ties.
void describe_step1(ConfigReader& config, ModuleTree& tree) {
  for (const char* key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"})
    config.size(key);
  Decoder d = read_decoder(config, tree, kStated, HeadDim::unused);
  d.kv_heads = config.size("num_attention_groups|num_key_value_heads", 1);
  config.require_divides(d.kv_heads, d.heads);
  d.head_dim = config.quotient(d.hidden, d.heads, "head_dim");
  describe_kin(config, tree, {.sizes = kStated, .mlp_bias_keys = "mlp_bias"}, d);
}

constexpr std::string_view kDeepseekV1Architectures[] = {"DeepseekForCausalLM"},
                           kDeepseekV1Types[] = {"deepseek"};
constexpr std::string_view kExaone3Architectures[] = {"ExaoneForCausalLM"}, kExaone3Types[] = {"exaone"};
constexpr std::string_view kInternlm3Architectures[] = {"InternLM3ForCausalLM"},
                           kInternlm3Types[] = {"internlm3"};
constexpr std::string_view kOrionArchitectures[] = {"OrionForCausalLM"}, kOrionTypes[] = {"orion"};
constexpr std::string_view kPanguEmbeddedArchitectures[] = {"PanguEmbeddedForCausalLM"},
                           kPanguEmbeddedTypes[] = {"PanguEmbedded", "openpangu_dense"};
constexpr std::string_view kSolarProArchitectures[] = {"SolarForCausalLM"}, kSolarProTypes[] = {"solar"};
constexpr std::string_view kTelechat2Architectures[] = {"TeleChat2ForCausalLM", "TeleChatForCausalLM",
                                                        "TelechatForCausalLM"},
                           kTelechat2Types[] = {"telechat2"};
constexpr std::string_view kTelechat3Architectures[] = {"TeleChat3ForCausalLM", "Telechat3ForCausalLM"},
                           kTelechat3Types[] = {"telechat3"};
constexpr std::string_view kTeleflmArchitectures[] = {"TeleFLMForCausalLM"}, kTeleflmTypes[] = {"TeleFLM"};
constexpr std::string_view kIquestcoderArchitectures[] = {"IQuestCoderForCausalLM"},
                           kIquestcoderTypes[] = {"iquestcoder"};
constexpr std::string_view kRnj1Architectures[] = {"Rnj1ForCausalLM"}, kRnj1Types[] = {"rnj1"};
constexpr std::string_view kStep1Architectures[] = {"Step1ForCausalLM"}, kStep1Types[] = {"step1"};

}  // namespace

const Family kDeepseekV1 = {
    "deepseek_v1",        "DeepSeekMoE",      kDeepseekV1Architectures, kDeepseekV1Types, {},
    describe_deepseek_v1, forward_deepseek_v1};
const Family kExaone3 = {"exaone", "EXAONE 3.0, 3.5, Deep", kExaone3Architectures, kExaone3Types,
                         {},       describe_exaone3,        forward_exaone3};
const Family kInternlm3 = {"internlm3", "InternLM3",        kInternlm3Architectures, kInternlm3Types,
                           {},          describe_internlm3, forward_internlm3};
const Family kOrion = {"orion", "Orion", kOrionArchitectures, kOrionTypes, {}, describe_orion, forward_orion};
const Family kPanguEmbedded = {
    "pangu_embedded",        "openPangu Embedded",  kPanguEmbeddedArchitectures, kPanguEmbeddedTypes, {},
    describe_pangu_embedded, forward_pangu_embedded};
const Family kSolarPro = {"solar", "Solar Pro (preview)", kSolarProArchitectures, kSolarProTypes,
                          {},      describe_solar,        forward_solar};
const Family kTelechat2 = {"telechat2", "TeleChat 1, 2, 2.5, T1", kTelechat2Architectures, kTelechat2Types,
                           {},          describe_telechat2,       forward_telechat2};
const Family kTelechat3 = {"telechat3", "TeleChat 3 (dense)", kTelechat3Architectures, kTelechat3Types,
                           {},          describe_telechat3,   forward_telechat3};
const Family kTeleflm = {"teleflm", "Tele-FLM, FLM-2", kTeleflmArchitectures, kTeleflmTypes,
                         {},        describe_teleflm,  forward_teleflm};
const Family kIquestcoder = {
    "iquestcoder",        "IQuest-Coder",     kIquestcoderArchitectures, kIquestcoderTypes, {},
    describe_iquestcoder, forward_iquestcoder};
const Family kStep1 = {"step1", "Step 1",       kStep1Architectures, kStep1Types,
                       {},      describe_step1, forward_step1};
const Family kRnj1 = {"rnj1", "Rnj-1", kRnj1Architectures, kRnj1Types, {}, describe_rnj1, forward_rnj1};

}  // namespace assay::families
