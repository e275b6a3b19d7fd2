#include "verify/hash/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "core/system/threads.h"

namespace assay {
namespace {

constexpr auto kLookUp = std::chrono::milliseconds(20);  // how often a waiting thread asks whether to stop

// Cache lines by which a lane's buffer is moved, so that equal offsets of the lanes fall into different cache
// sets.
std::size_t stagger(std::size_t lane) {
  return 9 * lane % 64;
}

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
    lanes_.push_back(std::make_unique<Lane>(pool, wakeup, crew.options.keep_cache, stagger(i)));
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
      if (prepare(*lane)) ready_.push_back(lane.get());
    }
    if (!ready_.empty()) {
      compress_ready();
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

// As many blocks as the lane with the fewest can give.
void Worker::compress_ready() {
  std::array<sha256::State*, sha256::kMaxLanes> states;
  std::array<const std::byte*, sha256::kMaxLanes> data;
  std::size_t blocks = ready_.front()->blocks();
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    states[i] = &ready_[i]->state();
    data[i] = ready_[i]->data();
    blocks = std::min(blocks, ready_[i]->blocks());
  }
  crew_.plan.run(std::span(states).first(ready_.size()), std::span(data).first(ready_.size()), blocks);
  for (Lane* lane : ready_) lane->advance(blocks);
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
