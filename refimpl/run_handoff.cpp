#include "refimpl/run_handoff.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <filesystem>

#include "core/formats/stream_digest.h"
#include "core/system/error.h"
#include "core/system/not_empty.h"
#include "core/system/real_range.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "refimpl/endpoint/api_keys.h"
#include "refimpl/handoff/part_folder.h"
#include "refimpl/handoff/part_socket.h"
#include "refimpl/handoff/rank_shape.h"
#include "refimpl/run_handoff_places.h"
#include "refimpl/run_served.h"

namespace assay {
namespace {

constexpr std::size_t kHandedBlock = 16, kShownLayers = 40;

Patience patience_of(const HandoffSettings& s) {
  return Patience(static_cast<std::int64_t>(1000 * s.timeout));
}

// Of this rank, or process, and rank `other` of the other side.
std::string place_beside(const std::string& where, const CacheShape& shape, const RankGrid& others,
                         std::uint64_t other, bool sends) {
  const HandoffPair pair = sends ? HandoffPair{shape.ranks, shape.rank, others.ranks(), other}
                                 : HandoffPair{others.ranks(), other, shape.ranks, shape.rank};
  return place_of_pair(where, pair);
}

std::unique_ptr<PartSink> sink_of(const HandoffSettings& s, const std::string& where,
                                  HandoffClock::time_point until) {
  const auto place = socket_place(where);
  if (!place) return std::make_unique<PartFolderSink>(where);
  const std::string authorization = s.key_file.empty() ? std::string() : first_authorization(s.key_file);
  return std::make_unique<PartSocketSink>(*place, authorization, patience_of(s), until);
}

std::unique_ptr<PartSource> source_of(const HandoffSettings& s, const std::string& where,
                                      const std::function<void(const std::string&)>& note) {
  const auto place = socket_place(where);
  if (!place) return std::make_unique<PartFolderSource>(where, patience_of(s));
  const ApiKeys keys = s.key_file.empty() ? ApiKeys() : ApiKeys::read(s.key_file);
  keys.require_for(place->host, where, "--handoff-key-file");
  auto source = std::make_unique<PartSocketSource>(
      *place, [keys](const std::string& authorization) { return keys.admits(authorization); },
      patience_of(s));
  const std::string host = place->host.find(':') == std::string::npos ? place->host : "[" + place->host + "]";
  note(fmt::format("waiting for a hand-off on tcp://{}:{}", escape_for_terminal(host), source->port()));
  return source;
}

// All by which a token is chosen from logits.
std::string rules_text(const RunSettings& s, const SamplingParams& p) {
  std::string text = fmt::format("temperature {} top-k {} top-p {} min-p {} typical-p {} penalties {} {} {} ",
                                 p.temperature, p.top_k, p.top_p, p.min_p, p.typical_p, p.repetition_penalty,
                                 p.presence_penalty, p.frequency_penalty);
  text += fmt::format("min-tokens {} seed {}", p.min_tokens, p.seed);
  for (const TokenId id : p.stop_tokens) text += fmt::format(" stop {}", id);
  for (const auto& [id, bias] : p.logit_bias) text += fmt::format(" bias {}={}", id, bias);
  for (const std::string& file : {s.grammar, s.json_schema})
    text += file.empty() ? " -" : " " + sha256_of_file(File::open(file)).hex();
  return text;
}

std::string sums_of(const RunSettings& s) {
  return s.ranks.wanted() ? s.ranks.sum : std::string();
}

}  // namespace

void add_handoff_options(CLI::App& command, HandoffSettings& s) {
  command
      .add_option("--handoff-to", s.to,
                  "Read the prompt only, and hand what was computed to another process: a folder, or "
                  "tcp://HOST:PORT where it listens")
      ->type_name("WHERE")
      ->check(not_empty());
  command
      .add_option(
          "--handoff-from", s.from,
          "Go on from a prompt that another process read: from a folder, or listening on tcp://HOST:PORT")
      ->type_name("WHERE")
      ->check(not_empty());
  command
      .add_option(
          "--handoff-first", s.first,
          "Of --handoff-to: the first token goes as its id (default), or as the hidden state that the "
          "other side chooses it from")
      ->check(CLI::IsMember({"id", "hidden"}));
  command
      .add_option(
          "--handoff-draft", s.draft,
          "Of --handoff-to: what the prediction layers' cache is made of on the other side: recompute, "
          "rows, hidden, inputs (default: none)")
      ->check(CLI::IsMember({"none", "recompute", "rows", "hidden", "inputs"}));
  command.add_flag("--handoff-whole", s.whole,
                   "Of --handoff-to: send when all is computed, not layer by layer");
  command.add_option("--handoff-heads", s.senders, "Of --handoff-to: heads in parts, as of so many ranks")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 20))
      ->type_name("N");
  command
      .add_option("--handoff-ranks", s.ranks,
                  "The other side is ranks, of --tp N, or NxM: of --tp N --pp M. Each at a port of its own "
                  "from this one "
                  "on, or in a folder rank-r of this one; of ranks on both sides every pair")
      ->type_name("N[xM]");
  command
      .add_option("--handoff-timeout", s.timeout,
                  "Seconds to wait for the other side while nothing moves (default: 60)")
      ->check(real_range(0.001, 1e6))
      ->type_name("S");
  command
      .add_option("--handoff-key-file", s.key_file,
                  "Keys of those who may hand over, one a line; of --handoff-to the first is shown")
      ->type_name("FILE");
}

