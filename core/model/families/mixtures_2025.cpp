// Decoders with experts that differ from a Llama by little else: OLMoE, FlexOlmo, ERNIE 4.5, EXAONE MoE, Solar Open,
// dots.llm1, Hunyuan, HY3, Mellum, Trinity (AFMoE), GLM-4.7-Flash, A.X K1, Mistral Small 4, Cohere 2 with experts.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/families/all.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/mixture_forward.h"
#include "core/model/families/odd_forward.h"
#include "core/model/families/soft_forward.h"

namespace assay::families {
namespace {

using namespace blocks;

HeadAttention with_norms(QkNorm kind) {
  HeadAttention a;
  a.qk_norm = kind;
  return a;
}
Mixture with_correction(std::string correction, std::string shared_path = "shared_experts",
                        std::string router = "gate") {
  Mixture m;
  m.correction = std::move(correction);
  m.shared_path = std::move(shared_path);
  m.router = std::move(router);
  return m;
}

void describe_olmoe(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 50304, .hidden = 2048, .intermediate = 0, .layers = 16, .heads = 16},
                .heads = with_norms(QkNorm::full_width),
                .experts = ExpertKin{.count_keys = "num_experts|num_local_experts",
                                     .count = 64,
                                     .active_keys = "num_experts_per_tok",
                                     .active = 8,
                                     .width_keys = "intermediate_size",
                                     .width = 2048}});
}
void describe_flex_olmo(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 100352, .hidden = 4096, .intermediate = 0, .layers = 32, .heads = 32},
                .heads = with_norms(QkNorm::full_width),
                .experts = ExpertKin{.count_keys = "num_experts|num_local_experts",
                                     .count = 7,
                                     .active_keys = "num_experts_per_tok",
                                     .active = 5,
                                     .width_keys = "intermediate_size",
                                     .width = 11008},
                .input_norm = "",
                .mlp_norm = "",
                .after_attention = "post_attention_layernorm",
                .after_mlp = "post_feedforward_layernorm"});
}

// A layer with an MLP between two norms and a projection in front, without a norm behind (vLLM's ernie_mtp.py, SGLang's
// ernie4_eagle.py).
void add_ernie_prediction(ConfigReader& config, ModuleTree& tree, const Decoder& d, const KinParts& parts) {
  const std::uint64_t count = read_mtp_layers(config, 0);
  if (count == 0) return;
  Module mtp = layers("model", "multi-token prediction", all_layers(Quantity(count)));
  Module block{"mtp_block.{layer}", "layer", {}, {}, {}};
  add_pre_norms(block, d.hidden);
  block.children = {parts.attend, parts.dense};
  mtp.children = {
      mtp_own(d.hidden, {"mtp_emb_norm.{layer}", "mtp_hidden_norm.{layer}", "mtp_linear_proj.{layer}", ""}),
      std::move(block)};
  if (config.flag("use_bias", false)) {
    mtp.tensors.push_back(
        parameter("mtp_linear_proj.{layer}.bias", {d.hidden}, Role::mtp_projection, Part::mtp));
    mtp.tensors.back().bias = true;
  }
  tree.mtp.push_back(std::move(mtp));
  AttentionGeometry g = tree.attention.front();
  g.layers = layers_after(d.layers, count);
  tree.mtp_attention.push_back(std::move(g));
}

