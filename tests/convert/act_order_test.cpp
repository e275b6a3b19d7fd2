// GPTQ's act-order over ranks: `g_idx` gives every input its group. Of matrices whose inputs are cut vLLM
// takes a slice of it and keeps all scales and zero points on every rank (gptq_marlin.py, desc_act); of
// others it takes it whole. What the ranks decode to by hand, put together, is the weight.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "core/model/stored_reader.h"
#include "tests/convert/convert_support.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::TempDir;
using test::TensorBytes;

constexpr std::uint64_t kHidden = 64, kWidth = 128, kGroup = 32;
const std::string kModule = "model.layers.0.mlp.";

std::string config(const std::string& quantization) {
  return R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128, "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 8, "num_key_value_heads": 8,
    "tie_word_embeddings": false, "quantization_config": )" +
         quantization + "}";
}
std::string gptq(bool desc_act) {
  return std::string(
             R"({"quant_method": "gptq", "bits": 4, "group_size": 32, "checkpoint_format": "gptq", )") +
         R"("desc_act": )" + (desc_act ? "true" : "false") + "}";
}
constexpr const char* kPacked = R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
  "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int",
  "symmetric": true, "strategy": "group", "group_size": 32, "actorder": "group"}}}})";

class Maker {
 public:
  // The index of a matrix with `in` inputs: of kGroup each, in order or shuffled.
  std::vector<std::int32_t> index(std::uint64_t in, bool in_order) {
    std::vector<std::int32_t> groups(in);
    for (std::uint64_t i = 0; i < in; ++i) groups[i] = static_cast<std::int32_t>(i / kGroup);
    if (!in_order) std::shuffle(groups.begin(), groups.end(), random_);
    return groups;
  }
  TensorBytes words(const std::string& name, std::vector<std::uint64_t> shape) {
    TensorBytes made{name, ElementType::I32, std::move(shape), {}};
    for (std::uint64_t i = 0; i < made.shape[0] * made.shape[1]; ++i)
      append(made.bytes, static_cast<std::uint32_t>(random_()));
    return made;
  }
  TensorBytes scales(const std::string& name, std::vector<std::uint64_t> shape) {
    TensorBytes made{name, ElementType::F16, std::move(shape), {}};  // 2^-6 … 2^-5
    for (std::uint64_t i = 0; i < made.shape[0] * made.shape[1]; ++i)
      append(made.bytes, static_cast<std::uint16_t>(0x2400 + random_() % 0x400));
    return made;
  }
  static TensorBytes whole(const std::string& name, const std::vector<std::int32_t>& values) {
    return {name,
            ElementType::I32,
            {values.size()},
            {reinterpret_cast<const char*>(values.data()), 4 * values.size()}};
  }
  // A matrix [out, in] as GPTQ stores it.
  void add_gptq(std::vector<TensorBytes>& to, const std::string& module, std::uint64_t out, std::uint64_t in,
                bool in_order) {
    to.push_back(words(module + "qweight", {in / 8, out}));
    to.push_back(words(module + "qzeros", {in / kGroup, out / 8}));
    to.push_back(scales(module + "scales", {in / kGroup, out}));
    to.push_back(whole(module + "g_idx", index(in, in_order)));
  }
  void add_packed(std::vector<TensorBytes>& to, const std::string& module, std::uint64_t out,
                  std::uint64_t in) {
    to.push_back(words(module + "weight_packed", {out, in / 8}));
    to.push_back(scales(module + "weight_scale", {out, in / kGroup}));
    to.push_back(whole(module + "weight_g_idx", index(in, false)));
    const std::int64_t shape[] = {static_cast<std::int64_t>(out), static_cast<std::int64_t>(in)};
    to.push_back(
        {module + "weight_shape", ElementType::I64, {2}, {reinterpret_cast<const char*>(shape), 16}});
  }