void check_handoff_options(const RunSettings& settings) {
  const HandoffSettings& s = settings.handoff;
  if (!s.to.empty() && !s.from.empty())
    throw Error::usage("--handoff-to and --handoff-from are two processes' options");
  const bool of_prefill = !s.first.empty() || !s.draft.empty() || s.whole || s.senders != 1;
  if (s.to.empty() && of_prefill)
    throw Error::usage(
        "--handoff-first, --handoff-draft, --handoff-whole and --handoff-heads go with --handoff-to");
  if (!s.wanted() && !s.key_file.empty())
    throw Error::usage("--handoff-key-file goes with --handoff-to or --handoff-from");
  if (!s.wanted() && !s.ranks.empty())
    throw Error::usage("--handoff-ranks goes with --handoff-to or --handoff-from");
  const bool over_ranks = other_side(s.ranks).ranks() > 1 || settings.ranks.wanted();
  if (over_ranks && (s.senders != 1 || s.draft == "rows"))
    throw Error::usage(
        "over ranks nothing is left for --handoff-heads, and rows of prediction layers would come from "
        "several")
        .remedy("take --handoff-draft none, recompute, hidden or inputs");
  if (!s.wanted()) return;
  if (settings.interactive || settings.claims || !settings.perplexity.empty() || settings.only_numbers() ||
      !settings.cache_dir.empty() || !settings.kv_cache.empty())
    throw Error::usage("a hand-off goes with a text that is made")
        .remedy("leave out --interactive, --claims, --perplexity, --logits, --dump, --cache-dir, --kv-cache");
  if (!s.to.empty() && settings.speculation.wanted())
    throw Error::usage("--speculate is the other side's: --handoff-draft says what it is given");
  if (!s.from.empty() && (settings.has_text() || !settings.token_lists.empty()))
    throw Error::usage("the prompt comes with the hand-off: no -p or --tokens beside --handoff-from");
}

HandoffModel handoff_model(const OpenModel& open, const RunSettings& settings) {
  return {*open.model, *open.ops, cache_shape(*open.model, open.weights.tree()),
          handoff_identity(run_identity(open, settings))};
}

HandoffSent send_handoff(const HandoffModel& with, const HandoffModel& whole, const RunSettings& settings,
                         const GenerationRequest& request) {
  const HandoffSettings& s = settings.handoff;
  const HandoffOptions options = {
      .by_layer = !s.whole,
      .first = s.first.empty() ? FirstToken::id : first_token_from(s.first).value(),
      .draft = s.draft.empty() ? DraftHandoff::none : draft_handoff_from(s.draft).value(),
      .senders = s.senders,
      .text = settings.has_text(),
      .rules = rules_text(settings, request.sampling),
      .sums = sums_of(settings)};
  const RankGrid others = other_side(s.ranks);
  std::vector<std::unique_ptr<PartSink>> sinks;
  std::vector<HandoffTaker> takers;
  for (std::size_t rank = 0; rank < others.ranks(); ++rank) {
    HandoffTaker taker;
    if (others.ranks() > 1) taker.shape = shape_of_rank(whole.shape, whole.model, {others, rank});
    takers.push_back(std::move(taker));
  }
  // They are all to be there within the time that one is given.
  const auto until = HandoffClock::now() + patience_of(s);
  for (std::size_t rank = 0; rank < others.ranks(); ++rank)
    takers[rank].sink =
        sinks.emplace_back(sink_of(s, place_beside(s.to, with.shape, others, rank, true), until)).get();
  return hand_over(with, request, options, takers);
}

