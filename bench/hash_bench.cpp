// How fast this machine hashes.
//
//   hash_bench kernels                            GB/s of every SHA-256 kernel, and what would run for 1 … 16
//   lanes hash_bench files [-j N] [-k KERNEL] [--keep-cache] FILE…    as sha256sum, with the rate on stderr
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/formats/hash/hasher.h"
#include "core/formats/hash/kernel_plan.h"
#include "core/system/threads.h"

namespace {

using assay::sha256::KernelPlan;

constexpr double kGiga = 1e9;

int bench_kernels() {
  for (const auto& kernel : assay::sha256::kernels()) {
    fmt::print("{:<11} {:2} lanes  {:.2f} GB/s\n", kernel.name, kernel.lanes,
               assay::sha256::measure_rate(kernel, 64 << 10, 200));
  }
  const KernelPlan& plan = KernelPlan::measured();
  fmt::print("lanes a thread: {}\n", plan.lanes());
  for (int n = 1; n <= assay::sha256::kMaxLanes; ++n) {
    fmt::print("{:2}:", n);
    for (const auto* kernel : plan.kernels_for(n)) fmt::print(" {}", kernel->name);
    fmt::print("\n");
  }
  return 0;
}

int bench_files(std::vector<std::string> arguments) {
  assay::HashOptions options;
  options.jobs = assay::available_cores();
  std::vector<assay::HashJob> jobs;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "-j" && i + 1 < arguments.size()) {
      options.jobs = std::atoi(arguments[++i].c_str());
    } else if (arguments[i] == "-k" && i + 1 < arguments.size()) {
      options.kernel = arguments[++i];
    } else if (arguments[i] == "--keep-cache") {
      options.keep_cache = true;
    } else {
      jobs.push_back({.path = arguments[i]});
    }
  }
  std::uint64_t bytes = 0;
  int failures = 0;
  const auto start = std::chrono::steady_clock::now();
  assay::hash_files(jobs, options, [&](std::size_t i, assay::HashResult&& result) {
    bytes += result.bytes;
    if (result.complete && !result.changed) {
      fmt::print("{}  {}\n", result.digest.hex(), jobs[i].path.string());
    } else {
      ++failures;
      fmt::print(stderr, "{}: {}\n", jobs[i].path.string(), result.error ? result.error->line() : "changed");
    }
  });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  fmt::print(stderr, "{:.3f} s  {:.2f} GB/s  {} MiB resident at most\n", seconds,
             static_cast<double>(bytes) / seconds / kGiga, usage.ru_maxrss / 1024);
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (arguments.size() == 1 && arguments[0] == "kernels") return bench_kernels();
    if (arguments.size() > 1 && arguments[0] == "files")
      return bench_files({arguments.begin() + 1, arguments.end()});
  } catch (const std::exception& error) {
    fmt::print(stderr, "hash_bench: {}\n", error.what());
    return 2;
  }
  fmt::print(stderr,
             "usage: hash_bench kernels | hash_bench files [-j N] [-k KERNEL] [--keep-cache] FILE...\n");
  return 2;
}
