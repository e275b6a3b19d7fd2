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
  // The program writing to a pipe that nobody reads any more.
  ProcessResult into_closed_pipe(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"bash", "-c", "exec 3> >(true); wait $!; exec \"$@\" >&3", "bash", assay_binary()});
    return run(arguments);
  }
  TempDir dir_;
  const std::string tinylm_ = (source_dir() / "data/tinylm").string();
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

// '| head -1' has read what it wanted: no message, and the exit code is still the answer.
TEST_F(Streams, AReaderThatHasLeftIsNoError) {
  const std::string model = (dir_ / "m").string();
  const std::vector<std::vector<std::string>> commands = {{"inspect", tinylm_},
                                                          {"inspect", tinylm_, "--json", "-"},
                                                          {"paramcount", tinylm_, "--formulas"},
                                                          {"verify", model, "--sha256", "0"},
                                                          {"compare", "kernels", "--list"},
                                                          {"tokenize", tinylm_, "a b c"}};
  for (const auto& command : commands) {
    const int usual = assay(command).exit_code;
    const ProcessResult left = into_closed_pipe(command);
    EXPECT_EQ(left.exit_code, usual) << command[0];
    if (usual == 0) {
      EXPECT_EQ(left.err, "") << command[0];
    }
  }
  // Of what is made token by token, no more is made.
  const ProcessResult run = into_closed_pipe({"run", tinylm_, "-p", "a", "-n", "1000000", "--ignore-eos"});
  EXPECT_EQ(run.exit_code, 141);
}

}  // namespace
}  // namespace assay::test