Json to_json(const HandoffSent& sent, std::size_t tokens) {
  Json document = {{"tokens", tokens},
                   {"parts", sent.parts},
                   {"bytes", sent.bytes},
                   {"row_bytes", sent.row_bytes},
                   {"state_bytes", sent.state_bytes},
                   {"hidden_bytes", sent.hidden_bytes},
                   {"draft_bytes", sent.draft_bytes},
                   {"prefill_seconds", sent.prefill_seconds},
                   {"seconds", sent.seconds},
                   {"timeline", to_json(sent.timeline)}};
  if (sent.first) document["first_token"] = *sent.first;
  return document;
}

std::string handoff_lines(const HandoffSent& sent, std::size_t tokens) {
  const auto a_token = [&](std::uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(std::max<std::size_t>(1, tokens));
  };
  return render(sent.timeline, kShownLayers) +
         fmt::format(
             "\n{} tokens handed over in {} parts, {} bytes: {:.6g} a token of rows, {:.6g} of hidden "
             "states, {:.6g} of prediction layers; {} of states",
             with_thousands(tokens), with_thousands(sent.parts), with_thousands(sent.bytes),
             a_token(sent.row_bytes), a_token(sent.hidden_bytes), a_token(sent.draft_bytes),
             with_thousands(sent.state_bytes));
}

RunTakeover::RunTakeover(HandoffModel with, const RunSettings& settings,
                         const std::function<void(const std::string&)>& note)
    : settings_(settings), with_(std::move(with)) {
  const HandoffSettings& s = settings.handoff;
  const RankGrid others = other_side(s.ranks);
  std::vector<PartSource*> all;
  for (std::size_t rank = 0; rank < others.ranks(); ++rank)
    all.push_back(
        sources_.emplace_back(source_of(s, place_beside(s.from, with_.shape, others, rank, false), note))
            .get());
  taken_ = std::make_unique<Takeover>(with_, all, made_);
}

RunTakeover::Text RunTakeover::write(const GenerationRequest& request, const SpeculationOptions& speculation,
                                     const std::function<void(TokenId, std::span<const double>)>& show) {
  taken_->require_rules(rules_text(settings_, request.sampling));
  taken_->require_sums(sums_of(settings_));
  taken_->read(kHandedBlock);
  const std::size_t guesses = guesses_of(speculation.shape), context = with_.model.context();
  const std::size_t most =
      std::min(context, request.prompt.size() + std::min(request.max_new_tokens, context));
  ServingOptions options{
      .cache = {.blocks = (most + guesses) / kHandedBlock + 1, .block_tokens = kHandedBlock},
      .speculation = speculation};
  options.cache.chunk = options.cache.tokens_a_step = options.cache.chunk + guesses;
  options.cache.prefix_cache = false;
  ServingEngine engine(with_.model, with_.ops, options);
  engine.listen(
      [&](std::size_t, std::size_t, TokenId id, std::span<const double> logits) { show(id, logits); });
  engine.watch_plans([&](const StepPlan& plan) { taken_->check(engine.storage(), plan); });
  const auto start = HandoffClock::now();
  const auto tell = [&] {
    for (const auto& source : sources_) source->taken();
  };
  bool told = false;
  try {
    const std::size_t number = engine.take_over({.text = request}, taken_->text(kHandedBlock));
    while (engine.step()) {
      if (!std::exchange(told, true)) tell();
    }
    if (!told) tell();
    for (const auto& source : sources_)
      if (!interrupted()) source->done();
    return {engine.result(number), engine.counts(),
            std::chrono::duration<double>(HandoffClock::now() - start).count()};
  } catch (const Error& error) {
    if (!told) taken_->refuse(error.line());
    throw;
  }
}

Json RunTakeover::to_json() const {
  return {{"tokens", ticket().tokens.size()}, {"first", name(ticket().first)},
          {"draft", name(ticket().draft)},    {"parts", taken_->parts()},
          {"bytes", taken_->bytes()},         {"checked", taken_->checked()}};
}

}  // namespace assay
