// Texts come, grow, fork and go.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "refimpl/engine/served.h"

namespace assay {

SequenceSampler sampler_of(const ServingRequest& request, std::size_t sample) {
  SamplingParams params = request.text.sampling;
  params.sample += static_cast<std::uint32_t>(sample);
  return {params, request.text.prompt, request.text.constraint ? request.text.constraint->fork() : nullptr};
}

// A text with a number of its own, which `enter` gives to the scheduler; or none.
template <class Enter>
ServingEngine::Served& ServingEngine::enter(const ServingRequest& request, const Enter& enter) {
  check_prompt(request.text.prompt, model_);
  if (request.samples == 0) throw Error::usage("a request asks for at least one text");
  const std::size_t number = next_request_;
  try {
    Served& served = create(request, number, 0);
    grow_keys(served);
    enter(served);
  } catch (...) {
    for (const auto& served : requests_[number]) of_text_.erase(&served->text);
    requests_.erase(number);
    throw;
  }
  ++next_request_;
  return *requests_[number].front();
}

std::size_t ServingEngine::submit(const ServingRequest& request) {
  Served& served = enter(request, [this](Served& s) { scheduler_->add(s.text); });
  if (request.text.max_new_tokens == 0 && !request.prompt_logits) finish(served, FinishReason::length);
  return served.number;
}

std::size_t ServingEngine::take_over(const ServingRequest& request, HandedText handed) {
  if (request.samples > 1 || request.prompt_logits)
    throw Error::usage("a prompt that was read elsewhere gives one text, and no logits of its own");
  Served& served = enter(request, [&](Served& s) {
    scheduler_->add_swapped(s.text);
    s.text.cached = s.ids.size();
    s.text.known = handed.whole ? 0 : s.ids.size() / options_.cache.block_tokens;
    s.cache.resume(s.ids.size(), handed.states);
    s.swapped = std::move(handed.blocks);
    s.handed = true;
  });
  const std::size_t number = served.number;
  request.text.max_new_tokens == 0 ? finish(served, FinishReason::length) : begin(served, handed);
  return number;
}

// Its first token is chosen, or was.
void ServingEngine::begin(Served& served, const HandedText& handed) {
  if (handed.first) {
    const bool stops = push(served, *handed.first, {});
    served.end = parts_.end({stops, served.made.ids.size(), served.request.text.max_new_tokens,
                             served.ids.size(), std::min(model_.context(), scheduler_->capacity()), 0});
  } else {
    try_to_choose(served, ops_.download(model_.logits(handed.hidden, ops_, {})));
  }
  if (served.end) return finish(served, *served.end);
  if (served.drafter && handed.teach) handed.teach(*served.drafter, served.ids);
  grow_keys(served);
  if (served.text.cached > 0) return;
  // Rotary frequencies follow the length: the prompt is read anew, as it would be without a hand-off.
  served.text.place = ServedText::Place::waiting;
  served.swapped.clear();
  served.handed = false;
}

ServingEngine::Served& ServingEngine::create(const ServingRequest& request, std::size_t number,
                                             std::size_t sample) {
  requests_[number].push_back(std::make_unique<Served>(*this, request, number, sample));
  Served& served = *requests_[number].back();
  served.text.number = arrivals_++;
  served.text.priority = request.priority;
  served.text.reads_cache = !request.prompt_logits;
  served.text.ids = &served.ids;
  served.text.tokens = served.ids.size();
  of_text_[&served.text] = &served;
  return served;
}

// Keys as rotated for a text of one length serve another one under the same name.
std::string ServingEngine::regime(std::size_t tokens) const {
  if (model_.cache_serves(1, tokens)) return "short";
  if (model_.cache_serves(model_.context(), tokens)) return "long";
  return fmt::format("{} tokens", tokens);
}

// Keys of the blocks that the text fills by now; all anew where its rotary frequencies are others now.
void ServingEngine::grow_keys(Served& served) const {
  ServedText& text = served.text;
  text.tokens = served.ids.size();
  if (std::string now = regime(text.tokens); now != served.regime) {
    served.regime = std::move(now);
    const std::string& salt = served.request.salt;
    const BlockKey root =
        hasher_->root(fmt::format("{}\n{}:{}\n{}", options_.identity, salt.size(), salt, served.regime));
    if (text.keys.empty() || text.keys.front() != root) {
      text.keys = {root};
      if (text.cached > 0) {
        scheduler_->forget_cache(text);
        served.cache.truncate(0);
      }
    }
  }
  const std::size_t size = options_.cache.block_tokens;
  while (text.keys.size() <= text.tokens / size) {
    const std::size_t block = text.keys.size() - 1;
    text.keys.push_back(hasher_->next(text.keys.back(), std::span(served.ids).subspan(block * size, size)));
  }
}

void ServingEngine::cancel(std::size_t request) {
  for (const auto& served : requests_.at(request)) {
    if (served->text.place != ServedText::Place::over) finish(*served, FinishReason::interrupted);
  }
}

const Generation& ServingEngine::result(std::size_t request, std::size_t sample) const {
  return requests_.at(request).at(sample)->made;
}

void ServingEngine::forget(std::size_t request) {
  for (const auto& served : requests_.at(request)) {
    if (served->text.place != ServedText::Place::over)
      throw Error::internal(fmt::format("request {} is under way and cannot be forgotten", request));
  }
  requests_.erase(request);
}

// The prompt was read: every sample goes on from its blocks.
void ServingEngine::fork(Served& parent) {
  const std::vector<double> logits = std::exchange(parent.forked_from, {});
  for (std::size_t sample = 1; sample < parent.request.samples; ++sample) {
    Served& served = create(parent.request, parent.number, sample);
    scheduler_->fork(parent.text, served.text);
    served.cache.resume(parent.cache.length(), parent.cache.states());
    try_to_choose(served, logits);
    served.end ? finish(served, *served.end) : grow_keys(served);
  }
}

void ServingEngine::finish(Served& served, FinishReason reason) {
  served.made.finish_reason = reason;
  scheduler_->finish(served.text);
  of_text_.erase(&served.text);
  served.ids = {};
  served.request.text.prompt = {};
  served.sampler = SequenceSampler({}, {});
  served.text.keys = {};
  served.swapped = {};
  served.drafter.reset();
  served.cache.truncate(0);
  if (end_listener_)
    end_listener_(served.number, served.sample, reason, served.failure ? &*served.failure : nullptr);
}

}  // namespace assay