 private:
  template <class T>
  static void append(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::mt19937 random_{11};
};

// Everything else of the model in BF16.
std::vector<TensorBytes> plain_tensors(const std::string& config) {
  const ModuleTree tree = describe(ModelConfig::from_json(parse_json(config, "config.json"), "config.json"));
  std::vector<TensorBytes> tensors;
  for_each_tensor(tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
    if (name.starts_with(kModule) || spec.storage != Storage::own) return;
    tensors.push_back({name, ElementType::BF16, spec.shape, std::string(2 * spec.elements.value(), '\x3c')});
  });
  return tensors;
}

void write_gptq(const fs::path& folder, bool desc_act, bool in_order) {
  auto tensors = plain_tensors(config(gptq(desc_act)));
  Maker maker;
  maker.add_gptq(tensors, kModule + "gate_proj.", kWidth, kHidden, in_order);
  maker.add_gptq(tensors, kModule + "up_proj.", kWidth, kHidden, in_order);
  maker.add_gptq(tensors, kModule + "down_proj.", kHidden, kWidth, in_order);
  test::write_checkpoint(folder, tensors, config(gptq(desc_act)));
}

void write_packed(const fs::path& folder) {
  auto tensors = plain_tensors(config(kPacked));
  Maker maker;
  maker.add_packed(tensors, kModule + "gate_proj.", kWidth, kHidden);
  maker.add_packed(tensors, kModule + "up_proj.", kWidth, kHidden);
  maker.add_packed(tensors, kModule + "down_proj.", kHidden, kWidth);
  test::write_checkpoint(folder, tensors, config(kPacked));
}

