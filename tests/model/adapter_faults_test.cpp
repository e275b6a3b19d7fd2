// LoRAs as PEFT saves them, whole and with what makes a loader leave modules as they were.
#include "core/model/adapter_faults.h"

#include <gtest/gtest.h>

#include "core/system/error.h"
#include "tests/support/checkpoints.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::StoredTensor;

constexpr ElementType kType = ElementType::BF16;
constexpr const char* kLora =
    R"({"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"]})";

std::vector<StoredTensor> whole() {
  std::vector<StoredTensor> tensors;
  for (const std::string layer : {"0", "1"}) {
    for (const std::string module : {"q_proj", "v_proj"}) {
      const std::string stem = "base_model.model.model.layers." + layer + ".self_attn." + module;
      tensors.push_back({stem + ".lora_A.weight", kType, {8, 64}});
      tensors.push_back({stem + ".lora_B.weight", kType, {32, 8}});
    }
  }
  return tensors;
}

Findings of(const std::string& config, const std::vector<StoredTensor>& tensors) {
  const test::TempDir folder;
  if (!config.empty()) test::write_file(folder / "adapter_config.json", config);
  Checkpoint checkpoint = test::make_checkpoint(tensors);
  checkpoint.root = folder.path();
  return adapter_faults(checkpoint);
}

TEST(AdapterFaults, AWholeAdapterHasNone) {
  EXPECT_TRUE(of(kLora, whole()).empty());
  EXPECT_TRUE(of("", whole()).empty());
  EXPECT_TRUE(of(R"({"peft_type": "IA3", "target_modules": ["k_proj"]})", whole()).empty());
  EXPECT_TRUE(of(R"({"peft_type": "LORA", "r": 8, "target_modules": "all-linear"})", whole()).empty());
  EXPECT_THROW(of("{", whole()), Error);
}

TEST(AdapterFaults, HalvesAreMissed) {
  for (const std::size_t half : {4u, 5u}) {
    auto tensors = whole();
    tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(half));
    const Findings findings = of(kLora, tensors);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].code, "adapter.half_missing");
    EXPECT_EQ(findings[0].tensor, "base_model.model.model.layers.1.self_attn.q_proj");
    EXPECT_TRUE(findings[0].message.starts_with(half == 4 ? "has B" : "has A")) << findings[0].message;
  }
}

TEST(AdapterFaults, RanksAreThoseOfTheConfig) {
  auto tensors = whole();
  tensors[0].shape = {4, 64};
  Findings findings = of(kLora, tensors);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].message, "A has rank 4 and B has 8");
  tensors[1].shape = {32, 4};
  findings = of(kLora, tensors);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].code, "adapter.rank_differs");
  EXPECT_EQ(findings[0].message, "is of rank 4, and r is 8");
  EXPECT_TRUE(
      of(R"({"peft_type": "LORA", "r": 8, "rank_pattern": {"layers.0.self_attn.q_proj": 4}})", tensors)
          .empty());
  findings = of(R"({"peft_type": "LORA", "r": 16})", whole());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].message, "is of rank 8, and r is 16; 3 other modules are alike");
}

TEST(AdapterFaults, TargetsAreThere) {
  const Findings findings = of(
      R"({"peft_type": "LORA", "r": 8, "target_modules": ["q_proj", "proj", "o_proj", "self_attn.v_proj"]})",
      whole());
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].code, "adapter.target_missing");
  EXPECT_NE(findings[0].message.find("names proj,"), std::string::npos) << findings[0].message;
  EXPECT_NE(findings[1].message.find("names o_proj,"), std::string::npos) << findings[1].message;
}

}  // namespace
}  // namespace assay
