// gpt-oss and Llama 4 publish the experts of a layer in stacks, [experts, in, out]. Quantized they are linear
// layers of their own, as llm-compressor writes and vLLM loads them; here they are taken apart by hand, by
// what the model classes compute (transformers: gate is gate_up[..., ::2] of gpt-oss, the first half of Llama
// 4).
#include <nlohmann/json.hpp>
#include <random>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "tests/convert/convert_support.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::TempDir;
using Tensors = std::vector<test::TensorBytes>;

const fs::path kGptOss = test::source_dir() / "data/models/gpt-oss/model.safetensors";

constexpr const char* kLlama4 = R"({"architectures": ["Llama4ForCausalLM"], "model_type": "llama4_text",
  "vocab_size": 128, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 16,
  "num_key_value_heads": 2, "intermediate_size": 32, "intermediate_size_mlp": 96, "num_local_experts": 5,
  "num_experts_per_tok": 1, "interleave_moe_layer_step": 2, "tie_word_embeddings": false})";

Tensors tensors_of(const fs::path& model) {
  Tensors tensors;
  const Checkpoint checkpoint = open_checkpoint(model, 1);
  for (const CheckpointTensor& tensor : checkpoint.tensors)
    tensors.push_back({tensor.name, tensor.type, tensor.shape, test::stored_bytes(checkpoint, tensor)});
  return tensors;
}

// Every tensor of the config, BF16 noise.
void write_llama4(const fs::path& folder) {
  const ModuleTree tree = describe(ModelConfig::from_json(parse_json(kLlama4, "config.json"), "config.json"));
  std::mt19937 random(7);
  Tensors tensors;
  for_each_tensor(tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
    test::TensorBytes tensor{name, ElementType::BF16, spec.shape, {}};
    for (std::uint64_t i = 0; i < spec.elements.value(); ++i) {  // 2^-4 ... 2^-2, either sign
      const auto bits = static_cast<std::uint16_t>(0x3D80 + random() % 0x100 + (random() % 2 << 15));
      tensor.bytes.append(reinterpret_cast<const char*>(&bits), sizeof bits);
    }
    tensors.push_back(std::move(tensor));
  });
  test::write_checkpoint(folder, tensors, kLlama4);
}

// What a stack of two-byte values holds of one expert: columns first, first + step … of its last dimension,
// each of them a row of what comes out.
test::TensorBytes part(const test::TensorBytes& stack, std::uint64_t expert, std::uint64_t first,
                       std::uint64_t step, std::uint64_t count, const std::string& name) {
  const bool bias = stack.shape.size() == 2;
  const std::uint64_t inputs = bias ? 1 : stack.shape[1], last = stack.shape.back();
  test::TensorBytes one{name, stack.type, {count}, {}};
  if (!bias) one.shape.push_back(inputs);
  for (std::uint64_t i = 0; i < count; ++i) {
    for (std::uint64_t in = 0; in < inputs; ++in)
      one.bytes += stack.bytes.substr(((expert * inputs + in) * last + first + i * step) * 2, 2);
  }
  return one;
}

// A checkpoint in BF16 with its experts one by one.
void take_apart(const fs::path& model, const fs::path& folder, bool interleaved) {
  Tensors made;
  for (const test::TensorBytes& tensor : tensors_of(model)) {
    const auto at = tensor.name.find(".experts.");
    if (at == std::string::npos) {
      made.push_back(tensor);
      continue;
    }
    const std::string own = tensor.name.substr(at + 9), ending = own.ends_with("_bias") ? ".bias" : ".weight";
    const std::uint64_t last = tensor.shape.back(), half = last / 2;
    for (std::uint64_t e = 0; e < tensor.shape[0]; ++e) {
      const std::string one = fmt::format("{}.experts.{}.", tensor.name.substr(0, at), e);
      if (own.starts_with("down_proj")) {
        made.push_back(part(tensor, e, 0, 1, last, one + "down_proj" + ending));
        continue;
      }
      made.push_back(part(tensor, e, 0, interleaved ? 2 : 1, half, one + "gate_proj" + ending));
      made.push_back(
          part(tensor, e, interleaved ? 1 : half, interleaved ? 2 : 1, half, one + "up_proj" + ending));
    }
  }
  test::write_checkpoint(folder, made, test::read_file(model / "config.json"));
}

struct Models {
  explicit Models(const TempDir& dir) : folder(dir.path()) {
    expect_ok(assay({"convert", kGptOss, folder / "gpt-oss", "--to", "bf16"}));
    take_apart(folder / "gpt-oss", folder / "gpt-oss-apart", true);
    write_llama4(folder / "llama4");
    take_apart(folder / "llama4", folder / "llama4-apart", false);
  }
  fs::path folder;
};

nlohmann::json paramcount(const fs::path& model) {
  const auto result = assay({"paramcount", model, "--format", "json"});
  expect_ok(result);
  return nlohmann::json::parse(result.out);
}

constexpr const char* kTargets[] = {"fp8:block=32x32", "fp8:channel",
                                    "fp8:tensor",      "int8:channel",
                                    "int4:group=32",   "int4:group=32,asym",
                                    "nvfp4",           "nvfp4,layout=modelopt",
                                    "mxfp4",           "mxfp8"};

