#include "refimpl/engine/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "refimpl/engine/scoring.h"
#include "refimpl/models/mapped_file.h"

namespace assay {
namespace {

SchedulerOptions of_model(SchedulerOptions options, const LanguageModel& model) {
  const std::vector<CacheWidth> widths = model.cache_widths();
  options.windows.clear();
  for (const CacheGroup& group : cache_groups(widths)) options.windows.push_back(group.window);
  options.has_states = std::any_of(widths.begin(), widths.end(),
                                   [](const CacheWidth& width) { return !width.states.empty(); });
  return options;
}

constexpr std::size_t kNone = ~std::size_t{0};

double seconds_from(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

// A guess of a tree as a sequence of its own: of the text it sees the sure tokens and its own way alone.
struct ServingEngine::Branch {
  Branch(Ops& ops, const BlockStorage& storage, std::size_t context)
      : cache(ops, storage, rows, context, 1) {}
  std::vector<BlockTable> rows;  // by group, of each token
  SequenceCache cache;
};

// One text that is being made.
struct ServingEngine::Served {
  Served(const ServingEngine& engine, const ServingRequest& asked, std::size_t number_, std::size_t sample_)
      : number(number_),
        sample(sample_),
        request(asked),
        ids(asked.text.prompt),
        cache(engine.ops_, engine.storage_, text.tables, engine.model_.context()),
        sampler(engine.parts_.sampler(asked, sample_)),
        draws(engine.parts_.draws({sampler.params().seed, sampler.params().sample})),
        watch(asked.text.watch_text ? asked.text.watch_text() : TextWatch()) {
    cache.keep_by(engine.options_.method, 0);
    if (engine.options_.speculation.source) drafter = engine.options_.speculation.source->start();
  }

  std::size_t number, sample;
  ServingRequest request;
  std::vector<TokenId> ids;  // prompt and text
  ServedText text;
  SequenceCache cache;
  SequenceSampler sampler;
  std::unique_ptr<Draws> draws;
  TextWatch watch;
  std::unique_ptr<Drafter> drafter;
  Generation made;
  std::string regime;  // that the keys' root names
  // Of the step under way: guesses, whose tokens stand behind ids meanwhile; how many were fed, and the first row of the text.
  GuessTree guess;
  std::size_t fed_guesses = 0, first_row = 0;
  std::vector<std::unique_ptr<Branch>> branches;
  std::vector<std::size_t> right;   // guesses, in their order
  std::size_t next_row = 0;         // the one that counts next: 0 the newest sure token's, i + 1 guess i's
  std::optional<FinishReason> end;  // it was told, and is not carried out yet
  std::optional<Error> failure;     // why
  std::vector<double> forked_from;  // logits behind the prompt, whose other samples are due
  std::size_t prompt_rows = 0;      // whose logits were delivered
  std::vector<std::vector<std::vector<double>>> swapped;  // blocks by group, while it is swapped out
  bool handed = false;  // its prompt was read elsewhere, and no step has had it yet
};

// A row of a step whose logits are wanted.
struct ServingEngine::Row {
  Served* served;
  std::size_t row, position;
  std::size_t behind = 0;  // the newest sure token: 0; each of its guesses: 1, 2 …
  bool chooses = false;
};

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
      storage_(ops, model.cache_widths(), options.cache.block_tokens, options.cache.blocks),
      outer_(parts.outer ? parts.outer(ops, storage_) : nullptr) {
  scheduler_->set_outer(outer_.get());
}

ServingEngine::~ServingEngine() = default;

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

// Behind the newest token of each text that is being written. They are computed with it, and what is chosen from the
// row of the token before each says whether it was right: then its own row counts too.
void ServingEngine::guess() {
  if (!options_.speculation.source) return;
  const auto start = std::chrono::steady_clock::now();
  for (ServedText* text : scheduler_->running()) {
    if (text->pending() == 1 && !of_text_.at(text)->made.ids.empty()) guess(*of_text_.at(text));
  }
  for (ServedText* text : scheduler_->waiting()) {
    if (of_text_.at(text)->handed) guess(*of_text_.at(text));
  }
  counts_.draft_seconds += seconds_from(start);
}

void ServingEngine::guess(Served& served) {
  served.guess = {};
  const TreeShape shape = shape_for(served);
  if (shape.empty()) return;
  const AcceptanceRule::Place place = {served.sampler, *served.draws};
  served.guess = served.drafter->guess({served.ids, shape, *options_.speculation.rule, place});
  counts_.draft_rows += served.guess.rows;
  const std::size_t room = scheduler_->capacity() - std::min(scheduler_->capacity(), served.ids.size());
  std::vector<Guess>& guesses = served.guess.guesses;
  if (guesses.size() > room) guesses.resize(room);
  for (const Guess& guess : guesses) served.ids.push_back(guess.token);
  served.text.tokens += guesses.size();
  served.text.guessed = guesses.size();
}

// No deeper than the text may go on; recurrent layers take back a chain alone.
TreeShape ServingEngine::shape_for(const Served& served) const {
  const std::size_t known = served.ids.size(), limit = std::min(model_.context(), scheduler_->capacity());
  std::size_t deepest = std::min(limit - std::min(limit, known),
                                 served.request.text.max_new_tokens - served.made.ids.size() - 1);
  const bool chain = scheduler_->options().has_states;
  if (chain) deepest = std::min(deepest, SequenceCache::kTakenBack - 1);
  TreeShape shape = options_.speculation.shape;
  shape.resize(std::min(shape.size(), deepest));
  if (chain) std::fill(shape.begin(), shape.end(), std::size_t{1});
  return model_.cache_serves(known, known + guesses_of(shape)) ? shape : TreeShape();
}

void ServingEngine::forget_guesses() {
  for (const auto& [text, served] : of_text_) {
    served->ids.resize(served->ids.size() - served->text.guessed);
    served->text.tokens = served->ids.size();
    served->text.guessed = 0;
  }
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

// It goes on from what stands beside the blocks that were hit.
void ServingEngine::resume_drafter(Served& served) const {
  if (!served.drafter) return;
  std::vector<Drafter::Beside> blocks;
  for (std::size_t b = 0; b < served.text.cached / options_.cache.block_tokens; ++b) {
    const BlockContent* content = scheduler_->pools()[0]->content(served.text.tables[0][b]);
    blocks.push_back(content == nullptr ? nullptr : content->drafts);
  }
  served.drafter->resume(blocks, served.text.cached);
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

// The tree's mask: a table of the rows that the guess sees, one for each token. Guesses lie in rows of their own, behind those
// of the sure tokens, in their order.
SequenceCache& ServingEngine::branch(Served& served, std::size_t guess) {
  auto& branch = served.branches.emplace_back(std::make_unique<Branch>(ops_, storage_, model_.context()));
  const std::vector<std::size_t> seen = parts_.seen_by(served.guess, guess);
  const std::size_t sure = served.text.sure();
  for (const BlockTable& table : served.text.tables) {
    BlockTable& rows = branch->rows.emplace_back();
    for (std::size_t token = 0; token < sure; ++token) rows.push_back(storage_.row(table, token));
    for (const std::size_t other : seen) rows.push_back(storage_.row(table, sure + other));
  }
  branch->cache.keep_by(options_.method, 0);
  branch->cache.resume(sure + seen.size() - 1, {});
  return branch->cache;
}

// Logits a few rows at a time: a row is as wide as the vocabulary.
void ServingEngine::deliver(const Matrix& hidden, const std::vector<Row>& rows) {
  const std::size_t vocabulary = model_.vocabulary(), at_once = rows_at_once(vocabulary);
  for (std::size_t first = 0; first < rows.size(); first += at_once) {
    const std::size_t count = std::min(at_once, rows.size() - first);
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < count; ++i) places.push_back(rows[first + i].row);
    const std::vector<double> logits = ops_.download(model_.logits(ops_.gather(hidden, places), ops_, {}));
    require_mapped();
    for (std::size_t i = 0; i < count; ++i)
      deliver(rows[first + i], std::span(logits).subspan(i * vocabulary, vocabulary));
  }
}

void ServingEngine::deliver(const Row& row, std::span<const double> logits) {
  Served& served = *row.served;
  const GenerationRequest& asked = served.request.text;
  if (served.request.prompt_logits && row.position == served.prompt_rows &&
      row.position < asked.prompt.size()) {
    ++served.prompt_rows;
    if (prompt_listener_) prompt_listener_(served.number, row.position, logits);
  }
  if (!row.chooses || row.behind != served.next_row || served.end)
    return;  // behind a wrong guess, or the end
  if (asked.max_new_tokens == 0) {
    served.end = FinishReason::length;
    return;
  }
  if (served.made.ids.empty() && served.sample == 0 && served.request.samples > 1)
    served.forked_from.assign(logits.begin(), logits.end());
  try_to_choose(served, logits, row.behind);
}

// Before the token is known nothing of the text has changed, so that it can end here by itself.
void ServingEngine::try_to_choose(Served& served, std::span<const double> logits, std::size_t behind) {
  if (!end_listener_) return choose(served, logits, behind);
  try {
    choose(served, logits, behind);
  } catch (const Error& error) {
    served.failure = error;
    served.end = FinishReason::interrupted;
    served.next_row = kNone;
  }
}

// It is the text's next token: does it end it?
bool ServingEngine::push(Served& served, TokenId id, std::span<const double> logits) {
  served.sampler.push(id);
  served.ids.push_back(id);
  served.made.ids.push_back(id);
  if (listener_) listener_(served.number, served.sample, id, logits);
  const bool said = served.watch && served.watch(id);
  return said || served.sampler.ends(id) || served.sampler.complete(model_.vocabulary());
}

// `behind`: the row's, as Served::next_row counts.
void ServingEngine::choose(Served& served, std::span<const double> logits, std::size_t behind) {
  const std::vector<std::size_t> places = served.guess.children(behind, served.fed_guesses);
  std::vector<const Guess*> children;
  for (const std::size_t place : places) children.push_back(&served.guess.guesses[place]);
  const AcceptanceRule::Chosen chosen = options_.speculation.rule->choose(
      logits, children, {served.sampler, *served.draws, served.right.size()});
  const std::size_t depth = served.right.size();
  if (!children.empty()) {
    counts_.tried.resize(std::max(counts_.tried.size(), depth + 1));
    counts_.right.resize(counts_.tried.size());
    ++counts_.tried[depth];
    counts_.right[depth] += chosen.guess ? 1 : 0;
  }
  const bool stops = push(served, chosen.token, logits);
  served.end = parts_.end({stops, served.made.ids.size(), served.request.text.max_new_tokens,
                           served.ids.size(), std::min(model_.context(), scheduler_->capacity()),
                           chosen.guess ? served.fed_guesses - places[*chosen.guess] : 0});
  served.next_row = kNone;
  if (!chosen.guess || served.end) return;
  served.right.push_back(places[*chosen.guess]);
  served.next_row = served.right.back() + 1;
}

// Of the step's rows those of sure tokens and right guesses, on end.
void ServingEngine::keep_right(Served& served, StepPlan::Feed& feed, const Matrix& hidden) {
  const std::size_t wrong = served.fed_guesses - served.right.size(), sure = feed.tokens - served.fed_guesses;
  counts_.guessed += served.fed_guesses;
  counts_.accepted += served.right.size();
  if (served.fed_guesses > 0) {
    ++counts_.guessing_steps;
    counts_.guessing_tokens += served.right.size() + 1;
  }
  const std::size_t first_guess = feed.text->cached + sure;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < sure; ++i) rows.push_back(served.first_row + i);
  for (std::size_t i = 0; i < served.right.size(); ++i) {
    rows.push_back(served.first_row + sure + served.right[i]);
    if (served.right[i] != i)
      storage_.move(feed.text->tables, first_guess + served.right[i], first_guess + i);
  }
  feed.tokens -= wrong;
  served.cache.advance(feed.tokens);
  if (served.drafter && served.drafter->wants_hidden())
    served.drafter->see(served.ids, feed.text->cached, ops_.gather(hidden, rows));
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
