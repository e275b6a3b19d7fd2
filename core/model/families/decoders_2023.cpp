// Decoders of the years before Llama and beside it: GPT-Neo, GPT-J, CodeGen, GPT-NeoX (Pythia), OPT, BLOOM, StarCoder
// (GPTBigCode), MPT, Phi 1 and 2, Persimmon. LayerNorms, an MLP of two matrices, biases nearly everywhere.
#include <nlohmann/json.hpp>

#include "core/model/families/all.h"
#include "core/model/families/early_forward.h"
#include "core/model/families/kin_forward.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

// The MLP is four times as wide as the model where neither a key nor the class says otherwise.
struct OldDefaults {
  std::uint64_t vocabulary, hidden, layers, heads;
  bool tied;
  std::uint64_t intermediate = 0;  // 0: four times hidden
};
Decoder read_old_sizes(ConfigReader& config, ModuleTree& tree, const OldDefaults& defaults,
                       std::string_view width_keys = "intermediate_size|n_inner|ffn_dim") {
  Decoder d;
  d.vocabulary = config.size("vocab_size", defaults.vocabulary);
  d.hidden = config.size("hidden_size|n_embd|n_embed|d_model", defaults.hidden);
  d.layers = read_layers(config, "num_hidden_layers|n_layer|n_layers|num_layers", defaults.layers);
  d.heads = config.size("num_attention_heads|n_head|n_heads|num_heads", defaults.heads);
  d.kv_heads = d.heads;
  d.head_dim = config.quotient(d.hidden, d.heads, "head_dim");
  const Quantity four_times("4 × hidden_size", (Quantity(4) * d.hidden).value());
  if (width_keys.empty())
    d.intermediate = four_times;
  else
    d.intermediate = defaults.intermediate != 0 ? config.size(width_keys, defaults.intermediate)
                                                : config.size(width_keys, four_times);
  d.tied = config.tied_embeddings(defaults.tied);
  note_sizes(tree, d);
  return d;
}

// Both norms with biases; an MLP of two matrices named up and down.
LlamaKin old_kin(std::string_view layer_path, std::string attention_path, std::string up, std::string down) {
  LlamaKin kin;
  kin.layer_path = layer_path;
  kin.heads.path = std::move(attention_path);
  kin.bias_keys = "";
  kin.bias = true;
  kin.mlp.gate.clear();
  kin.mlp.up = std::move(up), kin.mlp.down = std::move(down);
  kin.mlp.bias = true;
  kin.norm_bias = true;
  return kin;
}
Frame gpt_frame(bool head_bias = false) {
  return {.embedding = "transformer.wte",
          .final_norm = "transformer.ln_f",
          .head = "lm_head",
          .head_bias = head_bias};
}

// attention_types: kinds of layers, so many times over; "local" ones look at a window.
std::vector<std::uint64_t> local_layers(ConfigReader& config, const Quantity& layers) {
  const ParsedJson& text = config.config().text();
  const auto told = text.find("attention_types");
  if (told == text.end() || told->is_null())
    return layers_where(layers, [](std::uint64_t i) { return i % 2 == 1; });
  std::vector<std::uint64_t> local;
  std::uint64_t layer = 0;
  config.require(told->is_array(), "attention_types is not a list");
  for (const ParsedJson& item : *told) {
    config.require(item.is_array() && item.size() == 2 && item[0].is_array() && !item[0].empty() &&
                       item[1].is_number_unsigned(),
                   "attention_types holds something else than kinds and how often they come");
    for (std::uint64_t n = 0; n < item[1].get<std::uint64_t>() && layer < layers.value(); ++n) {
      for (const ParsedJson& kind : item[0]) {
        config.require(kind == "global" || kind == "local",
                       "attention_types names a kind that is neither global nor local");
        if (kind == "local" && layer < layers.value()) local.push_back(layer);
        ++layer;
      }
    }
  }
  config.require(layer >= layers.value(), "attention_types tells of fewer layers than there are");
  return local;
}

