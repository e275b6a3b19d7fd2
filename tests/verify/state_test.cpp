// `--state`: what a later run may believe, and what it costs to keep.
#include "verify/state.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/system/error.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using nlohmann::json;

const std::string kDigest(64, 'a');

StateEntry entry(std::uint64_t inode) {
  return {.identity = {.device = 1, .inode = inode, .size = 3, .mtime_ns = -5, .ctime_ns = 7},
          .digest = *Digest::parse(DigestKind::sha256, kDigest),
          .tensors = R"([{"name":"a\"b","nan":0}])",
          .numbers = true,
          .tensor_digests = false};
}

TEST(StateFile, IsReadAsItWasWritten) {
  const test::TempDir dir;
  const StateEntries entries = {{"/m/odd \"name\"\n#sha256", entry(1)}, {"/m/b#sha256", entry(2)}};
  write_state_file(dir / "s", entries);
  EXPECT_EQ(json::parse(test::read_file(dir / "s")).at("files").size(), 2u) << "it is JSON to others too";
  const StateEntries read = read_state_file(dir / "s");
  ASSERT_EQ(read.size(), 2u);
  const StateEntry& one = read.at("/m/odd \"name\"\n#sha256");
  EXPECT_EQ(one.identity, entry(1).identity);
  EXPECT_EQ(one.digest, entry(1).digest);
  EXPECT_EQ(one.tensors, entry(1).tensors);
  EXPECT_TRUE(one.numbers);
  EXPECT_FALSE(one.tensor_digests);
}

TEST(StateFile, RefusesWhatIsNone) {
  const test::TempDir dir;
  const std::string good = R"({"device":1,"inode":2,"size":3,"mtime_ns":4,"ctime_ns":5,"digest":")" + kDigest;
  for (const std::string& text :
       {std::string("{}"), std::string("[]"), std::string("{\"schema\":\"assay.verify-state/1\"}"),
        std::string("{\"schema\":\"other\",\"files\":{}}"),
        std::string("{\"schema\":\"assay.verify-state/1\",\"files\":[]}"),
        "{\"schema\":\"assay.verify-state/1\",\"files\":{\"a#sha256\":" + good + "0\"}}}",
        std::string("{\"schema\":\"assay.verify-state/1\",\"files\":{\"a#sha256\":{\"device\":1}}}"),
        "{\"schema\":\"assay.verify-state/1\",\"files\":{\"a#sha256\":" + good + "\"},\"a#sha256\":" + good +
            "\"}}}"}) {
    test::write_file(dir / "s", text);
    EXPECT_THROW(read_state_file(dir / "s"), Error) << text;
  }
  test::write_file(dir / "s",
                   "{\"schema\":\"assay.verify-state/1\",\"files\":{\"a#sha256\":" + good + "\"}}}");
  EXPECT_EQ(read_state_file(dir / "s").size(), 1u);
}

class StateRun : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_file(dir_ / "m/f.bin", contents_);
    ::usleep(50'000);  // files touched this very moment are never trusted
  }
  std::uint64_t bytes_read() {
    const auto result = test::assay({"verify", (dir_ / "m/f.bin").string(), "--sha256", kDigest, "--state",
                                     (dir_ / "state").string(), "--json", "-"});
    return json::parse(result.out).at("summary").at("bytes");
  }
  std::string contents_ = std::string(5000, 'x');
  test::TempDir dir_;
};

// The page is dirty already: writing to it again changes no time stamp.
TEST_F(StateRun, AFileMappedForWritingIsReadAgain) {
  EXPECT_EQ(bytes_read(), contents_.size());
  EXPECT_EQ(bytes_read(), 0u);
  const int descriptor = ::open((dir_ / "m/f.bin").c_str(), O_RDWR | O_CLOEXEC);
  void* const map = ::mmap(nullptr, contents_.size(), PROT_WRITE, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  ASSERT_NE(map, MAP_FAILED);
  static_cast<char*>(map)[0] = 'y';
  ::usleep(50'000);
  if (!is_open_for_writing(dir_ / "m/f.bin")) GTEST_SKIP() << "SKIPPED: this file system gives no leases";
  EXPECT_EQ(bytes_read(), contents_.size());
  EXPECT_EQ(bytes_read(), contents_.size()) << "believed while somebody could still write to it";
  ::munmap(map, contents_.size());
  EXPECT_EQ(bytes_read(), contents_.size());
  EXPECT_EQ(bytes_read(), 0u);
}

TEST_F(StateRun, AFullDiskIsAWarning) {
  const auto digest = test::run({"sha256sum", (dir_ / "m/f.bin").string()}).out.substr(0, 64);
  const auto result =
      test::run({"sh", "-c", "ulimit -f 0; exec \"$@\"", "sh", test::assay_binary(), "verify",
                 (dir_ / "m/f.bin").string(), "--sha256", digest, "--state", (dir_ / "state").string()});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("state: could not be written"), std::string::npos) << result.out;
  EXPECT_FALSE(fs::exists(dir_ / "state"));
}

}  // namespace
}  // namespace assay
