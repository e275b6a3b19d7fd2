#include "core/formats/hash/hasher.h"

#include <sys/resource.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "core/formats/hash/kernel_plan.h"
#include "core/formats/hash/read_pool.h"
#include "core/formats/hash/worker.h"

namespace assay {
namespace {

using sha256::KernelPlan;

constexpr std::uint64_t kWorthMeasuring = 64 << 20;  // below, hashing ends before a calibration has paid

struct Workload {
  std::vector<std::uint32_t> order;  // largest first
  std::uint64_t bytes = 0;
};

Workload survey(const HashJobs& jobs) {
  Workload work;
  for (std::size_t i = 0; i < jobs.count; ++i) work.bytes += jobs.size(i);
  work.order.resize(jobs.count);
  std::iota(work.order.begin(), work.order.end(), std::uint32_t{0});
  std::sort(work.order.begin(), work.order.end(), [&](auto a, auto b) {
    const std::uint64_t first = jobs.size(a), second = jobs.size(b);
    return first != second ? first > second : a < b;
  });
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
  std::vector<std::uint64_t> sizes(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::error_code error;
    const std::uintmax_t size = jobs[i].size ? *jobs[i].size : fs::file_size(jobs[i].path, error);
    sizes[i] = error ? 0 : size;  // met again, and reported, when the file's turn comes
  }
  const HashJobs listed{.count = jobs.size(),
                        .size = [&](std::size_t i) { return sizes[i]; },
                        .job = [&](std::size_t i) { return jobs[i]; }};
  hash_jobs(listed, options, done);
}

void hash_jobs(const HashJobs& jobs, const HashOptions& options,
               const std::function<void(std::size_t, HashResult&&)>& done) {
  if (jobs.count == 0) return;
  Workload work = survey(jobs);
  const KernelPlan plan = choose_plan(options.kernel, work.bytes);

  const std::size_t descriptors = lanes_that_descriptors_allow();
  const auto wanted = static_cast<std::size_t>(std::max(1, options.jobs));
  const std::size_t count = std::min({wanted, jobs.count, descriptors});
  const std::size_t lanes =
      std::min({static_cast<std::size_t>(plan.lanes()), (jobs.count + count - 1) / count,
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
