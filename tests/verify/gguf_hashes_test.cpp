// Manifests of tensors' digests as gguf-hash writes them (data/make_store_fixtures.py): what agrees is consistent, no more;
// what differs is named.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/support.h"
#include "verify/claims/xxh64.h"

namespace assay::test {
namespace {

class GgufHashes : public ::testing::Test {
 protected:
  void SetUp() override { fs::copy_file(fixtures() / "small.gguf", file()); }
  static fs::path fixtures() { return source_dir() / "data" / "fixtures" / "stores"; }
  fs::path file() const { return dir_ / "small.gguf"; }
  ProcessResult verify(const fs::path& manifest, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"verify", file(), "--manifest", manifest};
    words.insert(words.end(), more.begin(), more.end());
    return assay(words);
  }
  ProcessResult verify_written(const std::string& manifest) const {
    write_file(dir_ / "hashes", manifest);
    return verify(dir_ / "hashes");
  }
  static bool says(const ProcessResult& result, std::string_view words) {
    return (result.out + result.err).find(words) != std::string::npos;
  }
  TempDir dir_;
};

TEST_F(GgufHashes, OfBothProgramsAgree) {
  const auto result = verify(fixtures() / "small.gguf.manifest");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (const char* what : {"SHA-256 of 3 tensors", "SHA-1 of 3 tensors", "XXH64 of 3 tensors",
                           "XXH64 of all its tensors", "SHA-256 of all its tensors", "WELL FORMED"})
    EXPECT_TRUE(says(result, what)) << what << result.out;
  const auto by_gguf = verify(fixtures() / "small.gguf.gguf-py");
  EXPECT_EQ(by_gguf.exit_code, 0) << by_gguf.out << by_gguf.err;
  EXPECT_TRUE(says(by_gguf, "UUID of all its tensors")) << by_gguf.out;
}

// Metadata is not in it: nobody vouches for the file.
TEST_F(GgufHashes, AreNoDigestOfTheFile) {
  EXPECT_EQ(verify(fixtures() / "small.gguf.manifest", {"--require-digests"}).exit_code, 1);
}

TEST_F(GgufHashes, NameTheTensorThatDiffers) {
  std::string bytes = read_file(file());
  bytes[bytes.size() - 30] =
      static_cast<char>(bytes[bytes.size() - 30] ^ 1);  // the last tensor has 20 bytes and padding
  write_file(file(), bytes);
  for (const char* manifest : {"small.gguf.manifest", "small.gguf.gguf-py"}) {
    const auto result = verify(fixtures() / manifest);
    EXPECT_EQ(result.exit_code, 1) << result.out;
    EXPECT_TRUE(says(result, "small.gguf: FAILED") && says(result, "tensor blk.2.attn_q.weight is not what"))
        << result.out;
  }
  const auto folder =
      assay({"verify", dir_.path().string(), "--no-git", "--manifest", fixtures() / "small.gguf.manifest"});
  EXPECT_EQ(folder.exit_code, 1) << folder.out;
}

TEST_F(GgufHashes, TensorsThatAreNotThere) {
  const std::string digits(64, '0');
  const auto result = verify_written("sha256    " + digits + "  small.gguf:blk.9.none\n");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(says(result, "blk.9.none") && says(result, "3 of its 3 tensors are not in hashes"))
      << result.out;
}

TEST_F(GgufHashes, MalformedAndHostileLines) {
  EXPECT_EQ(verify_written("sha256  " + std::string(63, '0') + "  small.gguf\n").exit_code, 2)
      << "no such manifest";
  const std::string good = "xxh64     " + std::string(16, '0') + "  small.gguf\n";
  EXPECT_EQ(verify_written(good).exit_code, 1);
  EXPECT_TRUE(says(verify_written(good + "sha1      00  small.gguf\n"), "its digits are none"));
  verify_written(good + "nonsense\n");
  EXPECT_TRUE(says(assay({"verify", dir_.path().string(), "--no-git", "--manifest", dir_ / "hashes"}),
                   "has a line that is no hash"));
  EXPECT_EQ(verify_written("xxh3      " + std::string(16, '0') + "  small.gguf\n").exit_code, 2);
  // Folders in front of a name are those of the machine that made it: no path is followed.
  EXPECT_EQ(verify_written("xxh64     " + std::string(16, '0') + "  ../../small.gguf\n").exit_code, 1);
  EXPECT_EQ(verify_written("xxh64     " + std::string(16, '0') + "  ../..\n").exit_code, 2);
}

TEST(Xxh64, OfEveryLength) {
  std::string pattern;
  for (int i = 0; i < 256; ++i) pattern += static_cast<char>(i * 7 % 251);
  std::istringstream lines(read_file(source_dir() / "data" / "fixtures" / "stores" / "xxh64.txt"));
  std::string expected;
  for (std::size_t n = 0; std::getline(lines, expected); ++n) {
    const auto bytes = std::as_bytes(std::span(pattern)).first(n);
    for (const std::size_t cut : {std::size_t{0}, n / 3, n / 2, n}) {
      Xxh64 hash;
      hash.update(bytes.first(cut));
      hash.update(bytes.subspan(cut));
      char digits[17];
      std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash.finish()));
      EXPECT_EQ(digits, expected) << n << " bytes, cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace assay::test
