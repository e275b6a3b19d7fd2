// The stored forms of the wild: checkpoints that their owners' packages wrote, decoded to the values that
// those make of them (data/make_forms_fixtures.py).
#include <gtest/gtest.h>

#include <sstream>

#include "core/formats/checkpoint.h"
#include "core/formats/stream_digest.h"
#include "core/system/file.h"
#include "tests/convert/convert_support.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::assay;
using test::TempDir;

const fs::path kFixtures = test::source_dir() / "data/fixtures/convert";

std::string digest_of(const Checkpoint& checkpoint, const CheckpointTensor& tensor) {
  std::string bytes(tensor.bytes, '\0');
  File::open(checkpoint.files[tensor.file].path)
      .read_exactly(tensor.offset, std::as_writable_bytes(std::span(bytes)));
  StreamDigest digest(DigestKind::sha256, bytes.size());
  digest.update(std::as_bytes(std::span(bytes)));
  return digest.finish().hex();
}

struct Expected {
  std::string folder, tensor, sha256;
};
std::vector<Expected> expected_values(const char* table) {
  std::vector<Expected> all;
  std::istringstream lines(test::read_file(kFixtures / table));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    Expected& one = all.emplace_back();
    fields >> one.folder >> one.tensor >> one.sha256;
  }
  return all;
}

// Every folder of `forms` to float32, held to the digests of `table`.
void expect_values(const char* table, const char* forms, std::size_t count) {
  const std::vector<Expected> expected = expected_values(table);
  ASSERT_EQ(expected.size(), count);
  const TempDir dir;
  for (const Expected& one : expected) {
    const fs::path in = kFixtures / forms / one.folder, out = dir / one.folder;
    if (!fs::exists(out)) {
      // Packed integers with zero points far from the middle decode to values no trained matrix has.
      const auto made = assay({"convert", in, out, "--to", "f32", "--allow-large"});
      ASSERT_EQ(made.exit_code, 0) << one.folder << made.out << made.err;
      EXPECT_EQ(test::read_file(out / "config.json").find("quantization"), std::string::npos) << one.folder;
      // What was decoded is equal to what it was decoded from, rows taken otherwise.
      EXPECT_EQ(assay({"convert", "--equal", in, out}).exit_code, 0) << one.folder;
    }
    const Checkpoint made = open_checkpoint(out, 1);
    const CheckpointTensor* tensor = made.find(one.tensor);
    ASSERT_NE(tensor, nullptr) << one.folder << " " << one.tensor;
    EXPECT_EQ(digest_of(made, *tensor), one.sha256) << one.folder << " " << one.tensor;
    EXPECT_EQ(made.find("a.pre_quant_scale"), nullptr) << one.folder;  // folded in
  }
}

TEST(StoredForms, DecodeToWhatTheirOwnersMakeOfThem) {
  expect_values("FORMS.tsv", "forms", 29);
}

// ModelOpt, auto-round, torchao, Quark, FBGEMM, Mistral, MLX's small floats, scales of fused parts
// (data/make_tool_forms_fixtures.py).
TEST(StoredForms, DecodeToWhatTheToolsThatWriteThemMean) {
  expect_values("TOOL_FORMS.tsv", "tool_forms", 18);
}

// Quark's integers, torchao's packed tensors, scales of query, keys and values
// (data/make_packed_forms_fixtures.py).
TEST(StoredForms, PackedOnesDecodeToWhatTheirToolsMean) {
  expect_values("PACKED_FORMS.tsv", "packed_forms", 40);
}

