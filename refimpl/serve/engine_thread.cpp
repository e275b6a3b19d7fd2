#include "refimpl/serve/engine_thread.h"

#include <atomic>

namespace assay {

struct AskedTexts::Channel {
  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<TextEvent> events;
  std::atomic<bool> abandoned = false;

  void send(TextEvent event) {
    const std::lock_guard lock(mutex);
    events.push_back(std::move(event));
    arrived.notify_one();
  }
};

AskedTexts::~AskedTexts() {
  channel_->abandoned = true;
}

std::optional<TextEvent> AskedTexts::next(std::chrono::milliseconds patience) {
  std::unique_lock lock(channel_->mutex);
  if (!channel_->arrived.wait_for(lock, patience, [&] { return !channel_->events.empty(); }))
    return std::nullopt;
  TextEvent event = std::move(channel_->events.front());
  channel_->events.pop_front();
  return event;
}

EngineThread::EngineThread(const LanguageModel& model, Ops& ops, const ServingOptions& options,
                           std::size_t most, const ServingParts& parts)
    : engine_(model, ops, options, parts), most_(most) {
  listen();
  publish();
  thread_ = std::thread([this] { work(); });
}

EngineThread::~EngineThread() {
  end();
}

void EngineThread::end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<AskedTexts> EngineThread::ask(std::vector<TextOrder> orders) {
  auto channel = std::make_shared<AskedTexts::Channel>();
  {
    const std::lock_guard lock(mutex_);
    if (ending_ || fault_ || under_way_ + orders.size() > most_) return nullptr;
    under_way_ += orders.size();
    for (std::size_t i = 0; i < orders.size(); ++i) orders_.push_back({std::move(orders[i]), i, channel});
  }
  wake_.notify_one();
  return std::make_unique<AskedTexts>(channel);
}

std::size_t EngineThread::under_way() const {
  const std::lock_guard lock(mutex_);
  return under_way_;
}

EngineState EngineThread::state() const {
  const std::lock_guard lock(mutex_);
  EngineState now = state_;
  now.prompts = under_way_;
  return now;
}

bool EngineThread::broken() const {
  const std::lock_guard lock(mutex_);
  return fault_ != nullptr;
}

void EngineThread::rethrow() const {
  const std::lock_guard lock(mutex_);
  if (fault_) std::rethrow_exception(fault_);
}

// ---- the thread

void EngineThread::work() {
  try {
    run_steps();
    fail_all(Error::io("the server is ending"));
    engine_.listen_to_ends({});  // whoever asked was told
    engine_.cancel_all();
    engine_.keep_all();
  } catch (const std::exception& fault) {
    {
      const std::lock_guard lock(mutex_);
      fault_ = std::current_exception();
    }
    const auto* error = dynamic_cast<const Error*>(&fault);
    fail_all(error != nullptr ? *error : Error::internal(fault.what()));
  }
}

void EngineThread::run_steps() {
  std::vector<Order> orders;
  while (take_orders(orders)) {
    for (Order& order : orders) begin(order);
    drop_abandoned();
    forget_over();
    engine_.step();
    forget_over();
    publish();
  }
}

// Waits for something to do. False: no more is.
bool EngineThread::take_orders(std::vector<Order>& orders) {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [&] { return ending_ || !orders_.empty() || !active_.empty(); });
  orders.assign(std::make_move_iterator(orders_.begin()), std::make_move_iterator(orders_.end()));
  orders_.clear();
  return !ending_;
}

void EngineThread::begin(Order& order) {
  const ServingRequest& request = order.text.request;
  Active active = {.channel = order.channel,
                   .number = order.number,
                   .open_texts = request.samples,
                   .log_probabilities = order.text.log_probabilities};
  if (request.prompt_logits) active.prompt = request.text.prompt;
  entering_ = &active;
  try {
    const std::size_t number = engine_.submit(request);
    active_.emplace(number, std::move(active));
  } catch (const Error& error) {
    send_failure(active, error);
    const std::lock_guard lock(mutex_);
    --under_way_;
  }
  entering_ = nullptr;
}

EngineThread::Active& EngineThread::active(std::size_t request) {
  const auto found = active_.find(request);
  return found == active_.end() ? *entering_ : found->second;
}

void EngineThread::listen() {
  const auto likely = [](const Active& to, std::span<const double> logits, TokenId id) {
    return to.log_probabilities
               ? std::make_shared<const LikelyTokens>(likely_tokens(logits, id, *to.log_probabilities))
               : nullptr;
  };
  engine_.listen(
      [=, this](std::size_t request, std::size_t sample, TokenId id, std::span<const double> logits) {
        const Active& to = active(request);
        to.channel->send({.kind = TextEvent::Kind::token,
                          .order = to.number,
                          .sample = sample,
                          .id = id,
                          .likely = likely(to, logits, id)});
      },
      [=, this](std::size_t request, std::size_t position, std::span<const double> logits) {
        const Active& to = active(request);
        if (position + 1 >= to.prompt.size()) return;  // of what follows the prompt
        const TokenId id = to.prompt[position + 1];
        to.channel->send({.kind = TextEvent::Kind::prompt_token,
                          .order = to.number,
                          .id = id,
                          .likely = likely(to, logits, id)});
      });
  engine_.listen_to_ends(
      [this](std::size_t request, std::size_t sample, FinishReason reason, const Error* failure) {
        Active& to = active(request);
        if (failure != nullptr) return send_failure(to, *failure);
        --to.open_texts;
        if (!to.failed)
          to.channel->send(
              {.kind = TextEvent::Kind::end, .order = to.number, .sample = sample, .reason = reason});
      });
}

void EngineThread::send_failure(Active& active, const Error& error) {
  if (active.failed) return;
  active.failed = true;
  ++failed_;
  active.channel->send({.kind = TextEvent::Kind::failure,
                        .order = active.number,
                        .failure = std::make_shared<const Error>(error)});
}

// Texts whose client has left hold nothing any more.
void EngineThread::drop_abandoned() {
  for (auto& [request, active] : active_) {
    if (!active.channel->abandoned || active.failed) continue;
    active.failed = true;
    ++cancelled_;
  }
}

void EngineThread::forget_over() {
  std::size_t over = 0;
  for (auto at = active_.begin(); at != active_.end();) {
    if (at->second.open_texts > 0 && !at->second.failed) {
      ++at;
      continue;
    }
    engine_.cancel(at->first);
    engine_.forget(at->first);
    at = active_.erase(at);
    ++over;
  }
  const std::lock_guard lock(mutex_);
  under_way_ -= over;
}

void EngineThread::publish() {
  EngineState now{.counts = engine_.counts(), .cancelled = cancelled_, .failed = failed_};
  now.waiting = engine_.scheduler().waiting().size();
  now.running = engine_.scheduler().running().size();
  for (const auto& pool : engine_.scheduler().pools()) {
    now.blocks += pool->size();
    now.held_blocks += pool->size() - pool->free_blocks();
    now.evictions += pool->evictions();
  }
  const std::lock_guard lock(mutex_);
  state_ = std::move(now);
}

void EngineThread::fail_all(const Error& error) {
  std::deque<Order> orders;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    orders.swap(orders_);
    under_way_ = 0;
  }
  for (const Order& order : orders)
    order.channel->send({.kind = TextEvent::Kind::failure,
                         .order = order.number,
                         .failure = std::make_shared<const Error>(error)});
  for (auto& [request, active] : active_) send_failure(active, error);
  active_.clear();
}

}  // namespace assay
