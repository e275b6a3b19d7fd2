// A process of our own program that runs a plugin, and what becomes of it. Whatever it does (crash, exit,
// hang, fill memory, write nonsense) ends up as an Ending; nothing of it reaches us but checked frames.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/plugin/message.h"

namespace assay {

inline constexpr double kLoadSeconds = 5;

struct PluginLimits {
  // An answer of a kernel may take so long; loading the library kLoadSeconds at least, however busy the machine.
  double seconds = 60;
  std::uint64_t memory = std::uint64_t{4} << 30;     // bytes on top of what it starts with; 0: any
  std::filesystem::path program = "/proc/self/exe";  // that knows `plugin-worker`
};

// Why there is no answer.
struct Ending {
  std::string check;   // "crash", "exit", "timeout", "answer", "interrupted"
  std::string detail;  // "killed by SIGSEGV, behind the end of memory that was operand to it"
};
using Answer = std::variant<std::vector<std::byte>, Ending>;

class PluginProcess {
 public:
  // Throws Error::io where no process can be started.
  PluginProcess(const std::filesystem::path& library, const PluginLimits& limits);
  PluginProcess(const PluginProcess&) = delete;
  PluginProcess& operator=(const PluginProcess&) = delete;
  ~PluginProcess();  // kills it, and all that it started in its group

  // The body of the answer, which must be of kind `expected`, or `otherwise`. After an Ending it is dead.
  struct Reply {
    message::Kind kind{};
    Answer answer;
  };
  Reply ask(message::Kind kind, std::span<const std::byte> body, message::Kind expected,
            std::optional<message::Kind> otherwise = {});
  bool alive() const { return alive_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Read { done, late, gone, interrupted };
  Read receive(std::span<std::byte> into, Clock::time_point deadline);
  // In pieces, so that a length that lies costs no more memory than was really sent.
  Read receive_body(std::uint64_t length, std::vector<std::byte>& body, Clock::time_point deadline);
  Read exchange(message::Kind kind, std::span<const std::byte> body, double allowed, message::Header& header,
                std::vector<std::byte>& answer);
  void take_output();
  Ending ended(Read why, double allowed);
  Ending died();
  void kill_group();

  PluginLimits limits_;
  int pid_ = -1, socket_ = -1, output_ = -1, watch_ = -1;  // watch_: readable when it is dead
  bool alive_ = true, dead_seen_ = false;
  std::string last_words_;  // the end of what it printed
  std::string note_;        // of a fatal signal
};

}  // namespace assay
