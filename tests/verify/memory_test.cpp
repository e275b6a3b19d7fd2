// Inputs of tens of megabytes: the program may take twice their size, above what it takes for nothing.
#include <fmt/format.h>

#include <fstream>

#include "core/system/sanitizer.h"
#include "tests/support/peak_memory.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

constexpr std::size_t kLines = 300'000;

class Memory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "SKIPPED: sanitizers set aside more memory than any bound";
    fs::create_directory(folder());
    write_file(folder() / "here.txt", "here");
    nothing_ = assay_peak({"verify", folder().string(), "--quiet"}).bytes;
  }

  fs::path folder() const { return dir_ / "folder"; }

  // Runs it, and holds its peak against the size of `input`.
  void expect_twice(const fs::path& input, const std::vector<std::string>& arguments, int exit_code) {
    const Peak peak = assay_peak(arguments);
    EXPECT_EQ(peak.exit_code, exit_code) << arguments[0];
    const std::uint64_t size = fs::file_size(input);
    EXPECT_GT(size, 20'000'000u) << "too small to tell";
    const double times = static_cast<double>(peak.bytes - nothing_) / static_cast<double>(size);
    EXPECT_LE(times, 2.0) << fmt::format("{}: {} bytes, {} of input, {} without", fmt::join(arguments, " "),
                                         peak.bytes, size, nothing_);
    RecordProperty("times", fmt::format("{:.2f}", times));
  }

  // Text is written as it is made: what this process holds when it forks is the child's to begin with.
  template <typename Line>
  static void write_lines(const fs::path& path, std::size_t count, Line line, std::string_view end = "") {
    std::ofstream file(path, std::ios::binary | std::ios::app);
    for (std::size_t i = 0; i < count; ++i) file << line(i);
    file << end;
  }

  TempDir dir_{memory_folder()};
  std::uint64_t nothing_ = 0;
};

constexpr std::string_view kDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

TEST_F(Memory, OfASafetensorsHeaderIsTwiceItsTextAtMost) {
  const fs::path file = folder() / "model.safetensors";
  std::string body;
  const auto entry = [](std::size_t i) {
    return fmt::format(
        R"({}"model.layers.{}.mlp.experts.w":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
        i == 0 ? "{" : ",", i, i, i + 1);
  };
  write_lines(dir_ / "json", kLines, entry, "}");
  const std::uint64_t length = fs::file_size(dir_ / "json");
  {
    std::ofstream out(file, std::ios::binary);
    for (int byte = 0; byte < 8; ++byte) out.put(static_cast<char>(length >> 8 * byte & 0xFF));
    out << std::ifstream(dir_ / "json", std::ios::binary).rdbuf();
  }
  fs::resize_file(file, 8 + length + kLines);
  expect_twice(dir_ / "json", {"verify", folder().string(), "--quiet"}, 0);
  expect_twice(dir_ / "json", {"inspect", file.string()}, 0);
  expect_twice(dir_ / "json", {"inspect", file.string(), "--json", (dir_ / "out").string()}, 0);
}

TEST_F(Memory, OfAChecksumListIsTwiceItsTextAtMost) {
  const fs::path list = dir_ / "SHA256SUMS";
  write_lines(list, kLines, [](std::size_t i) {
    return fmt::format("{}  d{:03}/file-{:08}-of-many.dat\n", kDigest, i / 1000, i);
  });
  std::ofstream(list, std::ios::app) << kDigest << "  here.txt\n";
  expect_twice(list, {"verify", folder().string(), "--manifest", list.string(), "--quiet"}, 1);
  expect_twice(list,
               {"verify", folder().string(), "--manifest", list.string(), "--quiet", "--json",
                (dir_ / "out.json").string(), "--receipt", (dir_ / "r.json").string()},
               1);
}

// The shortest names that no longer fit into a string itself cost the most, beside their text.
TEST_F(Memory, OfAListOfNamesOf16LettersIsTwiceItsTextAtMost) {
  const fs::path list = dir_ / "SHA256SUMS";
  write_lines(list, 2 * kLines, [](std::size_t i) { return fmt::format("{}  file-{:08}.by\n", kDigest, i); });
  expect_twice(list, {"verify", folder().string(), "--manifest", list.string(), "--quiet"}, 1);
}

