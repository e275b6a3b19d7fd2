// Standard streams that are full or closed: messages are lost, nothing else is.
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

class Streams : public ::testing::Test {
 protected:
  void SetUp() override { write_file(dir_ / "m/f.bin", "weights"); }
  // The program under a shell that redirects its streams.
  ProcessResult redirected(const std::string& redirection, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"sh", "-c", "exec \"$@\" " + redirection, "sh", assay_binary()});
    return run(arguments);
  }
  TempDir dir_;
};

TEST_F(Streams, AnErrorThatCannotBeToldKeepsItsExitCode) {
  const std::string model = (dir_ / "m").string();
  const std::vector<std::vector<std::string>> commands = {
      {"verify", "/nonexistent"},
      {"verify", model, "--progress", "always"},
      {"verify", model, "--sha256", "x"},
      {"manifest", model, "--hash", "--progress", "always"},
      {"manifest", model},
      {"inspect", "/nonexistent"},
      {"repair", "/nonexistent", "--from", model},
      {"check", "/nonexistent"},
      {"run", "/nonexistent", "-p", "x"},
      {"compare", "kernels", "--list"},
      {"no-such-command"},
  };
  for (const auto& command : commands) {
    const int usual = assay(command).exit_code;
    EXPECT_LE(usual, 3);
    EXPECT_EQ(redirected("2>/dev/full", command).exit_code, usual) << command[0];
    EXPECT_EQ(redirected("2>&-", command).exit_code, usual) << command[0];
    EXPECT_EQ(redirected("2>&- <&-", command).exit_code, usual) << command[0];
  }
}

// A closed descriptor 2 is the first that open() hands out again.
TEST_F(Streams, MessagesDoNotEndUpInFiles) {
  const std::vector<std::string> command = {"manifest", (dir_ / "m").string(), "--hash", "-o",
                                            (dir_ / "SUMS").string()};
  ASSERT_EQ(assay(command).exit_code, 0);
  const std::string usual = read_file(dir_ / "SUMS");
  for (const char* closed : {"2>&-", ">&- 2>&-", "<&- >&- 2>&-"}) {
    fs::remove(dir_ / "SUMS");
    redirected(closed, command);
    EXPECT_EQ(read_file(dir_ / "SUMS"), usual) << closed;
  }
}

TEST_F(Streams, AClosedStandardOutputIsAnError) {
  EXPECT_EQ(redirected(">&-", {"verify", (dir_ / "m").string()}).exit_code, 2);
  EXPECT_EQ(redirected(">/dev/full", {"verify", (dir_ / "m").string()}).exit_code, 2);
}

}  // namespace
}  // namespace assay::test
