#include "refimpl/engine/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "core/system/error.h"

namespace assay {
namespace {

std::size_t blocks_of(std::size_t tokens, std::size_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens;
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, Feeder feeder, const PoolMaker& make_pool)
    : options_(options), feeder_(std::move(feeder)) {
  if (options.block_tokens == 0 || options.tokens_a_step == 0 || options.chunk == 0 ||
      options.texts_at_once == 0)
    throw Error::usage("a scheduler needs blocks and steps of at least one token");
  if (options.windows.empty() || options.windows.front() != 0)
    throw Error::internal("the first group of a cache sees everything");
  for (std::size_t g = 0; g < options.windows.size(); ++g)
    pools_.push_back(make_pool ? make_pool(options.blocks) : std::make_unique<BlockPool>(options.blocks));
}

void Scheduler::add(ServedText& text) {
  if (text.tokens == 0) throw Error::input("a text without tokens");
  if (text.tokens > capacity())
    throw Error::input(fmt::format("{} tokens and a cache of {}", text.tokens, capacity()))
        .remedy("shorten the prompt or give the cache more blocks");
  wait(text);
}

void Scheduler::add_swapped(ServedText& text) {
  add(text);
  text.place = ServedText::Place::swapped;
}

void Scheduler::wait(ServedText& text) {
  text.place = ServedText::Place::waiting;
  text.tables.assign(pools_.size(), {});
  waiting_.push_back(&text);
}

void Scheduler::fork(const ServedText& parent, ServedText& text) {
  text.tables = parent.tables;
  text.cached = parent.cached;
  text.known = parent.known;
  text.keys = parent.keys;
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    for (const BlockId block : text.tables[g]) {
      if (block >= 0) pools_[g]->hold(block);
    }
  }
  text.place = ServedText::Place::running;
  running_.push_back(&text);
}

StepPlan Scheduler::plan() {
  StepPlan plan;
  planned_.clear();
  std::size_t budget = options_.tokens_a_step;
  feed_running(true, budget, plan);
  feed_running(false, budget, plan);
  admit(budget, plan);
  return plan;
}

void Scheduler::feed_running(bool writing, std::size_t& budget, StepPlan& plan) {
  const std::vector<ServedText*> texts = running_;  // preemption shortens the list
  for (ServedText* text : texts) {
    if (text->place != ServedText::Place::running || text->pending() == 0 || budget == 0) continue;
    if (text->is_written() != writing) continue;
    const std::size_t count = tokens_of_feed(*text, budget);
    if (count == 0 || !make_room(*text, text->cached + count, plan)) continue;
    plan.feeds.push_back({text, count});
    planned(*text, count);
    budget -= std::min(budget, count);
  }
}

void Scheduler::planned(ServedText& text, std::size_t) {
  planned_.push_back(&text);
}

std::size_t Scheduler::tokens_of_feed(const ServedText& text, std::size_t budget) const {
  std::size_t count = std::min({text.pending(), options_.chunk, budget});
  const std::size_t end = text.cached + count, whole = end / options_.block_tokens * options_.block_tokens;
  // So that the states behind a whole block can be kept.
  if (options_.has_states && options_.prefix_cache && whole > text.cached) count = whole - text.cached;
  return feeder_ ? feeder_(text, count) : count;
}

bool Scheduler::make_room(ServedText& text, std::size_t tokens, StepPlan& plan) {
  while (!cover(text, tokens, plan)) {
    ServedText* other = victim(text);
    preempt(other == nullptr ? text : *other, plan);
    if (other == nullptr) return false;
  }
  return true;
}

// The last to come of those whose turn in this step is still ahead; of the lowest priority first. None: the needy text
// itself is that.
ServedText* Scheduler::victim(const ServedText& needy) const {
  ServedText* worst = nullptr;
  for (ServedText* text : running_) {
    if (text == &needy || std::find(planned_.begin(), planned_.end(), text) != planned_.end()) continue;
    if (is_before(*text, needy)) continue;
    if (worst == nullptr || is_before(*worst, *text)) worst = text;
  }
  return worst;
}

bool Scheduler::is_before(const ServedText& a, const ServedText& b) const {
  const bool by_priority = options_.policy == Policy::priority;
  return std::make_tuple(by_priority ? -a.priority : 0, a.number) <
         std::make_tuple(by_priority ? -b.priority : 0, b.number);
}

bool Scheduler::is_shared(std::size_t group, const ServedText& text) const {
  const std::size_t block = text.cached / options_.block_tokens;
  const std::vector<BlockId>& table = text.tables[group];  // none of a text that is swapped in
  return text.cached % options_.block_tokens != 0 && block < table.size() &&
         pools_[group]->holders(table[block]) > 1;
}

BlockId Scheduler::taken(std::size_t group) {
  BlockPool& pool = *pools_[group];
  const std::optional<BlockId> next = pool.next();
  if (outer_ != nullptr && next && pool.content(*next) != nullptr)
    outer_->keep(group, *next, *pool.content(*next));
  const std::optional<BlockId> block = pool.take();
  if (!block) throw Error::internal("a block was counted as free and is not there");
  return *block;
}

// Blocks for so many tokens of the text, all or none; of a block that others hold too, a copy to write to.
bool Scheduler::cover(ServedText& text, std::size_t tokens, StepPlan& plan) {
  const std::size_t block = text.cached / options_.block_tokens;
  const std::size_t needed = blocks_of(tokens, options_.block_tokens);
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    const std::size_t more = needed - std::min(needed, text.tables[g].size()) + (is_shared(g, text) ? 1 : 0);
    if (more > pools_[g]->free_blocks()) return false;
  }
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    std::vector<BlockId>& table = text.tables[g];
    if (is_shared(g, text)) {
      const BlockId copy = taken(g);
      plan.copies.push_back({g, table[block], copy});
      pools_[g]->release(table[block]);
      table[block] = copy;
    }
    while (table.size() < needed) {
      table.push_back(taken(g));
      plan.fresh.push_back({g, table.back()});
    }
  }
  return true;
}

