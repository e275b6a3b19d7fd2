// Layers for multi-token prediction that no class of transformers makes: names and shapes as engines read them of published
// checkpoints (vLLM 0.32: models/hy_v4, dots3_note, glm5next, inkling), written out by hand for the small configs of
// data/fixtures/configs; what a checkpoint with, without and with part of them is told.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "core/model/reconcile.h"
#include "tests/support/checkpoints.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using Shapes = std::map<std::string, std::vector<std::uint64_t>>;

// Keys are laid over those of the text.
ModelConfig config_with(const std::string& family, const std::string& keys) {
  ParsedJson config = parse_json(
      test::read_file(test::source_dir() / "data/fixtures/configs" / (family + ".json")), "config.json");
  (config.contains("text_config") ? config["text_config"] : config).update(parse_json(keys, "keys"));
  return ModelConfig::from_json(config, "config.json");
}

Shapes under(const std::string& prefix, const Shapes& shapes) {
  Shapes made;
  for (const auto& [name, shape] : shapes) made[prefix + name] = shape;
  return made;
}

void add(Shapes& to, const Shapes& more) {
  to.insert(more.begin(), more.end());
}

Shapes hy_v4() {
  return under("model.mtp_layers.0.", {{"enorm.weight", {12}},
                                       {"hnorm.weight", {12}},
                                       {"eh_proj.weight", {12, 24}},
                                       {"final_layernorm.weight", {12}},
                                       {"input_layernorm.weight", {12}},
                                       {"post_attention_layernorm.weight", {12}},
                                       {"self_attn.q_a_proj.weight", {10, 12}},
                                       {"self_attn.q_a_proj.bias", {10}},
                                       {"self_attn.q_a_layernorm.weight", {10}},
                                       {"self_attn.q_b_proj.weight", {33, 10}},
                                       {"self_attn.kv_a_proj_with_mqa.weight", {15, 12}},
                                       {"self_attn.kv_a_proj_with_mqa.bias", {15}},
                                       {"self_attn.kv_a_layernorm.weight", {13}},
                                       {"self_attn.kv_b_proj.weight", {33, 13}},
                                       {"self_attn.o_proj.weight", {12, 6}},
                                       {"self_attn.o_proj.bias", {12}},
                                       {"self_attn.linear_gate.weight", {6, 12}},
                                       {"self_attn.learnable_sink_param", {3}},
                                       {"self_attn.indexer.wq_b.weight", {16, 10}},
                                       {"self_attn.indexer.wk.weight", {4, 12}},
                                       {"self_attn.indexer.k_norm.weight", {4}},
                                       {"self_attn.indexer.k_norm.bias", {4}},
                                       {"self_attn.indexer.weights_proj.weight", {4, 12}},
                                       {"mlp.gate.weight", {6, 12}},
                                       {"mlp.gate.e_score_correction_bias", {6}},
                                       {"mlp.experts.gate_up_proj", {6, 64, 12}},
                                       {"mlp.experts.down_proj", {6, 12, 32}},
                                       {"mlp.shared_experts.gate_proj.weight", {32, 12}},
                                       {"mlp.shared_experts.up_proj.weight", {32, 12}},
                                       {"mlp.shared_experts.down_proj.weight", {12, 32}}});
}

