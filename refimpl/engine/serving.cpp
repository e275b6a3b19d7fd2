#include "refimpl/engine/serving.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "refimpl/engine/served.h"
#include "refimpl/step/cache_contents.h"

namespace assay {
namespace {

SchedulerOptions of_model(SchedulerOptions options, const LanguageModel& model) {
  const std::vector<CacheWidth> widths = model.cache_widths();
  options.windows.clear();
  for (const CacheGroup& group : cache_groups(widths)) options.windows.push_back(group.window);
  options.has_states = keeps_states(widths);
  return options;
}

}  // namespace

ServingEngine::ServingEngine(const LanguageModel& model, Ops& ops, const ServingOptions& options,
                             const ServingParts& parts)
    : model_(model),
      ops_(ops),
      options_(options),
      parts_(parts),
      hasher_(parts.hasher()),
      scheduler_(parts.scheduler(of_model(options.cache, model),
                                 [this](const ServedText& text, std::size_t wanted) {
                                   const bool serves = model_.cache_serves(text.cached + wanted, text.tokens);
                                   return serves ? wanted : text.pending();
                                 })),
      storage_(ops, model.cache_widths(), options.cache.block_tokens, options.cache.blocks,
               options.coded_blocks),
      outer_(parts.outer ? parts.outer(ops, storage_) : nullptr) {
  scheduler_->set_outer(outer_.get());
}

ServingEngine::~ServingEngine() = default;

bool ServingEngine::step() {
  if (interrupted()) {
    cancel_all();
    return false;
  }
  guess();
  const StepPlan plan = scheduler_->plan();
  carry_out(plan);
  if (plan.empty()) {
    if (!scheduler_->waiting().empty() || !scheduler_->running().empty())
      throw Error::internal("texts wait and no step serves them");
    return false;
  }
  if (plan_watcher_) plan_watcher_(plan);
  const std::vector<Row> rows = rows_of(plan);
  const auto start = std::chrono::steady_clock::now();
  Matrix hidden;
  try {
    hidden = compute(plan);
  } catch (const Batch::Interrupted&) {
    return true;  // and the next step ends all
  } catch (const LayerArrivals::Damaged&) {
    forget_guesses();
    return true;  // texts that began with it begin anew
  }
  forget_guesses();
  deliver(hidden, rows);
  counts_.target_seconds += seconds_from(start);
  settle(plan, hidden);
  return true;
}

void ServingEngine::carry_out(const StepPlan& plan) {
  counts_.preemptions += plan.preemptions;
  for (const StepPlan::SwapOut& out : plan.swapped_out) {
    Served& served = *of_text_.at(out.text);
    served.swapped.assign(out.tables.size(), {});
    for (std::size_t g = 0; g < out.tables.size(); ++g) {
      for (const BlockId block : out.tables[g])
        served.swapped[g].push_back(block < 0 ? std::vector<double>() : storage_.read(g, block));
    }
  }
  for (const StepPlan::Copy& copy : plan.copies) storage_.copy(copy.group, copy.from, copy.to);
  for (const StepPlan::Fresh& fresh : plan.fresh) {
    if (options_.poison) storage_.poison(fresh.group, fresh.block);
  }
  for (const StepPlan::Load& load : plan.loads)
    if (!load.later) storage_.write(load.group, load.block, load.rows);
  counts_.loaded_blocks += plan.loads.size();
  for (const StepPlan::Admission& admission : plan.admitted) {
    Served& served = *of_text_.at(admission.text);
    counts_.hit_tokens += admission.swapped_in ? 0 : served.text.hit;
    if (admission.swapped_in) {
      for (std::size_t g = 0; g < served.swapped.size(); ++g) {
        for (std::size_t b = 0; b < served.swapped[g].size(); ++b) {
          if (!served.swapped[g][b].empty())
            storage_.write(g, served.text.tables[g].at(b), served.swapped[g][b]);
        }
      }
      served.swapped.clear();
      served.handed = false;
    } else if (served.text.cached > 0) {
      resume_drafter(served);
      served.cache.resume(served.text.cached, admission.states ? *admission.states : SequenceCache::States());
    } else {
      served.cache.truncate(0);
    }
    if (parts_.recomputed && !admission.swapped_in && !served.made.ids.empty())
      parts_.recomputed(served.sampler, served.request, served.ids);
  }
}

std::vector<ServingEngine::Row> ServingEngine::rows_of(const StepPlan& plan) const {
  std::vector<Row> rows;
  RowPlace place;
  for (const StepPlan::Feed& feed : plan.feeds) {
    Served& served = *of_text_.at(feed.text);
    const std::size_t sure = feed.text->sure(), end = feed.text->cached + feed.tokens;
    const std::size_t prompt = served.request.prompt_logits ? served.request.text.prompt.size() : 0;
    place.begin = feed.text->cached;
    for (place.position = place.begin; place.position < end; ++place.position) {
      const std::size_t p = place.position;
      const bool chooses = p + 1 >= sure, asked = p < prompt && p >= served.prompt_rows;
      if (chooses || asked)
        rows.push_back({&served, chooses ? place.first + p - place.begin : parts_.prompt_row(place), p,
                        chooses ? p + 1 - sure : 0, chooses});
    }
    served.first_row = place.first;
    served.fed_guesses = end - std::min(end, sure);
    served.right.clear();
    served.next_row = 0;
    place.first += feed.tokens;
    place.guesses_before += served.fed_guesses;
  }
  return rows;
}

Matrix ServingEngine::compute(const StepPlan& plan) {
  Batch batch;
  batch.may_stop = true;
  for (const StepPlan::Feed& feed : plan.feeds) {
    Served& served = *of_text_.at(feed.text);
    const std::span<const TokenId> tokens = std::span(served.ids).subspan(feed.text->cached, feed.tokens);
    const bool chain = served.guess.is_chain();
    batch.add(chain ? tokens : tokens.first(tokens.size() - served.fed_guesses), served.cache);
    for (std::size_t guess = 0; !chain && guess < served.fed_guesses; ++guess)
      batch.add(tokens.subspan(tokens.size() - served.fed_guesses + guess, 1), branch(served, guess));
  }
  const Matrix hidden = hidden_of(batch, plan);
  for (const StepPlan::Feed& feed : plan.feeds)
    counts_.prompt_tokens += of_text_.at(feed.text)->made.ids.empty() ? feed.tokens : 0;
  ++counts_.steps;
  counts_.tokens += batch.tokens.size();
  counts_.most_texts = std::max(counts_.most_texts, plan.feeds.size());
  return hidden;
}

// What the outer level has comes while earlier layers are computed; where it does not come whole, nobody finds it.
Matrix ServingEngine::hidden_of(const Batch& batch, const StepPlan& plan) {
  try {
    LayerArrivals arrivals(storage_, plan.late());
    Matrix hidden = model_.hidden(batch, ops_, {});
    arrivals.finish();
    if (parts_.arrived && arrivals.any()) parts_.arrived(arrivals.times());
    return hidden;
  } catch (...) {
    counts_.hit_tokens -= scheduler_->withdraw_loads(plan);
    counts_.loaded_blocks -= plan.loads.size();
    for (ServedText* text : scheduler_->running())
      if (text->cached == 0) of_text_.at(text)->cache.truncate(0);
    throw;
  }
}

// What was computed is kept, but for what followed a wrong guess; then texts end, grow or fork.
void ServingEngine::settle(StepPlan plan, const Matrix& hidden) {
  for (StepPlan::Feed& feed : plan.feeds) keep_right(*of_text_.at(feed.text), feed, hidden);
  scheduler_->complete(
      plan,
      [this](const ServedText& text) {
        return std::make_shared<const SequenceCache::States>(of_text_.at(&text)->cache.states());
      },
      [this](const ServedText& text, std::size_t end) {
        const Served& served = *of_text_.at(&text);
        return served.drafter ? served.drafter->beside(served.ids, end, options_.cache.block_tokens)
                              : nullptr;
      });
  for (const StepPlan::Feed& feed : plan.feeds) {
    Served& served = *of_text_.at(feed.text);
    served.guess = {};
    served.branches.clear();
    served.fed_guesses = 0;
    served.right.clear();
    if (!served.forked_from.empty()) fork(served);
    served.end ? finish(served, *served.end) : grow_keys(served);
  }
}

}  // namespace assay
