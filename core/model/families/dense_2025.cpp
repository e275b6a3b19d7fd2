// Dense decoders that differ from a Llama in a bias, a norm or an MLP: SmolLM3, Seed-OSS, EXAONE 4, ERNIE 4.5, Hunyuan,
// Granite, Arcee, Nemotron 4, Helium, MiniCPM, CWM, Apertus, VaultGemma, BitNet, HyperCLOVA X, Jais 2, OLMo, StableLM,
// Ministral, nanochat, Youtu.
#include <fmt/format.h>

#include "core/model/families/all.h"
#include "core/model/families/forward_2026.h"
#include "core/model/families/kin_forward.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/soft_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr auto gateless = [] {
  GatedMlp mlp;
  mlp.gate.clear();
  return mlp;
};
HeadAttention normed_heads(std::string q_norm = "q_norm", std::string k_norm = "k_norm") {
  HeadAttention a;
  a.qk_norm = QkNorm::per_head;
  a.q_norm = std::move(q_norm), a.k_norm = std::move(k_norm);
  return a;
}

// Every few layers rotate nothing; use_sliding_window may give the others a window.
std::function<bool(std::uint64_t)> layers_without_rope(ConfigReader& config) {
  const auto rotates = config.numbers("no_rope_layers");
  const std::uint64_t every = config.size("no_rope_layer_interval", 4).value();
  return [=](std::uint64_t i) {
    return rotates ? i < rotates->size() && (*rotates)[i] == 0 : (i + 1) % every == 0;
  };
}
void describe_smollm3(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 128256,
                          .hidden = 2048,
                          .intermediate = 11008,
                          .layers = 36,
                          .heads = 16,
                          .kv_heads = 4,
                          .tied = true},
                .mlp_bias_keys = "mlp_bias",
                .windows = config.has("layer_types") || config.flag("use_sliding_window", false),
                .windowed = layers_without_rope(config)});
}
void describe_seed_oss(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 155136,
                          .hidden = 4096,
                          .intermediate = 27648,
                          .layers = 64,
                          .heads = 80,
                          .kv_heads = 8,
                          .head_dim = 128},
                .bias = true,
                .output_bias_keys = "attention_out_bias",
                .mlp_bias_keys = "mlp_bias"});
}
void describe_exaone4(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 102400,
                          .hidden = 4096,
                          .intermediate = 16384,
                          .layers = 32,
                          .heads = 32,
                          .kv_heads = 32},
                .heads = normed_heads(),
                .input_norm = "",
                .mlp_norm = "",
                .after_attention = "post_attention_layernorm",
                .after_mlp = "post_feedforward_layernorm",
                .windows = true,
                .window = config.is_null("sliding_window") ? 0U : 4096U,
                .windowed = all_but_every(config, "sliding_window_pattern", 4)});
}
void describe_ernie(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 103424,
                          .hidden = 1024,
                          .intermediate = 3072,
                          .layers = 18,
                          .heads = 16,
                          .kv_heads = 2,
                          .head_dim = 128,
                          .tied = true},
                .bias_keys = "use_bias",
                .mlp_bias_keys = "use_bias"});
}
void describe_hunyuan(ConfigReader& config, ModuleTree& tree) {
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 290943, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32},
       .heads = normed_heads("query_layernorm", "key_layernorm")});
}
void describe_granite(ConfigReader& config, ModuleTree& tree) {
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32},
       .mlp_bias_keys = "mlp_bias"});
}
void describe_arcee(ConfigReader& config, ModuleTree& tree) {
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 32000, .hidden = 2560, .intermediate = 18432, .layers = 32, .heads = 32},
       .mlp = gateless(),
       .mlp_bias_keys = "mlp_bias"});
}
void describe_nemotron(ConfigReader& config, ModuleTree& tree) {
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 256000, .hidden = 6144, .intermediate = 24576, .layers = 32, .heads = 48},
       .mlp = gateless(),
       .mlp_bias_keys = "mlp_bias",
       .norm_bias = true});
}
void describe_helium(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 48000,
                          .hidden = 2560,
                          .intermediate = 7040,
                          .layers = 24,
                          .heads = 20,
                          .kv_heads = 20,
                          .head_dim = 128},
                .output_bias_keys = "",
                .mlp_bias_keys = "mlp_bias"});
}
// MiniCPM 1, 2 and 4, of their own code: a Llama whose embedding, residuals and logits are scaled.
void describe_minicpm(ConfigReader& config, ModuleTree& tree) {
  config.require(config.number("num_experts", 0) == 0, "num_experts is not 0: MiniCPM-MoE is not described");
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 32000,
                          .hidden = 4096,
                          .intermediate = 11008,
                          .layers = 32,
                          .heads = 32,
                          .tied = true}});
}
void describe_cwm(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 128256,
                          .hidden = 6144,
                          .intermediate = 21504,
                          .layers = 64,
                          .heads = 48,
                          .kv_heads = 8,
                          .head_dim = 128},
                .bias_keys = "",
                .mlp_bias_keys = "mlp_bias",
                .windows = true,
                .window = 8192,
                .windowed = [](std::uint64_t i) { return i % 4 != 0; }});
}
// xIELU has two weights a layer, and keeps two constants beside them.
void add_xielu(ConfigReader&, const Decoder&, Module&, Module& mlp) {
  for (const char* name : {"act_fn.alpha_p", "act_fn.alpha_n"})
    mlp.tensors.push_back(parameter(name, {1}, Role::layer_scale, Part::dense_mlp));
  for (const char* name : {"act_fn.beta", "act_fn.eps"})
    mlp.tensors.push_back(parameter(name, {}, Role::layer_scale, Part::dense_mlp));
}
void describe_apertus_of(ConfigReader& config, ModuleTree& tree, const DecoderDefaults& sizes) {
  describe_kin(config, tree,
               {.sizes = sizes,
                .heads = normed_heads(),
                .mlp = gateless(),
                .input_norm = "attention_layernorm",
                .mlp_norm = "feedforward_layernorm",
                .more = add_xielu});
}
void describe_apertus(ConfigReader& config, ModuleTree& tree) {
  describe_apertus_of(
      config, tree, {.vocabulary = 131072, .hidden = 4096, .intermediate = 14336, .layers = 32, .heads = 32});
}
// The same over a larger table, which has rows for what it sees and hears.
void describe_apertus1p5(ConfigReader& config, ModuleTree& tree) {
  config.require(!config.optional_number("output_vocab_size"),
                 "output_vocab_size: a head of other rows than the embedding's is not described");
  describe_apertus_of(
      config, tree, {.vocabulary = 266752, .hidden = 4096, .intermediate = 14336, .layers = 32, .heads = 32});
}
void describe_vaultgemma(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 256000,
                          .hidden = 2304,
                          .intermediate = 9216,
                          .layers = 26,
                          .heads = 8,
                          .kv_heads = 4,
                          .head_dim = 256,
                          .tied = true},
                .mlp_norm = "pre_feedforward_layernorm",
                .windows = true,
                .window = 4096,
                .windowed = [](std::uint64_t i) { return i % 2 == 0; }});
}
// Norms of what goes into o_proj and down_proj.
void add_sub_norms(ConfigReader&, const Decoder& d, Module& attention, Module& mlp) {
  add_norm(attention, "attn_sub_norm", d.hidden, Role::post_attention_norm, false, Part::attention);
  add_norm(mlp, "ffn_sub_norm", d.intermediate, Role::post_feedforward_norm, false, Part::dense_mlp);
}
void describe_bitnet(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 128256,
                          .hidden = 2560,
                          .intermediate = 6912,
                          .layers = 30,
                          .heads = 20,
                          .kv_heads = 5},
                .more = add_sub_norms});
}
void describe_hyperclovax(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {
      .sizes = {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32},
      .mlp_bias_keys = "mlp_bias"};
  if (config.flag("use_post_norm", true)) kin.after_attention = "post_norm1", kin.after_mlp = "post_norm2";
  describe_kin(config, tree, kin);
}
void describe_jais2(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {
      .sizes = {.vocabulary = 150272, .hidden = 3328, .intermediate = 26624, .layers = 32, .heads = 26},
      .bias = true,
      .mlp = gateless(),
      .mlp_bias_keys = "mlp_bias",
      .norm_bias = true};
  kin.mlp.bias = true;
  describe_kin(config, tree, kin);
}
// LayerNorms without weights.
void describe_olmo(ConfigReader& config, ModuleTree& tree) {
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 50304, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32},
       .input_norm = "",
       .mlp_norm = "",
       .no_final_norm = true});
}
void describe_nanochat(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {
      .sizes = {.vocabulary = 50304, .hidden = 768, .intermediate = 8192, .layers = 12, .heads = 6},
      .mlp = gateless(),
      .input_norm = "",
      .mlp_norm = "",
      .no_final_norm = true};
  kin.mlp.up = "fc1", kin.mlp.down = "fc2";
  describe_kin(config, tree, kin);
}
// qk_layernorm: a LayerNorm without bias for each head.
void add_head_norms(ConfigReader& config, const Decoder& d, Module& attention, Module&) {
  if (!config.flag("qk_layernorm", false)) return;
  const auto add = [&](const char* of, const Quantity& heads, Role role) {
    for (std::uint64_t i = 0; i < heads.value(); ++i)
      add_norm(attention, fmt::format("{}_layernorm.norms.{}", of, i), d.head_dim, role, false,
               Part::attention);
  };
  add("q", d.heads, Role::q_norm);
  add("k", d.kv_heads, Role::k_norm);
}
void describe_stablelm(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {
      .sizes = {.vocabulary = 50304, .hidden = 2560, .intermediate = 6912, .layers = 32, .heads = 32},
      .bias_keys = "use_qkv_bias",
      .output_bias_keys = "",
      .norm_bias = true,
      .more = add_head_norms};
  if (config.flag("use_parallel_residual", false)) kin.mlp_norm = "";
  describe_kin(config, tree, kin);
}
void describe_ministral(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 32000,
                          .hidden = 4096,
                          .intermediate = 14336,
                          .layers = 32,
                          .heads = 32,
                          .kv_heads = 8},
                .bias_keys = "",
                .windows = true,
                .window = 4096,
                .windowed = [](std::uint64_t) { return true; }});
}
void describe_youtu(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 128256,
                          .hidden = 2048,
                          .intermediate = 6144,
                          .layers = 32,
                          .heads = 16,
                          .tied = true},
                .latent = LatentDefaults{}});
}

