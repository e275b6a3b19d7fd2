// A progress line on stderr: bytes (or things counted one by one), rate, time left. Silent unless asked for or on a
// terminal.
//
//   [=========>          ] 310.2 GB / 688.6 GB  45%  3.10 GB/s  2m02s left  model-00074-of-000163.safetensors
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace assay {

enum class ProgressMode { automatic, always, never };  // --progress auto|always|never
enum class ProgressUnit { bytes, ones };

class Progress {
 public:
  Progress(ProgressMode mode, std::string_view verb, std::uint64_t total,
           ProgressUnit unit = ProgressUnit::bytes);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // erases the line

  void add(std::uint64_t count) { done_.fetch_add(count, std::memory_order_relaxed); }
  void item(std::string_view name);  // what is being worked on; shown at the end of the line
  bool shown() const { return shown_; }
  // Prints `line` on stdout without tearing the progress line.
  void print_above(std::string_view line);

 private:
  void draw();
  std::string verb_;
  std::uint64_t total_;
  ProgressUnit unit_;
  bool shown_;
  std::atomic<std::uint64_t> done_{0};
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::string item_;
  std::jthread painter_;
};

}  // namespace assay
