// A GGUF's headers against its metadata: the shape of each tensor, and how many layers there are.
#include "core/model/gguf_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/formats/json.h"
#include "core/model/reconcile.h"
#include "core/model/reconcile_layers.h"
#include "tests/support/checkpoints.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::StoredTensor;

// hidden 64, 4 heads of 16, 2 of keys and values, MLP 160, vocabulary 500.
ModelConfig three_layers(const std::string& layers = "3", const std::string& heads = "4",
                         const std::string& width = "160") {
  return ModelConfig::from_json(
      parse_json(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 500,
                     "hidden_size": 64, "num_key_value_heads": 2, "tie_word_embeddings": false,
                     "num_hidden_layers": )" +
                     layers + R"(, "num_attention_heads": )" + heads + R"(, "intermediate_size": )" + width +
                     "}",
                 "config.json"),
      "config.json");
}

std::vector<StoredTensor> gguf_of_three_layers() {
  const ElementType t = ElementType::F32;
  std::vector<StoredTensor> tensors = {
      {"token_embd.weight", t, {500, 64}}, {"output_norm.weight", t, {64}}, {"output.weight", t, {500, 64}}};
  for (const std::string layer : {"blk.0.", "blk.1.", "blk.2."}) {
    tensors.push_back({layer + "attn_norm.weight", t, {64}});
    tensors.push_back({layer + "ffn_norm.weight", t, {64}});
    tensors.push_back({layer + "attn_q.weight", t, {64, 64}});
    tensors.push_back({layer + "attn_k.weight", t, {32, 64}});
    tensors.push_back({layer + "attn_v.weight", t, {32, 64}});
    tensors.push_back({layer + "attn_output.weight", t, {64, 64}});
    tensors.push_back({layer + "ffn_gate.weight", t, {160, 64}});
    tensors.push_back({layer + "ffn_up.weight", t, {160, 64}});
    tensors.push_back({layer + "ffn_down.weight", t, {64, 160}});
  }
  return tensors;
}

Reconciliation reconciled(const ModelConfig& config, const std::vector<StoredTensor>& tensors) {
  Checkpoint checkpoint = test::make_checkpoint(tensors);
  checkpoint.container = Checkpoint::Container::gguf;
  return reconcile(describe(config), config, checkpoint);
}

std::vector<StoredTensor> with_shape(const std::string& ending, const std::vector<std::uint64_t>& shape) {
  std::vector<StoredTensor> tensors = gguf_of_three_layers();
  for (StoredTensor& tensor : tensors) {
    if (tensor.name.ends_with(ending)) tensor.shape = shape;
  }
  return tensors;
}

TEST(GgufShapes, AreThoseOfTheFamily) {
  EXPECT_TRUE(reconciled(three_layers(), gguf_of_three_layers()).findings.empty());
  const ModelConfig config = three_layers();
  const ModuleTree tree = describe(config);
  const GgufShapes shapes = planned_gguf_shapes(config, tree, *gguf_family_of(tree));
  ASSERT_TRUE(shapes.contains("blk.2.ffn_down.weight"));
  EXPECT_EQ(shapes.at("blk.2.ffn_down.weight"), (std::vector<std::uint64_t>{64, 160}));
  EXPECT_TRUE(is_same_gguf_shape({1, 8, 1, 4}, {8, 1, 4}));  // no file keeps a first dimension of 1
  EXPECT_FALSE(is_same_gguf_shape({8, 4}, {8, 1, 4}));
}

// As many elements in other shapes, more of them, or fewer: one error a kind, however many layers have it.
TEST(GgufShapes, OthersAreErrors) {
  struct Case {
    std::string ending;
    std::vector<std::uint64_t> shape;
    std::uint64_t tensors;
  };
  const Case cases[] = {{"ffn_gate.weight", {64, 160}, 3},    {"blk.1.ffn_up.weight", {10240}, 1},
                        {"blk.0.attn_k.weight", {64, 64}, 1}, {"ffn_up.weight", {128, 64}, 3},
                        {"token_embd.weight", {64, 500}, 1},  {"output_norm.weight", {128}, 1}};
  for (const Case& c : cases) {
    const Reconciliation r = reconciled(three_layers(), with_shape(c.ending, c.shape));
    ASSERT_EQ(r.findings.size(), 1u) << c.ending;
    EXPECT_EQ(r.findings.front().code, "model.tensor_shape");
    EXPECT_EQ(r.findings.front().severity, Severity::error);
    EXPECT_EQ(r.misshapen_tensors, c.tensors) << c.ending;
    EXPECT_EQ(r.duplicates.tensors, 0u) << c.ending;
  }
  EXPECT_NE(reconciled(three_layers(), with_shape("ffn_gate.weight", {64, 160}))
                .findings.front()
                .message.find("layers 0 to 2"),
            std::string::npos);
}

// A key that says another width, or other heads, than the files have.
TEST(GgufShapes, KeysAreHeldAgainstThem) {
  EXPECT_EQ(reconciled(three_layers("3", "4", "128"), gguf_of_three_layers()).findings.size(), 3u);
  const Reconciliation heads = reconciled(three_layers("3", "8"), gguf_of_three_layers());
  ASSERT_EQ(heads.findings.size(), 2u);  // keys and values have heads of 8 then
  EXPECT_EQ(heads.findings.front().tensor, "blk.0.attn_k.weight");
  EXPECT_EQ(heads.misshapen_tensors, 6u);
}

TEST(GgufShapes, LayersAreOneFinding) {
  const Reconciliation more = reconciled(three_layers("2"), gguf_of_three_layers());
  ASSERT_EQ(more.findings.size(), 1u);
  EXPECT_EQ(more.findings.front().code, "model.layers_more");
  EXPECT_TRUE(has_errors(more.findings));
  EXPECT_NE(more.findings.front().remedy.find("block_count"), std::string::npos);
  const Reconciliation fewer = reconciled(three_layers("5"), gguf_of_three_layers());
  ASSERT_EQ(fewer.findings.size(), 1u);
  EXPECT_EQ(fewer.findings.front().code, "model.layers_missing");
  EXPECT_NE(fewer.findings.front().message.find("layers 3 to 4: 18 tensors"), std::string::npos);
  EXPECT_EQ(fewer.missing_tensors, 18u);
}

TEST(GgufShapes, NoLayersAtAll) {
  Checkpoint checkpoint = test::make_checkpoint(gguf_of_three_layers());
  checkpoint.gguf.emplace();
  checkpoint.gguf->metadata.push_back(
      {"general.architecture", gguf::ValueType::string, std::string("llama")});
  EXPECT_FALSE(find_contradicted_layers(checkpoint));
  checkpoint.gguf->metadata.push_back({"llama.block_count", gguf::ValueType::u32, std::uint64_t{0}});
  ASSERT_TRUE(find_contradicted_layers(checkpoint));
  EXPECT_EQ(find_contradicted_layers(checkpoint)->severity, Severity::error);
}

}  // namespace
}  // namespace assay