TEST(StoredForms, PackedModelsAreReadByEveryCommand) {
  for (const char* form : {"model-quark", "model-torchao"}) {
    const TempDir dir;
    const fs::path model = dir / "model";  // outside of this clone, whose digests verify would take
    fs::copy(kFixtures / "packed_forms" / form, model);
    const auto verified = assay({"verify", model});
    EXPECT_EQ(verified.exit_code, 0) << form << verified.out << verified.err;
    EXPECT_EQ(verified.out.find("warning"), std::string::npos) << form << verified.out;
    const auto counted = assay({"paramcount", model});
    EXPECT_EQ(counted.exit_code, 0) << form << counted.out << counted.err;
    EXPECT_NE(counted.out.find("the checkpoint holds exactly these"), std::string::npos)
        << form << counted.out;
    const auto checked = assay({"check", model});
    EXPECT_EQ(checked.exit_code, 0) << form << checked.out << checked.err;
    EXPECT_EQ(checked.out.find("warning"), std::string::npos) << form << checked.out;
    test::expect_ok(assay({"convert", model, dir / "plain", "--to", "f32"}));
    const auto run = [&](const fs::path& path) {
      const auto result = assay({"run", path, "--tokens", "1,5,9", "-n", "6"});
      EXPECT_EQ(result.exit_code, 0) << form << result.out << result.err;
      return result.out;
    };
    EXPECT_EQ(run(model), run(dir / "plain")) << form;
  }
}

// A packed form under another config.json.
test::ProcessResult converted_under(const TempDir& dir, const std::string& form, const std::string& was,
                                    const std::string& is) {
  const fs::path from = kFixtures / "packed_forms" / form, to = dir / "changed";
  fs::remove_all(to);
  fs::remove_all(dir / "out");
  fs::create_directories(to);
  fs::copy(from / "model.safetensors", to / "model.safetensors");
  std::string config = test::read_file(from / "config.json");
  const auto at = config.find(was);
  if (at != std::string::npos) config.replace(at, was.size(), is);
  test::write_file(to / "config.json", config);
  return assay({"convert", to, dir / "out", "--to", "bf16", "--allow-large"});
}

// The same file with an entry in the header's __metadata__.
void with_metadata(const fs::path& file, const std::string& entry) {
  const std::string bytes = test::read_file(file);
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  const std::string header = "{\"__metadata__\":{" + entry + "}," + bytes.substr(sizeof size + 1, size - 1);
  test::write_file(file, test::safetensors_bytes(header, bytes.substr(sizeof size + size)));
}

TEST(StoredForms, PackedOnesNobodyDescribesAreRefusedByName) {
  struct Case {
    const char *form, *was, *is, *reason;
  };
  const TempDir dir;
  for (const Case& c : {
           Case{"quark-int4", "\"reorder\"", "\"other\"", "pack_method is \"other\""},
           Case{"quark-int4", "\"dtype\": \"int4\"", "\"dtype\": \"int3\"", "Quark's int3 is not read here"},
           Case{"quark-int4", "\"quark\"", "\"awq\"", "no stored form known here"},
           Case{"quark-int4", "\"group_size\": 32", "\"group_size\": 64", "no grid of scales"},
           Case{"fused-qkv", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 4",
                "do not make up 64 rows"},
           Case{"fused-qkv", "\"num_attention_heads\": 4", "\"other\": 4", "do not make up 64 rows"},
       }) {
    const auto result = converted_under(dir, c.form, c.was, c.is);
    EXPECT_EQ(result.exit_code, 1) << c.form << c.is << result.out << result.err;
    EXPECT_NE((result.out + result.err).find(c.reason), std::string::npos)
        << c.is << result.out << result.err;
    EXPECT_FALSE(fs::exists(dir / "out")) << c.form;
  }
}