Hyperparameters read_youtu(ConfigReader& config, const ModuleTree& tree) {
  return read_deepseek_forward(config, tree, {.context = 131072});
}

constexpr std::string_view kSmollm3Architectures[] = {"SmolLM3ForCausalLM"}, kSmollm3Types[] = {"smollm3"};
constexpr std::string_view kSeedArchitectures[] = {"SeedOssForCausalLM"}, kSeedTypes[] = {"seed_oss"};
constexpr std::string_view kExaone4Architectures[] = {"Exaone4ForCausalLM"}, kExaone4Types[] = {"exaone4"};
constexpr std::string_view kErnieArchitectures[] = {"Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"},
                           kErnieTypes[] = {"ernie4_5"};
constexpr std::string_view kHunyuanArchitectures[] = {"HunYuanDenseV1ForCausalLM"},
                           kHunyuanTypes[] = {"hunyuan_v1_dense"};
constexpr std::string_view kGraniteArchitectures[] = {"GraniteForCausalLM"}, kGraniteTypes[] = {"granite"};
constexpr std::string_view kArceeArchitectures[] = {"ArceeForCausalLM"}, kArceeTypes[] = {"arcee"};
constexpr std::string_view kNemotronArchitectures[] = {"NemotronForCausalLM"},
                           kNemotronTypes[] = {"nemotron"};