// Embedding and head may be stored once more with it.
Shapes glm5_next() {
  Shapes made = {{"enorm.weight", {60}},
                 {"hnorm.weight", {60}},
                 {"eh_proj.weight", {60, 120}},
                 {"shared_head.norm.weight", {60}},
                 {"input_layernorm.weight", {60}},
                 {"post_attention_layernorm.weight", {60}},
                 {"self_attn.q_a_proj.weight", {13, 60}},
                 {"self_attn.q_a_layernorm.weight", {13}},
                 {"self_attn.q_b_proj.weight", {102, 13}},
                 {"self_attn.kv_a_proj_with_mqa.weight", {13, 60}},
                 {"self_attn.kv_a_layernorm.weight", {13}},
                 {"self_attn.kv_b_proj.weight", {132, 13}},
                 {"self_attn.o_proj.weight", {60, 30}},
                 {"self_attn.indexer.wq_b.weight", {40, 13}},
                 {"self_attn.indexer.wk.weight", {10, 60}},
                 {"self_attn.indexer.k_norm.weight", {10}},
                 {"self_attn.indexer.k_norm.bias", {10}},
                 {"self_attn.indexer.weights_proj.weight", {4, 60}},
                 {"self_attn.indexer.index_kpool_compress_ape", {2, 10}},
                 {"self_attn.indexer.index_kpool_compress_gate", {10, 60}},
                 {"mlp.gate.weight", {4, 60}},
                 {"mlp.gate.e_score_correction_bias", {4}},
                 {"mlp.shared_experts.gate_proj.weight", {40, 60}},
                 {"mlp.shared_experts.up_proj.weight", {40, 60}},
                 {"mlp.shared_experts.down_proj.weight", {60, 40}}};
  for (const std::string expert : {"0", "1", "2", "3"})
    add(made, under("mlp.experts." + expert + ".", {{"gate_proj.weight", {20, 60}},
                                                    {"up_proj.weight", {20, 60}},
                                                    {"down_proj.weight", {60, 20}}}));
  return under("model.language_model.layers.6.", made);
}

// A window, a dense MLP, a table of its own; the config is silent.
Shapes dots3_note() {
  Shapes made = under("model.layers.6.", {{"enorm.weight", {12}},
                                          {"hnorm.weight", {12}},
                                          {"eh_proj.weight", {12, 24}},
                                          {"shared_head.norm.weight", {12}},
                                          {"input_layernorm.weight", {12}},
                                          {"post_attention_layernorm.weight", {12}},
                                          {"self_attn.q_a_proj.weight", {18, 12}},
                                          {"self_attn.q_a_proj.bias", {18}},
                                          {"self_attn.q_a_layernorm.weight", {18}},
                                          {"self_attn.q_b_proj.weight", {13, 18}},
                                          {"self_attn.kv_a_proj_with_mqa.weight", {15, 12}},
                                          {"self_attn.kv_a_proj_with_mqa.bias", {15}},
                                          {"self_attn.kv_a_layernorm.weight", {11}},
                                          {"self_attn.kv_b_proj.weight", {18, 11}},
                                          {"self_attn.o_proj.weight", {12, 9}},
                                          {"self_attn.o_proj.bias", {12}},
                                          {"self_attn.k_rope_only_layernorm.weight", {4}},
                                          {"self_attn.g_proj.weight", {1, 12}},
                                          {"mlp.gate_proj.weight", {10, 12}},
                                          {"mlp.up_proj.weight", {10, 12}},
                                          {"mlp.down_proj.weight", {12, 10}}});
  made["model.mtp.embed_tokens.weight"] = {298, 12};
  return made;
}

// The first sees all, the second has a window.
Shapes inkling() {
  Shapes made = {{"model.mtp.chain_norm.weight", {72}}};
  struct Heads {
    std::string at;
    std::uint64_t queries, keys, width, extent, relative;
  };
  for (const Heads& h : {Heads{"0", 18, 6, 6, 11, 18}, Heads{"1", 16, 8, 8, 19, 12}}) {
    const std::string at = "model.mtp.layers." + h.at + ".";
    add(made,
        under(at,
              {{"embed_norm.weight", {72}}, {"hidden_norm.weight", {72}}, {"input_proj.weight", {72, 144}}}));
    add(made, under(at + "transformer_block.", {{"attn_norm.weight", {72}},
                                                {"mlp_norm.weight", {72}},
                                                {"attn_sconv.weight", {72, 1, 3}},
                                                {"mlp_sconv.weight", {72, 1, 3}},
                                                {"mlp.w13_dn.weight", {68, 72}},
                                                {"mlp.w2_md.weight", {72, 34}},
                                                {"mlp.global_scale", {1}}}));
    add(made, under(at + "transformer_block.attn.", {{"wq_du.weight", {h.queries, 72}},
                                                     {"wk_dv.weight", {h.keys, 72}},
                                                     {"wv_dv.weight", {h.keys, 72}},
                                                     {"wr_du.weight", {h.relative, 72}},
                                                     {"wo_ud.weight", {72, h.queries}},
                                                     {"q_norm.weight", {h.width}},
                                                     {"k_norm.weight", {h.width}},
                                                     {"k_sconv.weight", {h.keys, 1, 3}},
                                                     {"v_sconv.weight", {h.keys, 1, 3}},
                                                     {"rel_logits_proj.proj", {6, h.extent}}}));
  }
  return made;
}