void Scheduler::preempt(ServedText& text, StepPlan& plan) {
  ++plan.preemptions;
  const bool swap = options_.preemption == Preemption::swap && text.cached > 0;
  if (swap) {
    plan.swapped_out.push_back({&text, text.tables});
    // Blocks behind its cached tokens held wrong guesses.
    const std::size_t held = blocks_of(text.cached, options_.block_tokens);
    for (std::vector<BlockId>& table : plan.swapped_out.back().tables)
      table.resize(std::min(table.size(), held));
  }
  swap ? release(text) : forget_cache(text);
  text.place = swap ? ServedText::Place::swapped : ServedText::Place::waiting;
  text.preempted = true;
  std::erase(running_, &text);
  waiting_.push_back(&text);
}

void Scheduler::admit(std::size_t& budget, StepPlan& plan) {
  while (budget > 0 && running_.size() < options_.texts_at_once) {
    ServedText* text = next_waiting();
    if (text == nullptr || !admit(*text, budget, plan)) return;
  }
}

ServedText* Scheduler::next_waiting() const {
  const auto rank = [&](const ServedText& text) {
    std::size_t by_policy = 0;
    if (options_.policy == Policy::shortest_first) by_policy = text.tokens;
    if (options_.policy == Policy::longest_prefix)
      by_policy = text.tokens - longest_hit(text).blocks * options_.block_tokens;
    const int priority = options_.policy == Policy::priority ? -text.priority : 0;
    return std::make_tuple(!text.preempted, priority, by_policy, text.number);
  };
  ServedText* best = nullptr;
  for (ServedText* text : waiting_) {
    if (best == nullptr || rank(*text) < rank(*best)) best = text;
  }
  return best;
}

bool Scheduler::admit(ServedText& text, std::size_t& budget, StepPlan& plan) {
  const bool swapped = text.place == ServedText::Place::swapped;
  std::vector<Fetched> fetched;
  Hit hit;
  do {
    hit = swapped ? Hit{} : longest_hit(text);
    if (!has_room(text, hit)) return false;
  } while (!fetch(text, hit, fetched));
  const std::size_t block = options_.block_tokens;
  if (!swapped) {
    touch(hit);
    load(hit, fetched, plan);
    if (hit.blocks > 0) text.tables = hit.tables;
    text.hit = text.cached = hit.blocks * block;
    text.known = hit.blocks;
  }
  const std::size_t count = tokens_of_feed(text, budget);
  if (!cover(text, text.cached + count, plan))
    throw Error::internal("a text was admitted for which there are no blocks");
  std::erase(waiting_, &text);
  running_.push_back(&text);
  text.place = ServedText::Place::running;
  text.preempted = false;
  plan.admitted.push_back({&text, hit.states, swapped});
  plan.feeds.push_back({&text, count});
  planned(text, count);
  budget -= std::min(budget, count);
  return true;
}