// moe_layer_start_index to moe_layer_end_index, one layer of moe_layer_interval; the correction is [1, experts].
void describe_ernie_moe(ConfigReader& config, ModuleTree& tree) {
  const LlamaKin kin = {.sizes = {.vocabulary = 103424,
                                  .hidden = 2560,
                                  .intermediate = 12288,
                                  .layers = 28,
                                  .heads = 20,
                                  .kv_heads = 4,
                                  .tied = true},
                        .bias_keys = "use_bias",
                        .mlp_bias_keys = "use_bias",
                        .experts = ExpertKin{.count_keys = "moe_num_experts|num_experts",
                                             .count = 64,
                                             .active_keys = "moe_k|num_experts_per_tok",
                                             .active = 6,
                                             .width_keys = "moe_intermediate_size",
                                             .width = 1536,
                                             .shared_keys = "moe_num_shared_experts",
                                             .shared = 2}};
  LlamaKin ernie = kin;
  ernie.experts->names.correction = "moe_statics.e_score_correction_bias";
  ernie.experts->names.correction_is_row = true;
  ernie.experts->names.shared_bias = config.flag("use_bias", false);
  ernie.frame.head_bias = ernie.experts->names.shared_bias;
  const Decoder d = read_decoder(config, tree, ernie.sizes);
  const std::uint64_t start = config.number("moe_layer_start_index", 1),
                      interval = config.size("moe_layer_interval", 1).value();
  const auto last = config.optional_real("moe_layer_end_index", -1);  // -1: to the end
  const std::uint64_t end = last.value_or(-1) < 0 ? d.layers.value() - 1 : static_cast<std::uint64_t>(*last);
  const KinParts parts = describe_kin(config, tree, ernie, d, [=](std::uint64_t i) {
    return (i + 1) % interval == 0 && i >= start && i <= end;
  });
  add_ernie_prediction(config, tree, d, parts);
}

// A layer with an MLP that looks as far as the first of mtp_layer_types does, or of layer_types (vLLM's exaone_moe_mtp.py).
void add_exaone_prediction(ConfigReader& config, ModuleTree& tree, const Decoder& d, const KinParts& parts) {
  const std::uint64_t count = read_mtp_layers(config, 0);
  if (count == 0) return;
  AttentionGeometry g = tree.attention.front();
  if (const auto types = layer_texts(config, "mtp_layer_types", Quantity(count), true)) {
    const bool windowed = types->front() == "sliding_attention";
    g.window = windowed ? config.optional_number("sliding_window", 4096).value_or(0) : 0;
  } else {
    for (const AttentionGeometry& other : tree.attention)
      if (std::find(other.layers.begin(), other.layers.end(), 0) != other.layers.end())
        g.window = other.window;
  }
  add_mtp_under_fc(tree, d, std::move(g), count, {parts.attend, parts.dense});
}
void describe_exaone_moe(ConfigReader& config, ModuleTree& tree) {
  const LlamaKin kin = {.sizes = {.vocabulary = 102400,
                                  .hidden = 4096,
                                  .intermediate = 16384,
                                  .layers = 32,
                                  .heads = 32,
                                  .kv_heads = 32},
                        .heads = with_norms(QkNorm::per_head),
                        .bias_keys = "",
                        .experts = ExpertKin{.count_keys = "num_experts|num_local_experts",
                                             .count = 64,
                                             .active_keys = "num_experts_per_tok",
                                             .active = 8,
                                             .width_keys = "moe_intermediate_size",
                                             .width = 1024,
                                             .shared_keys = "num_shared_experts",
                                             .shared = 1,
                                             .dense_first_keys = "first_k_dense_replace",
                                             .dense_first = 1,
                                             .names = with_correction("e_score_correction_bias")},
                        .windows = true,
                        .window = config.is_null("sliding_window") ? 0U : 4096U,
                        .windowed = all_but_every(config, "sliding_window_pattern", 4)};
  const Decoder d = read_decoder(config, tree, kin.sizes);
  add_exaone_prediction(config, tree, d, describe_kin(config, tree, kin, d));
}
void describe_solar_open(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 196608,
                          .hidden = 4096,
                          .intermediate = 0,
                          .layers = 48,
                          .heads = 64,
                          .kv_heads = 8,
                          .head_dim = 128},
                .output_bias_keys = "",
                .experts = ExpertKin{.count_keys = "n_routed_experts|num_local_experts",
                                     .count = 128,
                                     .active_keys = "num_experts_per_tok",
                                     .active = 8,
                                     .width_keys = "moe_intermediate_size",
                                     .width = 1280,
                                     .shared_keys = "n_shared_experts",
                                     .shared = 1,
                                     .names = with_correction("gate.e_score_correction_bias")}});
}
void describe_dots1(ConfigReader& config, ModuleTree& tree) {
  config.size("n_routed_experts|num_local_experts"), config.size("num_experts_per_tok");  // required
  const std::uint64_t full_before = config.number("max_window_layers", 62);
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 152064, .hidden = 4608, .intermediate = 10944, .layers = 62, .heads = 32},
       .heads = with_norms(QkNorm::per_head),
       .experts = ExpertKin{.count_keys = "n_routed_experts|num_local_experts",
                            .count = 0,
                            .active_keys = "num_experts_per_tok",
                            .active = 0,
                            .width_keys = "moe_intermediate_size",
                            .width = 1408,
                            .shared_keys = "n_shared_experts",
                            .dense_first_keys = "first_k_dense_replace",
                            .names = with_correction("gate.e_score_correction_bias")},
       .windows = true,
       .window = 4096,
       .windowed = [=](std::uint64_t i) { return i >= full_before; }});
}

