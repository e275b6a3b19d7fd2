// Programs that run beside a test, and end by themselves or are killed.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {

using BesideClock = std::chrono::steady_clock;
inline constexpr double kNoHang = 10;  // seconds

// A program beside us: its words, and files for what it says.
class Beside {
 public:
  Beside(const std::vector<std::string>& words, const fs::path& out, const fs::path& err)
      : out_(out), err_(err) {
    std::vector<std::string> all = words;
    process_ = ::fork();
    if (process_ != 0) return;
    const int to = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int errors = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(to, STDOUT_FILENO);
    ::dup2(errors, STDERR_FILENO);
    std::vector<char*> pointers;
    for (std::string& argument : all) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    ::execvp(pointers[0], pointers.data());
    ::_exit(127);
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;
  ~Beside() {
    if (process_ <= 0) return;
    kill();
    wait(kNoHang);
  }
  void kill() const {
    if (process_ > 0) ::kill(process_, SIGKILL);
  }
  // Its exit code; -1: it goes on.
  int wait(double seconds) {
    const auto until = BesideClock::now() + std::chrono::duration<double>(seconds);
    for (int status = 0; BesideClock::now() < until;) {
      if (::waitpid(process_, &status, WNOHANG) == process_) {
        process_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    return -1;
  }
  // What it started and lives; of a launcher its ranks.
  std::vector<pid_t> children() const {
    std::vector<pid_t> pids;
    std::error_code gone;
    for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(process_) + "/task", gone)) {
      std::ifstream list(task.path() / "children");
      for (pid_t pid = 0; list >> pid;)
        if (lives(pid)) pids.push_back(pid);
    }
    return pids;
  }
  std::string out() const { return fs::exists(out_) ? read_file(out_) : ""; }
  std::string err() const { return fs::exists(err_) ? read_file(err_) : ""; }

 private:
  // Not one that nobody has waited for yet: "PID (NAME) STATE …".
  static bool lives(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    if (!std::getline(file, line)) return false;
    const std::size_t name_ends = line.rfind(')');
    return name_ends != std::string::npos && name_ends + 2 < line.size() && line[name_ends + 2] != 'Z';
  }
  fs::path out_, err_;
  pid_t process_ = -1;
};

inline std::size_t files_in(const fs::path& folder) {
  if (!fs::exists(folder)) return 0;
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace assay::test