struct Predicting {
  std::string family;
  std::string keys;
  Shapes (*shapes)();
};

std::vector<Predicting> predicting() {
  return {
      {"hy_v4", R"({"num_nextn_predict_layers": 1})", hy_v4},
      {"glm5_next", R"({"num_nextn_predict_layers": 1})", glm5_next},
      {"dots3_note_text", "{}", dots3_note},
      {"inkling_text", R"({"num_mtp_layers": 2, "chain_hidden_post_norm": true, "mtp_local_layer_ids": [1]})",
       inkling},
      {"inkling_text",
       R"({"mtp_config": {"num_nextn_predict_layers": 2, "chain_hidden_post_norm": true, "local_layer_ids": [1]}})",
       inkling}};
}
constexpr const char* kNone = R"({"num_nextn_predict_layers": 0, "num_mtp_layers": 0})";

// Of prediction, or of all; copies of what is stored elsewhere are left out.
Shapes stored(const ModuleTree& tree, bool prediction_alone) {
  const TensorLookup lookup(tree);
  Shapes made;
  for_each_tensor(tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
    const bool counts = spec.storage == Storage::own && (!prediction_alone || lookup.find(name)->mtp);
    if (counts) made[name] = spec.shape;
  });
  return made;
}

Checkpoint checkpoint_of(const Shapes& shapes) {
  std::vector<test::StoredTensor> tensors;
  for (const auto& [name, shape] : shapes) tensors.push_back({name, ElementType::BF16, shape});
  return test::make_checkpoint(tensors);
}

std::vector<std::string> codes(const Reconciliation& r) {
  std::vector<std::string> made;
  for (const Finding& f : r.findings) made.push_back(f.code);
  return made;
}

TEST(PredictionLayers, HaveTheNamesThatEnginesRead) {
  for (const Predicting& p : predicting())
    EXPECT_EQ(stored(describe(config_with(p.family, p.keys)), true), p.shapes()) << p.family;
}

TEST(PredictionLayers, AreCountedApart) {
  for (const Predicting& p : predicting()) {
    const Totals totals = count(describe(config_with(p.family, p.keys)));
    std::uint64_t elements = 0;
    for (const auto& [name, shape] : p.shapes()) elements += element_count(shape).value();
    EXPECT_EQ(totals.mtp_own, elements) << p.family;
    EXPECT_EQ(totals.total, count(describe(config_with(p.family, kNone))).total) << p.family;
  }
}

// A table of its own is counted once.
TEST(PredictionLayers, PassAHeadThatTheyShare) {
  const Totals totals = count(describe(config_with("dots3_note_text", "{}")));
  EXPECT_EQ(totals.mtp_active_with_shared, totals.mtp_active + 298 * 12);
}

TEST(PredictionLayers, MayBePresentOrAbsentButNotInPart) {
  for (const Predicting& p : predicting()) {
    SCOPED_TRACE(p.family);
    const ModelConfig config = config_with(p.family, p.keys);
    const ModuleTree tree = describe(config);
    const Shapes all = stored(tree, false), own = p.shapes();
    const Reconciliation whole = reconcile(tree, config, checkpoint_of(all));
    EXPECT_EQ(codes(whole), std::vector<std::string>{});
    EXPECT_EQ(whole.mtp.tensors, own.size());

    Shapes without = all;
    for (const auto& [name, shape] : own) without.erase(name);
    EXPECT_EQ(codes(reconcile(tree, config, checkpoint_of(without))),
              std::vector<std::string>{"model.mtp_absent"});

    Shapes part = all;
    part.erase(own.begin()->first);
    EXPECT_EQ(reconcile(tree, config, checkpoint_of(part)).missing,
              std::vector<std::string>{own.begin()->first});

    const ModelConfig silent = config_with(p.family, kNone);
    EXPECT_EQ(reconcile(describe(silent), silent, checkpoint_of(all)).extra.tensors, own.size());
  }
}

}  // namespace
}  // namespace assay
