#include "core/formats/lfs_pointer.h"

#include <filesystem>
#include <map>
#include <sstream>

#include "core/system/text.h"
#include "tests/support/support.h"

namespace assay {
namespace {

const std::string kOid = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";
const std::string kVersionLine = "version https://git-lfs.github.com/spec/v1\n";

std::string pointer(const std::string& size) {
  return kVersionLine + "oid sha256:" + kOid + "\nsize " + size + "\n";
}

TEST(LfsPointer, TheSpecificationsExample) {
  const auto parsed = parse_lfs_pointer(pointer("12345"));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->oid.hex(), kOid);
  EXPECT_EQ(parsed->size, 12345u);
  EXPECT_TRUE(parsed->canonical);
  EXPECT_EQ(parsed->checkout_digest(), parsed->oid);
  EXPECT_EQ(parsed->checkout_size(), 12345u);
  EXPECT_EQ(encode_lfs_pointer(*parsed), pointer("12345"));
}

// Files and classes of git-lfs's own tests.
TEST(LfsPointer, OddPointersOfGitLfs) {
  ASSAY_CASE_OR_SKIP(folder, "lfs/odd-pointers");
  std::istringstream lines(test::read_file(folder / "EXPECTED.tsv"));
  std::string line;
  std::getline(lines, line);  // titles
  std::map<std::string, int> seen;
  while (std::getline(lines, line)) {
    const auto tab = line.find('\t');
    const std::string name = line.substr(0, tab), rest = line.substr(tab + 1);
    const std::string kind = rest.substr(0, rest.find('\t'));
    SCOPED_TRACE(line);
    std::string why;
    const auto parsed = parse_lfs_pointer(test::read_file(folder / name), &why);
    ++seen[kind];
    if (kind == "invalid") {
      EXPECT_FALSE(parsed);
      EXPECT_FALSE(why.empty());
      continue;
    }
    ASSERT_TRUE(parsed) << why;
    EXPECT_EQ(parsed->canonical, kind == "canonical");
    if (kind.starts_with("extensions")) {
      ASSERT_EQ(parsed->extensions.size(), 3u);
      EXPECT_EQ(parsed->extensions[0].priority, 0);
      EXPECT_EQ(parsed->extensions[0].name, "foo");
      EXPECT_EQ(parsed->checkout_digest().hex(), std::string(64, 'f'));
      EXPECT_EQ(parsed->checkout_size(), std::nullopt);
    }
  }
  EXPECT_EQ(seen, (std::map<std::string, int>{{"canonical", 3},
                                              {"noncanonical", 4},
                                              {"invalid", 20},
                                              {"prerelease", 1},
                                              {"tiny_and_basic", 1},
                                              {"extensions", 1},
                                              {"extensions_sort", 1}}));
}

TEST(LfsPointer, TheEmptyFileIsItsOwnPointer) {
  const auto parsed = parse_lfs_pointer("");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->size, 0u);
  EXPECT_TRUE(parsed->canonical);
  EXPECT_EQ(parsed->oid.hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(encode_lfs_pointer(*parsed), "");
  // Written out, it is understood, but not the one encoding.
  const auto written = parse_lfs_pointer(pointer("0"));
  ASSERT_TRUE(written);
  EXPECT_FALSE(written->canonical);
  EXPECT_FALSE(parse_lfs_pointer("\n"));
}

TEST(LfsPointer, SizesAreWhatGoParses) {
  for (const char* size : {"+5", "007", "-0", "9223372036854775807"})
    EXPECT_TRUE(parse_lfs_pointer(pointer(size))) << size;
  EXPECT_FALSE(parse_lfs_pointer(pointer("007"))->canonical);
  for (const char* size :
       {"-1", "9223372036854775808", "18446744073709551616", "1e3", "0x10", "", "+", "--1", "1_000", "5 5"}) {
    EXPECT_FALSE(parse_lfs_pointer(pointer(size))) << size;
  }
}

TEST(LfsPointer, LimitsAndRefusals) {
  const std::string padding(1024 - pointer("12345").size(), '\n');
  EXPECT_FALSE(parse_lfs_pointer(pointer("12345") + padding));           // 1024 bytes
  EXPECT_TRUE(parse_lfs_pointer(pointer("12345") + padding.substr(1)));  // 1023
  std::string upper = pointer("12345");
  upper.replace(upper.find(kOid), 64, "4D7A214614AB2935C943F9E0FF69D22EADBB8F32B1258DAAA5E2CA24D17E2393");
  std::string why;
  EXPECT_FALSE(parse_lfs_pointer(upper, &why));
  EXPECT_EQ(why, "oid is not 64 lower-case hex digits");
  EXPECT_FALSE(parse_lfs_pointer(kVersionLine + "oid sha256:" + kOid, &why));
  EXPECT_EQ(why, "there is no size");
  EXPECT_FALSE(parse_lfs_pointer("{\"json\": true}", &why));
  EXPECT_FALSE(parse_lfs_pointer(std::string_view("\0\0\0\0", 4), &why));
  const std::string extension = "ext-1-a sha256:" + kOid + "\n";
  EXPECT_FALSE(
      parse_lfs_pointer(kVersionLine + extension + extension + pointer("1").substr(kVersionLine.size())));
}

TEST(LfsPointer, DeepSeekR1) {
  ASSAY_CASE_OR_SKIP(folder, "lfs/DeepSeek-R1");
  std::uint64_t total = 0;
  int pointers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const auto parsed = parse_lfs_pointer(test::read_file(entry.path()));
    ASSERT_TRUE(parsed) << entry.path();
    EXPECT_TRUE(parsed->canonical);
    total += parsed->size;
    ++pointers;
  }
  EXPECT_EQ(pointers, 163);
  EXPECT_EQ(total, 688'586'727'753u);
}

TEST(LfsPointer, Llama2Zig) {
  ASSAY_CASE_OR_SKIP(folder, "lfs/llama2.zig");
  std::map<std::string, std::uint64_t> sizes;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".pointer") continue;
    const auto parsed = parse_lfs_pointer(test::read_file(entry.path()));
    ASSERT_TRUE(parsed) << entry.path();
    sizes[entry.path().stem().string()] = parsed->size;
  }
  EXPECT_EQ(sizes, (std::map<std::string, std::uint64_t>{{"tinystories_110m_legacy.bin", 438381596},
                                                         {"tinystories_110m_tokenizer.bin", 433869},
                                                         {"tinystories_15m_legacy.bin", 60816028},
                                                         {"tinystories_15m_tokenizer.bin", 433869},
                                                         {"tinystories_260k_legacy.bin", 1056540},
                                                         {"tinystories_260k_tokenizer.bin", 6227},
                                                         {"tinystories_42m_legacy.bin", 167020572},
                                                         {"tinystories_42m_tokenizer.bin", 433869}}));
}

TEST(LfsPointer, AgreesWithGitLfs) {
  ASSAY_PROGRAM_OR_SKIP("git-lfs");
  const test::TempDir folder;
  test::write_file(folder / "weights.bin", "not really weights");
  const auto made = test::run({"git-lfs", "pointer", "--file=" + (folder / "weights.bin").string()},
                              {.directory = folder.path(), .environment = {}, .input = {}});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const auto parsed = parse_lfs_pointer(made.out);
  ASSERT_TRUE(parsed) << made.out;
  EXPECT_TRUE(parsed->canonical);
  EXPECT_EQ(parsed->size, 18u);
}

}  // namespace
}  // namespace assay
