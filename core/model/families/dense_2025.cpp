// Dense decoders that differ from a Llama in a bias, a norm or an MLP, each described by what differs: SmolLM3, Seed-OSS,
// EXAONE 4, ERNIE 4.5, Hunyuan, Granite, Arcee, Nemotron 4, Helium.
#include "core/model/families/all.h"

namespace assay::families {
namespace {

using namespace blocks;

struct Dense {
  DecoderDefaults sizes;
  std::string_view bias_keys = "attention_bias";  // of q, k and v
  bool qkv_bias = false;
  std::string_view output_bias_key = {};  // empty: o has a bias as q, k and v have
  QkNorm qk_norm = QkNorm::none;
  std::string_view q_norm = "q_norm", k_norm = "k_norm";
  bool gated_mlp = true;
  std::string_view mlp_bias_key = {};
  std::string_view input_norm = "input_layernorm",
                   mlp_norm = "post_attention_layernorm";  // "" where there is none
  std::string_view after_attention = {}, after_mlp = {};   // norms of outputs
  bool norm_bias = false;
  bool windows = false;  // sliding_window counts
};

void describe_dense(ConfigReader& config, ModuleTree& tree, const Dense& kind) {
  const Decoder d = read_decoder(config, tree, kind.sizes);
  HeadAttention a = d.attention();
  a.qkv_bias = config.flag(kind.bias_keys, kind.qkv_bias);
  a.output_bias = kind.output_bias_key.empty() ? a.qkv_bias : config.flag(kind.output_bias_key, false);
  a.qk_norm = kind.qk_norm;
  a.q_norm = kind.q_norm, a.k_norm = kind.k_norm;
  GatedMlp mlp = d.mlp();
  if (!kind.gated_mlp) mlp.gate.clear();
  if (!kind.mlp_bias_key.empty()) mlp.bias = config.flag(kind.mlp_bias_key, false);
  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  const auto add = [&](std::string_view name, Role role) {
    if (!name.empty()) add_norm(layer, std::string(name), d.hidden, role, kind.norm_bias);
  };
  add(kind.input_norm, Role::input_norm);
  add(kind.after_attention, Role::post_attention_norm);
  add(kind.mlp_norm, Role::pre_feedforward_norm);
  add(kind.after_mlp, Role::post_feedforward_norm);
  layer.children = {attention(a), gated_mlp(mlp)};
  Frame frame;
  frame.norm_bias = kind.norm_bias;
  add_frame(tree, d, {layer}, frame);
  const auto window = kind.windows ? config.optional_number("sliding_window") : std::nullopt;
  const auto windowed = windowed_layers(config, d.layers, [&](std::uint64_t) { return false; });
  add_geometry(tree, a, d.layers, window ? windowed : std::vector<std::uint64_t>{}, window.value_or(0));
}

// Every few layers rotate nothing; use_sliding_window may give the others a window.
void describe_smollm3(ConfigReader& config, ModuleTree& tree) {
  describe_dense(config, tree,
                 {.sizes = {.vocabulary = 128256,
                            .hidden = 2048,
                            .intermediate = 11008,
                            .layers = 36,
                            .heads = 16,
                            .kv_heads = 4,
                            .tied = true},
                  .mlp_bias_key = "mlp_bias",
                  .windows = config.has("use_sliding_window") && config.flag("use_sliding_window", false)});
}
void describe_seed_oss(ConfigReader& config, ModuleTree& tree) {
  describe_dense(config, tree,
                 {.sizes = {.vocabulary = 155136,
                            .hidden = 4096,
                            .intermediate = 27648,
                            .layers = 64,
                            .heads = 80,
                            .kv_heads = 8,
                            .head_dim = 128},
                  .qkv_bias = true,
                  .output_bias_key = "attention_out_bias",
                  .mlp_bias_key = "mlp_bias"});
}
void describe_exaone4(ConfigReader& config, ModuleTree& tree) {
  describe_dense(config, tree,
                 {.sizes = {.vocabulary = 102400,
                            .hidden = 4096,
                            .intermediate = 16384,
                            .layers = 32,
                            .heads = 32,
                            .kv_heads = 32},
                  .qk_norm = QkNorm::per_head,
                  .input_norm = "",
                  .mlp_norm = "",
                  .after_attention = "post_attention_layernorm",
                  .after_mlp = "post_feedforward_layernorm",
                  .windows = true});
}
void describe_ernie(ConfigReader& config, ModuleTree& tree) {
  describe_dense(config, tree,
                 {.sizes = {.vocabulary = 103424,
                            .hidden = 1024,
                            .intermediate = 3072,
                            .layers = 18,
                            .heads = 16,
                            .kv_heads = 2,
                            .head_dim = 128,
                            .tied = true},
                  .bias_keys = "use_bias",
                  .mlp_bias_key = "use_bias"});
}
void describe_hunyuan(ConfigReader& config, ModuleTree& tree) {
  describe_dense(
      config, tree,
      {.sizes = {.vocabulary = 290943, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32},
       .qk_norm = QkNorm::per_head,
       .q_norm = "query_layernorm",
       .k_norm = "key_layernorm"});
}
void describe_granite(ConfigReader& config, ModuleTree& tree) {
  describe_dense(
      config, tree,
      {.sizes = {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32},
       .mlp_bias_key = "mlp_bias"});
}
void describe_arcee(ConfigReader& config, ModuleTree& tree) {
  describe_dense(
      config, tree,
      {.sizes = {.vocabulary = 32000, .hidden = 2560, .intermediate = 18432, .layers = 32, .heads = 32},
       .gated_mlp = false,
       .mlp_bias_key = "mlp_bias"});
}
void describe_nemotron(ConfigReader& config, ModuleTree& tree) {
  describe_dense(
      config, tree,
      {.sizes = {.vocabulary = 256000, .hidden = 6144, .intermediate = 24576, .layers = 32, .heads = 48},
       .gated_mlp = false,
       .mlp_bias_key = "mlp_bias",
       .norm_bias = true});
}
void describe_helium(ConfigReader& config, ModuleTree& tree) {
  describe_dense(config, tree,
                 {.sizes = {.vocabulary = 48000,
                            .hidden = 2560,
                            .intermediate = 7040,
                            .layers = 24,
                            .heads = 20,
                            .kv_heads = 20,
                            .head_dim = 128},
                  .mlp_bias_key = "mlp_bias"});
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

}  // namespace

const Family kSmollm3 = {"smollm3", "SmolLM3", kSmollm3Architectures, kSmollm3Types, {}, describe_smollm3};
const Family kSeedOss = {"seed_oss", "Seed-OSS", kSeedArchitectures, kSeedTypes, {}, describe_seed_oss};
const Family kExaone4 = {"exaone4", "EXAONE 4", kExaone4Architectures, kExaone4Types, {}, describe_exaone4};
const Family kErnie45 = {"ernie4_5", "ERNIE 4.5", kErnieArchitectures, kErnieTypes, {}, describe_ernie};
const Family kHunyuanDense = {"hunyuan_v1_dense", "Hunyuan", kHunyuanArchitectures,
                              kHunyuanTypes,      {},        describe_hunyuan};
const Family kGranite = {"granite", "Granite 3", kGraniteArchitectures, kGraniteTypes, {}, describe_granite};
const Family kArcee = {"arcee", "Arcee", kArceeArchitectures, kArceeTypes, {}, describe_arcee};
const Family kNemotron = {"nemotron", "Nemotron 4, Minitron", kNemotronArchitectures, kNemotronTypes,
                          {},         describe_nemotron};
const Family kHelium = {"helium", "Helium", kHeliumArchitectures, kHeliumTypes, {}, describe_helium};

}  // namespace assay::families
