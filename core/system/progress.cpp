#include "core/system/progress.h"
#include "core/system/message.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "core/system/text.h"

namespace assay {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(150);
constexpr int kBarWidth = 20;

bool wants(ProgressMode mode) {
  return mode == ProgressMode::always || (mode == ProgressMode::automatic && ::isatty(STDERR_FILENO) != 0);
}

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 100;
}

}  // namespace

Progress::Progress(ProgressMode mode, std::string_view verb, std::uint64_t total, ProgressUnit unit)
    : verb_(verb), total_(total), unit_(unit), shown_(wants(mode)) {
  if (!shown_) return;
  painter_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(kInterval);
      const std::lock_guard lock(mutex_);
      draw();
    }
  });
}

Progress::~Progress() {
  if (!shown_) return;
  painter_.request_stop();
  painter_.join();
  draw();
  write_unfinished("\r\x1b[K");
}

void Progress::item(std::string_view name) {
  if (!shown_) return;
  const std::lock_guard lock(mutex_);
  item_ = escape_for_terminal(name);
}

void Progress::print_above(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (shown_) {
    write_unfinished("\r\x1b[K");
  }
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
  if (shown_) std::fflush(stdout);
}

void Progress::draw() {
  const std::uint64_t done = done_.load(std::memory_order_relaxed);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const double share =
      total_ > 0 ? std::min(1.0, static_cast<double>(done) / static_cast<double>(total_)) : 0;
  const double left = rate > 0 ? (static_cast<double>(total_) - static_cast<double>(done)) / rate : 0;
  const auto shown = [&](std::uint64_t count) {
    return unit_ == ProgressUnit::bytes ? human_bytes(count) : with_thousands(count);
  };
  const std::string speed = unit_ == ProgressUnit::bytes ? human_bytes(static_cast<std::uint64_t>(rate))
                                                         : fmt::format("{:.1f}", rate);
  const auto filled = static_cast<std::size_t>(share * kBarWidth);
  std::string line =
      fmt::format("{} [{:<{}}] {} / {}  {:.0f}%  {}/s  {} left  {}", verb_,
                  std::string(filled, '=') + (filled < kBarWidth ? ">" : ""), kBarWidth, shown(done),
                  shown(total_), share * 100, speed, human_duration(std::max(0.0, left)), item_);
  const std::size_t width = terminal_width() - 1;
  if (line.size() > width) line.resize(width);
  write_unfinished(fmt::format("\r\x1b[K{}", line));
}

}  // namespace assay
