// A checkpoint with one thing wrong gets one diagnosis, however many tensors show it: a layer count that is too small, in
// families with one kind of layer and with several, with and without layers for prediction; tensors fused or in parts.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/formats/json.h"
#include "core/model/reconcile.h"
#include "tests/support/checkpoints.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::StoredTensor;

ParsedJson fixture(const std::string& family) {
  return parse_json(test::read_file(test::source_dir() / "data/fixtures/configs" / (family + ".json")),
                    "config.json");
}

ModelConfig model(const ParsedJson& config) {
  return ModelConfig::from_json(config, "config.json");
}

std::vector<StoredTensor> tensors_of(const ModuleTree& tree) {
  std::vector<StoredTensor> tensors;
  for_each_tensor(tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
    if (spec.storage == Storage::own) tensors.push_back({name, ElementType::BF16, spec.shape});
  });
  return tensors;
}

Findings findings_of(const ParsedJson& config, const std::vector<StoredTensor>& tensors) {
  const ModelConfig said = model(config);
  Findings found = reconcile(describe(said), said, test::make_checkpoint(tensors)).findings;
  std::erase_if(found, [](const Finding& f) { return f.code == "model.mtp_absent"; });
  return found;
}

// Lists of layers stay as long as they were.
ParsedJson a_layer_less(ParsedJson config) {
  const auto layers = config["num_hidden_layers"].get<std::uint64_t>();
  config["num_hidden_layers"] = layers - 1;
  return config;
}

// A number that the config has wrong is met in every layer: it is named where nothing else explains what is stored, and
// else each kind of tensor is one finding.
TEST(WrongNumbers, AreNamedWhereNothingElseExplainsThem) {
  const ParsedJson config = fixture("qwen3_moe");
  const std::vector<StoredTensor> tensors = tensors_of(describe(model(config)));
  const auto told = [&](const ParsedJson& changes) {
    ParsedJson wrong = config;
    wrong.update(changes);
    return findings_of(wrong, tensors);
  };
  for (const auto& [key, value] : {std::pair{"num_key_value_heads", 1},
                                   {"moe_intermediate_size", 25},
                                   {"hidden_size", 52},
                                   {"vocab_size", 194}}) {
    const Findings found = told({{key, value}});
    ASSERT_EQ(found.size(), 1u) << key;
    EXPECT_EQ(found[0].code, "model.tensor_shape");
    const std::string cause =
        std::string(key) + " = " + config[key].dump() + " would have them, not " + std::to_string(value);
    EXPECT_NE(found[0].message.find(cause), std::string::npos) << found[0].message;
  }
  const Findings two = told({{"num_key_value_heads", 1}, {"moe_intermediate_size", 25}});
  EXPECT_EQ(two.size(), 5u);
  for (const Finding& finding : two) EXPECT_EQ(finding.message.find("would have them"), std::string::npos);
}

// Of one kind alone nobody can tell: a matrix of another model, or stored otherwise.
TEST(WrongNumbers, OfOneTensorAreNotGuessed) {
  const ParsedJson config = fixture("qwen3_moe");
  std::vector<StoredTensor> tensors = tensors_of(describe(model(config)));
  for (StoredTensor& tensor : tensors)
    if (tensor.name == "lm_head.weight") tensor.shape[0] += 7;
  const Findings found = findings_of(config, tensors);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].tensor, "lm_head.weight");
  EXPECT_EQ(found[0].message.find("would have them"), std::string::npos);
}

class LayerCounts : public testing::TestWithParam<const char*> {};

TEST_P(LayerCounts, TooSmallIsOneLine) {
  const ParsedJson config = fixture(GetParam());
  std::vector<StoredTensor> tensors = tensors_of(describe(model(config)));
  const auto is_one_line = [&](const char* with) {
    const Findings found = findings_of(a_layer_less(config), tensors);
    ASSERT_EQ(found.size(), 1u) << with << ": " << found.back().code << " " << found.back().message << " "
                                << found.back().tensor;
    EXPECT_EQ(found[0].code, "model.layers_more") << with;
    const std::uint64_t last = config["num_hidden_layers"].get<std::uint64_t>() - 1;
    EXPECT_NE(found[0].message.find("of layers " + std::to_string(last) + " are"), std::string::npos)
        << found[0].message;
  };
  is_one_line("as published");
  const ModuleTree whole = describe(model(config));
  if (whole.mtp.empty()) return;
  const std::string behind = "." + config["num_hidden_layers"].dump() + ".";
  std::erase_if(tensors, [&](const StoredTensor& t) {
    return t.name.starts_with("mtp.") || t.name.find("layers" + behind) != std::string::npos;
  });
  is_one_line("without layers for prediction");
}

