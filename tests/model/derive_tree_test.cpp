// Trees derived from names and shapes, against those that describe the same models.
#include "core/model/derive_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "core/formats/json.h"
#include "core/model/derived_roles.h"
#include "tests/support/checkpoints.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::StoredTensor;

std::vector<StoredTensor> tensors_of(const ModuleTree& tree) {
  std::vector<StoredTensor> tensors;
  for_each_tensor(tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
    if (spec.storage == Storage::own) tensors.push_back({name, ElementType::BF16, spec.shape});
  });
  return tensors;
}

class DerivedTrees : public testing::TestWithParam<std::string> {};

// Every parameter of every family's small config is there again, once; its layers and experts are found.
TEST_P(DerivedTrees, HoldWhatTheDescriptionHolds) {
  const ModelConfig config = ModelConfig::read(GetParam());
  const ModuleTree described = describe(config);
  const Checkpoint checkpoint = test::make_checkpoint(tensors_of(described));
  const ModuleTree derived = derive_tree(checkpoint, config);
  const Totals is = count(derived), should = count(described);
  EXPECT_EQ(is.all(), should.all());
  EXPECT_EQ(is.mtp_own, should.mtp_own);
  EXPECT_TRUE(derived.derived);
  const TensorLookup lookup(derived);
  for (const CheckpointTensor& tensor : checkpoint.tensors) {
    const auto found = lookup.find(tensor.name);
    ASSERT_TRUE(found) << tensor.name;
    EXPECT_EQ(found->spec->shape, tensor.shape) << tensor.name;
  }
  const auto layers_with_caches = [](const ModuleTree& tree) {
    std::size_t layers = 0;
    for (const AttentionGeometry& g : tree.attention) layers += g.layers.size();
    return layers;
  };
  if (!described.recurrent.empty()) {  // a state is no cache
    EXPECT_LE(layers_with_caches(derived), layers_with_caches(described));
  }
  // A token passes the same layers many times: names tell how many there are, and not how many passes.
  // And what is an encoder alone may be named as a tower is.
  // So may what reads beside what writes; and layers in stages are several stacks.
  constexpr std::string_view kTowers[] = {"ast",      "clip_vision", "siglip_vision",  "videomae",
                                          "speecht5", "unispeech",   "data2vec_audio", "dia",
                                          "yolos",    "vit_msn",     "pp_formulanet"},
                             kStages[] = {"swin",
                                          "donut_swin",
                                          "convnext",
                                          "convnextv2",
                                          "segformer",
                                          "mimi",
                                          "parakeet_ctc",
                                          "resnet",
                                          "rt_detr",
                                          "rt_detr_v2",
                                          "vits",
                                          "speecht5_hifigan",
                                          "funnel",
                                          "conditional_detr",
                                          "dab-detr",
                                          "deformable_detr",
                                          "detr",
                                          "table-transformer",
                                          "grounding-dino",
                                          "mm-grounding-dino",
                                          "mask2former",
                                          "mobilevit",
                                          "mobilevitv2",
                                          "nemotron3_5_asr",
                                          "nemotron3_diarization",
                                          "nemotron_asr_streaming",
                                          "sam2",
                                          "sam2_video",
                                          "vjepa2",
                                          "dinov3_convnext",
                                          "dac",
                                          "encodec",
                                          "bark",
                                          "musicgen_melody"};
  const auto among = [&](std::span<const std::string_view> families) {
    return std::find(families.begin(), families.end(), described.family) != families.end();
  };
  if (described.family != "hrm_text" && !among(kTowers) && !among(kStages)) {
    EXPECT_EQ(derived.layers, described.layers);
  }
  if (described.family == "ernie4_5_vl_moe") return;  // no name says which experts are for images
  if (described.family == "vitpose") return;  // the kind of data chooses its experts, and no router does
  if (described.family == "dbrx") return;  // rows of all experts in one matrix: no name and no shape says it
  EXPECT_EQ(derived.experts, described.experts);
}

