#include "refimpl/handoff/part_sender.h"

#include <algorithm>
#include <utility>

namespace assay {

PartSender::PartSender(const PartHeader& common, PartSink& sink, HandoffClock::time_point start)
    : common_(common), sink_(sink), start_(start) {}

PartSender::~PartSender() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    jobs_.clear();
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void PartSender::start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
}

void PartSender::send(const PartHeader& header, HandoffMade::Numbers numbers, NumberWidth width,
                      std::optional<std::size_t> counted) {
  queue({header, std::move(numbers), width, {}, counted});
}

void PartSender::send(PartKind kind, std::string text) {
  PartHeader header;
  header.kind = kind;
  queue({header, nullptr, NumberWidth::f32, std::move(text), {}});
}

void PartSender::queue(Job job) {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  jobs_.push_back(std::move(job));
  ++queued_;
  changed_.notify_all();
}

void PartSender::work() {
  for (std::uint64_t serial = 0;; ++serial) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    try {
      go(job, serial);
    } catch (...) {
      lock.lock();
      failure_ = std::current_exception();
      jobs_.clear();
      return;
    }
  }
}

void PartSender::go(const Job& job, std::uint64_t serial) {
  const double from = now();
  PartHeader header = job.header;
  header.identity = common_.identity;
  header.text = common_.text;
  header.handoff = common_.handoff;
  header.serial = serial;
  const std::vector<std::byte> bytes =
      pack(job.numbers ? part_of_numbers(header, *job.numbers, job.width) : part_of_text(header, job.text));
  sink_.put(serial, bytes);
  gone_.push_back({job.counted, {from, now()}, bytes.size()});
}

void PartSender::finish(HandoffSent& sent) {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  if (failure_) std::rethrow_exception(failure_);
  for (const Gone& gone : gone_) {
    ++sent.parts;
    sent.bytes += gone.bytes;
    if (!gone.counted) continue;
    LayerTime& layer = sent.timeline.layers.at(*gone.counted);
    const bool first = layer.bytes == 0;
    layer.bytes += gone.bytes;
    layer.sent = {first ? gone.span.from : std::min(layer.sent.from, gone.span.from),
                  std::max(layer.sent.to, gone.span.to)};
  }
}

}  // namespace assay