constexpr std::string_view kHeliumArchitectures[] = {"HeliumForCausalLM"}, kHeliumTypes[] = {"helium"};
constexpr std::string_view kMinicpmArchitectures[] = {"MiniCPMForCausalLM"},
                           kMinicpmTypes[] = {"minicpm", "minicpm4"};
constexpr std::string_view kCwmArchitectures[] = {"CwmForCausalLM"}, kCwmTypes[] = {"cwm"};
constexpr std::string_view kApertusArchitectures[] = {"ApertusForCausalLM"}, kApertusTypes[] = {"apertus"};
constexpr std::string_view kApertus1p5Architectures[] = {"Apertus1p5TextForCausalLM"},
                           kApertus1p5Types[] = {"apertus1p5_text"};
constexpr std::string_view kVaultArchitectures[] = {"VaultGemmaForCausalLM"}, kVaultTypes[] = {"vaultgemma"};
constexpr std::string_view kBitnetArchitectures[] = {"BitNetForCausalLM", "BitnetForCausalLM"},
                           kBitnetTypes[] = {"bitnet"};
constexpr std::string_view kClovaArchitectures[] = {"HyperCLOVAXForCausalLM"},
                           kClovaTypes[] = {"hyperclovax"};
constexpr std::string_view kJais2Architectures[] = {"Jais2ForCausalLM"}, kJais2Types[] = {"jais2"};
constexpr std::string_view kOlmoArchitectures[] = {"OlmoForCausalLM"}, kOlmoTypes[] = {"olmo"};
constexpr std::string_view kNanochatArchitectures[] = {"NanoChatForCausalLM"},
                           kNanochatTypes[] = {"nanochat"};