std::vector<std::string> small_model_configs() {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(test::source_dir() / "data" / "fixtures" / "configs"))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}
std::string config_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = fs::path(info.param).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(SmallConfigs, DerivedTrees, testing::ValuesIn(small_model_configs()), config_name);

ModelConfig unknown(const std::string& keys) {
  return ModelConfig::from_json(
      parse_json(R"({"architectures": ["NewForCausalLM"])" + keys + "}", "config.json"), "config.json");
}

std::vector<StoredTensor> new_model() {
  const ElementType t = ElementType::BF16;
  std::vector<StoredTensor> tensors = {
      {"tok_embed.weight", t, {300, 48}}, {"out_norm.weight", t, {48}}, {"lm_head.weight", t, {300, 48}}};
  for (int layer = 0; layer < 3; ++layer) {
    const std::string at = "stack.blocks." + std::to_string(layer) + ".";
    tensors.push_back({at + "attn.wq.weight", t, {96, 48}});
    tensors.push_back({at + "attn.wk.weight", t, {32, 48}});
    tensors.push_back({at + "attn_norm.weight", t, {48}});
    if (layer == 0) {
      tensors.push_back({at + "ffn.seq.0.weight", t, {70, 48}});
      tensors.push_back({at + "ffn.seq.2.weight", t, {48, 70}});
      continue;
    }
    tensors.push_back({at + "ffn.router.weight", t, {5, 48}});
    for (int expert = 0; expert < 5; ++expert)
      tensors.push_back({at + "ffn.experts." + std::to_string(expert) + ".up.weight", t, {20, 48}});
  }
  return tensors;
}

TEST(DeriveTree, TellsLayersExpertsAndPartsApart) {
  const Checkpoint checkpoint = test::make_checkpoint(new_model());
  const ModuleTree tree = derive_tree(
      checkpoint, unknown(R"(, "num_experts_per_tok": 2, "num_attention_heads": 6, "num_key_value_heads": 2,
                             "hidden_size": 48)"));
  EXPECT_EQ(tree.architecture, "NewForCausalLM");
  EXPECT_EQ(tree.layers, 3u);
  EXPECT_EQ(tree.experts, 5u);
  EXPECT_EQ(tree.vocabulary, 300u);
  EXPECT_FALSE(tree.tied_embeddings);
  const Totals totals = count(tree);
  const std::uint64_t each = 128 * 48 + 48;  // of a layer, without its MLP
  EXPECT_EQ(totals.total, 2 * 300 * 48 + 48 + 3 * each + 2 * 70 * 48 + 2 * (5 * 48 + 5 * 20 * 48));
  EXPECT_EQ(totals.total - totals.active, 2u * 3 * 20 * 48);  // two experts of five
  ASSERT_EQ(tree.attention.size(), 2u);                       // the dense layer's, and the others'
  EXPECT_EQ(tree.attention[0].qk_head_dim, 16u);
  EXPECT_EQ(tree.attention[0].kv_heads, 2u);
  std::string formula;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence&) {
    if (spec.role == Role::q) formula = spec.elements.symbols();
    if (spec.name.find("seq.0") != std::string::npos) {
      EXPECT_EQ(spec.part, Part::dense_mlp);
    }
  });
  EXPECT_NE(formula.find("hidden_size"), std::string::npos) << formula;
}

TEST(DeriveTree, WithoutAConfig) {
  const Checkpoint checkpoint = test::make_checkpoint(new_model());
  const ModelConfig config = absent_config(checkpoint);
  EXPECT_FALSE(is_described(config));
  const ModuleTree tree = derive_tree(checkpoint, config);
  EXPECT_EQ(tree.layers, 3u);
  EXPECT_EQ(count(tree).total, count(tree).active);  // no key says how many experts a token meets
  ASSERT_EQ(tree.not_counted.size(), 2u);
  EXPECT_NE(tree.not_counted[1].what.find("3 of 3 layers"), std::string::npos);
  EXPECT_TRUE(tree.attention.empty());
}