template <class T>
std::vector<T> values_of(const Checkpoint& checkpoint, const std::string& name) {
  const CheckpointTensor* tensor = checkpoint.find(name);
  if (tensor == nullptr) throw std::runtime_error(name + " is not there");
  const std::string bytes = test::stored_bytes(checkpoint, *tensor);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

float half(std::uint16_t bits) {  // normal, positive
  const std::uint32_t wide = (static_cast<std::uint32_t>(bits >> 10) + 112) << 23 | (bits & 0x3FFu) << 13;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// [in][out] of a module as GPTQ's own dequantization has it: (q - (z + 1)) s of the input's group. Of stored
// z + 1 a 16 wraps to 0, carrying into the next field.
std::vector<std::vector<float>> decode_gptq(const Checkpoint& checkpoint, const std::string& module) {
  const auto codes = values_of<std::uint32_t>(checkpoint, module + "qweight");
  const auto zeros = values_of<std::uint32_t>(checkpoint, module + "qzeros");
  const auto scales = values_of<std::uint16_t>(checkpoint, module + "scales");
  const auto index = values_of<std::int32_t>(checkpoint, module + "g_idx");
  const std::uint64_t in = index.size(), out = codes.size() * 8 / in;
  std::vector<std::vector<float>> values(in, std::vector<float>(out));
  for (std::uint64_t i = 0; i < in; ++i) {
    const auto group = static_cast<std::uint64_t>(index[i]);
    for (std::uint64_t o = 0; o < out; ++o) {
      const int q = static_cast<int>(codes[i / 8 * out + o] >> (i % 8 * 4) & 15);
      const std::uint32_t word = zeros[group * (out / 8) + o / 8] + 0x11111111u;
      const int z = static_cast<int>(word >> (o % 8 * 4) & 15);
      values[i][o] = static_cast<float>(q - z) * half(scales[group * out + o]);
    }
  }
  return values;
}

TEST(ActOrder, RanksDecodeToTheWeight) {
  const TempDir dir;
  write_gptq(dir / "whole", true, false);
  expect_ok(assay({"convert", dir / "whole", dir / "cut", "--tp", "2"}));
  const Checkpoint whole = open_checkpoint(dir / "whole", 1);
  const auto down = decode_gptq(whole, kModule + "down_proj."),
             gate = decode_gptq(whole, kModule + "gate_proj.");
  for (const std::uint64_t rank : {0, 1}) {
    const Checkpoint part = open_checkpoint(dir / "cut" / ("rank-0" + std::to_string(rank)), 1);
    // Inputs: its half of them, in terms of the whole's groups.
    const auto inputs = decode_gptq(part, kModule + "down_proj.");
    ASSERT_EQ(inputs.size(), kWidth / 2);
    for (std::uint64_t i = 0; i < inputs.size(); ++i)
      EXPECT_EQ(inputs[i], down[rank * inputs.size() + i]) << rank << ' ' << i;
    EXPECT_EQ(part.find(kModule + "down_proj.scales")->shape, (std::vector<std::uint64_t>{4, kHidden}));
    // Outputs: the same index for every rank.
    const auto outputs = decode_gptq(part, kModule + "gate_proj.");
    ASSERT_EQ(outputs.size(), kHidden);
    for (std::uint64_t i = 0; i < kHidden; ++i) {
      const auto first = gate[i].begin() + static_cast<std::ptrdiff_t>(rank * kWidth / 2);
      EXPECT_TRUE(std::equal(outputs[i].begin(), outputs[i].end(), first)) << rank << ' ' << i;
    }
  }
  expect_ok(assay({"convert", dir / "cut", dir / "merged", "--merge"}));
  test::expect_same_tensors(dir / "whole", dir / "merged");
  expect_ok(assay({"convert", "--equal", dir / "whole", dir / "merged"}));
}

TEST(ActOrder, OfCompressedTensorsIsCutAlike) {
  const TempDir dir;
  write_packed(dir / "whole");
  expect_ok(assay({"convert", dir / "whole", dir / "cut", "--tp", "2"}));
  const Checkpoint whole = open_checkpoint(dir / "whole", 1), part = open_checkpoint(dir / "cut/rank-01", 1);
  const std::string down = kModule + "down_proj.";
  const auto index = values_of<std::int32_t>(whole, down + "weight_g_idx");
  const auto half_index = values_of<std::int32_t>(part, down + "weight_g_idx");
  ASSERT_EQ(half_index.size(), kWidth / 2);
  EXPECT_TRUE(std::equal(half_index.begin(), half_index.end(), index.begin() + kWidth / 2));
  EXPECT_EQ(values_of<std::uint16_t>(part, down + "weight_scale"),
            values_of<std::uint16_t>(whole, down + "weight_scale"));
  EXPECT_EQ(part.find(down + "weight_packed")->shape, (std::vector<std::uint64_t>{kHidden, kWidth / 16}));
  expect_ok(assay({"convert", dir / "cut", dir / "merged", "--merge"}));
  test::expect_same_tensors(dir / "whole", dir / "merged");
}

// Without desc_act engines do not read the index, and cut scales with their inputs.
TEST(ActOrder, InOrderScalesAreCutAlong) {
  const TempDir dir;
  write_gptq(dir / "whole", false, true);
  expect_ok(assay({"convert", dir / "whole", dir / "cut", "--tp", "2"}));
  const Checkpoint whole = open_checkpoint(dir / "whole", 1), part = open_checkpoint(dir / "cut/rank-01", 1);
  const auto all = values_of<std::uint16_t>(whole, kModule + "down_proj.scales");
  const auto mine = values_of<std::uint16_t>(part, kModule + "down_proj.scales");
  ASSERT_EQ(mine.size(), all.size() / 2);
  EXPECT_TRUE(std::equal(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(mine.size())));
  expect_ok(assay({"convert", dir / "cut", dir / "merged", "--merge"}));
  test::expect_same_tensors(dir / "whole", dir / "merged");
}

// 128 inputs over 8 ranks are half a group each.
TEST(ActOrder, WhatEnginesWouldNotLoadIsRefused) {
  const TempDir dir;
  write_gptq(dir / "contradicts", false, false);
  const auto contradicts = assay({"convert", dir / "contradicts", dir / "no", "--tp", "2"});
  EXPECT_EQ(contradicts.exit_code, 1) << contradicts.out;
  EXPECT_NE(contradicts.out.find("desc_act false"), std::string::npos) << contradicts.out;
  write_gptq(dir / "whole", true, false);
  const auto through = assay({"convert", dir / "whole", dir / "no", "--tp", "8"});
  EXPECT_EQ(through.exit_code, 1) << through.out;
  EXPECT_NE(through.out.find("The input size is not aligned with the quantized weight shape"),
            std::string::npos)
      << through.out;
  EXPECT_FALSE(fs::exists(dir / "no"));
}

}  // namespace
}  // namespace assay
