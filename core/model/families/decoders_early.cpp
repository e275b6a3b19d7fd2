// Decoders of 2018 to 2022 that decoders_2023.cpp does not have: GPT, CTRL, XGLM, BioGPT, GPT-NeoX Japanese.
#include "core/model/families/all_2026.h"
#include "core/model/families/early_forward.h"
#include "core/model/families/llama_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

struct EarlyKeys {
  std::string_view hidden, layers, heads;
  std::uint64_t vocabulary, width, count, head_count;
};
Decoder read_early(ConfigReader& config, ModuleTree& tree, const EarlyKeys& of) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", of.vocabulary);
  d.hidden = config.size(of.hidden, of.width);
  d.layers = read_layers(config, of.layers, of.count);
  d.heads = d.kv_heads = config.size(of.heads, of.head_count);
  d.head_dim = config.quotient(d.hidden, d.heads, "head_dim");
  d.tied = config.tied_embeddings(true);
  note_sizes(tree, d);
  return d;
}

constexpr EarlyKeys kGptKeys = {.hidden = "n_embd|hidden_size",
                                .layers = "n_layer|num_hidden_layers",
                                .heads = "n_head|num_attention_heads",
                                .vocabulary = 40478,
                                .width = 768,
                                .count = 12,
                                .head_count = 12};
constexpr EarlyKeys kCtrlKeys = {.hidden = kGptKeys.hidden,
                                 .layers = kGptKeys.layers,
                                 .heads = kGptKeys.heads,
                                 .vocabulary = 246534,
                                 .width = 1280,
                                 .count = 48,
                                 .head_count = 16};
constexpr EarlyKeys kXglmKeys = {.hidden = "d_model|hidden_size",
                                 .layers = "num_layers|num_hidden_layers",
                                 .heads = "attention_heads|num_attention_heads",
                                 .vocabulary = 256008,
                                 .width = 1024,
                                 .count = 24,
                                 .head_count = 16};
constexpr EarlyKeys kBiogptKeys = {.hidden = "hidden_size",
                                   .layers = "num_hidden_layers",
                                   .heads = "num_attention_heads",
                                   .vocabulary = 42384,
                                   .width = 1024,
                                   .count = 24,
                                   .head_count = 16};
constexpr EarlyKeys kJapaneseKeys = {.hidden = "hidden_size",
                                     .layers = "num_hidden_layers",
                                     .heads = "num_attention_heads",
                                     .vocabulary = 32000,
                                     .width = 2560,
                                     .count = 32,
                                     .head_count = 32};

HeadAttention biased_attention(const Decoder& d, std::string path, std::string o) {
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = true;
  a.path = std::move(path);
  a.o = std::move(o);
  return a;
}

