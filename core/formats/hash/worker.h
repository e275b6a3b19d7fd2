// A hashing thread: several lanes, advanced together by the kernels that suit their number.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/hash/hasher.h"
#include "core/formats/hash/lane.h"
#include "core/formats/hash/read_pool.h"

namespace assay {

// Deals the files out. The first round goes in turn to every lane of every worker, so that no worker starts
// with all the large ones; afterwards whoever has a free lane takes the next.
class Dealer {
 public:
  Dealer(std::vector<std::uint32_t> order, std::size_t workers, std::size_t lanes);
  std::optional<std::size_t> first(std::size_t worker, std::size_t lane) const;
  std::optional<std::size_t> next();

 private:
  const std::vector<std::uint32_t> order_;
  const std::size_t workers_, first_round_;
  std::atomic<std::size_t> next_;
};

// What the workers of one hash_files() share.
class Crew {
 public:
  using Done = std::function<void(std::size_t, HashResult&&)>;
  Crew(const HashJobs& jobs, const HashOptions& options, const Done& done, const sha256::KernelPlan& plan,
       Dealer& dealer)
      : jobs(jobs), options(options), plan(plan), dealer(dealer), done_(done) {}

  const HashJobs& jobs;
  const HashOptions& options;
  const sha256::KernelPlan& plan;
  Dealer& dealer;
  std::atomic<int> busy_lanes{0};

  bool stopped() const;
  // A busy lane keeps a core hashing; may there be a second one to read for it?
  bool idle_cores() const { return 2 * busy_lanes.load(std::memory_order_relaxed) <= options.jobs; }
  void begin(std::size_t index, const fs::path& file);
  void report(std::size_t index, HashResult&& result);  // one at a time; also of what was never begun
  void fail(std::exception_ptr exception);
  void rethrow_failure() const;

 private:
  void name_in_flight();

  const Done& done_;
  std::mutex mutex_;
  std::vector<std::pair<std::size_t, std::string>> in_flight_;  // what the progress line names, oldest first
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};
};

class Worker {
 public:
  Worker(Crew& crew, ReadPool& pool, Wakeup& wakeup, std::size_t number, std::size_t lanes);
  void run();  // until no file is left; never throws, see Crew::fail

 private:
  void hash_all();
  void start(Lane& lane, std::optional<std::size_t> job);
  bool prepare(Lane& lane);  // has blocks to compress
  void report_the_rest();

  Crew& crew_;
  Wakeup& wakeup_;
  const std::size_t number_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<sha256::Message*> ready_;
  std::size_t busy_ = 0;
};

}  // namespace assay
