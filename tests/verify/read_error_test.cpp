// A file whose disk gives up in the middle of it: the verdict names the byte.
#include "core/system/sanitizer.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

ProcessResult with_bad_byte(std::vector<std::string> arguments, const std::string& name, std::uint64_t byte) {
  const fs::path library = plugin_dir().parent_path() / "preload/failing_reads.so";
  return assay(std::move(arguments),
               {.environment = {"LD_PRELOAD=" + library.string(), "ASSAY_BAD_FILE=/" + name,
                                "ASSAY_BAD_BYTE=" + std::to_string(byte)}});
}

TEST(ReadError, IsNamedWithItsOffset) {
  if (kSanitized) GTEST_SKIP() << "SKIPPED: the sanitizer's own library has to come first";
  const TempDir dir;
  const std::string weights(20u << 20, 'w');
  write_file(dir / "m/model.bin", weights);
  write_file(dir / "m/small.bin", weights.substr(0, 100'000));
  write_file(dir / "m/tiny.txt", "tiny");
  const ProcessResult sums = run({"sh", "-c", "sha256sum *"}, {.directory = dir / "m"});
  write_file(dir / "SUMS", sums.out);
  const std::vector<std::string> verify = {"verify", (dir / "m").string(), "--manifest",
                                           (dir / "SUMS").string()};
  ASSERT_EQ(with_bad_byte(verify, "no such file", 0).exit_code, 0);

  const auto expect_named = [&](std::vector<std::string> arguments, const std::string& name,
                                std::uint64_t byte) {
    const ProcessResult result = with_bad_byte(arguments, name, byte);
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    EXPECT_NE(result.out.find(name + ": FAILED open or read\n"), std::string::npos) << result.out;
    EXPECT_NE(result.out.find(name + " cannot read: Input/output error at byte " + std::to_string(byte)),
              std::string::npos)
        << result.out;
    EXPECT_NE(result.out.find("1 unreadable, of 3 files"), std::string::npos) << "the others are verified";
  };
  for (const char* jobs : {"1", "4"}) {
    std::vector<std::string> arguments = verify;
    arguments.insert(arguments.end(), {"-j", jobs});
    expect_named(arguments, "model.bin", 17'000'001);
    expect_named(arguments, "model.bin", 70'000);
    expect_named(arguments, "small.bin", 65'536);
    expect_named(arguments, "small.bin", 99'999);
    expect_named(arguments, "tiny.txt", 0);
  }
}

}  // namespace
}  // namespace assay::test