INSTANTIATE_TEST_SUITE_P(Families, LayerCounts,
                         testing::Values("llama", "qwen3_next", "deepseek_v3", "deepseek_v32", "glm4_moe",
                                         "glm_moe_dsa", "gemma3_text", "gpt_oss", "granitemoehybrid",
                                         "gemma2", "lfm2", "mimo_v2_flash"));

// q, k and v, gate and up as engines hold them; the other way about, a fused matrix in parts.
TEST(FusedTensors, AreOneDiagnosis) {
  const ParsedJson config = fixture("llama");
  const std::vector<StoredTensor> apart = tensors_of(describe(model(config)));
  std::vector<StoredTensor> fused;
  for (const StoredTensor& tensor : apart) {
    std::string name = tensor.name;
    const auto replace = [&](const char* from, const char* to) {
      const auto at = name.find(from);
      if (at != std::string::npos) name.replace(at, std::string(from).size(), to);
    };
    for (const char* part : {".q_proj.", ".k_proj.", ".v_proj."}) replace(part, ".qkv_proj.");
    for (const char* part : {".gate_proj.", ".up_proj."}) replace(part, ".gate_up_proj.");
    const auto same =
        std::find_if(fused.begin(), fused.end(), [&](const StoredTensor& t) { return t.name == name; });
    if (same != fused.end())
      same->shape[0] += tensor.shape[0];
    else
      fused.push_back({name, tensor.type, tensor.shape});
  }
  Findings found = findings_of(config, fused);
  ASSERT_EQ(found.size(), 1u) << found.back().message << found.back().tensor;
  EXPECT_EQ(found[0].code, "model.tensors_fused");
  EXPECT_NE(found[0].message.find("hold several in one of"), std::string::npos) << found[0].message;
  EXPECT_NE(found[0].message.find("gate_up_proj.weight\" where"), std::string::npos) << found[0].message;

  // One that truly lacks is named, beside the fused ones of other modules.
  std::erase_if(fused,
                [](const StoredTensor& t) { return t.name == "model.layers.0.self_attn.o_proj.weight"; });
  found = findings_of(config, fused);
  const auto lacks = std::find_if(found.begin(), found.end(), [](const Finding& f) {
    return f.code == "model.tensor_missing" && f.tensor == "model.layers.0.self_attn.o_proj.weight";
  });
  EXPECT_NE(lacks, found.end());
}

TEST(FusedTensors, InPartsAreOneDiagnosis) {
  const ParsedJson config = fixture("phi3");
  std::vector<StoredTensor> parts;
  for (const StoredTensor& tensor : tensors_of(describe(model(config)))) {
    const auto at = tensor.name.find("gate_up_proj");
    if (at == std::string::npos) {
      parts.push_back(tensor);
      continue;
    }
    for (const char* part : {"gate_proj", "up_proj"}) {
      std::string name = tensor.name;
      parts.push_back({name.replace(at, 12, part), tensor.type, {tensor.shape[0] / 2, tensor.shape[1]}});
    }
  }
  const Findings found = findings_of(config, parts);
  ASSERT_EQ(found.size(), 1u) << found.back().message << found.back().tensor;
  EXPECT_EQ(found[0].code, "model.tensors_fused");
  EXPECT_NE(found[0].message.find("in parts"), std::string::npos) << found[0].message;
}

// Experts without gates, stacked, which no layout that is read otherwise has.
TEST(FusedTensors, StacksOfExpertsAreOneDiagnosis) {
  const ParsedJson config = fixture("nemotron_h");
  std::vector<StoredTensor> stacked;
  for (const StoredTensor& tensor : tensors_of(describe(model(config)))) {
    const auto at = tensor.name.find(".experts.");
    if (at == std::string::npos) {
      stacked.push_back(tensor);
      continue;
    }
    const std::string behind = tensor.name.substr(at + 9);
    const std::string matrix = behind.substr(behind.find('.') + 1);
    const std::string name = tensor.name.substr(0, at + 9) + matrix.substr(0, matrix.find(".weight"));
    const auto same =
        std::find_if(stacked.begin(), stacked.end(), [&](const StoredTensor& t) { return t.name == name; });
    if (same != stacked.end())
      ++same->shape[0];
    else
      stacked.push_back({name, tensor.type, {1, tensor.shape[0], tensor.shape[1]}});
  }
  const Findings found = findings_of(config, stacked);
  ASSERT_EQ(found.size(), 1u) << found.back().message << found.back().tensor;
  EXPECT_EQ(found[0].code, "model.tensors_fused");
}

}  // namespace
}  // namespace assay
