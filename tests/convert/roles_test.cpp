// What is quantized of an architecture that nobody has described: linear layers beyond doubt, and nothing
// else.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/convert/convert_support.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::assay;
using test::TempDir;
using test::write_matrices;

std::set<std::string> quantized(const fs::path& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> command = {
      "convert", folder, folder.string() + "-out", "--to", "int8:channel", "--dry-run", "--json", "-"};
  command.insert(command.end(), more.begin(), more.end());
  const auto result = assay(command);
  std::set<std::string> names;
  const auto document = nlohmann::json::parse(result.out);
  for (const auto& tensor : document.at("tensors")) {
    if (tensor.at("action") == "quantize") names.insert(tensor.at("name"));
  }
  return names;
}

const std::vector<std::string> kLinear = {
    "encoder.block.0.layer.0.SelfAttention.q.weight", "encoder.block.0.layer.1.DenseReluDense.wi_0.weight",
    "model.layers.3.self_attn.qkv_proj.weight",       "model.layers.3.mlp.down_proj.weight",
    "transformer.h.11.attn.query_key_value.weight",   "transformer.h.11.mlp.dense_h_to_4h.weight",
    "backbone.layers.2.mixer.out_proj.weight",        "model.layers.0.block_sparse_moe.experts.7.w1.weight"};
const std::vector<std::string> kOthers = {
    "shared.weight",
    "wte.weight",
    "word_embeddings.weight",
    "output.weight",
    "lm_head.weight",
    "model.decoder_head.weight",
    "transformer.output_layer.weight",
    "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    "decoder.layers.0.attention.rel_pos_bias.weight",
    "model.layers.3.mlp.gate.weight",
    "model.layers.3.mlp.shared_expert_gate.weight",
    "model.layers.3.block_sparse_moe.router.weight",
    "model.layers.3.ffn.gating.weight",
    "model.layers.3.mixer.conv1d.weight",
    "model.layers.3.mixer.x_proj.weight",
    "model.layers.61.embed_tokens.weight",
    "model.layers.61.eh_proj.weight",
    "model.layers.61.shared_head.head.weight",
    "vision_tower.encoder.layers.0.self_attn.q_proj.weight",
    "visual.blocks.0.attn.qkv.weight",
    "classifier.dense.weight",
    "score.weight"};

TEST(Roles, OfAnUnknownArchitectureOnlyWhatIsSurelyLinearIsQuantized) {
  const TempDir dir;
  std::vector<std::string> all = kLinear;
  all.insert(all.end(), kOthers.begin(), kOthers.end());
  const std::set<std::string> wanted(kLinear.begin(), kLinear.end());
  write_matrices(dir / "named", all, R"({"architectures":["SomethingNewForCausalLM"],"model_type":"new"})");
  EXPECT_EQ(quantized(dir / "named"), wanted);
  write_matrices(dir / "bare", all, "");
  EXPECT_EQ(quantized(dir / "bare"), wanted);
}

TEST(Roles, MatricesOfNoModelAreTakenForWhatTheyAreCalled) {
  const TempDir dir;
  write_matrices(dir / "lone", {"a.weight", "b.embedding.weight", "c"}, "");
  EXPECT_EQ(quantized(dir / "lone"), std::set<std::string>{"a.weight"});
}

}  // namespace
}  // namespace assay
