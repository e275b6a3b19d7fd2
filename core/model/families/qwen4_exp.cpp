// Qwen4-Exp: Gated DeltaNet in three layers of four, attention with an indexer in the fourth, experts in all; several
// streams between blocks, and in some layers embeddings of the last tokens together, looked up by hash.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/families/all_2026.h"
#include "core/model/families/forward.h"
#include "core/model/primes.h"
#include "core/model/recurrent_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

struct NgramTables {
  std::vector<std::uint64_t> layers;  // ascending; in the config they count from 1
  Quantity width, kernel;
  std::uint64_t size = 0, heads = 0, base = 0, divisor = 0, parts = 0;
};

NgramTables read_ngrams(ConfigReader& config, const Decoder& d) {
  NgramTables t;
  t.layers = config.numbers("ple_layer_ids").value_or(std::vector<std::uint64_t>{});
  if (t.layers.empty()) return t;
  std::sort(t.layers.begin(), t.layers.end());
  t.layers.erase(std::unique(t.layers.begin(), t.layers.end()), t.layers.end());
  config.require(t.layers.front() >= 1 && t.layers.back() <= d.layers.value(),
                 "ple_layer_ids names a layer there is not");
  t.width = config.size("ple_embed_dim", d.hidden);
  t.kernel = config.size("ple_conv_kernel_size", 4);
  t.size = config.size("ngram_size", 3).value();
  const std::uint64_t each = config.size("heads_per_ngram", 8).value();
  t.base = config.size("ngram_vocab_size_base", 20'000'000).value();
  t.divisor = config.size("make_ngram_vocab_size_divisible_by", 128).value();
  t.parts = config.size("split_ngram_parts", 512).value();
  config.require(t.size >= 2 && t.size <= 16 && each <= 256 && t.layers.size() <= 64 && t.parts <= 10'000,
                 "ngram_size, heads_per_ngram, ple_layer_ids or split_ngram_parts make absurdly many tables");
  t.heads = (t.size - 1) * each;
  config.require(t.width.value() % t.heads == 0, "ple_embed_dim is not divisible by the heads of n-grams");
  return t;
}

// Every head has a prime number of rows, the primes from the base on in order.
std::vector<std::uint64_t> rows_of_tables(const NgramTables& t) {
  std::vector<std::uint64_t> rows;
  std::uint64_t prime = t.base - 1;
  for (std::size_t layer = 0; layer < t.layers.size(); ++layer) {
    std::uint64_t sum = 0;
    for (std::uint64_t head = 0; head < t.heads; ++head) {
      prime = next_prime(prime);
      sum += prime;
    }
    rows.push_back((sum + t.divisor - 1) / t.divisor * t.divisor);
  }
  return rows;
}

// The table of a layer is stored in parts: equal ones, and a smaller last.
Module ngram_table(const NgramTables& t, std::uint64_t rows) {
  Module table{"ple_embedding", "embeddings of n-grams", {}, {}, {}};
  const std::uint64_t most = (rows + t.parts - 1) / t.parts;
  const Quantity width("ple_embed_dim / n-gram heads", t.width.value() / t.heads);
  for (std::uint64_t part = 0, first = 0; first < rows; ++part, first += most)
    table.tensors.push_back(parameter(fmt::format("ngram_embedding.shard_{}.weight", part),
                                      {Quantity(std::min(most, rows - first)), width},
                                      Role::position_embedding, Part::embedding));
  add_buffer(table, "layer_multipliers", {t.size});
  add_buffer(table, "ngram_heads_offsets", {t.heads});
  add_buffer(table, "ngram_heads_vocab_sizes", {t.heads});
  return table;
}

Module ngram_block(const NgramTables& t, const Quantity& hidden, const Quantity& wide, std::uint64_t rows) {
  Module module{"ple", "n-grams into the streams", {}, {}, {}};
  const auto into = [&](const std::string& name, const Quantity& out) {
    add_linear(module, {.name = name,
                        .in = t.width,
                        .out = out,
                        .role = Role::per_layer_embedding,
                        .part = Part::dense_mlp});
  };
  into("key_proj", wide);
  into("value_proj", hidden);
  for (const char* name : {"norm_key", "norm_query", "norm_conv"})
    add_norm(module, name, wide, Role::per_layer_embedding);
  module.tensors.push_back(
      parameter("conv1d.weight", {wide, 1, t.kernel}, Role::convolution, Part::dense_mlp));
  module.children = {ngram_table(t, rows)};
  return module;
}

// What a block reads of the streams, by gates of low rank; and, but for the last, what it gives to each.
Module gated_streams(const std::string& path, const Quantity& wide, const Quantity& rank,
                     const Quantity& streams, bool gives) {
  Module module{path, "streams", {}, {}, {}};
  add_norm(module, "hc_norm", wide, Role::residual_mix);
  const auto add = [&](const std::string& name, const Quantity& in, const Quantity& out) {
    add_linear(module, {.name = name,
                        .in = in,
                        .out = out,
                        .role = Role::residual_mix,
                        .part = Part::norm,
                        .quantizable = false});
  };
  add("input_mix_weight_down", wide, rank);
  add("input_mix_weight_up", rank, wide);
  if (gives) add("block_inject_weight", wide, streams);
  return module;
}

struct BlockIndexer {
  Quantity heads, kv_heads, head_dim;
  std::uint64_t budget = 0;
};