void describe_gpt_neo(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_old_sizes(config, tree, {50257, 2048, 24, 16, true});
  LlamaKin kin = old_kin("transformer.h.{layer}", "attn.attention", "c_fc", "c_proj");
  kin.heads.o = "out_proj";
  kin.bias = false;
  kin.input_norm = "ln_1", kin.mlp_norm = "ln_2";
  kin.frame = gpt_frame();
  describe_kin(config, tree, kin, d);
  // Of attention, the output alone has a bias.
  for (Module& group : tree.modules) {
    if (group.repeat.over != Repeat::Over::layers) continue;
    group.children[0].tensors.push_back(
        parameter("out_proj.bias", {d.hidden}, Role::attention_output, Part::attention));
    group.children[0].tensors.back().bias = true;
  }
  add_positions(tree, "transformer.wpe", config.size("max_position_embeddings", 2048), d.hidden);
  tree.attention.clear();
  add_geometry(tree, d.attention(), d.layers, local_layers(config, d.layers),
               config.number("window_size", 256));
}

// One norm: attention and MLP beside each other; no bias in attention, one in the head.
void describe_parallel_gpt(ConfigReader& config, ModuleTree& tree, std::string fused) {
  const Decoder d = read_old_sizes(config, tree, {50400, 4096, 28, 16, false});
  LlamaKin kin = old_kin("transformer.h.{layer}", "attn", "fc_in", "fc_out");
  kin.heads.fused = std::move(fused);
  kin.heads.o = "out_proj";
  kin.bias = false;
  kin.input_norm = "ln_1", kin.mlp_norm = "";
  kin.frame = gpt_frame(true);
  describe_kin(config, tree, kin, d);
}
void describe_gptj(ConfigReader& config, ModuleTree& tree) {
  describe_parallel_gpt(config, tree, "");
}
void describe_codegen(ConfigReader& config, ModuleTree& tree) {
  describe_parallel_gpt(config, tree, "qkv_proj");
}

void describe_gpt_neox(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_old_sizes(config, tree, {50432, 6144, 44, 64, false, 24576});
  LlamaKin kin = old_kin("gpt_neox.layers.{layer}", "attention", "dense_h_to_4h", "dense_4h_to_h");
  kin.bias_keys = "attention_bias";
  kin.heads.fused = "query_key_value", kin.heads.interleaved = true;
  kin.heads.o = "dense";
  kin.frame = {
      .embedding = "gpt_neox.embed_in", .final_norm = "gpt_neox.final_layer_norm", .head = "embed_out"};
  describe_kin(config, tree, kin, d);
}

void describe_bloom(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_old_sizes(config, tree, {250880, 64, 2, 8, true}, "");
  LlamaKin kin = old_kin("transformer.h.{layer}", "self_attention", "dense_h_to_4h", "dense_4h_to_h");
  kin.heads.fused = "query_key_value", kin.heads.interleaved = true;
  kin.heads.o = "dense";
  kin.frame = {
      .embedding = "transformer.word_embeddings", .final_norm = "transformer.ln_f", .head = "lm_head"};
  describe_kin(config, tree, kin, d);
  tree.modules.insert(tree.modules.begin() + 1,
                      norm("transformer.word_embeddings_layernorm", d.hidden, Role::embedding_norm, true));
  tree.aliases.push_back({"transformer.", ""});
}

// c_attn holds the queries and, with multi_query, one key and one value head.
void describe_gpt_bigcode(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_old_sizes(config, tree, {50257, 768, 12, 12, true});
  if (config.flag("multi_query", true)) d.kv_heads = 1;
  LlamaKin kin = old_kin("transformer.h.{layer}", "attn", "c_fc", "c_proj");
  kin.heads.fused = "c_attn", kin.heads.interleaved = d.kv_heads.value() > 1;
  kin.heads.o = "c_proj";
  kin.input_norm = "ln_1", kin.mlp_norm = "ln_2";
  kin.frame = gpt_frame();
  describe_kin(config, tree, kin, d);
  add_positions(tree, "transformer.wpe", config.size("n_positions|max_position_embeddings", 1024), d.hidden);
}