constexpr std::string_view kStablelmArchitectures[] = {"StableLmForCausalLM", "StableLMEpochForCausalLM"},
                           kStablelmTypes[] = {"stablelm", "stablelm_epoch"};
constexpr std::string_view kMinistralArchitectures[] = {"MinistralForCausalLM"},
                           kMinistralTypes[] = {"ministral"};
constexpr std::string_view kYoutuArchitectures[] = {"YoutuForCausalLM"}, kYoutuTypes[] = {"youtu"};

}  // namespace

const Family kSmollm3 = {"smollm3", "SmolLM3",        kSmollm3Architectures, kSmollm3Types,
                         {},        describe_smollm3, forward_smollm3};
const Family kSeedOss = {"seed_oss", "Seed-OSS",        kSeedArchitectures, kSeedTypes,
                         {},         describe_seed_oss, forward_seed_oss};
const Family kExaone4 = {"exaone4", "EXAONE 4",       kExaone4Architectures, kExaone4Types,
                         {},        describe_exaone4, forward_exaone4};
const Family kErnie45 = {"ernie4_5", "ERNIE 4.5",    kErnieArchitectures, kErnieTypes,
                         {},         describe_ernie, forward_ernie4_5};
const Family kHunyuanDense = {"hunyuan_v1_dense", "Hunyuan",      kHunyuanArchitectures, kHunyuanTypes, {},
                              describe_hunyuan,   forward_hunyuan};
const Family kGranite = {"granite", "Granite 3",      kGraniteArchitectures, kGraniteTypes,
                         {},        describe_granite, forward_granite};
const Family kArcee = {"arcee", "Arcee", kArceeArchitectures, kArceeTypes, {}, describe_arcee, forward_arcee};
const Family kNemotron = {"nemotron", "Nemotron 4, Minitron", kNemotronArchitectures, kNemotronTypes,
                          {},         describe_nemotron,      forward_nemotron};
const Family kHelium = {"helium", "Helium",        kHeliumArchitectures, kHeliumTypes,
                        {},       describe_helium, forward_helium};
const Family kMinicpm = {"minicpm", "MiniCPM, MiniCPM4", kMinicpmArchitectures, kMinicpmTypes,
                         {},        describe_minicpm,    forward_minicpm};
const Family kCwm = {"cwm", "Code World Model", kCwmArchitectures, kCwmTypes, {}, describe_cwm, forward_cwm};
const Family kApertus = {"apertus", "Apertus",        kApertusArchitectures, kApertusTypes,
                         {},        describe_apertus, forward_apertus};
const Family kApertus1p5 = {
    "apertus1p5_text",   "Apertus 1.5", kApertus1p5Architectures, kApertus1p5Types, {},
    describe_apertus1p5, nullptr};
const Family kVaultgemma = {"vaultgemma", "VaultGemma",        kVaultArchitectures, kVaultTypes,
                            {},           describe_vaultgemma, forward_vaultgemma};
const Family kBitnet = {"bitnet", "BitNet b1.58",  kBitnetArchitectures, kBitnetTypes,
                        {},       describe_bitnet, forward_bitnet};
const Family kHyperclovax = {"hyperclovax",        "HyperCLOVA X",     kClovaArchitectures, kClovaTypes, {},
                             describe_hyperclovax, forward_hyperclovax};
const Family kJais2 = {"jais2", "Jais 2",       kJais2Architectures, kJais2Types,
                       {},      describe_jais2, forward_jais2};
const Family kOlmo = {"olmo", "OLMo", kOlmoArchitectures, kOlmoTypes, {}, describe_olmo, forward_olmo};
const Family kNanochat = {"nanochat", "nanochat",        kNanochatArchitectures, kNanochatTypes,
                          {},         describe_nanochat, forward_nanochat};
const Family kStablelm = {"stablelm", "StableLM",        kStablelmArchitectures, kStablelmTypes,
                          {},         describe_stablelm, forward_stablelm};
const Family kMinistral = {"ministral", "Ministral",        kMinistralArchitectures, kMinistralTypes,
                           {},          describe_ministral, forward_ministral};
const Family kYoutu = {"youtu", "Youtu-LLM",    kYoutuArchitectures, kYoutuTypes,
                       {},      describe_youtu, read_youtu};

}  // namespace assay::families