// Layers are alike in whatever order their files hold them.
TEST(DeriveTree, OrderTellsNothing) {
  std::vector<StoredTensor> tensors = new_model();
  const auto third = std::find_if(tensors.begin(), tensors.end(), [](const StoredTensor& t) {
    return t.name.starts_with("stack.blocks.2.");
  });
  std::reverse(third, tensors.end());
  const Checkpoint checkpoint = test::make_checkpoint(tensors);
  const ModuleTree tree = derive_tree(checkpoint, absent_config(checkpoint));
  const auto groups = std::count_if(tree.modules.begin(), tree.modules.end(), [](const Module& module) {
    return module.repeat.over == Repeat::Over::layers;
  });
  EXPECT_EQ(groups, 2);
}

// Layers with the same names and other shapes are two groups.
TEST(DeriveTree, LayersOfOtherWidths) {
  std::vector<StoredTensor> tensors;
  for (int layer = 0; layer < 4; ++layer) {
    const std::string at = "layers." + std::to_string(layer) + ".";
    const std::uint64_t width = layer < 2 ? 10 : 20;
    tensors.push_back({at + "up_proj.weight", ElementType::BF16, {width, 8}});
    tensors.push_back({at + "down_proj.weight", ElementType::BF16, {8, width}});
    tensors.push_back({at + "norm.weight", ElementType::BF16, {8}});
  }
  const Checkpoint checkpoint = test::make_checkpoint(tensors);
  const ModuleTree tree = derive_tree(checkpoint, absent_config(checkpoint));
  EXPECT_EQ(count(tree).total, 2u * (2 * 80 + 8) + 2 * (2 * 160 + 8));
  EXPECT_EQ(tree.modules.size(), 2u);
}

// Layers whose numbers stand behind a word and no dot, each with a norm, q, and two matrices of an MLP.
std::vector<StoredTensor> glued_model(const std::string& before_number, int layers) {
  const ElementType t = ElementType::BF16;
  std::vector<StoredTensor> tensors = {{"embed.weight", t, {90, 12}}};
  for (int layer = 0; layer < layers; ++layer) {
    const std::string at = "body." + before_number + std::to_string(layer) + ".";
    tensors.push_back({at + "attn.q_proj.weight", t, {12, 12}});
    tensors.push_back({at + "mlp.fc1.weight", t, {20, 12}});
    tensors.push_back({at + "mlp.fc2.weight", t, {12, 20}});
    tensors.push_back({at + "norm1.weight", t, {12}});
  }
  return tensors;
}

TEST(DeriveTree, NumbersOfLayersBehindAWord) {
  for (const std::string before : {"layer_", "layers", "block", "h_", "encoder_layer_", "stage", "enc_"}) {
    const Checkpoint checkpoint = test::make_checkpoint(glued_model(before, 11));
    const ModuleTree tree = derive_tree(checkpoint, absent_config(checkpoint));
    EXPECT_EQ(tree.layers, 11u) << before;
    EXPECT_EQ(count(tree).total, 90u * 12 + 11 * (144 + 2 * 240 + 12)) << before;
    const auto group = std::find_if(tree.modules.begin(), tree.modules.end(), [](const Module& module) {
      return module.repeat.over == Repeat::Over::layers;
    });
    ASSERT_NE(group, tree.modules.end()) << before;
    EXPECT_EQ(group->repeat.indices.size(), 11u) << before;
    EXPECT_EQ(group->path, "body." + before + "{layer}");
    const TensorLookup lookup(tree);
    for (const CheckpointTensor& tensor : checkpoint.tensors) {
      const auto found = lookup.find(tensor.name);
      ASSERT_TRUE(found) << tensor.name;
      EXPECT_EQ(expand(found->spec->name, found->indices), tensor.name);
    }
    EXPECT_FALSE(lookup.find("body." + before + "11.mlp.fc1.weight"));
    EXPECT_FALSE(lookup.find("body." + before + "3.mlp.fc3.weight"));
    EXPECT_FALSE(lookup.find("body." + before + "03.mlp.fc1.weight"));
  }
}

