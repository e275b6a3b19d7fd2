// The Byte Latent Transformer: bytes enter a narrow encoder, with what their last few hash to; attention makes patches of them, which
// a wide transformer computes with, and a narrow decoder makes bytes of patches again. Where a patch ends another small model of
// bytes tells: told as a tower. Source: transformers 5.23 (blt).
#include <algorithm>

#include "core/model/families/all_kin.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/towers.h"

namespace assay::families {
namespace {

using namespace blocks;

struct BltClass {
  std::uint64_t hidden, layers, heads;
  std::uint64_t wide = 0;  // 0: 8/3 of the width
};

// An MLP of which the config says nothing, or null, is 8/3 as wide as the layers.
Quantity blt_width(ConfigReader& config, const BltClass& of, const Quantity& hidden) {
  const Quantity thirds("8/3 hidden_size", std::max<std::uint64_t>(8 * hidden.value() / 3, 1));
  if (of.wide == 0 || config.is_null("intermediate_size")) return config.size("intermediate_size", thirds);
  return config.size("intermediate_size", of.wide);
}

Decoder read_blt(ConfigReader& config, const BltClass& of) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 260), d.hidden = config.size("hidden_size", of.hidden);
  d.layers = read_layers(config, "num_hidden_layers", of.layers);
  d.heads = config.size("num_attention_heads", of.heads);
  d.kv_heads = config.size("num_key_value_heads", d.heads);
  config.require_divides(d.kv_heads, d.heads);
  d.head_dim = config.quotient(d.hidden, d.heads, "hidden_size / num_attention_heads");
  d.intermediate = blt_width(config, of, d.hidden);
  d.tied = false;
  return d;
}

Module blt_layers(const Decoder& d, const std::string& path, std::string title) {
  Module layer = layers(path + ".layers.{layer}", std::move(title), all_layers(d.layers));
  add_pre_norms(layer, d.hidden);
  layer.children = {attention(d.attention()), gated_mlp(d.mlp())};
  return layer;
}

// Between bytes and patches: behind each layer or one of them alone.
Module blt_crossing(ConfigReader& config, const Decoder& d, const std::string& path, bool in_all_layers) {
  const bool all = config.flag("cross_attn_all_layers", in_all_layers);
  Module layer = layers(path + ".cross_attn_layers.{layer}", "between bytes and patches",
                        all_layers(all ? d.layers : Quantity(1)));
  add_norm(layer, "q_norm", d.hidden, Role::q_norm);
  add_norm(layer, "k_norm", d.hidden, Role::k_norm);
  HeadAttention a = d.attention();
  a.path = "";
  layer.children = {attention(a)};
  return layer;
}

Module blt_matrix(std::string path, std::string name, const Quantity& in, const Quantity& out) {
  Module module{std::move(path), "between widths", {}, {}, {}};
  add_linear(module,
             {.name = std::move(name), .in = in, .out = out, .role = Role::other, .part = Part::dense_mlp});
  return module;
}

// A side of bytes: its layers, and how it makes patches or meets them.
void add_blt_side(ConfigReader& config, ModuleTree& tree, const Decoder& d, const std::string& path,
                  const std::string& title, const Quantity& patch_width, bool crosses_always) {
  tree.modules.push_back(blt_layers(d, path, title));
  tree.modules.push_back(
      blt_matrix(path, "patch_embedding_projection", patch_width, d.hidden * config.size("cross_attn_k", 2)));
  tree.modules.push_back(blt_crossing(config, d, path, crosses_always));
}

Module blt_hashes(ConfigReader& config, const Quantity& hidden) {
  const auto listed = config.numbers("encoder_hash_byte_group_size");
  const Quantity sizes("hashed lengths", listed && !listed->empty() ? listed->size() : 6);
  return embedding("model.encoder_hash_tok_embedding",
                   config.size("encoder_hash_byte_group_vocab", 500002) *
                       (config.size("encoder_hash_byte_group_nb_functions", 1) * sizes),
                   hidden);
}

void add_blt_patcher(ConfigReader& config, ModuleTree& tree) {
  if (!config.flag("patch_in_forward", true)) return;
  TowerConfig patcher(config, tree, "patcher_config");
  config.require(static_cast<bool>(patcher), "patcher_config is missing");
  const Decoder d = read_blt(*patcher, {768, 14, 12, 2048});
  const std::string path = "model.patcher";
  for (Module& module : std::vector<Module>{
           embedding(path + ".embed_tokens", d.vocabulary, d.hidden), blt_layers(d, path, "patcher's layers"),
           norm(path + ".norm", d.hidden, Role::final_norm),
           output_head(path + ".lm_head", d.vocabulary, d.hidden, false, "")})
    add_tower(tree, std::move(module));
}

void describe_blt(ConfigReader& config, ModuleTree& tree) {
  TowerConfig encoder(config, tree, "encoder_config"), decoder(config, tree, "decoder_config"),
      whole(config, tree, "global_config");
  config.require(encoder && decoder && whole, "encoder_config, decoder_config or global_config is missing");
  const Decoder read = read_blt(*encoder, {1024, 1, 16}), written = read_blt(*decoder, {1024, 9, 16, 2816});
  Decoder d = read_blt(*whole, {2048, 25, 16, 5632});
  d.vocabulary = config.size("vocab_size", 260), d.tied = config.tied_embeddings(false);
  note_sizes(tree, d);
  const std::string reads = "model.local_encoder", thinks = "model.global_transformer",
                    writes = "model.local_decoder", table = reads + ".embed_tokens";
  tree.modules = {embedding(table, read.vocabulary, read.hidden), blt_hashes(config, read.hidden)};
  add_blt_side(*encoder, tree, read, reads, "layers that read bytes", read.hidden, false);
  const Quantity patch = read.hidden * config.size("cross_attn_k", 2);
  if (patch.value() != d.hidden.value())
    tree.modules.push_back(blt_matrix(thinks, "token_embedding_projection", patch, d.hidden));
  tree.modules.push_back(blt_layers(d, thinks, "layers over patches"));
  add_blt_side(*decoder, tree, written, writes, "layers that write bytes",
               decoder->size("hidden_size_global", 2048), true);
  tree.modules.push_back(norm(writes + ".norm", written.hidden, Role::final_norm));
  tree.modules.push_back(output_head("lm_head", d.vocabulary, written.hidden, d.tied, table + ".weight"));
  tree.attention.push_back(geometry(d.attention(), all_layers(d.layers)));
  tree.not_counted.push_back({"the layers over bytes: what they cache", std::nullopt});
  add_blt_patcher(config, tree);
}

constexpr std::string_view kBltArchitectures[] = {"BltForCausalLM"}, kBltTypes[] = {"blt"};

}  // namespace

const Family kBlt = {"blt", "BLT", kBltArchitectures, kBltTypes, {}, describe_blt};

}  // namespace assay::families
