#include "core/system/threads.h"

#include "core/system/die_when_interrupted.h"
#include "core/system/stop_on_request.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <sched.h>
#include <csignal>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

namespace assay {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;
volatile std::sig_atomic_t g_signal = 0;  // that interrupted
volatile std::sig_atomic_t g_may_ask = 0, g_asked = 0;
std::atomic<int> g_deaf = 0;  // pieces of work that do not ask interrupted()

void end_by(int signal_number) {
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

void on_signal(int signal_number) {
  if (g_may_ask != 0 && g_asked == 0) {
    g_asked = 1;
    return;
  }
  if (g_interrupted != 0 || g_deaf.load(std::memory_order_relaxed) > 0) end_by(signal_number);
  g_signal = signal_number;
  g_interrupted = 1;
}

// cgroup v2: "max 100000" or "<quota> <period>"; 0 where there is no limit.
int quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || !(period > 0)) return 0;
  try {
    return std::max(1, static_cast<int>(std::stod(quota) / period));
  } catch (const std::exception&) {
    return 0;
  }
}

// Arenas live on: making one and gathering workers into it costs more than a small loop.
tbb::task_arena& arena_of(int jobs) {
  static std::mutex mutex;
  static std::map<int, tbb::task_arena> arenas;
  const std::lock_guard lock(mutex);
  return arenas.try_emplace(jobs, jobs).first->second;
}

}  // namespace

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = 1;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = std::max(1, CPU_COUNT(&set));
  const int quota = quota_cores();
  return quota > 0 ? std::min(cores, quota) : cores;
}

void parallel_for(int jobs, std::size_t count, const std::function<void(std::size_t)>& body) {
  if (jobs <= 1 || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  arena_of(jobs).execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::size_t>(0, count, 1),
        [&](const tbb::blocked_range<std::size_t>& range) {
          for (std::size_t i = range.begin(); i != range.end(); ++i) body(i);
        },
        tbb::simple_partitioner());
  });
}

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // The terminal is gone; nohup, which has it ignored, is obeyed.
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
    sigaction(SIGHUP, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // beyond 'ulimit -f' a write fails, as it does on a full disk
}

DieWhenInterrupted::DieWhenInterrupted() {
  g_deaf.fetch_add(1);
  // One that came just before would be looked for by nobody.
  if (g_interrupted != 0 && g_signal != 0) end_by(g_signal);
}
DieWhenInterrupted::~DieWhenInterrupted() {
  g_deaf.fetch_sub(1);
}

StopOnRequest::StopOnRequest() {
  g_asked = 0;
  g_may_ask = 1;
}
StopOnRequest::~StopOnRequest() {
  g_may_ask = 0;
}
bool asked_to_stop() {
  return g_asked != 0;
}

bool interrupted() {
  return g_interrupted != 0;
}
void set_interrupted(bool value) {
  g_interrupted = value ? 1 : 0;
}

}  // namespace assay
