// DeepSeek-V3, module by module and tensor by tensor, against the headers of the published checkpoint.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "core/model/module_tree.h"
#include "core/system/file.h"
#include "core/system/text.h"
#include "tests/support/published_config.h"
#include "tests/support/support.h"

namespace assay {
namespace {

const Module& child(const Module& module, std::string_view path_or_title) {
  for (const Module& candidate : module.children) {
    if (candidate.path == path_or_title || candidate.title == path_or_title) return candidate;
  }
  throw std::runtime_error("no such child: " + std::string(path_or_title));
}

const Module& top(const ModuleTree& tree, std::string_view title) {
  for (const Module& module : tree.modules) {
    if (module.title == title) return module;
  }
  throw std::runtime_error("no such module: " + std::string(title));
}

// ../shared/cases/configs/TOTALS.md, "DeepSeek-V3 per module".
TEST(DeepSeekV3, ModulesAreExact) {
  const fs::path path = test::published_config("DeepSeek-V3");
  const ModuleTree tree = describe(ModelConfig::read(path));
  EXPECT_EQ(parameters(top(tree, "embedding")), 926'679'040u);
  EXPECT_EQ(parameters(top(tree, "output head")), 926'679'040u);
  EXPECT_EQ(parameters(top(tree, "final norm")), 7'168u);

  const Module& dense = top(tree, "dense layers");
  EXPECT_EQ(dense.repeat.indices, (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(formula_of_one(dense).value(), 583'483'392u);
  EXPECT_EQ(parameters(child(dense, "mlp")), 396'361'728u);

  const Module& moe = top(tree, "MoE layers");
  EXPECT_EQ(moe.repeat.indices.front(), 3u);
  EXPECT_EQ(moe.repeat.indices.back(), 60u);
  EXPECT_EQ(formula_of_one(moe).value(), 11'507'286'272u);
  const Module& attention = child(moe, "self_attn");
  EXPECT_EQ(parameters(attention), 187'107'328u);
  EXPECT_EQ(parameters(child(attention, "queries")), 48'760'320u);
  EXPECT_EQ(parameters(child(attention, "keys and values")), 20'906'496u);
  EXPECT_EQ(parameters(child(attention, "output projection")), 117'440'512u);
  const Module& experts = child(moe, "mlp");
  EXPECT_EQ(parameters(experts), 11'320'164'608u);
  EXPECT_EQ(parameters(child(experts, "router")), 1'835'008u + 256u);
  EXPECT_EQ(formula_of_one(child(experts, "experts.{expert}")).value(), 44'040'192u);
}

TEST(DeepSeekV3, FormulasReadAsAPersonWouldWriteThem) {
  const fs::path path = test::published_config("DeepSeek-V3");
  const ModuleTree tree = describe(ModelConfig::read(path));
  const Module& moe = top(tree, "MoE layers");
  const Module& attention = child(moe, "self_attn");
  const Quantity queries = formula(child(attention, "queries"));
  EXPECT_EQ(queries.numbers(), "7168 × 1536 + 1536 + 1536 × 128 × (128 + 64)");
  EXPECT_EQ(queries.symbols(),
            "hidden_size × q_lora_rank + q_lora_rank + q_lora_rank × num_attention_heads × "
            "(qk_nope_head_dim + qk_rope_head_dim)");
  EXPECT_EQ(formula(child(child(moe, "mlp"), "experts.{expert}")).numbers(), "256 × 3 × 7168 × 2048");
}

TEST(DeepSeekV3, AttentionIsLatent) {
  const fs::path path = test::published_config("DeepSeek-V3");
  const ModuleTree tree = describe(ModelConfig::read(path));
  ASSERT_EQ(tree.attention.size(), 1u);
  const AttentionGeometry& a = tree.attention[0];
  EXPECT_EQ(a.kind, AttentionGeometry::Kind::latent);
  EXPECT_EQ(a.layers.size(), 61u);
  // 70,272 bytes a token in BF16, as published.
  EXPECT_EQ(a.layers.size() * (a.kv_lora_rank + a.rope_head_dim) * 2, 70'272u);
}

struct Listed {
  std::string type, shape;
};

std::map<std::string, Listed> read_list(const fs::path& gz) {
  const test::ProcessResult unpacked = test::run({"gzip", "-dc", gz.string()});
  std::map<std::string, Listed> list;
  std::istringstream lines(unpacked.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#") || line.empty()) continue;
    std::istringstream fields(line);
    std::string name;
    Listed entry;
    fields >> name >> entry.type >> entry.shape;
    list[name] = entry;
  }
  return list;
}

std::string joined(const std::vector<std::uint64_t>& shape) {
  std::string text;
  for (const std::uint64_t dimension : shape) text += (text.empty() ? "" : "x") + std::to_string(dimension);
  return text;
}

// Each tensor of ours is in the checkpoint with our shape, and what is left over there are the blocks'
// scales.
TEST(DeepSeekV3, EveryTensorOfTheCheckpoint) {
  const fs::path config = test::published_config("DeepSeek-V3");
  ASSAY_CASE_OR_SKIP(gz, "deepseek-v3-tensors.tsv.gz");
  ASSAY_PROGRAM_OR_SKIP("gzip");
  std::map<std::string, Listed> list = read_list(gz);
  ASSERT_EQ(list.size(), 91'991u);
  const ModuleTree tree = describe(ModelConfig::read(config));
  const TensorLookup lookup(tree);
  std::uint64_t missing = 0, misshapen = 0, lost = 0, quantized = 0, ours = 0;
  for_each_tensor(tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices& at) {
    ++ours;
    const auto found = list.find(name);
    if (found == list.end()) {
      ++missing;
      return;
    }
    misshapen += found->second.shape != joined(spec.shape);
    const auto back = lookup.find(name);
    lost +=
        !back || back->spec != &spec || back->indices.layer != at.layer || back->indices.expert != at.expert;
    const auto scale = list.find(name + "_scale_inv");
    EXPECT_EQ(scale != list.end(), spec.quantizable) << name;
    if (scale != list.end()) {
      EXPECT_EQ(scale->second.shape, joined({(spec.shape[0] + 127) / 128, (spec.shape[1] + 127) / 128}))
          << name;
      list.erase(scale);
      ++quantized;
    }
    list.erase(found);
  });
  EXPECT_EQ(missing, 0u);
  EXPECT_EQ(misshapen, 0u);
  EXPECT_EQ(lost, 0u);
  EXPECT_EQ(list.size(), 0u) << "left over: " << (list.empty() ? "" : list.begin()->first);
  EXPECT_EQ(quantized, 45'808u);  // F8_E4M3 tensors of the checkpoint
  EXPECT_EQ(ours, 91'991u - 45'808u);
}

TEST(DeepSeekV3, UnknownNamesAreNotFound) {
  const fs::path config = test::published_config("DeepSeek-V3");
  const ModuleTree tree = describe(ModelConfig::read(config));
  const TensorLookup lookup(tree);
  EXPECT_TRUE(lookup.find("model.layers.3.mlp.experts.255.up_proj.weight"));
  for (const char* name :
       {"model.layers.2.mlp.experts.0.up_proj.weight",    // a dense layer
        "model.layers.62.input_layernorm.weight",         // behind the MTP layer
        "model.layers.3.mlp.experts.256.up_proj.weight",  // one expert too many
        "model.layers.03.input_layernorm.weight", "model.layers.3.input_layernorm", "",
        "model.layers.{}.input_layernorm.weight", "model.layers.{layer}.input_layernorm.weight",
        "model.layers.99999999999999999999.input_layernorm.weight"}) {
    EXPECT_FALSE(lookup.find(name)) << name;
  }
  EXPECT_TRUE(lookup.find("model.layers.61.eh_proj.weight")->mtp);
}

}  // namespace
}  // namespace assay
