#include "verify/hash/hasher.h"

#include <sys/resource.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "core/formats/hash/kernel_plan.h"
#include "verify/hash/read_pool.h"
#include "verify/hash/worker.h"

namespace assay {
namespace {

using sha256::KernelPlan;

constexpr std::uint64_t kWorthMeasuring = 64 << 20;  // below, hashing ends before a calibration has paid

struct Workload {
  std::vector<std::size_t> order;  // largest first
  std::uint64_t bytes = 0;
};

Workload survey(std::span<const HashJob> jobs) {
  std::vector<std::uint64_t> sizes(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(jobs[i].path, error);
    sizes[i] = error ? 0 : size;  // met again, and reported, when the file's turn comes
  }
  Workload work;
  for (const std::uint64_t size : sizes) work.bytes += size;
  work.order.resize(jobs.size());
  std::iota(work.order.begin(), work.order.end(), std::size_t{0});
  std::stable_sort(work.order.begin(), work.order.end(), [&](auto a, auto b) { return sizes[a] > sizes[b]; });
  return work;
}

KernelPlan choose_plan(std::string_view kernel, std::uint64_t bytes) {
  if (!kernel.empty()) return KernelPlan::only(kernel);
  return bytes > kWorthMeasuring ? KernelPlan::measured() : KernelPlan::typical();
}

// A lane holds up to two descriptors; some are left to the rest of the process.
std::size_t lanes_that_descriptors_allow() {
  constexpr rlim_t kReserve = 64;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
  return limit.rlim_cur > kReserve + 2 ? (limit.rlim_cur - kReserve) / 2 : 1;
}

}  // namespace

void hash_files(std::span<const HashJob> jobs, const HashOptions& options,
                const std::function<void(std::size_t, HashResult&&)>& done) {
  if (jobs.empty()) return;
  Workload work = survey(jobs);
  const KernelPlan plan = choose_plan(options.kernel, work.bytes);

  const std::size_t descriptors = lanes_that_descriptors_allow();
  const auto wanted = static_cast<std::size_t>(std::max(1, options.jobs));
  const std::size_t count = std::min({wanted, jobs.size(), descriptors});
  const std::size_t lanes =
      std::min({static_cast<std::size_t>(plan.lanes()), (jobs.size() + count - 1) / count,
                std::max<std::size_t>(1, descriptors / count)});

  Dealer dealer(std::move(work.order), count, lanes);
  Crew crew(jobs, options, done, plan, dealer);
  const auto wakeups = std::make_unique<Wakeup[]>(count);
  // Readers mostly sleep: enough of them to keep the drive's queue filled.
  ReadPool pool(std::clamp(2 * options.jobs, 8, 64));
  // Threads of our own rather than the shared pool's: they block on the disk.
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] { Worker(crew, pool, wakeups[i], i, lanes).run(); });
  }
  threads.clear();  // joins
  crew.rethrow_failure();
}

}  // namespace assay