// Hunyuan-A13B writes counts as a list with an entry for each layer: the same one.
std::uint64_t same_in_all_layers(ConfigReader& config, std::string_view key, std::uint64_t class_default) {
  if (!config.is_list(key)) return config.number(key, class_default);
  const std::vector<std::uint64_t> listed = *config.numbers(key);
  for (const std::uint64_t count : listed)
    config.require(count == listed.front(),
                   fmt::format("{} differs from layer to layer, which is not described", key));
  config.require(!listed.empty(), fmt::format("{} is an empty list", key));
  return listed.front();
}
void describe_hunyuan_moe(ConfigReader& config, ModuleTree& tree) {
  config.require(!config.flag("use_cla", false),
                 "use_cla: layers that share keys and values are not described");
  const Decoder d = read_decoder(
      config, tree, {.vocabulary = 290943, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32});
  HeadAttention a = d.attention();
  a.qk_norm = QkNorm::per_head;
  a.q_norm = "query_layernorm", a.k_norm = "key_layernorm";
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  const std::uint64_t count = same_in_all_layers(config, "num_experts", 1),
                      active = same_in_all_layers(config, "moe_topk", 1);
  config.require(count >= 1 && active >= 1 && active <= count,
                 "moe_topk and num_experts do not fit together");
  tree.experts = count, tree.experts_per_token = active;
  Mixture m = with_correction("", "shared_mlp", "gate.wg");
  m.hidden = d.hidden, m.experts = {Quantity("num_experts", count), active};
  m.expert_width = d.intermediate, m.shared_width = d.intermediate;
  Module layer = layers("model.layers.{layer}", "MoE layers", all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(a), mixture(m)};
  add_frame(tree, d, {layer});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}
