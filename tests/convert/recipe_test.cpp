// assay convert --to gguf:… with types chosen by hand, and with an importance matrix.
#include <fmt/format.h>

#include "core/formats/gguf.h"
#include "core/numeric/gguf_quantize.h"
#include "tests/convert/convert_support.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::TempDir;

const fs::path kTinylm = test::source_dir() / "data/tinylm-bf16";

std::map<std::string, ElementType> types_of(const fs::path& gguf) {
  std::map<std::string, ElementType> types;
  for (const gguf::Tensor& tensor : gguf::read_header(File::open(gguf)).tensors)
    types[tensor.name] = tensor.type;
  return types;
}

test::ProcessResult to_gguf(const fs::path& out, const std::string& type,
                            const std::vector<std::string>& options) {
  std::vector<std::string> command = {"convert",      kTinylm,           out,   "--to",
                                      "gguf:" + type, "--tokenizer-pre", "none"};
  command.insert(command.end(), options.begin(), options.end());
  return assay(command);
}

TEST(TensorRecipe, TheFirstExpressionFoundDecides) {
  const TempDir dir;
  expect_ok(to_gguf(dir / "a.gguf", "q4_0",
                    {"--tensor-type", R"(blk\.0\.attn_output=q5_1)", "--tensor-type", "attn_output=q8_0",
                     "--tensor-type", "token_embd=f16"}));
  const auto types = types_of(dir / "a.gguf");
  EXPECT_EQ(types.at("blk.0.attn_output.weight"), ElementType::Q5_1);
  EXPECT_EQ(types.at("blk.1.attn_output.weight"), ElementType::Q8_0);
  EXPECT_EQ(types.at("token_embd.weight"), ElementType::F16);
  EXPECT_EQ(types.at("blk.1.attn_q_a.weight"), ElementType::Q4_0);
  EXPECT_EQ(types.at("blk.0.attn_norm.weight"), ElementType::F32);
  // The same from a file, and the same bytes.
  test::write_file(dir / "recipe.txt",
                   "# by hand\nblk\\.0\\.attn_output=q5_1 attn_output=q8_0\ntoken_embd=f16 # large\n");
  expect_ok(to_gguf(dir / "b.gguf", "q4_0", {"--tensor-types", dir / "recipe.txt"}));
  EXPECT_EQ(test::sha256(test::read_file(dir / "a.gguf")), test::sha256(test::read_file(dir / "b.gguf")));
}

TEST(TensorRecipe, WhatCannotBeMeantIsRefused) {
  const TempDir dir;
  const auto code = [&](const std::vector<std::string>& options, const char* type = "q4_0") {
    return to_gguf(dir / "x.gguf", type, options).exit_code;
  };
  EXPECT_EQ(code({"--tensor-type", "attn_q"}), 2);
  EXPECT_EQ(code({"--tensor-type", "attn_q=q9"}), 2);
  EXPECT_EQ(code({"--tensor-type", "(=q8_0"}), 2);
  EXPECT_EQ(code({"--tensor-type", "attn_w=q8_0"}), 1) << "no tensor has such a name";
  EXPECT_EQ(code({"--tensor-type", "attn_q=q8_0"}, "f16"), 2);
  test::write_file(dir / "bad.txt", "attn_q=q8_0\nattn_k\n");
  EXPECT_EQ(code({"--tensor-types", dir / "bad.txt"}), 2);
  EXPECT_FALSE(fs::exists(dir / "x.gguf"));
}

// --- importance

