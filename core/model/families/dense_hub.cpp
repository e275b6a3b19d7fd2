// Dense decoders that transformers has no class for, of 2023 to 2026: InternLM 1, Aquila, XVERSE, Skywork, KORMo, Motif,
// Phi-3-small, Spark-X 2.5 and Domyn Edge. Defaults are those of the configuration class beside the weights; where none is at
// hand, a config must say its sizes. Sources: that code, and the classes by which vLLM (0.10, 0.22, 0.33) and SGLang 0.5.23
// read the checkpoints.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/model/families/all_hub.h"
#include "core/model/families/hub_forward.h"
#include "core/model/families/llama_kin.h"
#include "core/model/families/own_code_forward.h"
#include "core/model/families/stated_sizes.h"

namespace assay::families {
namespace {

using namespace blocks;

// Saved with the rotary frequencies of each layer, as Llama-2 was.
void add_frequencies(ConfigReader&, const Decoder& d, Module& attention, Module&) {
  add_buffer(attention, "rotary_emb.inv_freq", {std::max<std::uint64_t>(1, d.head_dim.value() / 2)});
}

// `bias` is of q, k, v and o.
void describe_internlm(ConfigReader& config, ModuleTree& tree) {
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 103168, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32},
       .bias_keys = "bias",
       .bias = true,
       .more = add_frequencies});
}

void describe_aquila(ConfigReader& config, ModuleTree& tree) {
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 100008, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32},
       .bias_keys = "",
       .more = add_frequencies});
}

void describe_xverse(ConfigReader& config, ModuleTree& tree) {
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 100278, .hidden = 5120, .intermediate = 13824, .layers = 40, .heads = 40},
       .bias_keys = "",
       .more = add_frequencies});
}

// Skywork-MoE names the same class, and its experts otherwise.
void describe_skywork(ConfigReader& config, ModuleTree& tree) {
  config.require(!config.has("num_experts"),
                 "num_experts is there: Skywork-MoE is not described, nobody tells the names of its tensors");
  describe_kin(
      config, tree,
      {.sizes = {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32},
       .bias_keys = "",
       .more = add_frequencies});
}

void describe_kormo(ConfigReader& config, ModuleTree& tree) {
  require_stated(config);
  describe_kin(config, tree,
               {.sizes = kStatedSizes,
                .bias_keys = "",
                .input_norm = "pre_attention_layernorm",
                .mlp_norm = "pre_mlp_layernorm"});
}

// Motif 2.6B: differential attention (arXiv 2410.05258) under a norm of two heads, and PolyNorm: three weights and a bias
// that weigh the powers of gate_proj's output.
void describe_motif(ConfigReader& config, ModuleTree& tree) {
  require_stated(config);
  config.require(!config.flag("use_bias", false) && !config.flag("attention_bias", false),
                 "use_bias or attention_bias is true: Motif has been described without");
  config.require(config.text("hidden_act", "poly_norm") == "poly_norm",
                 "hidden_act is not poly_norm: other Motifs are not described");
  describe_kin(
      config, tree,
      {.sizes = kStatedSizes,
       .bias_keys = "",
       .more = [](ConfigReader&, const Decoder& d, Module& attention, Module& mlp) {
         for (const char* name : {"lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"})
           attention.tensors.push_back(parameter(name, {d.head_dim}, Role::attention_gate, Part::attention));
         add_norm(attention, "subln", Quantity(2) * d.head_dim, Role::attention_gate, false, Part::attention);
         mlp.tensors.push_back(parameter("act_fn.weight", {Quantity(3)}, Role::layer_scale, Part::dense_mlp));
         mlp.tensors.push_back(parameter("act_fn.bias", {Quantity(1)}, Role::layer_scale, Part::dense_mlp));
         mlp.tensors.back().bias = true;
       }});
}