// Numbers that name a matrix, or a part of which there is one, are none of layers; those between dots come first.
TEST(DeriveTree, NumbersThatAreNoLayers) {
  const ElementType t = ElementType::BF16;
  std::vector<StoredTensor> tensors = {{"mlp.layer1.weight", t, {20, 12}},
                                       {"mlp.layer1.bias", t, {20}},
                                       {"mlp.layer2.weight", t, {12, 20}},
                                       {"mlp.layer2.bias", t, {12}},
                                       {"siglip2.patch.weight", t, {12, 9}}};
  for (int layer = 0; layer < 3; ++layer) {
    const std::string at = "t5.stack." + std::to_string(layer) + ".";
    for (const char* name : {"q1.weight", "q2.weight", "q3.weight"})
      tensors.push_back({at + name, t, {12, 12}});
  }
  const Checkpoint checkpoint = test::make_checkpoint(tensors);
  const ModuleTree tree = derive_tree(checkpoint, absent_config(checkpoint));
  EXPECT_EQ(tree.layers, 3u);
  EXPECT_EQ(count(tree).total + count(tree).towers, 2u * 240 + 32 + 108 + 9 * 144);
  for (const auto* part : {&tree.modules, &tree.towers})
    for (const Module& module : *part)
      if (module.repeat.over == Repeat::Over::layers) {
        EXPECT_EQ(module.path, "t5.stack.{layer}");
      }
}

TEST(DeriveTree, ExpertsBehindAWord) {
  std::vector<StoredTensor> tensors = glued_model("block", 2);
  for (int layer = 0; layer < 2; ++layer)
    for (int expert = 0; expert < 4; ++expert)
      tensors.push_back(
          {"body.block" + std::to_string(layer) + ".moe.expert_" + std::to_string(expert) + ".up_proj.weight",
           ElementType::BF16,
           {6, 12}});
  const Checkpoint checkpoint = test::make_checkpoint(tensors);
  const ModuleTree tree = derive_tree(checkpoint, unknown(R"(, "num_experts_per_tok": 1)"));
  EXPECT_EQ(tree.layers, 2u);
  EXPECT_EQ(tree.experts, 4u);
  EXPECT_EQ(count(tree).total - count(tree).active, 2u * 3 * 72);
}

TEST(DerivedRoles, FollowNames) {
  const auto role = [](std::string_view name, std::size_t dimensions = 2) {
    return derive_role(name, dimensions, true, name.find(".experts.") != std::string_view::npos);
  };
  EXPECT_EQ(role("layers.{layer}.self_attn.q_proj.weight").role, Role::q);
  EXPECT_EQ(role("layers.{layer}.mlp.down_proj.weight").role, Role::mlp_down);
  EXPECT_EQ(role("layers.{layer}.mlp.down_proj.weight").part, Part::dense_mlp);
  EXPECT_EQ(role("layers.{layer}.mlp.experts.{expert}.w1.weight").part, Part::routed_expert);
  EXPECT_EQ(role("layers.{layer}.mlp.shared_experts.up_proj.weight").part, Part::shared_expert);
  EXPECT_EQ(role("layers.{layer}.mlp.gate.weight").part, Part::router);
  EXPECT_EQ(role("layers.{layer}.self_attn.q_norm.weight", 1).part, Part::norm);
  EXPECT_EQ(role("layers.{layer}.self_attn.out_proj.bias", 1).bias, true);
  EXPECT_EQ(role("vision_tower.layers.{layer}.fc1.weight").part, Part::vision);
  EXPECT_EQ(role("layers.{layer}.strange.thing").role, Role::other);
  EXPECT_EQ(derive_role("model.embed_tokens.weight", 2, false, false).part, Part::embedding);
  EXPECT_EQ(derive_role("lm_head.weight", 2, false, false).part, Part::output);
  EXPECT_EQ(derive_role("word_embeddings_layernorm.weight", 1, false, false).part, Part::norm);
}