// Room for all its tokens, so that it need not give up half-read: of groups with a window for these, a chunk more and
// the block that both begin in.
bool Scheduler::has_room(const ServedText& text, const Hit& hit) const {
  const std::size_t block = options_.block_tokens, all = blocks_of(text.tokens, block);
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    std::size_t needed = all - hit.blocks, idle_hits = 0;
    if (hit.blocks > 0) {
      for (const BlockId held : hit.tables[g])
        idle_hits += held == kOutside || (held >= 0 && pools_[g]->holders(held) == 0) ? 1 : 0;
    }
    const bool keeps_all = g == 0 || text.place == ServedText::Place::swapped || feeder_;
    if (!keeps_all) needed = std::min(needed, blocks_of(options_.windows[g] + options_.chunk, block) + 1);
    if (needed + idle_hits > pools_[g]->free_blocks()) return false;
  }
  return true;
}

std::size_t Scheduler::most_hits(const ServedText& text) const {
  if (!options_.prefix_cache || !text.reads_cache || text.keys.empty()) return 0;
  // The last token is always computed: its logits are wanted.
  return std::min(text.keys.size() - 1, (text.sure() - 1) / options_.block_tokens);
}

BlockContent Scheduler::content_of(const ServedText& text, std::size_t block) const {
  BlockContent content{text.keys[block + 1], text.keys[block], {}, {}, block};
  if (text.ids != nullptr) {
    const auto first = text.ids->begin() + static_cast<std::ptrdiff_t>(block * options_.block_tokens);
    content.tokens.assign(first, first + static_cast<std::ptrdiff_t>(options_.block_tokens));
  }
  return content;
}

// In the pool, or kOutside.
std::optional<BlockId> Scheduler::find(std::size_t group, const ServedText& text, std::size_t block) const {
  std::span<const TokenId> tokens;
  if (text.ids != nullptr)
    tokens = std::span(*text.ids).subspan(block * options_.block_tokens, options_.block_tokens);
  const auto found = pools_[group]->find(text.keys[block + 1], text.keys[block], tokens);
  if (found || outer_ == nullptr || !outer_->has(group, content_of(text, block), false)) return found;
  return kOutside;
}

std::size_t Scheduler::first_needed(std::size_t group, std::size_t tokens) const {
  const std::size_t window = options_.windows[group];
  return window == 0 || tokens + 1 <= window ? 0 : (tokens + 1 - window) / options_.block_tokens;
}

bool Scheduler::fits_window(std::size_t group, const ServedText& text, std::size_t blocks) const {
  for (std::size_t b = first_needed(group, blocks * options_.block_tokens); b < blocks; ++b) {
    if (!find(group, text, b)) return false;
  }
  return true;
}

Scheduler::Hit Scheduler::longest_hit(const ServedText& text) const {
  std::vector<BlockId> spine;
  for (std::size_t b = 0, most = most_hits(text); b < most; ++b) {
    const std::optional<BlockId> found = find(0, text, b);
    if (!found) break;
    spine.push_back(*found);
  }
  for (; !spine.empty(); spine.pop_back()) {
    const std::size_t blocks = spine.size();
    Hit hit{blocks, {spine}, {}};
    if (spine.back() != kOutside) hit.states = pools_[0]->content(spine.back())->states;
    if (options_.has_states && !hit.states &&
        (spine.back() != kOutside || !outer_->has(0, content_of(text, blocks - 1), true)))
      continue;
    bool whole = true;
    for (std::size_t g = 1; g < pools_.size() && whole; ++g) whole = fits_window(g, text, blocks);
    if (!whole) continue;
    for (std::size_t g = 1; g < pools_.size(); ++g) {
      std::vector<BlockId>& table = hit.tables.emplace_back(blocks, -1);
      for (std::size_t b = first_needed(g, blocks * options_.block_tokens); b < blocks; ++b)
        table[b] = *find(g, text, b);
    }
    return hit;
  }
  return {};
}

// Before anything is taken: what is taken is evicted, and must not be what was just found.
void Scheduler::touch(const Hit& hit) {
  for (std::size_t g = 0; g < hit.tables.size(); ++g) {
    for (const BlockId block : hit.tables[g]) {
      if (block >= 0) pools_[g]->hold(block);
    }
  }
}