TEST(Stacks, AreQuantizedAnExpertAtATime) {
  const TempDir dir;
  const Models models(dir);
  for (const std::string model : {"gpt-oss", "llama4"}) {
    const auto published = paramcount(models.folder / model);
    for (const char* spec : kTargets) {
      const fs::path out = dir / "out", apart = dir / "apart";
      expect_ok(assay({"convert", models.folder / model, out, "--to", spec, "--include", "experts"}));
      expect_ok(assay(
          {"convert", models.folder / (model + "-apart"), apart, "--to", spec, "--include", "experts"}));
      test::expect_same_tensors(apart, out);
      const auto counted = paramcount(out);
      EXPECT_EQ(counted.at("total"), published.at("total")) << spec;
      EXPECT_EQ(counted.at("active"), published.at("active")) << spec;
      EXPECT_EQ(counted.at("checkpoint").at("difference"), 0) << spec;
      fs::remove_all(out);
      fs::remove_all(apart);
    }
  }
}

// From the codes that gpt-oss is published in: their values are the same.
TEST(Stacks, OfMxfp4AreQuantizedAlike) {
  const TempDir dir;
  const Models models(dir);
  for (const char* spec : kTargets) {
    const fs::path out = dir / "out", apart = dir / "apart";
    expect_ok(assay({"convert", kGptOss, out, "--to", spec}));
    expect_ok(
        assay({"convert", models.folder / "gpt-oss-apart", apart, "--to", spec, "--include", "experts"}));
    test::expect_same_tensors(apart, out);
    fs::remove_all(out);
    fs::remove_all(apart);
  }
}

TEST(Stacks, AreEqualToThoseApart) {
  const TempDir dir;
  const Models models(dir);
  const fs::path apart = models.folder / "gpt-oss-apart";
  expect_ok(assay({"convert", "--equal", models.folder / "gpt-oss", apart}));
  expect_ok(assay({"convert", "--equal", apart, kGptOss}));
  expect_ok(assay({"convert", "--equal", models.folder / "llama4-apart", models.folder / "llama4"}));
  // One value, under the name it has apart.
  Tensors tensors = tensors_of(apart);
  for (test::TensorBytes& tensor : tensors) {
    if (tensor.name == "model.layers.1.mlp.experts.3.up_proj.weight") tensor.bytes[64 * 2 + 1] ^= 0x02;
  }
  test::write_checkpoint(dir / "other", tensors, test::read_file(apart / "config.json"));
  const auto result = assay({"convert", "--equal", kGptOss, dir / "other"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("DIFFERENT: 1 of"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("experts.3.up_proj.weight: element 64:"), std::string::npos) << result.out;
}

TEST(Stacks, StayWhereTheyAreNotQuantized) {
  const TempDir dir;
  const Models models(dir);
  for (const std::string model : {"gpt-oss", "llama4"}) {
    const fs::path out = dir / (model + "-out");
    expect_ok(assay({"convert", models.folder / model, out, "--to", "int8:channel", "--exclude", "experts"}));
    const Checkpoint made = open_checkpoint(out, 1), source = open_checkpoint(models.folder / model, 1);
    for (const CheckpointTensor& tensor : source.tensors) {
      if (tensor.name.find(".experts.") == std::string::npos) continue;
      const CheckpointTensor* kept = made.find(tensor.name);
      ASSERT_NE(kept, nullptr) << tensor.name;
      EXPECT_EQ(test::stored_bytes(made, *kept), test::stored_bytes(source, tensor));
    }
  }
}

// Cut over ranks and put together again.
TEST(Stacks, QuantizedAreCutOverRanks) {
  const TempDir dir;
  const Models models(dir);
  for (const char* spec : {"fp8:block=16x16", "int8:channel"}) {
    const fs::path whole = dir / "whole", cut = dir / "cut", merged = dir / "merged";
    expect_ok(assay({"convert", models.folder / "gpt-oss", whole, "--to", spec}));
    expect_ok(assay({"convert", models.folder / "gpt-oss", cut, "--to", spec, "--tp", "2"}));
    const Checkpoint rank = open_checkpoint(cut / "rank-01", 1);
    const CheckpointTensor* gate = rank.find("model.layers.0.mlp.experts.0.gate_proj.weight");
    ASSERT_NE(gate, nullptr);
    EXPECT_EQ(gate->shape, (std::vector<std::uint64_t>{16, 64}));
    expect_ok(assay({"convert", cut, merged, "--merge"}));
    test::expect_same_tensors(whole, merged);
    for (const fs::path& made : {whole, cut, merged}) fs::remove_all(made);
  }
}

// The engine reads them in either layout.
TEST(Stacks, ApartComputeTheSameLogits) {
  const TempDir dir;
  const Models models(dir);
  std::string logits[2];
  for (const bool apart : {false, true}) {
    const fs::path file = dir / "logits.safetensors";
    expect_ok(assay({"run", models.folder / (apart ? "gpt-oss-apart" : "gpt-oss"), "--tokens", "3,14,15,92,6",
                     "-n", "0", "--logits", file}));
    logits[apart ? 1 : 0] = tensors_of(file).at(0).bytes;
  }
  EXPECT_EQ(logits[0], logits[1]);
}

}  // namespace
}  // namespace assay