// llama.cpp's names: of towers by how they begin, of experts by how they end.
TEST(DerivedRoles, FollowGgufNames) {
  const auto outside = [](std::string_view name) { return derive_role(name, 2, false, false, true); };
  const auto inside = [](std::string_view name) { return derive_role(name, 2, true, false, true); };
  EXPECT_EQ(outside("token_embd.weight").role, Role::token_embedding);
  EXPECT_EQ(outside("token_types.weight").role, Role::position_embedding);
  EXPECT_EQ(outside("token_embd_norm.weight").part, Part::norm);
  EXPECT_EQ(outside("output.weight").role, Role::output_head);
  EXPECT_EQ(outside("output_norm.weight").role, Role::final_norm);
  EXPECT_EQ(outside("mm.0.weight").part, Part::projector);
  EXPECT_EQ(inside("v.blk.{layer}.attn_q.weight").part, Part::vision);
  EXPECT_EQ(inside("a.blk.{layer}.ffn_up.weight").part, Part::audio);
  EXPECT_EQ(inside("blk.{layer}.attn_kv_a_mqa.weight").role, Role::kv_a);
  EXPECT_EQ(inside("blk.{layer}.ffn_gate_inp.weight").part, Part::router);
  EXPECT_EQ(inside("blk.{layer}.exp_probs_b.bias").part, Part::router);
  EXPECT_EQ(inside("blk.{layer}.ffn_up_shexp.weight").part, Part::shared_expert);
  EXPECT_EQ(derive_role("blk.{layer}.ffn_down_exps.weight", 3, true, true).role, Role::mlp_down);
  EXPECT_EQ(derive_role("blk.{layer}.ffn_down_exps.weight", 3, true, true).part, Part::routed_expert);
  // Another's module may be called "a".
  EXPECT_EQ(derive_role("a.text.h.{layer}.mlp.up_proj.weight", 2, true, false).part, Part::dense_mlp);
}

// Vectors called "scale" or "gamma" are norms; a table outside all layers with as many rows as the config has tokens is
// that of the tokens, whatever it is called.
TEST(DerivedRoles, FollowShapes) {
  EXPECT_EQ(derive_role("stack.{layer}.pre.scale", 1, true, false).part, Part::norm);
  EXPECT_EQ(derive_role("h.{layer}.ln1.weight", 1, true, false).part, Part::norm);
  EXPECT_EQ(derive_role("stack.{layer}.mix.scale", 2, true, false).part, Part::dense_mlp);
  const Checkpoint checkpoint = test::make_checkpoint({{"zorg.words", ElementType::BF16, {96, 16}},
                                                       {"zorg.way_out", ElementType::BF16, {96, 16}},
                                                       {"zorg.other", ElementType::BF16, {32, 16}},
                                                       {"zorg.layers.0.mix", ElementType::BF16, {16, 16}},
                                                       {"zorg.layers.1.mix", ElementType::BF16, {16, 16}}});
  const ModelConfig config = ModelConfig::from_json(
      ParsedJson{{"model_type", "zorgon"}, {"vocab_size", 96u}, {"d_model", 16u}}, "config.json");
  const ModuleTree tree = derive_tree(checkpoint, config);
  EXPECT_EQ(tree.vocabulary, 96u);
  EXPECT_FALSE(tree.tied_embeddings);
  const Totals totals = count(tree);
  EXPECT_EQ(totals.active - totals.active_without_embedding, 96u * 16);
}

}  // namespace
}  // namespace assay