void describe_hy3(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {.sizes = {.vocabulary = 120832,
                            .hidden = 4096,
                            .intermediate = 13312,
                            .layers = 80,
                            .heads = 64,
                            .kv_heads = 8,
                            .head_dim = 128},
                  .heads = with_norms(QkNorm::per_head),
                  .mlp_bias_keys = "mlp_bias",
                  .experts = ExpertKin{.count_keys = "num_experts|num_local_experts",
                                       .count = 192,
                                       .active_keys = "num_experts_per_tok",
                                       .active = 8,
                                       .width_keys = "moe_intermediate_size",
                                       .width = 1536,
                                       .shared_keys = "num_shared_experts",
                                       .shared = 1,
                                       .dense_first = 1,
                                       .names = with_correction("expert_bias", "shared_mlp", "router.gate")}};
  kin.experts->names.shared_bias = config.flag("mlp_bias", false);
  const Decoder d = read_decoder(config, tree, kin.sizes);
  const KinParts parts = describe_kin(config, tree, kin, d);
  // Layers with experts behind the last (vLLM's hy_v3_mtp.py), whose copies of embedding and head no engine reads.
  AttentionGeometry g = tree.attention.front();
  g.layers = layers_after(d.layers, read_mtp_layers(config, 0));
  if (g.layers.empty()) return;
  add_mtp_layers(tree, d, std::move(g), {parts.attend, parts.sparse});
  auto& own = tree.mtp.back().children.back().tensors;
  own.push_back(stored_again("embed_tokens.weight", d, Role::token_embedding, Part::embedding,
                             "model.embed_tokens.weight"));
  own.push_back(stored_again("shared_head.weight", d, Role::output_head, Part::output, "lm_head.weight"));
}
void describe_mellum(ConfigReader& config, ModuleTree& tree) {
  describe_kin(config, tree,
               {.sizes = {.vocabulary = 98304,
                          .hidden = 2304,
                          .intermediate = 7168,
                          .layers = 28,
                          .heads = 32,
                          .kv_heads = 4,
                          .head_dim = 128},
                .heads = with_norms(QkNorm::per_head),
                .experts = ExpertKin{.count_keys = "num_local_experts|num_experts",
                                     .count = 64,
                                     .active_keys = "num_experts_per_tok",
                                     .active = 8,
                                     .width_keys = "moe_intermediate_size",
                                     .width = 896},
                .windows = true,
                .window = 1024});
  if (config.optional_number("num_nextn_predict_layers").value_or(0) > 0)
    tree.not_counted.push_back({"multi-token prediction (its tensors are not described)", std::nullopt});
}
// A gate of attention's output as wide as it; four norms a layer.
void describe_afmoe(ConfigReader& config, ModuleTree& tree) {
  HeadAttention heads = with_norms(QkNorm::per_head);
  heads.gate = "gate_proj", heads.wide_gate = true;
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 200192,
                 .hidden = 2048,
                 .intermediate = 6144,
                 .layers = 32,
                 .heads = 16,
                 .head_dim = 128},
       .heads = heads,
       .experts = ExpertKin{.count_keys = "num_experts|num_local_experts",
                            .count = 64,
                            .active_keys = "num_experts_per_tok",
                            .active = 6,
                            .width_keys = "moe_intermediate_size",
                            .width = 1408,
                            .shared_keys = "num_shared_experts",
                            .shared = 2,
                            .dense_first_keys = "num_dense_layers",
                            .dense_first = 1,
                            .names = with_correction("expert_bias", "shared_experts", "router.gate")},
       .mlp_norm = "pre_mlp_layernorm",
       .after_attention = "post_attention_layernorm",
       .after_mlp = "post_mlp_layernorm",
       .windows = true,
       .window = 1024,
       .windowed = all_but_every(config, "global_attn_every_n_layers", 4)});
}

// DeepSeek's latent attention and experts with other class defaults.
ExpertKin deepseek_experts(std::uint64_t count, std::uint64_t active, std::uint64_t width,
                           std::uint64_t dense_first, std::string correction) {
  return {.count_keys = "n_routed_experts|num_local_experts",
          .count = count,
          .active_keys = "num_experts_per_tok",
          .active = active,
          .width_keys = "moe_intermediate_size",
          .width = width,
          .shared_keys = "n_shared_experts",
          .shared = 1,
          .dense_first_keys = "first_k_dense_replace",
          .dense_first = dense_first,
          .names = with_correction(std::move(correction))};
}
constexpr const char* kCorrection = "gate.e_score_correction_bias";
void describe_glm4_moe_lite(ConfigReader& config, ModuleTree& tree) {
  const LlamaKin kin = {
      .sizes = {.vocabulary = 154880, .hidden = 2048, .intermediate = 10240, .layers = 47, .heads = 20},
      .latent = LatentDefaults{768, 512, 192, 64, 256},
      .experts = deepseek_experts(64, 4, 1536, 1, kCorrection)};
  const Decoder d = read_decoder(config, tree, kin.sizes, HeadDim::unused);
  describe_kin(config, tree, kin, d);
  // The layer behind the last, with experts.
  const auto mtp = layers_after(d.layers, read_mtp_layers(config, 0));
  if (mtp.empty()) return;
  for (const Module& group : tree.modules) {
    if (group.title != "MoE layers") continue;
    Module layer = group;
    layer.repeat = layers("", "", mtp).repeat;
    add_mtp(tree, d, std::move(layer), "model.embed_tokens.weight", "lm_head.weight");
    AttentionGeometry g = tree.attention.front();
    g.layers = mtp;
    tree.mtp_attention.push_back(std::move(g));
    return;
  }
}
Hyperparameters read_glm4_moe_lite(ConfigReader& config, const ModuleTree& tree) {
  return read_deepseek_forward(
      config, tree,
      {.groups = 1, .chosen_groups = 1, .routed_scale = 1.8, .context = 202752, .epsilon = 1e-5});
}
// A norm of the MLP's output too, where there are experts.
void describe_axk1(ConfigReader& config, ModuleTree& tree) {
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 163840, .hidden = 7168, .intermediate = 18432, .layers = 61, .heads = 64},
       .latent = LatentDefaults{},
       .experts = deepseek_experts(192, 8, 2048, 1, kCorrection)});
  for (Module& group : tree.modules) {
    if (group.title == "MoE layers")
      add_norm(group, "post_mlp_layernorm", Quantity("hidden_size", tree.hidden_size),
               Role::post_feedforward_norm);
  }
}
Hyperparameters read_axk1(ConfigReader& config, const ModuleTree& tree) {
  return read_deepseek_forward(config, tree, {.context = 32768});
}
// Stacked, as the class holds them.
void describe_mistral4(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {
      .sizes = {.vocabulary = 131072, .hidden = 4096, .intermediate = 12288, .layers = 36, .heads = 32},
      .latent = LatentDefaults{1024, 256, 64, 64, 128},
      .experts = deepseek_experts(128, 4, 2048, 0, "")};
  kin.experts->names.stacks = Mixture::Stacks::output_major;
  describe_kin(config, tree, kin);
}

