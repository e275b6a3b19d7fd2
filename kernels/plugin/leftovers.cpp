#include "kernels/plugin/leftovers.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <thread>

namespace assay {
namespace {

namespace fs = std::filesystem;

// A thread that was joined may still be listed for a moment: one that is on its way out is waited for.
constexpr int kLooks = 20;
constexpr std::chrono::milliseconds kBetweenLooks{5};

std::size_t threads_now() {
  std::error_code error;
  std::size_t count = 0;
  for (fs::directory_iterator it("/proc/self/task", error), end; !error && it != end; it.increment(error))
    ++count;
  return count;
}

// Running, or dead and not waited for.
bool has_child() {
  siginfo_t child = {};
  return waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace

Leftovers::Leftovers() : threads_(threads_now()) {}

std::optional<std::string> Leftovers::found(int pool) const {
  if (has_child()) return "the kernel returned and left a child process behind";
  const std::size_t allowed = threads_ + static_cast<std::size_t>(pool);
  std::size_t threads = threads_now();
  for (int look = 0; threads > allowed && look < kLooks; ++look) {
    std::this_thread::sleep_for(kBetweenLooks);
    threads = threads_now();
  }
  if (threads <= allowed) return std::nullopt;
  return fmt::format("the kernel returned and left {} threads behind, where a pool of {} may wait",
                     threads - threads_, pool);
}

}  // namespace assay
