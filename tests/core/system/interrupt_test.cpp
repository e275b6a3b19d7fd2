// Signals: which of them stop the work in good order, and which end the process at once.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "core/system/die_when_interrupted.h"
#include "core/system/threads.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

// Runs `body` in a process of its own; its exit code, or 128 + the signal that ended it.
template <typename Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(interrupted() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Interrupt, TheFirstSignalIsAFlagAndTheSecondTheEnd) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const auto send = [signal](int times) {
      std::signal(signal, SIG_DFL);  // whatever the test was started under
      install_interrupt_handler();
      for (int i = 0; i < times; ++i) ::raise(signal);
    };
    EXPECT_EQ(in_child([&] { send(1); }), 1) << signal;
    EXPECT_EQ(in_child([&] { send(2); }), 128 + signal) << signal;
  }
}

TEST(Interrupt, NohupIsObeyed) {
  EXPECT_EQ(in_child([] {
              std::signal(SIGHUP, SIG_IGN);
              install_interrupt_handler();
              ::raise(SIGHUP);
            }),
            0);
}

TEST(Interrupt, WorkThatCannotAskIsEndedAtOnce) {
  EXPECT_EQ(in_child([] {
              std::signal(SIGTERM, SIG_DFL);
              install_interrupt_handler();
              const DieWhenInterrupted deaf;
              ::raise(SIGTERM);
            }),
            128 + SIGTERM);
}

TEST(Interrupt, SoIsWorkThatBeginsJustBehindTheSignal) {
  EXPECT_EQ(in_child([] {
              std::signal(SIGTERM, SIG_DFL);
              install_interrupt_handler();
              ::raise(SIGTERM);
              const DieWhenInterrupted deaf;
            }),
            128 + SIGTERM);
}

// A pattern that backtracks without end: the program listens all the same.
TEST(Interrupt, ARunawayPatternCanBeStopped) {
  ASSAY_PROGRAM_OR_SKIP("timeout");
  const test::TempDir dir;
  test::write_file(dir / (std::string(200, 'a') + "!"), "x");
  const auto result = test::run({"timeout", "-k", "20", "-s", "TERM", "0.3", test::assay_binary(), "verify",
                                 dir.path().string(), "--include", "^(a+)+$"});
  EXPECT_EQ(result.exit_code, 124) << "137: had to be killed";
}

}  // namespace
}  // namespace assay