// Layers with an MLP in front have a pattern of their own, and that of the others begins behind them.
std::function<bool(std::uint64_t)> cohere2_moe_windows(ConfigReader& config) {
  const std::uint64_t dense = config.number("first_k_dense_replace", 0);
  const auto in_front = all_but_every(config, "prefix_dense_sliding_window_pattern", 1),
             behind = all_but_every(config, "sliding_window_pattern", 4);
  return [=](std::uint64_t i) { return i < dense ? in_front(i) : behind(i - dense); };
}

// One norm a layer, attention and experts beside each other.
void describe_cohere2_moe(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {.sizes = {.vocabulary = 256000,
                            .hidden = 8192,
                            .intermediate = 22528,
                            .layers = 40,
                            .heads = 64,
                            .head_dim = 128,
                            .tied = true},
                  .experts = ExpertKin{.count_keys = "num_experts|num_local_experts",
                                       .count = 8,
                                       .active_keys = "num_experts_per_tok",
                                       .active = 2,
                                       .width_keys = "intermediate_size",
                                       .width = 22528,
                                       .shared_keys = "num_shared_experts",
                                       .dense_first_keys = "first_k_dense_replace"},
                  .mlp_norm = "",
                  .windows = true,
                  .window = 4096,
                  .windowed = cohere2_moe_windows(config)};
  Decoder d = read_decoder(config, tree, kin.sizes);
  if (config.has("prefix_dense_intermediate_size"))
    d.intermediate = config.size("prefix_dense_intermediate_size");
  describe_kin(config, tree, kin, d);
}

constexpr std::string_view kOlmoeArchitectures[] = {"OlmoeForCausalLM"}, kOlmoeTypes[] = {"olmoe"};
constexpr std::string_view kFlexArchitectures[] = {"FlexOlmoForCausalLM"}, kFlexTypes[] = {"flex_olmo"};
constexpr std::string_view kErnieMoeArchitectures[] = {"Ernie4_5_MoeForCausalLM", "Ernie4_5_MoEForCausalLM"},
                           kErnieMoeTypes[] = {"ernie4_5_moe"};
constexpr std::string_view kExaoneMoeArchitectures[] = {"ExaoneMoeForCausalLM", "ExaoneMoEForCausalLM"},
                           kExaoneMoeTypes[] = {"exaone_moe"};