TEST_F(Memory, OfAChecksumListForOneFileIsItsTextAtMost) {
  const fs::path list = dir_ / "SHA256SUMS";
  write_lines(list, kLines, [](std::size_t i) {
    return fmt::format("{}  d{:03}/file-{:08}-of-many.dat\n", kDigest, i / 1000, i);
  });
  std::ofstream(list, std::ios::app) << kDigest << "  here.txt\n";
  expect_twice(list, {"verify", (folder() / "here.txt").string(), "--manifest", list.string()}, 1);
}

// One file of many chunks, and many files of one.
TEST_F(Memory, OfAChunkedManifestIsTwiceItsTextAtMost) {
  constexpr std::string_view kHead = R"({"schema": "assay.manifest/1", "chunk_bytes": 65536, "files": [)";
  const fs::path chunks = dir_ / "chunks.json", files = dir_ / "files.json";
  write_file(chunks, std::string(kHead) + R"({"name": "here.txt", "size": 19660800000, "sha256": ")" +
                         std::string(kDigest) + R"(", "chunks": [)");
  write_lines(
      chunks, kLines, [](std::size_t i) { return fmt::format("{}\"{}\"", i == 0 ? "" : ",", kDigest); },
      "]}]}");
  write_file(files, kHead);
  write_lines(
      files, kLines / 2,
      [](std::size_t i) {
        return fmt::format(
            R"({}{{"name":"d{:03}/file-{:08}-of-many.dat","size":7,"sha256":"{}","chunks":["{}"]}})",
            i == 0 ? "" : ",\n", i / 1000, i, kDigest, kDigest);
      },
      "]}");
  for (const fs::path& manifest : {chunks, files})
    expect_twice(manifest, {"verify", folder().string(), "--manifest", manifest.string(), "--quiet"}, 1);
}

// Above what a few files need: threads read many side by side.
TEST_F(Memory, OfAListWhoseFilesAreThereIsTwiceItsTextAtMost) {
  const fs::path list = dir_ / "SHA256SUMS";
  write_file(dir_ / "empty", "");
  write_lines(list, kLines,
              [](std::size_t i) { return fmt::format("{}  d{:03}/file-{:08}.dat\n", kDigest, i / 1000, i); });
  for (std::size_t i = 0; i < kLines; ++i) {
    const fs::path parent = folder() / fmt::format("d{:03}", i / 1000);
    if (i % 1000 == 0) fs::create_directory(parent);
    fs::create_hard_link(dir_ / "empty", parent / fmt::format("file-{:08}.dat", i));
  }
  expect_twice(list, {"verify", folder().string(), "--manifest", list.string(), "--quiet"}, 0);
}

TEST_F(Memory, OfAReceiptIsTwiceItsTextAtMost) {
  const fs::path receipt = dir_ / "r.json";
  const auto entry = [](std::size_t i) {
    return fmt::format(
        R"({}
    {{
      "name": "d{:03}/file-{:08}.dat",
      "status": "ok",
      "size": 1024,
      "mtime_ns": 1700000000000000000,
      "ctime_ns": 1700000000000000000,
      "inode": 12345678,
      "expected": "sha256:{}",
      "digest": "sha256:{}",
      "trust": "manifest",
      "trust_detail": "SHA256SUMS"
    }})",
        i == 0 ? "" : ",", i / 1000, i, kDigest, kDigest);
  };
  const std::string head = fmt::format(
      R"({{"schema": "assay.receipt/1", "verdict": "ok", "verified_unix": 1700000000,
  "source": {{"kind": "checksum manifest", "origin": "SHA256SUMS"}}, "commits": [""],
  "weights": {{"files": 0, "bytes": 0, "vouched_files": 0, "vouched_bytes": 0}},
  "scope": {{"root": "{}", "whole": true, "include": "", "exclude": "", "links": {{}}, "not_judged": []}},
  "files": [)",
      folder().string());
  std::ofstream(receipt) << head;
  {
    std::ofstream out(receipt, std::ios::app);
    for (std::size_t i = 0; i < kLines / 4; ++i) out << entry(i);
    out << "],\n  \"authentication\": {\"method\": \"hmac-sha256\", \"mac\": \"" << kDigest << "\"}}\n";
  }
  write_file(dir_ / "key", "0123456789abcdef");
  expect_twice(receipt,
               {"verify", folder().string(), "--check-receipt", receipt.string(), "--receipt-key",
                (dir_ / "key").string()},
               1);
}

}  // namespace
}  // namespace assay::test
