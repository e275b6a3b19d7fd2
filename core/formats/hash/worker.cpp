#include "core/formats/hash/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/system/threads.h"

namespace assay {
namespace {

constexpr auto kLookUp = std::chrono::milliseconds(20);  // how often a waiting thread asks whether to stop

}  // namespace

Dealer::Dealer(std::vector<std::uint32_t> order, std::size_t workers, std::size_t lanes)
    : order_(std::move(order)),
      workers_(workers),
      first_round_(std::min(order_.size(), workers * lanes)),
      next_(first_round_) {}

std::optional<std::size_t> Dealer::first(std::size_t worker, std::size_t lane) const {
  const std::size_t at = lane * workers_ + worker;
  return at < first_round_ ? std::optional<std::size_t>(order_[at]) : std::nullopt;
}

std::optional<std::size_t> Dealer::next() {
  const std::size_t at = next_.fetch_add(1, std::memory_order_relaxed);
  return at < order_.size() ? std::optional<std::size_t>(order_[at]) : std::nullopt;
}

bool Crew::stopped() const {
  return interrupted() || failed_.load(std::memory_order_relaxed);
}

void Crew::begin(std::size_t index, const fs::path& file) {
  if (options.progress == nullptr || !options.progress->shown()) return;
  const std::lock_guard lock(mutex_);
  in_flight_.emplace_back(index, file.filename().string());
  name_in_flight();
}

void Crew::name_in_flight() {
  if (in_flight_.empty()) return options.progress->item("");
  std::string text = in_flight_.front().second;
  if (in_flight_.size() > 1) text += fmt::format(" and {} more", in_flight_.size() - 1);
  options.progress->item(text);
}

void Crew::report(std::size_t index, HashResult&& result) {
  const std::lock_guard lock(mutex_);
  const auto it = std::find_if(in_flight_.begin(), in_flight_.end(),
                               [&](const auto& begun) { return begun.first == index; });
  if (it != in_flight_.end()) {
    in_flight_.erase(it);
    name_in_flight();
  }
  if (!failed_.load(std::memory_order_relaxed)) done_(index, std::move(result));
}

void Crew::fail(std::exception_ptr exception) {
  const std::lock_guard lock(mutex_);
  if (failure_ == nullptr) failure_ = std::move(exception);
  failed_.store(true, std::memory_order_relaxed);
}

void Crew::rethrow_failure() const {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

Worker::Worker(Crew& crew, ReadPool& pool, Wakeup& wakeup, std::size_t number, std::size_t lanes)
    : crew_(crew), wakeup_(wakeup), number_(number) {
  for (std::size_t i = 0; i < lanes; ++i) {
    lanes_.push_back(std::make_unique<Lane>(pool, wakeup, crew.options.keep_cache, i * sha256::kStagger));
  }
}

void Worker::run() {
  try {
    hash_all();
  } catch (...) {
    crew_.fail(std::current_exception());
  }
}

void Worker::hash_all() {
  for (std::size_t i = 0; i < lanes_.size(); ++i) start(*lanes_[i], crew_.dealer.first(number_, i));
  while (busy_ != 0 && !crew_.stopped()) {
    ready_.clear();
    for (const auto& lane : lanes_) {
      if (prepare(*lane)) ready_.push_back(&lane->message());
    }
    if (!ready_.empty()) {
      sha256::advance_together(crew_.plan, ready_);
    } else if (busy_ != 0) {
      wakeup_.wait_for(kLookUp);
    }
  }
  report_the_rest();
}

void Worker::start(Lane& lane, std::optional<std::size_t> job) {
  if (!job) return;
  HashJob made = crew_.jobs.job(*job);
  crew_.begin(*job, made.path);
  ++busy_;
  ++crew_.busy_lanes;
  lane.start(*job, std::move(made));
}

bool Worker::prepare(Lane& lane) {
  while (lane.busy() && !crew_.stopped()) {
    const Lane::Step step = lane.prepare(crew_.options.progress, crew_.idle_cores());
    if (step != Lane::Step::ended) return step == Lane::Step::blocks;
    --busy_;
    --crew_.busy_lanes;
    const std::size_t index = lane.index();
    crew_.report(index, lane.take_result());
    start(lane, crew_.dealer.next());
  }
  return false;
}

// After an interrupt: what was begun ends incomplete, what was not is handed back untouched.
void Worker::report_the_rest() {
  for (const auto& lane : lanes_) {
    if (!lane->busy()) continue;
    --crew_.busy_lanes;
    const std::size_t index = lane->index();
    crew_.report(index, lane->take_result());
  }
  if (!crew_.stopped()) return;
  while (const auto job = crew_.dealer.next()) {
    HashResult untouched;
    untouched.digest.kind = crew_.jobs.job(*job).kind;
    crew_.report(*job, std::move(untouched));
  }
}

}  // namespace assay