// Biases and LayerNorms everywhere; q, k and v of a key head together, gates and ups in turn. Three layers of four look at
// blocks of the text, whose keys are cached whole.
void describe_phi3_small(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {.sizes = {.vocabulary = 100352,
                            .hidden = 4096,
                            .intermediate = 0,
                            .layers = 32,
                            .heads = 32,
                            .kv_heads = 8,
                            .tied = true},
                  .bias_keys = "",
                  .bias = true,
                  .norm_bias = true,
                  .frame = {.final_norm = "model.final_layernorm"}};
  kin.heads.fused = "query_key_value", kin.heads.interleaved = true;
  kin.heads.o = "dense";
  kin.mlp.fused = "up_proj";
  kin.mlp.bias = true;
  kin.more = [](ConfigReader&, const Decoder&, Module&, Module& mlp) {
    mlp.tensors[0].parallel.interleaved = mlp.tensors[1].parallel.interleaved = true;
  };
  Decoder d = read_decoder(config, tree, kin.sizes);
  const auto times = config.optional_number("ff_dim_multiplier");
  d.intermediate = times ? Quantity("ff_dim_multiplier", *times) * d.hidden
                         : config.size("ff_intermediate_size|intermediate_size", 14336);
  describe_kin(config, tree, kin, d);
}

// iFlytek's Spark-X 2.5: q, k and v in one matrix, a gate a head, a window in three layers of four.
void describe_spark25(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = {.sizes = {.vocabulary = 133120,
                            .hidden = 2048,
                            .intermediate = 6656,
                            .layers = 28,
                            .heads = 8,
                            .kv_heads = 2,
                            .head_dim = 256},
                  .bias_keys = "",
                  .windows = true,
                  .window = 512,
                  .windowed = [](std::uint64_t i) { return (i + 1) % 4 != 0; },
                  .frame = {.embedding = "model.embedding"}};
  kin.heads.fused = "q_k_v_proj", kin.heads.o = "out_proj";
  if (config.flag("headwise_attn_output_gate", true)) kin.heads.gate = "g_proj";
  describe_kin(config, tree, kin);
  tree.aliases.push_back({"model.embedding.", "model.embed_tokens."});
}

// How many keys a layer of Domyn Edge looks at: window_sizes has [w, 0] for w before a token's own, and a w that is not
// positive for all of them.
std::vector<std::uint64_t> read_windows(ConfigReader& config, const Quantity& layers) {
  const ParsedJson& keys = config.config().text();
  const auto sizes = keys.find("window_sizes");
  config.require(sizes != keys.end() && sizes->is_array() && sizes->size() == layers.value(),
                 "window_sizes is no list with an entry for each layer");
  std::vector<std::uint64_t> windows;
  for (const ParsedJson& size : *sizes) {
    config.require(size.is_array() && !size.empty(), "window_sizes holds what is no pair of numbers");
    const double before = config.to_real(size.front(), "window_sizes", -1e9, 1e9);
    windows.push_back(before > 0 ? static_cast<std::uint64_t>(before) + 1 : 0);
  }
  return windows;
}

std::vector<Quantity> read_head_widths(ConfigReader& config, const Quantity& layers) {
  const auto sections = config.config().text_sections("per_layer_config");
  config.require(sections.size() == layers.value(),
                 "per_layer_config is no list with an entry for each layer");
  std::vector<Quantity> widths;
  for (const ModelConfig& section : sections)
    widths.push_back(ConfigReader(section, "per_layer_config").size("head_dim"));
  return widths;
}

