// LongCat-Flash: two latent attentions and two MLPs a layer, and experts across both; some "experts" return their input
// and hold nothing, so that a token passes fewer than moe_topk (arXiv 2509.01322). LongCat-Flash-Lite: that over tables of
// n-grams, whose rows and projections are added to a token's embedding (vLLM 0.33's longcat_flash_ngram.py).
#include <fmt/format.h>

#include "core/model/families/all.h"
#include "core/model/families/all_hub.h"
#include "core/model/families/deepseek.h"
#include "core/model/families/forward.h"

namespace assay::families {
namespace {

using namespace blocks;

// One attention and one MLP between norms and a projection in front and a norm behind; the embedding is stored again
// (vLLM's longcat_flash_mtp.py).
void add_longcat_prediction(ModuleTree& tree, const Decoder& d, const LatentAttention& a,
                            std::uint64_t count) {
  if (count == 0) return;
  Module layer = layers("layers.{layer}", "layers", all_layers(Quantity(count)));
  add_pre_norms(layer, d.hidden);
  GatedMlp mlp = d.mlp();
  mlp.path = "transformer_layer.mlp";
  layer.children = {attention(a), gated_mlp(mlp), mtp_own(d.hidden, {"enorm.m", "hnorm.m", "eh_proj", ""})};
  Module mtp{"model.mtp", "multi-token prediction", {}, {}, {}};
  mtp.tensors.push_back(stored_again("embed_tokens.weight", d, Role::token_embedding, Part::embedding,
                                     "model.embed_tokens.weight"));
  add_norm(mtp, "norm", d.hidden, Role::final_norm, false, Part::mtp);
  mtp.children.push_back(std::move(layer));
  tree.mtp.push_back(std::move(mtp));
  tree.mtp_attention.push_back(geometry(a, layers_after(d.layers, count)));
}

void describe_longcat(ConfigReader& config, ModuleTree& tree) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", 131072);
  d.hidden = config.size("hidden_size", 6144);
  d.layers = read_layers(config, "num_layers|num_hidden_layers", 28);
  d.heads = config.size("num_attention_heads", 64);
  d.intermediate = config.size("ffn_hidden_size", 12288);
  d.tied = config.tied_embeddings(false);
  note_sizes(tree, d);
  const LatentAttention a = read_latent_attention(config, d, {});
  Mixture m{d.hidden,
            read_experts(config, tree, "n_routed_experts|num_local_experts", 512,
                         "moe_topk|num_experts_per_tok", 12),
            config.size("expert_ffn_hidden_size", 2048)};
  const Quantity zero("zero_expert_num", config.optional_number("zero_expert_num", 256).value_or(0));

  Module layer = layers("model.layers.{layer}", "layers", all_layers(d.layers));
  for (const char* half : {"0", "1"}) {
    add_norm(layer, std::string("input_layernorm.") + half, d.hidden, Role::input_norm);
    add_norm(layer, std::string("post_attention_layernorm.") + half, d.hidden, Role::pre_feedforward_norm);
    Module attend = attention(a);
    attend.path = std::string("self_attn.") + half;
    GatedMlp mlp = d.mlp();
    mlp.path = std::string("mlps.") + half;
    layer.children.push_back(std::move(attend));
    layer.children.push_back(gated_mlp(mlp));
  }
  const Quantity scored = zero.value() == 0 ? m.experts.count : m.experts.count + zero;
  Module mix{"mlp", "mixture of experts", {}, {}, {}};
  Module router{"", std::string(title(Part::router)), {}, {}, {}};
  add_router(router, "router.classifier", d.hidden, scored, config.flag("router_bias", false));
  router.tensors.push_back(
      parameter("router.e_score_correction_bias", {scored}, Role::router_correction, Part::router));
  router.tensors.back().bias = true;
  mix.children = {std::move(router),
                  routed_experts({d.hidden, m.expert_width}, m.experts.count, m.experts.active)};
  layer.children.push_back(std::move(mix));
  add_frame(tree, d, {layer});
  tree.attention.assign(2, geometry(a, all_layers(d.layers)));  // each layer attends twice
  add_longcat_prediction(tree, d, a, read_mtp_layers(config, 0));
}

// Of n-grams up to emb_neighbor_num tokens, emb_split_num tables each: no two of them as long, so that what meets in one
// does not in another.
void describe_longcat_ngram(ConfigReader& config, ModuleTree& tree) {
  describe_longcat(config, tree);
  if (config.is_null("ngram_vocab_size_ratio") || !config.has("ngram_vocab_size_ratio")) return;
  const Quantity ratio = config.size("ngram_vocab_size_ratio");
  const std::uint64_t splits = config.size("emb_split_num").value(),
                      neighbors = config.size("emb_neighbor_num").value();
  config.require(neighbors >= 2 && neighbors <= 100 && splits <= 100,
                 "emb_neighbor_num and emb_split_num make no tables, or absurdly many");
  const std::uint64_t tables = splits * (neighbors - 1);
  const Quantity hidden("hidden_size", tree.hidden_size),
      width = config.quotient(hidden, Quantity("tables of n-grams", tables), "hidden_size / tables");
  const std::uint64_t shortest = (ratio * Quantity(tree.vocabulary)).value();
  Module ngrams{"model.ngram_embeddings", "embeddings of n-grams", {}, {}, {}};
  for (std::uint64_t i = 0; i < tables; ++i)
    ngrams.tensors.push_back(parameter(fmt::format("embedders.{}.weight", i),
                                       {Quantity(shortest) + Quantity(2 * i + 1), width},
                                       Role::position_embedding, Part::embedding));
  for (std::uint64_t i = 0; i < tables; ++i)
    add_linear(ngrams, {.name = fmt::format("post_projs.{}", i),
                        .in = width,
                        .out = hidden,
                        .role = Role::per_layer_embedding,
                        .part = Part::embedding,
                        .quantizable = false});
  tree.modules.insert(tree.modules.begin() + 1, std::move(ngrams));
}

Hyperparameters read_longcat(ConfigReader& config, const ModuleTree& tree) {
  Hyperparameters h =
      read_forward(config, tree, {.epsilon = 1e-5, .rope = {.theta = 1e7, .context = 131072}});
  h.interleaved_pairs = true;
  h.routing.scale = config.real("routed_scaling_factor", 6);
  return h;
}

constexpr std::string_view kLongcatArchitectures[] = {"LongcatFlashForCausalLM"},
                           kLongcatTypes[] = {"longcat_flash"};
constexpr std::string_view kNgramArchitectures[] = {"LongcatFlashNgramForCausalLM"},
                           kNgramTypes[] = {"longcat_flash_ngram"};

}  // namespace

const Family kLongcatFlash = {"longcat_flash",  "LongCat-Flash", kLongcatArchitectures, kLongcatTypes, {},
                              describe_longcat, read_longcat};
const Family kLongcatNgram = {
    "longcat_flash_ngram", "LongCat-Flash-Lite", kNgramArchitectures, kNgramTypes, {},
    describe_longcat_ngram};

}  // namespace assay::families
