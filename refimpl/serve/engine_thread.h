// The one thread that runs the engine's steps, and how others have texts made by it.
//
//   EngineThread engine(model, ops, options, 64);
//   const auto texts = engine.ask({{.request = {.text = {.prompt = ids}}}});
//   while (const auto event = texts->next(100ms)) use(*event);
//   texts.reset();                            // before the end: what is under way of it is cancelled
//
// Orders wait in a queue until the step under way is done; what becomes of them comes back through a queue of their own.
// That one grows as long as nobody reads it, but no longer than the texts that were asked for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/system/error.h"
#include "refimpl/engine/serving.h"
#include "refimpl/run_report.h"

namespace assay {

struct TextOrder {
  ServingRequest request;
  // ln p of each token, and so many of the likeliest beside it; none: not asked for. Of the prompt's tokens where the
  // request asks for its logits.
  std::optional<std::size_t> log_probabilities;
};

struct TextEvent {
  enum class Kind : std::uint8_t { prompt_token, token, end, failure };
  Kind kind = Kind::token;
  std::size_t order = 0, sample = 0;  // of which order's texts, which
  TokenId id = 0;
  std::shared_ptr<const LikelyTokens> likely;  // where asked for
  FinishReason reason = FinishReason::length;  // of an end
  std::shared_ptr<const Error> failure;        // all of the orders end with it
};

// Texts that one client asked for together.
class AskedTexts {
 public:
  struct Channel;
  AskedTexts(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}
  AskedTexts(const AskedTexts&) = delete;
  AskedTexts& operator=(const AskedTexts&) = delete;
  ~AskedTexts();  // what is not over is cancelled

  // None: nothing happened in this time, or everything has.
  std::optional<TextEvent> next(std::chrono::milliseconds patience);

 private:
  std::shared_ptr<Channel> channel_;
};

// As of the last step; prompts, as of now.
struct EngineState {
  ServingCounts counts;
  std::size_t waiting = 0, running = 0;     // texts
  std::size_t blocks = 0, held_blocks = 0;  // of all groups of layers
  std::size_t evictions = 0;
  std::size_t prompts = 0;                // under way and waiting, those counted that no step has seen yet
  std::size_t cancelled = 0, failed = 0;  // requests
};

class EngineThread {
 public:
  // `most`: prompts under way and waiting, together.
  EngineThread(const LanguageModel& model, Ops& ops, const ServingOptions& options, std::size_t most,
               const ServingParts& parts = {});
  ~EngineThread();
  void end();  // cancels all; whoever waits is told so

  // None: there are too many under way.
  std::unique_ptr<AskedTexts> ask(std::vector<TextOrder> orders);
  std::size_t under_way() const;  // orders
  EngineState state() const;
  const Scheduler& scheduler() { return engine_.scheduler(); }  // before the first ask()
  // The engine has ended by a fault of its own; rethrow() throws it.
  bool broken() const;
  void rethrow() const;

 private:
  struct Order {
    TextOrder text;
    std::size_t number = 0;  // of those asked for together
    std::shared_ptr<AskedTexts::Channel> channel;
  };
  struct Active {
    std::shared_ptr<AskedTexts::Channel> channel;
    std::size_t number = 0, open_texts = 0;
    std::optional<std::size_t> log_probabilities;
    std::vector<TokenId> prompt;  // where the ln p of its tokens are wanted
    bool failed = false;
  };

  void work();
  void run_steps();
  bool take_orders(std::vector<Order>& orders);
  void begin(Order& order);
  void drop_abandoned();
  void forget_over();
  void publish();
  void fail_all(const Error& error);
  void listen();
  Active& active(std::size_t request);
  void send_failure(Active& active, const Error& error);

  ServingEngine engine_;
  const std::size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Order> orders_;
  EngineState state_;
  std::exception_ptr fault_;
  std::size_t under_way_ = 0;
  bool ending_ = false;
  // The thread's own.
  std::map<std::size_t, Active> active_;  // by the engine's number
  Active* entering_ = nullptr;            // being submitted: it has no number yet
  std::size_t cancelled_ = 0, failed_ = 0;
  std::thread thread_;
};

}  // namespace assay
