// Files that are written in sections: a GGUF larger than a few of them, killed and resumed inside.
#include "convert/sections.h"

#include <fmt/format.h>

#include <chrono>

#include "convert/partial_folder.h"
#include "core/formats/gguf_write.h"
#include "core/system/sanitizer.h"
#include "tests/convert/convert_support.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::TempDir;

// F32 matrices of 64 MiB each, zeros but for a few values of their own that lie far apart.
void write_gguf(const fs::path& path, int matrices) {
  constexpr std::uint64_t kColumns = 4096, kRows = 4096;
  const std::vector<gguf::KeyValue> keys = {gguf::text_value("general.architecture", "llama"),
                                            gguf::u32_value("llama.block_count", 1)};
  std::vector<gguf::Tensor> tensors;
  for (int i = 0; i < matrices; ++i)
    tensors.push_back({fmt::format("blk.{}.ffn_up.weight", i), ElementType::F32, {kColumns, kRows}});
  const std::uint64_t bytes = gguf::place_tensors(tensors, gguf::kDefaultAlignment);
  const std::string header = gguf::serialize_header(keys, tensors, gguf::kDefaultAlignment);
  ResumableFile file(path);  // most of it holes
  file.write_at(0, std::as_bytes(std::span(header)));
  file.write_at(header.size() + bytes - 1, std::vector<std::byte>(1));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (int k = 0; k < 8; ++k) {
      const auto value = static_cast<float>(1 + 8 * i + static_cast<std::size_t>(k));
      const std::uint64_t place = (kRows * kColumns - 1) / 7 * static_cast<std::uint64_t>(k);
      file.write_at(header.size() + tensors[i].offset + 4 * place, std::as_bytes(std::span(&value, 1)));
    }
  }
}

TEST(Sections, HoldEveryTensorOnceInOrder) {
  OutputShard file;
  file.name = "out.gguf";
  std::uint64_t at = 96;
  for (const std::uint64_t mebibytes : {1, 300, 100, 27, 1, 128, 5}) {
    OutputTensor tensor{"t" + std::to_string(at), ElementType::F32, {}, OutputTensor::Source::derived, 0};
    tensor.offset = at;
    tensor.bytes = mebibytes << 20;
    at += tensor.bytes;
    file.tensors.push_back(std::move(tensor));
  }
  const std::vector<OutputShard> sections = sections_of(file);
  std::vector<std::size_t> counts;
  std::size_t next = 0;
  for (const OutputShard& section : sections) {
    EXPECT_EQ(section.part_of, file.name);
    counts.push_back(section.tensors.size());
    for (const OutputTensor& tensor : section.tensors) EXPECT_EQ(tensor.offset, file.tensors[next++].offset);
  }
  EXPECT_EQ(counts,
            (std::vector<std::size_t>{2, 3, 1, 1}));  // each ends with the tensor that makes it 128 MiB
}

TEST(Sections, AGgufIsResumedInsideItsFile) {
  ASSAY_PROGRAM_OR_SKIP("timeout");
  if (kSanitized) GTEST_SKIP() << "SKIPPED: gigabytes take minutes under AddressSanitizer";
  const TempDir dir(test::memory_folder());
  write_gguf(dir / "in.gguf", 10);
  const auto command_to = [&](const fs::path& out) {
    return std::vector<std::string>{"convert", dir / "in.gguf", out, "--to", "gguf:f32"};
  };
  const auto start = std::chrono::steady_clock::now();
  const auto made = assay(command_to(dir / "whole.gguf"));
  expect_ok(made);
  const std::chrono::duration<double> takes = std::chrono::steady_clock::now() - start;
  // Nothing is rounded, so that the tensors are the source's.
  const Digest whole = sha256_of_file(File::open(dir / "whole.gguf"));
  test::expect_same_tensors(dir / "in.gguf", dir / "whole.gguf");
  EXPECT_NE(made.out.find(whole.hex()), std::string::npos) << made.out;  // hashed while it grew
  fs::remove(dir / "whole.gguf");
  int taken_up = 0;
  // Of the sections four are under way at a time. On a machine that does other work, too, a run may be killed before any is
  // finished, or come to its end: then at other moments.
  for (const double share : {0.7, 0.9, 0.8, 0.6, 0.95, 0.5, 0.4, 0.3}) {
    if (share != 0.9 && taken_up > 0) break;
    const fs::path out = dir / "out.gguf";
    std::vector<std::string> killed = {"timeout", "-s", "KILL", fmt::format("{:.4f}", takes.count() * share),
                                       test::assay_binary()};
    const auto command = command_to(out);
    killed.insert(killed.end(), command.begin(), command.end());
    test::run(killed);
    auto resume = command;
    resume.emplace_back("--resume");
    const auto resumed = assay(resume);
    expect_ok(resumed);
    taken_up += resumed.out.find("tensors were finished before") != std::string::npos ? 1 : 0;
    EXPECT_EQ(sha256_of_file(File::open(out)), whole) << "killed after " << share << " of it";
    if ((resumed.out + resumed.err).find("had finished") == std::string::npos) {
      EXPECT_NE(resumed.out.find(whole.hex()), std::string::npos) << resumed.out;
    }
    EXPECT_FALSE(fs::exists(partial_folder(out)));
    fs::remove(out);
  }
  EXPECT_GE(taken_up, 1);
}

}  // namespace
}  // namespace assay