std::string number(std::int32_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::vector<float> importance_of(std::size_t columns, std::size_t seed) {
  std::vector<float> values;
  for (std::size_t i = 0; i < columns; ++i)
    values.push_back(static_cast<float>((i * 37 + seed * 11) % 101) / 8);
  return values;
}

// As llama-imatrix wrote it until 2025: sums over four calls.
void write_legacy(const fs::path& path, const std::map<std::string, std::vector<float>>& entries) {
  std::string bytes = number(static_cast<std::int32_t>(entries.size()));
  for (const auto& [name, values] : entries) {
    std::vector<float> sums = values;
    for (float& value : sums) value *= 4;
    bytes += number(static_cast<std::int32_t>(name.size())) + name + number(4) +
             number(static_cast<std::int32_t>(sums.size())) + test::float32_bytes(sums);
  }
  test::write_file(path, bytes + number(7) + number(4) + "wiki");
}

// And since: sums and counts, two tensors an entry.
void write_gguf(const fs::path& path, const std::map<std::string, std::vector<float>>& entries) {
  test::GgufBytes file(static_cast<std::int64_t>(2 * entries.size()), 4);
  file.text_key("general.type", "imatrix");
  file.text("imatrix.datasets").u32(9).u32(8).u64(1).text("wiki");
  file.u32_key("imatrix.chunk_count", 7).u32_key("imatrix.chunk_size", 512);
  std::string data;
  for (const auto& [name, values] : entries) {
    file.tensor(name + ".in_sum2", {static_cast<std::int64_t>(values.size()), 1}, 0, data.size());
    std::vector<float> sums = values;
    for (float& value : sums) value *= 8;
    data += test::float32_bytes(sums);
    data.resize((data.size() + 31) / 32 * 32);
    file.tensor(name + ".counts", {1, 1}, 0, data.size());
    data += test::float32_bytes(std::vector<float>{8});
    data.resize((data.size() + 31) / 32 * 32);
  }
  test::write_file(path, file.align(32).raw(data).take());
}

TEST(Imatrix, BothFormsWeighTheSameRows) {
  const TempDir dir;
  expect_ok(to_gguf(dir / "plain.gguf", "f32", {}));
  const gguf::Header plain = gguf::read_header(File::open(dir / "plain.gguf"));
  std::map<std::string, std::vector<float>> entries;
  for (const gguf::Tensor& tensor : plain.tensors) {
    if (tensor.ne.size() == 2 && tensor.name.starts_with("blk."))
      entries[tensor.name] = importance_of(tensor.ne[0], entries.size());
  }
  ASSERT_GE(entries.size(), 7u);
  write_legacy(dir / "old.dat", entries);
  write_gguf(dir / "new.gguf", entries);
  expect_ok(to_gguf(dir / "old.out.gguf", "q4_1", {"--imatrix", dir / "old.dat"}));
  expect_ok(to_gguf(dir / "new.out.gguf", "q4_1", {"--imatrix", dir / "new.gguf"}));
  test::expect_same_tensors(dir / "old.out.gguf", dir / "new.out.gguf");
  const gguf::Header made = gguf::read_header(File::open(dir / "old.out.gguf"));
  EXPECT_EQ(made.text("quantize.imatrix.dataset"), "wiki");
  EXPECT_EQ(made.number("quantize.imatrix.chunks_count"), 7u);
  EXPECT_EQ(made.number("quantize.imatrix.entries_count"), entries.size());
  // Row by row what the quantizer makes of it, which is held to ggml's bytes elsewhere.
  const Checkpoint source = open_checkpoint(dir / "plain.gguf", 1),
                   out = open_checkpoint(dir / "old.out.gguf", 1);
  int weighed = 0;
  for (const auto& [name, importance] : entries) {
    const CheckpointTensor& from = *source.find(name);
    const CheckpointTensor& to = *out.find(name);
    if (to.type != ElementType::Q4_1) continue;
    const std::string values = test::stored_bytes(source, from);
    std::vector<float> rows(values.size() / 4);
    std::memcpy(rows.data(), values.data(), values.size());
    std::string expected(to.bytes, '\0');
    const std::size_t columns = importance.size(), row_bytes = to.bytes / (rows.size() / columns);
    for (std::size_t row = 0; row * columns < rows.size(); ++row)
      EXPECT_FALSE(gguf_quantize_row(to.type, std::span(rows).subspan(row * columns, columns), importance,
                                     reinterpret_cast<std::byte*>(&expected[row * row_bytes])));
    EXPECT_EQ(test::stored_bytes(out, to), expected) << name;
    ++weighed;
  }
  EXPECT_GE(weighed, 5);
}

TEST(Imatrix, OnesThatDoNotFitAreRefused) {
  const TempDir dir;
  const auto code = [&](const std::string& bytes) {
    test::write_file(dir / "m.dat", bytes);
    return to_gguf(dir / "x.gguf", "q4_0", {"--imatrix", dir / "m.dat"}).exit_code;
  };
  const std::string entry = number(1) + number(24) + "blk.0.attn_output.weight" + number(1);
  EXPECT_EQ(code(entry + number(3) + test::float32_bytes(std::vector<float>(3, 1))), 1) << "of another model";
  EXPECT_EQ(code(entry + number(3) + test::float32_bytes(std::vector<float>(2, 1))), 2) << "cut off";
  EXPECT_EQ(code(entry + number(2'000'000'000)), 2) << "more values than the file has bytes";
  EXPECT_EQ(code(entry + number(1) + test::float32_bytes(std::vector<float>{-1})), 2);
  EXPECT_EQ(code(number(-1)), 2);
  EXPECT_EQ(code(""), 2);
  EXPECT_EQ(code("GGUF"), 2);
  EXPECT_FALSE(fs::exists(dir / "x.gguf"));
}

}  // namespace
}  // namespace assay