// Norms behind attention and MLP, none behind the last layer; matrices are stored [in, out].
void describe_openai_gpt(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_early(config, tree, kGptKeys);
  HeadAttention a = biased_attention(d, "attn", "c_proj");
  a.fused = "c_attn";
  a.input_major = true;
  Module layer = layers("transformer.h.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "ln_1", d.hidden, Role::post_attention_norm, true);
  add_norm(layer, "ln_2", d.hidden, Role::post_feedforward_norm, true);
  layer.children = {attention(a), plain_mlp({.hidden = d.hidden,
                                             .intermediate = Quantity("4 × n_embd", 4 * d.hidden.value()),
                                             .input_major = true})};
  add_frame(tree, d, {layer}, {.embedding = "transformer.tokens_embed"});
  tree.modules.erase(tree.modules.end() - 2);
  add_positions(tree, "transformer.positions_embed", config.size("n_positions|max_position_embeddings", 512),
                d.hidden);
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

// The head is the embedding's matrix with a bias of its own; places are sines.
void describe_ctrl(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_early(config, tree, kCtrlKeys);
  HeadAttention a = biased_attention(d, "multi_head_attention", "dense");
  a.q = "Wq", a.k = "Wk", a.v = "Wv";
  Module layer = layers("transformer.h.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "layernorm1", d.hidden, Role::input_norm, true);
  add_norm(layer, "layernorm2", d.hidden, Role::pre_feedforward_norm, true);
  layer.children = {attention(a), plain_mlp({.hidden = d.hidden,
                                             .intermediate = config.size("dff", 8192),
                                             .path = "ffn",
                                             .up = "0",
                                             .down = "2"})};
  add_frame(tree, d, {layer},
            {.embedding = "transformer.w",
             .final_norm = "transformer.layernorm",
             .norm_bias = true,
             .head_bias = true});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

// Fairseq's decoder, which XGLM and BioGPT are.
void add_fairseq(ModuleTree& tree, const Decoder& d, const Quantity& width, const std::string& prefix,
                 const std::string& head) {
  const HeadAttention a = biased_attention(d, "self_attn", "out_proj");
  Module layer = layers(prefix + "layers.{layer}", "layers", all_layers(d.layers));
  add_norm(layer, "self_attn_layer_norm", d.hidden, Role::input_norm, true);
  add_norm(layer, "final_layer_norm", d.hidden, Role::pre_feedforward_norm, true);
  layer.children = {
      attention(a),
      plain_mlp({.hidden = d.hidden, .intermediate = width, .path = "", .up = "fc1", .down = "fc2"})};
  add_frame(tree, d, {layer},
            {.embedding = prefix + "embed_tokens",
             .final_norm = prefix + "layer_norm",
             .head = head,
             .norm_bias = true});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

void describe_xglm(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_early(config, tree, kXglmKeys);
  add_fairseq(tree, d, config.size("ffn_dim", 4096), "model.", "lm_head");
}

// Places are learnt, and the table has two rows in front.
void describe_biogpt(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_early(config, tree, kBiogptKeys);
  add_fairseq(tree, d, config.size("intermediate_size", 4096), "biogpt.", "output_projection");
  add_positions(tree, "biogpt.embed_positions", config.size("max_position_embeddings", 1024) + Quantity(2),
                d.hidden);
}

// Nothing has a bias but the norms, and what attention gives in the last layer.
void describe_neox_japanese(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_early(config, tree, kJapaneseKeys);
  const Quantity width = Quantity("intermediate_multiple_size × hidden_size",
                                  (config.size("intermediate_multiple_size", 4) * d.hidden).value());
  HeadAttention a = d.attention();
  a.path = "attention";
  a.fused = "query_key_value";
  a.interleaved = true;
  a.o = "dense";
  const std::uint64_t last = d.layers.value() - 1;
  const auto groups = group_layers(
      "gpt_neox_japanese.layers.{layer}", d.layers,
      [&](std::uint64_t i) { return i == last ? "last layer" : "layers"; },
      [&](Module& layer, std::uint64_t i) {
        add_pre_norms(layer, d.hidden, true);
        layer.children = {attention(a), plain_mlp({.hidden = d.hidden,
                                                   .intermediate = width,
                                                   .bias = false,
                                                   .up = "dense_h_to_4h",
                                                   .down = "dense_4h_to_h"})};
        if (i != last) return;
        TensorSpec bias = parameter("dense_bias", {d.hidden}, Role::attention_output, Part::attention);
        bias.bias = true;
        layer.children[0].tensors.push_back(std::move(bias));
      });
  add_frame(tree, d, groups,
            {.embedding = "gpt_neox_japanese.embed_in",
             .final_norm = "gpt_neox_japanese.final_layer_norm",
             .head = "embed_out",
             .norm_bias = true});
  tree.attention.push_back(geometry(a, all_layers(d.layers)));
}

constexpr std::string_view kOpenaiArchitectures[] = {"OpenAIGPTLMHeadModel"}, kOpenaiTypes[] = {"openai-gpt"};
constexpr std::string_view kCtrlArchitectures[] = {"CTRLLMHeadModel"}, kCtrlTypes[] = {"ctrl"};
constexpr std::string_view kXglmArchitectures[] = {"XGLMForCausalLM"}, kXglmTypes[] = {"xglm"};
constexpr std::string_view kBiogptArchitectures[] = {"BioGptForCausalLM"}, kBiogptTypes[] = {"biogpt"};
constexpr std::string_view kJapaneseArchitectures[] = {"GPTNeoXJapaneseForCausalLM"},
                           kJapaneseTypes[] = {"gpt_neox_japanese"};

}  // namespace

const Family kOpenaiGpt = {
    "openai_gpt", "GPT", kOpenaiArchitectures, kOpenaiTypes, {}, describe_openai_gpt, forward_openai_gpt};
const Family kCtrl = {"ctrl", "CTRL", kCtrlArchitectures, kCtrlTypes, {}, describe_ctrl, forward_ctrl};
const Family kXglm = {"xglm", "XGLM", kXglmArchitectures, kXglmTypes, {}, describe_xglm, forward_xglm};
const Family kBiogpt = {"biogpt", "BioGPT",        kBiogptArchitectures, kBiogptTypes,
                        {},       describe_biogpt, forward_biogpt};
const Family kNeoxJapanese = {
    "gpt_neox_japanese",    "GPT-NeoX Japanese",  kJapaneseArchitectures, kJapaneseTypes, {},
    describe_neox_japanese, forward_neox_japanese};

}  // namespace assay::families
