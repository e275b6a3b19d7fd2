#include "verify/repair.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "core/system/error.h"
#include "tests/support/git.h"
#include "tests/support/support.h"

namespace assay {
namespace {

constexpr std::uint64_t kChunk = 65536;

std::string contents() {
  std::string text(10 * kChunk + 123, '\0');
  std::uint32_t state = 1;
  for (char& c : text) c = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return text;
}

class RepairTest : public ::testing::Test {
 protected:
  void SetUp() override {
    good_ = contents();
    test::write_file(dir_ / "good" / "f.bin", good_);
    test::write_file(dir_ / "copy.bin", good_);
    const auto made =
        test::assay({"manifest", (dir_ / "good").string(), "--chunks", "64KiB", "-o", manifest()});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  std::string manifest() const { return (dir_ / "m.json").string(); }
  std::string file() const { return (dir_ / "f.bin").string(); }
  std::string copy() const { return (dir_ / "copy.bin").string(); }
  void damage(std::string bytes, const std::vector<std::uint64_t>& at) {
    for (const std::uint64_t offset : at) bytes[offset] = static_cast<char>(bytes[offset] ^ 1);
    test::write_file(file(), bytes);
  }
  test::ProcessResult repair(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"repair", file(), "--from", copy(), "--manifest", manifest()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::assay(arguments);
  }
  // Nothing but the files we made: no temporary is left behind.
  void expect_clean() const { EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), {}), 4); }

  test::TempDir dir_;
  std::string good_;
};

TEST_F(RepairTest, PatchesOnlyTheDamagedRanges) {
  damage(good_, {5, 3 * kChunk, 4 * kChunk + 1});
  ASSERT_EQ(::chmod(file().c_str(), 0640), 0);
  // The copy is damaged too, elsewhere: only the ranges that are needed are taken from it.
  std::string other = good_;
  other[7 * kChunk] = static_cast<char>(~other[7 * kChunk]);
  test::write_file(copy(), other);
  const auto planned = repair({"--dry-run"});
  EXPECT_EQ(planned.exit_code, 1);
  EXPECT_TRUE(planned.out.starts_with("0-65535\n196608-327679\n")) << planned.out;
  const auto result = repair();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(test::read_file(file()), good_);
  EXPECT_EQ(fs::status(file()).permissions(), fs::perms(0640));
  EXPECT_NE(result.out.find("REPAIRED"), std::string::npos);
  expect_clean();
  EXPECT_NE(repair().out.find("nothing to repair"), std::string::npos);
}

// The ranges are for `curl -r`: what it fetches of the good file makes the damaged one whole.
TEST_F(RepairTest, NamesRangesAsCurlTakesThem) {
  ASSAY_PROGRAM_OR_SKIP("curl");
  damage(good_, {2 * kChunk, 10 * kChunk + 122});
  const auto json = nlohmann::json::parse(repair({"--dry-run", "--json", "-"}).out);
  std::string bytes = test::read_file(file());
  for (const std::string range : json["ranges"]) {
    const auto fetched =
        test::run({"curl", "-s", "-r", range, "file://" + (dir_ / "good" / "f.bin").string()});
    ASSERT_EQ(fetched.exit_code, 0);
    const std::size_t begin = std::stoull(range);
    bytes.replace(begin, fetched.out.size(), fetched.out);
  }
  EXPECT_EQ(test::sha256sum(bytes), test::sha256sum(good_));
}

TEST_F(RepairTest, MendsLength) {
  damage(good_.substr(0, 4 * kChunk + 17), {});
  EXPECT_EQ(repair().exit_code, 0);
  EXPECT_EQ(test::read_file(file()), good_);
  damage(good_ + std::string(100000, 'x'), {1});
  EXPECT_EQ(repair().exit_code, 0);
  EXPECT_EQ(test::read_file(file()), good_);
  damage("", {});
  EXPECT_EQ(repair().exit_code, 0);
  EXPECT_EQ(test::read_file(file()), good_);
}

TEST_F(RepairTest, RefusesACopyThatIsBadThere) {
  damage(good_, {3 * kChunk});
  const std::string before = test::read_file(file());
  std::string other = good_;
  other[3 * kChunk + 9] = static_cast<char>(~other[3 * kChunk + 9]);
  for (const std::string& bad : {other, good_.substr(0, 3 * kChunk + 5), std::string()}) {
    test::write_file(copy(), bad);
    const auto result = repair();
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find("196608-262143"), std::string::npos) << result.err;
    EXPECT_EQ(test::read_file(file()), before);
  }
  expect_clean();
}

TEST_F(RepairTest, WorksWithTheDigestAlone) {
  damage(good_, {12345, 9 * kChunk});
  const std::string before = test::read_file(file());
  const std::string sha256 = test::sha256sum(good_);
  std::string other = good_;
  other[0] = static_cast<char>(~other[0]);
  test::write_file(copy(), other);
  const auto refused = test::assay({"repair", file(), "--from", copy(), "--sha256", sha256});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(test::read_file(file()), before);
  test::write_file(copy(), good_);
  const auto mended = test::assay({"repair", file(), "--from", copy(), "--sha256", sha256});
  EXPECT_EQ(mended.exit_code, 0) << mended.err;
  EXPECT_EQ(test::read_file(file()), good_);
  expect_clean();
}

TEST_F(RepairTest, RefusesItself) {
  damage(good_, {0});
  fs::create_hard_link(file(), dir_ / "same");
  EXPECT_EQ(
      test::assay({"repair", file(), "--from", (dir_ / "same").string(), "--manifest", manifest()}).exit_code,
      1);
  EXPECT_EQ(test::assay({"repair", file(), "--from", file(), "--manifest", manifest()}).exit_code, 1);
  EXPECT_EQ(test::assay({"repair", file(), "--from", copy()}).exit_code, 2);  // nobody says what it should be
}

// In a hub cache the name is a link: the blob is mended, and the link stays one.
TEST_F(RepairTest, MendsWhatALinkPointsTo) {
  const std::string blob = test::sha256sum(good_);
  const fs::path repository = dir_ / "models--o--n";
  std::string bad = good_;
  bad[kChunk] = static_cast<char>(~bad[kChunk]);
  test::write_file(repository / "blobs" / blob, bad);
  const fs::path snapshot = repository / "snapshots" / std::string(40, '1');
  fs::create_directories(snapshot);
  fs::create_symlink("../../blobs/" + blob, snapshot / "f.bin");
  const auto result = test::assay({"repair", (snapshot / "f.bin").string(), "--from", copy()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::is_symlink(snapshot / "f.bin"));
  EXPECT_EQ(test::read_file(repository / "blobs" / blob), good_);
}

}  // namespace
}  // namespace assay