// No biases at all, and positions by ALiBi. The class reads no expansion_ratio.
void describe_mpt(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_old_sizes(config, tree, {50368, 2048, 24, 16, true}, "");
  LlamaKin kin = old_kin("transformer.blocks.{layer}", "attn", "up_proj", "down_proj");
  kin.heads.fused = "Wqkv";
  kin.heads.o = "out_proj";
  kin.mlp.path = "ffn";
  kin.bias = kin.mlp.bias = kin.norm_bias = false;
  kin.input_norm = "norm_1", kin.mlp_norm = "norm_2";
  kin.frame = {.embedding = "transformer.wte", .final_norm = "transformer.norm_f", .head = "lm_head"};
  describe_kin(config, tree, kin, d);
}

void add_biased_qk_norms(ConfigReader& config, const Decoder& d, Module& attention, bool by_default) {
  if (!config.flag("qk_layernorm", by_default)) return;
  add_norm(attention, "q_layernorm", d.head_dim, Role::q_norm, true, Part::attention);
  add_norm(attention, "k_layernorm", d.head_dim, Role::k_norm, true, Part::attention);
}
void add_phi_norms(ConfigReader& config, const Decoder& d, Module& attention, Module&) {
  add_biased_qk_norms(config, d, attention, false);
}
void add_persimmon_norms(ConfigReader& config, const Decoder& d, Module& attention, Module&) {
  add_biased_qk_norms(config, d, attention, true);
}
void describe_phi(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = old_kin("model.layers.{layer}", "self_attn", "fc1", "fc2");
  kin.sizes = {.vocabulary = 51200, .hidden = 2048, .intermediate = 8192, .layers = 24, .heads = 32};
  kin.heads.o = "dense";
  kin.mlp_norm = "";
  kin.frame.final_norm = "model.final_layernorm";
  kin.frame.head_bias = true;
  kin.more = add_phi_norms;
  describe_kin(config, tree, kin);
}
void describe_persimmon(ConfigReader& config, ModuleTree& tree) {
  LlamaKin kin = old_kin("model.layers.{layer}", "self_attn", "dense_h_to_4h", "dense_4h_to_h");
  kin.sizes = {.vocabulary = 262144, .hidden = 4096, .intermediate = 16384, .layers = 36, .heads = 64};
  kin.heads.fused = "query_key_value", kin.heads.interleaved = true;
  kin.heads.o = "dense";
  kin.frame.final_norm = "model.final_layernorm";
  kin.more = add_persimmon_norms;
  describe_kin(config, tree, kin);
}

// Embeddings may be narrower than the model, between two projections; positions count from 2.
// Each norm is of a sum, not of what enters a block (OPT-350M).
void set_norms_behind(ModuleTree& tree) {
  for (Module& module : tree.modules) {
    if (module.repeat.over != Repeat::Over::layers) continue;
    for (TensorSpec& spec : module.tensors) {
      if (spec.role == Role::input_norm) spec.role = Role::post_attention_norm;
      if (spec.role == Role::pre_feedforward_norm) spec.role = Role::post_feedforward_norm;
    }
  }
}

void describe_opt(ConfigReader& config, ModuleTree& tree) {
  Decoder d = read_old_sizes(config, tree, {50272, 768, 12, 12, true, 3072});
  const Quantity width = config.size("word_embed_proj_dim", d.hidden);
  const bool bias = config.flag("enable_bias", true);
  config.require(config.flag("layer_norm_elementwise_affine", true),
                 "layer_norm_elementwise_affine is false: norms without weights are not described");
  LlamaKin kin = old_kin("model.decoder.layers.{layer}", "self_attn", "fc1", "fc2");
  kin.mlp.path = "";
  kin.bias = kin.mlp.bias = bias;
  kin.heads.o = "out_proj";
  kin.input_norm = "self_attn_layer_norm", kin.mlp_norm = "final_layer_norm";
  kin.frame = {.embedding = "model.decoder.embed_tokens",
               .final_norm = "model.decoder.final_layer_norm",
               .head = "lm_head"};
  kin.no_final_norm =
      !config.flag("do_layer_norm_before", true) || config.flag("_remove_final_layer_norm", false);
  describe_kin(config, tree, kin, d);
  if (!config.flag("do_layer_norm_before", true)) set_norms_behind(tree);
  const Quantity positions("max_position_embeddings + 2",
                           (config.size("max_position_embeddings", 2048) + Quantity(2)).value());
  if (width.value() != d.hidden.value()) {
    tree.modules.front() = embedding(kin.frame.embedding, d.vocabulary, width);
    tree.modules.back() =
        output_head(kin.frame.head, d.vocabulary, width, d.tied, kin.frame.embedding + ".weight");
    Module projections{"model.decoder", "between embedding and model", {}, {}, {}};
    add_linear(projections, {.name = "project_in",
                             .in = width,
                             .out = d.hidden,
                             .role = Role::other,
                             .part = Part::embedding,
                             .quantizable = false});
    add_linear(projections, {.name = "project_out",
                             .in = d.hidden,
                             .out = width,
                             .role = Role::other,
                             .part = Part::output,
                             .quantizable = false});
    tree.modules.insert(tree.modules.begin() + 1, std::move(projections));
  }
  add_positions(tree, "model.decoder.embed_positions", positions, d.hidden);
}