// Reads what the outer level has of a hit, before anything is taken, as that may evict it there. False: a block was not
// what it should be, and the hit is another one.
bool Scheduler::fetch(const ServedText& text, const Hit& hit, std::vector<Fetched>& fetched) {
  fetched.clear();
  bool whole = true;
  for (std::size_t g = 0; g < hit.tables.size(); ++g) {
    for (std::size_t b = 0; b < hit.blocks; ++b) {
      if (hit.tables[g][b] != kOutside) continue;
      Fetched one{g, content_of(text, b), {}};
      const bool with_states = options_.has_states && g == 0 && b + 1 == hit.blocks;
      std::optional<OuterBlock> block = outer_->fetch(g, one.content, with_states);
      whole &= block.has_value();
      if (!block) continue;  // the rest is looked at all the same: damage is seldom alone
      one.rows = std::move(block->rows);
      one.later = std::move(block->later);
      one.content.states = std::move(block->states);
      fetched.push_back(std::move(one));
    }
  }
  return whole;
}

void Scheduler::load(Hit& hit, std::vector<Fetched>& fetched, StepPlan& plan) {
  for (Fetched& one : fetched) {
    const BlockId block = taken(one.group);
    hit.tables[one.group][one.content.number] = block;
    if (one.content.states) hit.states = one.content.states;
    plan.loads.push_back({one.group, block, std::move(one.rows), std::move(one.later)});
    pools_[one.group]->know(block, std::move(one.content));
  }
}

void Scheduler::keep_all() {
  for (std::size_t g = 0; g < pools_.size(); ++g) {
    for (const BlockId block : pools_[g]->queue()) {
      if (outer_ != nullptr && pools_[g]->content(block) != nullptr)
        outer_->keep(g, block, *pools_[g]->content(block));
    }
  }
}

void Scheduler::know(ServedText& text, std::size_t block, std::size_t group, const StatesOf& states,
                     const DraftsOf& drafts) {
  if (text.tables[group][block] < 0) return;
  BlockContent content = content_of(text, block);
  if (group == 0 && states && text.cached == (block + 1) * options_.block_tokens)
    content.states = states(text);
  if (group == 0 && drafts) content.drafts = drafts(text, (block + 1) * options_.block_tokens);
  pools_[group]->know(text.tables[group][block], std::move(content));
}

void Scheduler::complete(const StepPlan& plan, const StatesOf& states, const DraftsOf& drafts) {
  for (const StepPlan::Feed& feed : plan.feeds) {
    ServedText& text = *feed.text;
    if (text.place == ServedText::Place::over) continue;
    text.cached += feed.tokens;
    const std::size_t whole =
        std::min(text.cached / options_.block_tokens, text.keys.empty() ? 0 : text.keys.size() - 1);
    for (; options_.prefix_cache && text.known < whole; ++text.known) {
      for (std::size_t g = 0; g < pools_.size(); ++g) know(text, text.known, g, states, drafts);
    }
    for (std::size_t g = 0; g < pools_.size(); ++g) {
      std::vector<BlockId>& table = text.tables[g];
      for (std::size_t b = std::min(first_needed(g, text.cached), table.size()); b-- > 0 && table[b] >= 0;) {
        pools_[g]->release(table[b]);
        table[b] = -1;
      }
    }
  }
}

void Scheduler::finish(ServedText& text) {
  release(text);
  text.place = ServedText::Place::over;
  std::erase(running_, &text);
  std::erase(waiting_, &text);
}

std::size_t Scheduler::withdraw_loads(const StepPlan& plan) {
  std::size_t hits = 0;
  for (const StepPlan::Load& load : plan.loads) pools_[load.group]->forget(load.block);
  for (ServedText* text : running_) {
    const bool has = std::any_of(plan.loads.begin(), plan.loads.end(), [&](const StepPlan::Load& load) {
      const std::vector<BlockId>& table = text->tables.at(load.group);
      return std::find(table.begin(), table.end(), load.block) != table.end();
    });
    if (!has) continue;
    hits += text->hit;
    forget_cache(*text);
  }
  return hits;
}

void Scheduler::forget_cache(ServedText& text) {
  release(text);
  text.cached = text.known = text.hit = 0;
}

void Scheduler::release(ServedText& text) {
  for (std::size_t g = 0; g < text.tables.size(); ++g) {
    pools_[g]->release_all(text.tables[g]);
    text.tables[g].clear();
  }
}

}  // namespace assay
