#include "refimpl/bench_url/load_generator.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "core/system/threads.h"
#include "refimpl/bench_url/answer_stream.h"

namespace assay {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLook = std::chrono::milliseconds(100);
constexpr auto kSlice = std::chrono::milliseconds(20);  // of a wait that may have to end early

class LoadRun {
 public:
  LoadRun(const LoadOptions& options, const ServerTraits& server, const LoadPlan& plan)
      : options_(options), server_(server), plan_(plan) {
    load_.planned = plan.requests.size();
    if (options.closed) load_.concurrency = options.clients;
    load_.context = server.context;
    const std::size_t count = std::min(options.clients, plan.requests.size());
    for (std::size_t i = 0; i < count; ++i)
      clients_.push_back(std::make_unique<EndpointClient>(options.url, options.endpoint));
    working_ = count;
  }

  LoadRecords run(const std::function<void(const LoadState&)>& told) {
    began_ = Clock::now();
    std::vector<std::jthread> threads;
    for (const auto& client : clients_) threads.emplace_back([this, &client] { work(*client); });
    while (working_ > 0) {
      std::this_thread::sleep_for(kLook);
      told(state());
      if (!interrupted()) continue;
      stopping_ = true;
      for (const auto& client : clients_) client->stop();
    }
    threads.clear();  // joined
    std::sort(load_.requests.begin(), load_.requests.end(),
              [](const RequestRecord& a, const RequestRecord& b) { return a.index < b.index; });
    return std::move(load_);
  }

 private:
  double now() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  LoadState state() {
    const std::lock_guard lock(mutex_);
    return {load_.requests.size(), failed_, in_flight_, tokens_};
  }

  void work(EndpointClient& client) {
    for (std::size_t index = next_++; index < plan_.requests.size() && !stopping_; index = next_++) {
      const PromptSent prompt = make_prompt(server_.pool, plan_, index, options_.seed);
      const std::string body = request_body(server_.shape, prompt, plan_.requests[index].output_tokens, true);
      if (wait_until(plan_.requests[index].due)) ask(client, index, body);
    }
    --working_;
  }

  bool wait_until(double due) const {
    for (double left = due - now(); left > 0 && !stopping_; left = due - now())
      std::this_thread::sleep_for(std::min<Clock::duration>(
          kSlice, std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(left))));
    return !stopping_;
  }

  void ask(EndpointClient& client, std::size_t index, const std::string& body) {
    const PlannedRequest& planned = plan_.requests[index];
    RequestRecord record{.index = index,
                         .due = planned.due,
                         .chunks = {},
                         .prompt_wanted = planned.prompt_tokens,
                         .output_wanted = planned.output_tokens,
                         .usage = {},
                         .finish_reason = {},
                         .error = {}};
    record.sent = change_in_flight(+1);
    if (options_.closed) record.due = record.sent;
    AnswerStream stream(record);
    const HttpAnswer answer = client.post(route_of(server_.shape.kind), body, [&](std::string_view bytes) {
      const std::size_t before = record.chunks.size();
      const bool on = stream.push(bytes, now());
      tokens_ += record.chunks.size() - before;
      return on && !stopping_;
    });
    stream.finish(answer.ok() ? "" : answer.why(), change_in_flight(-1));
    if (stopping_ && record.end == RequestEnd::failed) record.end = RequestEnd::cut;
    const std::lock_guard lock(mutex_);
    failed_ += record.end == RequestEnd::failed ? 1 : 0;
    load_.requests.push_back(std::move(record));
  }

  // The time at which it was: changes are written down in the order of their times.
  double change_in_flight(int by) {
    const std::lock_guard lock(mutex_);
    const double at = now();
    load_.changes.push_back({at, by});
    by > 0 ? ++in_flight_ : --in_flight_;
    return at;
  }

  const LoadOptions& options_;
  const ServerTraits& server_;
  const LoadPlan& plan_;
  std::vector<std::unique_ptr<EndpointClient>> clients_;
  Clock::time_point began_;
  std::atomic<std::size_t> next_ = 0, working_ = 0, tokens_ = 0;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;  // of what follows
  LoadRecords load_;
  std::size_t failed_ = 0, in_flight_ = 0;
};

}  // namespace

LoadRecords run_load(const LoadOptions& options, const ServerTraits& server, const LoadPlan& plan,
                     const std::function<void(const LoadState&)>& told) {
  return LoadRun(options, server, plan).run(told);
}

}  // namespace assay