constexpr std::string_view kSolarArchitectures[] = {"SolarOpenForCausalLM"}, kSolarTypes[] = {"solar_open"};
constexpr std::string_view kDots1Architectures[] = {"Dots1ForCausalLM"}, kDots1Types[] = {"dots1"};
constexpr std::string_view kHunyuanMoeArchitectures[] = {"HunYuanMoEV1ForCausalLM"},
                           kHunyuanMoeTypes[] = {"hunyuan_v1_moe"};
constexpr std::string_view kHy3Architectures[] = {"HYV3ForCausalLM"}, kHy3Types[] = {"hy_v3"};
constexpr std::string_view kMellumArchitectures[] = {"MellumForCausalLM"}, kMellumTypes[] = {"mellum"};
constexpr std::string_view kAfmoeArchitectures[] = {"AfmoeForCausalLM"}, kAfmoeTypes[] = {"afmoe"};
constexpr std::string_view kGlmLiteArchitectures[] = {"Glm4MoeLiteForCausalLM"},
                           kGlmLiteTypes[] = {"glm4_moe_lite"};
constexpr std::string_view kAxk1Architectures[] = {"AXK1ForCausalLM"}, kAxk1Types[] = {"axk1"};
constexpr std::string_view kMistral4Architectures[] = {"Mistral4ForCausalLM"},
                           kMistral4Types[] = {"mistral4"};
constexpr std::string_view kCohereMoeArchitectures[] = {"Cohere2MoeForCausalLM"},
                           kCohereMoeTypes[] = {"cohere2_moe"};

}  // namespace

const Family kOlmoe = {"olmoe", "OLMoE", kOlmoeArchitectures, kOlmoeTypes, {}, describe_olmoe, forward_olmoe};
const Family kFlexOlmo = {"flex_olmo", "FlexOlmo",         kFlexArchitectures, kFlexTypes,
                          {},          describe_flex_olmo, forward_flex_olmo};
const Family kErnie45Moe = {
    "ernie4_5_moe",     "ERNIE 4.5 with experts", kErnieMoeArchitectures, kErnieMoeTypes, {},
    describe_ernie_moe, forward_ernie4_5_moe};
const Family kExaoneMoe = {"exaone_moe", "K-EXAONE",          kExaoneMoeArchitectures, kExaoneMoeTypes,
                           {},           describe_exaone_moe, forward_exaone_moe};
const Family kSolarOpen = {"solar_open", "Solar Open",        kSolarArchitectures, kSolarTypes,
                           {},           describe_solar_open, forward_solar_open};
const Family kDots1 = {"dots1", "dots.llm1",    kDots1Architectures, kDots1Types,
                       {},      describe_dots1, forward_dots1};
const Family kHunyuanMoe = {
    "hunyuan_v1_moe",     "Hunyuan-A13B",     kHunyuanMoeArchitectures, kHunyuanMoeTypes, {},
    describe_hunyuan_moe, forward_hunyuan_moe};
const Family kHy3 = {"hy_v3", "HY3", kHy3Architectures, kHy3Types, {}, describe_hy3, forward_hy3};
const Family kMellum = {"mellum", "Mellum 2",      kMellumArchitectures, kMellumTypes,
                        {},       describe_mellum, forward_mellum};
const Family kAfmoe = {"afmoe", "Trinity (AFMoE)", kAfmoeArchitectures, kAfmoeTypes,
                       {},      describe_afmoe,    forward_afmoe};
const Family kGlm4MoeLite = {
    "glm4_moe_lite",        "GLM-4.7-Flash",   kGlmLiteArchitectures, kGlmLiteTypes, {},
    describe_glm4_moe_lite, read_glm4_moe_lite};
const Family kAxk1 = {"axk1", "A.X K1", kAxk1Architectures, kAxk1Types, {}, describe_axk1, read_axk1};
const Family kMistral4 = {"mistral4", "Mistral Small 4", kMistral4Architectures, kMistral4Types,
                          {},         describe_mistral4, forward_mistral4};
const Family kCohere2Moe = {
    "cohere2_moe",        "Command A with experts", kCohereMoeArchitectures, kCohereMoeTypes, {},
    describe_cohere2_moe, forward_cohere2_moe};

}  // namespace assay::families