// Four norms a layer, heads as wide as the layer says; q is normed without weights.
void describe_domyn_edge(ConfigReader& config, ModuleTree& tree) {
  require_stated(config);
  config.size("num_key_value_heads");
  const Decoder d = read_decoder(config, tree, kStatedSizes, HeadDim::unused);
  const auto widths = read_head_widths(config, d.layers);
  const auto windows = read_windows(config, d.layers);
  const auto heads_of = [&](std::uint64_t i) {
    HeadAttention a{d.hidden, d.heads, config.size("num_key_value_heads"), widths[i]};
    config.require_divides(a.kv_heads, a.heads);
    a.path = "attention";
    return a;
  };
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return fmt::format("layers with heads of {}", widths[i].value()); },
      [&](Module& layer, std::uint64_t i) {
        add_norm(layer, "pre_attention_norm", d.hidden, Role::input_norm);
        add_norm(layer, "post_attention_norm", d.hidden, Role::post_attention_norm);
        add_norm(layer, "pre_feedforward_norm", d.hidden, Role::pre_feedforward_norm);
        add_norm(layer, "post_feedforward_norm", d.hidden, Role::post_feedforward_norm);
        Module attend = attention(heads_of(i));
        add_norm(attend, "k_norm", widths[i], Role::k_norm, false, Part::attention);
        GatedMlp mlp = d.mlp();
        mlp.path = "feedforward";
        layer.children = {std::move(attend), gated_mlp(mlp)};
      });
  add_frame(tree, d, groups);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> kinds;
  for (std::uint64_t i = 0; i < d.layers.value(); ++i) {
    const std::pair kind(widths[i].value(), windows[i]);
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  for (const auto& kind : kinds) {
    const auto same = layers_where(
        d.layers, [&](std::uint64_t i) { return std::pair(widths[i].value(), windows[i]) == kind; });
    tree.attention.push_back(geometry(heads_of(same.front()), same, kind.second));
  }
}

constexpr std::string_view kInternlmArchitectures[] = {"InternLMForCausalLM"},
                           kInternlmTypes[] = {"internlm"};
constexpr std::string_view kAquilaArchitectures[] = {"AquilaForCausalLM", "AquilaModel"},
                           kAquilaTypes[] = {"aquila"};
constexpr std::string_view kXverseArchitectures[] = {"XverseForCausalLM"}, kXverseTypes[] = {"xverse"};
constexpr std::string_view kSkyworkArchitectures[] = {"SkyworkForCausalLM"}, kSkyworkTypes[] = {"skywork"};
constexpr std::string_view kKormoArchitectures[] = {"KORMoForCausalLM"}, kKormoTypes[] = {"kormo"};
constexpr std::string_view kMotifArchitectures[] = {"MotifForCausalLM"}, kMotifTypes[] = {"motif", "Motif"};
constexpr std::string_view kPhi3SmallArchitectures[] = {"Phi3SmallForCausalLM"},
                           kPhi3SmallTypes[] = {"phi3small"};
constexpr std::string_view kSpark25Architectures[] = {"Spark2_5ForCausalLM"}, kSpark25Types[] = {"spark2_5"};
constexpr std::string_view kDomynArchitectures[] = {"DomynEdgeForCausalLM"}, kDomynTypes[] = {"domyn_edge"};

}  // namespace

const Family kInternlm = {"internlm", "InternLM 1",      kInternlmArchitectures, kInternlmTypes,
                          {},         describe_internlm, forward_internlm1};
const Family kAquila = {"aquila", "Aquila, Aquila 2", kAquilaArchitectures, kAquilaTypes,
                        {},       describe_aquila,    forward_aquila};
const Family kXverse = {"xverse", "XVERSE",        kXverseArchitectures, kXverseTypes,
                        {},       describe_xverse, forward_xverse};
const Family kSkywork = {"skywork", "Skywork", kSkyworkArchitectures, kSkyworkTypes, {}, describe_skywork};
const Family kKormo = {"kormo", "KORMo", kKormoArchitectures, kKormoTypes, {}, describe_kormo, forward_kormo};
const Family kMotif = {"motif", "Motif", kMotifArchitectures, kMotifTypes, {}, describe_motif, forward_motif};
const Family kPhi3Small = {"phi3small", "Phi-3-small",       kPhi3SmallArchitectures, kPhi3SmallTypes,
                           {},          describe_phi3_small, forward_phi3_small};
const Family kSpark25 = {"spark2_5", "Spark-X 2.5",   kSpark25Architectures, kSpark25Types,
                         {},         describe_spark25};
const Family kDomynEdge = {"domyn_edge", "Domyn Edge", kDomynArchitectures,
                           kDomynTypes,  {},           describe_domyn_edge};

}  // namespace assay::families