// Shapes that no tool writes: one line, and no division by them.
TEST(StoredForms, EmptyPackedOnesAreRefused) {
  using Shape = std::vector<std::uint64_t>;
  const auto tensor = [](std::string name, ElementType type, Shape shape) {
    const std::uint64_t bytes = storage_bytes(type, element_count(shape).value()).value();
    return test::TensorBytes{std::move(name), type, std::move(shape), std::string(bytes, '\0')};
  };
  const std::string quark =
      R"({"quantization_config":{"quant_method":"quark","export":{"pack_method":"reorder"},"global_quant_config":)"
      R"({"weight":{"dtype":"int4","qscheme":"per_group"}}}})";
  const std::string heads =
      R"({"num_attention_heads":1,"hidden_size":8,"quantization_config":{"quant_method":"fp8"}})";
  struct Case {
    std::vector<test::TensorBytes> tensors;
    std::string config;
  };
  using enum ElementType;
  const std::vector<Case> cases = {
      {{tensor("a.weight", I32, {0, 1}), tensor("a.weight_scale", BF16, {2, 8}),
        tensor("a.weight_zero_point", I32, {2, 1})},
       quark},
      {{tensor("a.weight", I32, {8, 0}), tensor("a.weight_scale", BF16, {8}),
        tensor("a.weight_zero_point", I32, {1})},
       quark},
      {{tensor("a.qkv_proj.weight", F8_E4M3, {24, 0}), tensor("a.qkv_proj.weight_scale", F32, {3})}, heads},
      {{tensor("a._weight_qdata", I8, {8, 0}), tensor("a._weight_scale", BF16, {8, 1}),
        tensor("a._weight_zero_point", I8, {8, 1})},
       R"({"quantization_config":{"quant_method":"torchao"}})"},
  };
  const TempDir dir;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const fs::path in = dir / fmt::format("in{}", i), out = dir / fmt::format("out{}", i);
    for (const std::string type : {"", "Int4Tensor", "IntxUnpackedToInt8Tensor"}) {
      test::write_checkpoint(in, cases[i].tensors, cases[i].config);
      if (!type.empty())
        with_metadata(in / "model.safetensors", R"("a.weight":"{\"_type\":\")" + type + R"(\"}")");
      const auto result = assay({"convert", in, out, "--to", "bf16"});
      EXPECT_EQ(result.exit_code, 1) << i << type << result.out << result.err;
      EXPECT_FALSE(fs::exists(out)) << i;
    }
  }
}

// What is copied keeps its bytes, details and all.
TEST(StoredForms, PackedOnesAreCopiedAsTheyAre) {
  const TempDir dir;
  for (const char* form : {"quark-int4", "torchao-packed", "fused-qkv"}) {
    const fs::path in = dir / "in" / form, out = dir / form;
    fs::create_directories(dir / "in");
    fs::copy(kFixtures / "packed_forms" / form, in);
    const auto made = assay({"convert", in, out, "--to", "copy"});
    ASSERT_EQ(made.exit_code, 0) << form << made.out << made.err;
    EXPECT_EQ(assay({"convert", "--equal", in, out}).exit_code, 0) << form;
    const auto verified = assay({"verify", in});
    EXPECT_EQ(verified.exit_code, 0) << form << verified.out << verified.err;
  }
}

// A model whose fused matrices have a scale for each of query, keys and values is the model with one for all,
// where the three are the same.
TEST(StoredForms, ScalesOfPartsAreReadByEveryCommand) {
  const TempDir dir;
  const fs::path one = dir / "one", three = dir / "three";
  test::expect_ok(assay(
      {"convert", test::source_dir() / "data/models/phi3/model.safetensors", one, "--to", "fp8:tensor"}));
  const Checkpoint made = open_checkpoint(one, 1);
  std::vector<test::TensorBytes> tensors;
  int parts = 0;
  for (const CheckpointTensor& tensor : made.tensors) {
    test::TensorBytes copy{tensor.name, tensor.type, tensor.shape, test::stored_bytes(made, tensor)};
    if (copy.name.ends_with("qkv_proj.weight_scale")) {
      ASSERT_EQ(copy.bytes.size(), sizeof(float));
      copy.bytes = copy.bytes + copy.bytes + copy.bytes;
      copy.shape = {3};
      ++parts;
    }
    tensors.push_back(std::move(copy));
  }
  ASSERT_GT(parts, 0);
  test::write_checkpoint(three, tensors, test::read_file(one / "config.json"));
  EXPECT_EQ(assay({"convert", "--equal", one, three}).exit_code, 0);
  const auto verified = assay({"verify", three});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_EQ(assay({"paramcount", three}).exit_code, 0);
  const auto run = [](const fs::path& model) {
    const auto result = assay({"run", model, "--tokens", "1,5,9", "-n", "6"});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return result.out;
  };
  EXPECT_EQ(run(one), run(three));
}