constexpr std::string_view kGptNeoArchitectures[] = {"GPTNeoForCausalLM"}, kGptNeoTypes[] = {"gpt_neo"};
constexpr std::string_view kGptjArchitectures[] = {"GPTJForCausalLM"}, kGptjTypes[] = {"gptj"};
constexpr std::string_view kCodegenArchitectures[] = {"CodeGenForCausalLM"}, kCodegenTypes[] = {"codegen"};
constexpr std::string_view kNeoxArchitectures[] = {"GPTNeoXForCausalLM"}, kNeoxTypes[] = {"gpt_neox"};
constexpr std::string_view kBloomArchitectures[] = {"BloomForCausalLM", "BloomModel"},
                           kBloomTypes[] = {"bloom"};
constexpr std::string_view kBigcodeArchitectures[] = {"GPTBigCodeForCausalLM"},
                           kBigcodeTypes[] = {"gpt_bigcode"};
constexpr std::string_view kMptArchitectures[] = {"MptForCausalLM", "MPTForCausalLM"}, kMptTypes[] = {"mpt"};
constexpr std::string_view kPhiArchitectures[] = {"PhiForCausalLM"}, kPhiTypes[] = {"phi"};
constexpr std::string_view kPersimmonArchitectures[] = {"PersimmonForCausalLM"},
                           kPersimmonTypes[] = {"persimmon"};
constexpr std::string_view kOptArchitectures[] = {"OPTForCausalLM"}, kOptTypes[] = {"opt"};

}  // namespace

const Family kGptNeo = {"gpt_neo", "GPT-Neo",        kGptNeoArchitectures, kGptNeoTypes,
                        {},        describe_gpt_neo, forward_gpt_neo};
const Family kGptj = {"gptj", "GPT-J", kGptjArchitectures, kGptjTypes, {}, describe_gptj, forward_gptj};
const Family kCodegen = {"codegen", "CodeGen",        kCodegenArchitectures, kCodegenTypes,
                         {},        describe_codegen, forward_codegen};
const Family kGptNeox = {"gpt_neox", "GPT-NeoX, Pythia", kNeoxArchitectures, kNeoxTypes,
                         {},         describe_gpt_neox,  forward_gpt_neox};
const Family kBloom = {"bloom", "BLOOM", kBloomArchitectures, kBloomTypes, {}, describe_bloom, forward_bloom};
const Family kGptBigcode = {
    "gpt_bigcode",        "StarCoder (GPTBigCode)", kBigcodeArchitectures, kBigcodeTypes, {},
    describe_gpt_bigcode, forward_gpt_bigcode};
const Family kMpt = {"mpt", "MPT", kMptArchitectures, kMptTypes, {}, describe_mpt, forward_mpt};
const Family kPhi = {"phi", "Phi 1, 1.5, 2", kPhiArchitectures, kPhiTypes, {}, describe_phi, forward_phi};
const Family kPersimmon = {"persimmon", "Persimmon",        kPersimmonArchitectures, kPersimmonTypes,
                           {},          describe_persimmon, forward_persimmon};
const Family kOpt = {"opt", "OPT", kOptArchitectures, kOptTypes, {}, describe_opt, forward_opt};

}  // namespace assay::families