Module block_indexer(const Quantity& hidden, const BlockIndexer& i) {
  Module module{"indexer", "sparse attention indexer", {}, {}, {}};
  add_linear(module, {.name = "index_qk_proj",
                      .in = hidden,
                      .out = (i.heads + i.kv_heads) * i.head_dim,
                      .role = Role::indexer_q,
                      .part = Part::attention});
  for (const char* name : {"q_layernorm", "k_layernorm"})
    add_norm(module, name, i.head_dim, Role::indexer_k_norm, false, Part::attention);
  return module;
}

// The class names no sizes of the indexer.
BlockIndexer read_block_indexer(ConfigReader& config) {
  return {config.size("indexer_n_heads"), config.size("indexer_kv_heads"), config.size("indexer_head_dim"),
          config.size("indexer_budget").value()};
}

void describe_qwen4_exp(ConfigReader& config, ModuleTree& tree) {
  const Decoder d = read_decoder(config, tree,
                                 {.vocabulary = 248320,
                                  .hidden = 2048,
                                  .intermediate = 0,
                                  .layers = 40,
                                  .heads = 16,
                                  .kv_heads = 2,
                                  .head_dim = 256});
  HeadAttention a = d.attention();
  a.qkv_bias = a.output_bias = config.flag("attention_bias", false);
  a.qk_norm = QkNorm::per_head;
  a.gated_q = true;
  const GatedDeltaNet n{d.hidden,
                        config.size("linear_num_key_heads", 16),
                        config.size("linear_num_value_heads", 32),
                        config.size("linear_key_head_dim", 128),
                        config.size("linear_value_head_dim", 128),
                        config.size("linear_conv_kernel_dim", 4)};
  Mixture m{d.hidden, read_experts(config, tree, "num_experts", 512, "num_experts_per_tok", 10),
            config.size("moe_intermediate_size", 512)};
  m.shared_width = config.size("shared_expert_intermediate_size", 512);
  m.shared_path = "shared_expert";
  m.shared_gate = true;
  const Quantity streams = config.size("hc_count", 4), rank = config.size("hc_lowrank", 320),
                 wide = streams * d.hidden;
  const auto types = layer_texts(config, "layer_types", d.layers);
  const std::uint64_t interval = config.size("full_attention_interval", 4).value();
  const auto attends = [&](std::uint64_t i) {
    return types ? (*types)[i] != "linear_attention" : (i + 1) % interval == 0;
  };
  const auto full = layers_where(d.layers, attends);
  const auto linear = layers_where(d.layers, [&](std::uint64_t i) { return !attends(i); });
  const BlockIndexer indexer = full.empty() ? BlockIndexer{} : read_block_indexer(config);
  const NgramTables ngrams = read_ngrams(config, d);
  const auto rows = rows_of_tables(ngrams);
  const auto table_of = [&](std::uint64_t i) {
    return std::find(ngrams.layers.begin(), ngrams.layers.end(), i + 1) - ngrams.layers.begin();
  };
  const auto has_table = [&](std::uint64_t i) {
    return table_of(i) < static_cast<std::ptrdiff_t>(ngrams.layers.size());
  };
  const auto groups = group_layers(
      "model.layers.{layer}", d.layers,
      [&](std::uint64_t i) {
        return (attends(i) ? "attention MoE layers" : "Gated DeltaNet MoE layers") +
               (has_table(i) ? fmt::format(" with n-grams {}", table_of(i)) : "");
      },
      [&](Module& layer, std::uint64_t i) {
        Module mixer = attends(i) ? attention(a) : gated_delta_net(n);
        if (attends(i)) mixer.children.push_back(block_indexer(d.hidden, indexer));
        layer.children = {gated_streams("attn_hyper_connection", wide, rank, streams, true), std::move(mixer),
                          gated_streams("mlp_hyper_connection", wide, rank, streams, true), mixture(m)};
        if (has_table(i))
          layer.children.push_back(
              ngram_block(ngrams, d.hidden, wide, rows[static_cast<std::size_t>(table_of(i))]));
      });
  add_frame(tree, d, groups);
  // In place of a norm behind the last layer.
  *(tree.modules.end() - 2) = gated_streams("model.hyper_connection_mixer", wide, rank, streams, false);
  if (!full.empty()) {
    AttentionGeometry g = geometry(a, full);
    g.indexer_heads = indexer.heads.value();
    g.indexer_head_dim = indexer.head_dim.value();
    g.indexer_top_k = indexer.budget;
    tree.attention.push_back(std::move(g));
  }
  if (!linear.empty()) tree.recurrent.push_back(geometry(n, linear));
}

Hyperparameters forward_qwen4_exp(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h = read_forward(config, tree, {.rope = {.context = 32768, .partial = true}});
  h.routing.renormalize = config.flag("norm_topk_prob", true);
  if (tree.attention.empty()) return h;
  const AttentionGeometry& g = tree.attention.front();
  const std::uint64_t ratio = config.size("indexer_compress_ratio").value();
  config.require(config.size("indexer_kv_heads").value() == 1, "indexer_kv_heads is not 1");
  config.require(g.indexer_top_k % ratio == 0, "indexer_budget is not divisible by indexer_compress_ratio");
  config.require(h.ropes.front().rotary_dim <= g.indexer_head_dim,
                 "more of a head rotates than indexer_head_dim has");
  return h;
}

constexpr std::string_view kQwen4Architectures[] = {"Qwen4ExpForCausalLM"},
                           kQwen4Types[] = {"qwen4_exp_text", "qwen4_exp"};

}  // namespace

const Family kQwen4Exp = {"qwen4_exp", "Qwen4-Exp (text)", kQwen4Architectures, kQwen4Types,
                          {},          describe_qwen4_exp, forward_qwen4_exp};

}  // namespace assay::families