// The int8-sq fixture with another tensor in its layer, or another config.
fs::path smooth_with(const TempDir& dir, const std::string& extra_tensor, const std::string& config) {
  const fs::path from = kFixtures / "tool_forms/modelopt-int8-sq";
  fs::path to = dir / "changed";
  fs::remove_all(to);
  fs::create_directories(to);
  fs::copy(from / "config.json", to / "config.json");
  std::string bytes = test::read_file(from / "model.safetensors");
  if (!extra_tensor.empty()) {
    const std::string was = "a.bias";
    bytes.replace(bytes.find(was), was.size(), extra_tensor);  // of the same length
  }
  test::write_file(to / "model.safetensors", bytes);
  if (!config.empty()) test::write_file(to / "config.json", config);
  return to;
}

TEST(StoredForms, WhatIsNotKnownInsideAQuantizedLayerIsRefused) {
  const TempDir dir;
  EXPECT_EQ(assay({"convert", smooth_with(dir, "", ""), dir / "fine", "--to", "bf16"}).exit_code, 0);
  for (const char* name : {"a.lora", "a.r4.w"}) {
    const auto result = assay({"convert", smooth_with(dir, name, ""), dir / "out", "--to", "bf16"});
    EXPECT_EQ(result.exit_code, 1) << name << result.out;
    EXPECT_NE(result.out.find("whose weight is quantized"), std::string::npos) << name << result.out;
    EXPECT_FALSE(fs::exists(dir / "out"));
  }
}

TEST(StoredForms, RotatedAndSparseOnesAreRefused) {
  const TempDir dir;
  const auto with = [&](const std::string& more) {
    return smooth_with(dir, "",
                       R"({"quantization_config":{"quant_method":"compressed-tensors",)"
                       R"("format":"int-quantized",)" +
                           more + "}}");
  };
  const auto run = [&](const std::string& more) {
    fs::remove_all(dir / "out");
    return assay({"convert", with(more), dir / "out", "--to", "bf16"});
  };
  EXPECT_EQ(run(R"("transform_config":{},"sparsity_config":{})").exit_code, 0);
  EXPECT_EQ(run(R"("transform_config":{"config_groups":{"u":{"type":"hadamard","apply":)"
                R"([{"targets":["Linear"],"location":"weight_output"}]}}})")
                .exit_code,
            0);
  const auto rotated = run(R"("transform_config":{"config_groups":{"R4":{"type":"hadamard","apply":)"
                           R"([{"targets":["Linear"],"location":"weight_input"},)"
                           R"({"targets":["Linear"],"location":"input","inverse":true}]}}})");
  EXPECT_EQ(rotated.exit_code, 1) << rotated.out;
  EXPECT_NE(rotated.out.find("rotates activations"), std::string::npos) << rotated.out;
  const auto sparse = run(R"("sparsity_config":{"format":"sparse-bitmask","global_sparsity":0.5})");
  EXPECT_EQ(sparse.exit_code, 1) << sparse.out;
  EXPECT_NE(sparse.out.find("sparse-bitmask"), std::string::npos) << sparse.out;

  // By the tensors alone, where the config is gone.
  const fs::path tensors = dir / "tensors";
  test::write_file(
      tensors / "model.safetensors",
      test::safetensors_bytes(R"({"a.bitmask":{"dtype":"U8","shape":[1,1],"data_offsets":[0,1]},)"
                              R"("a.compressed":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                              "xy"));
  const auto bare = assay({"convert", tensors, dir / "bare", "--to", "bf16"});
  EXPECT_EQ(bare.exit_code, 1) << bare.out;
  EXPECT_NE(bare.out.find("bitmask"), std::string::npos) << bare.out;
}

}  // namespace
}  // namespace assay
