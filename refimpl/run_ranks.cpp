#include "refimpl/run_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <map>
#include <mutex>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/message.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "refimpl/claims/rank_claims.h"
#include "refimpl/engine/engine.h"
#include "refimpl/ranks/mpi_transport.h"
#include "refimpl/ranks/thread_transport.h"
#include "refimpl/run_model.h"
#include "refimpl/run_rank_bytes.h"
#include "refimpl/run_rank_handoff.h"
#include "refimpl/run_report.h"
#include "refimpl/run_sampling.h"
#include "refimpl/run_speculation.h"

namespace assay {
namespace {

const std::map<std::string, RankSum> kSums = {{"tree", RankSum::tree}, {"order", RankSum::order}};

RankGrid grid_of(const RankSettings& s) {
  return {.tp = s.tp, .pp = s.pp, .ep = s.ep, .dp = s.dp};
}

RankedSettings ranked_settings(const RunSettings& settings, const OpenModel& open, int jobs) {
  RankedSettings ranked;
  ranked.options = open.options;
  ranked.arithmetic = open.arithmetic;
  ranked.grid = grid_of(settings.ranks);
  ranked.ranks.sum = kSums.at(settings.ranks.sum);
  ranked.micro_batches = settings.ranks.micro_batches;
  ranked.jobs = jobs;
  if (settings.kernels != "reference") ranked.kernels = open.kernels;
  return ranked;
}

// What one rank says at the end, as numbers: all ranks hear all of it.
std::vector<double> letter_of(const std::map<std::size_t, Generation>& made) {
  std::vector<double> letter;
  for (const auto& [text, generation] : made) {
    letter.push_back(static_cast<double>(text));
    letter.push_back(static_cast<double>(generation.finish_reason));
    letter.push_back(static_cast<double>(generation.ids.size()));
    letter.insert(letter.end(), generation.ids.begin(), generation.ids.end());
  }
  return letter;
}
void read_letter(const std::vector<double>& letter, std::vector<Generation>& to) {
  for (std::size_t at = 0; at < letter.size();) {
    Generation& generation = to.at(static_cast<std::size_t>(letter[at]));
    generation.finish_reason = static_cast<FinishReason>(letter[at + 1]);
    const auto count = static_cast<std::ptrdiff_t>(letter[at + 2]);
    const auto begin = letter.begin() + static_cast<std::ptrdiff_t>(at) + 3;
    generation.ids.assign(begin, begin + count);
    at += 3 + static_cast<std::size_t>(count);
  }
}

// One run: what all ranks are given, and what the first one tells.
class RankRunner {
 public:
  RankRunner(const RunSettings& settings, const Output& output)
      : settings_(settings), output_(output), open_(settings.model, settings) {
    if (settings.handoff.from.empty()) prompts_ = read_prompts(open_, settings);
    check_rank_prompts(settings, prompts_.size());
    if (settings.speculation.wanted() && prompts_.size() > settings.ranks.dp)
      throw Error::usage("--speculate takes one prompt, and of --dp N as many as there are copies");
    const RequestRules rules(open_, settings);
    for (const Prompt& prompt : prompts_) {
      check_prompt(prompt.tokens, *open_.model);
      GenerationRequest& request = requests_.emplace_back(
          GenerationRequest{.prompt = prompt.tokens, .max_new_tokens = settings.tokens_to_make()});
      rules.apply(request);
    }
    made_.resize(requests_.size());
    rules_.emplace(open_, settings);
  }

  int run() {
    check_ranks(grid_of(settings_.ranks));
    const auto limit = std::chrono::milliseconds(settings_.ranks.limit_seconds * 1000);
    if (settings_.claims) return claims(limit);
    if (settings_.handoff.wanted()) handoff_.begin(requests_);
    try {
      if (settings_.ranks.threads) {
        run_on_threads(grid_of(settings_.ranks).ranks(), limit,
                       [&](Transport& transport) { be_rank(transport, 1); });
      } else {
        const std::unique_ptr<Transport> transport = start_mpi(limit);
        const bool speaks = transport->rank() == 0;
        if (!be_rank_together(*transport)) return kExitBadInput;
        if (!speaks) return interrupted() ? kExitInterrupted : kExitOk;
      }
    } catch (const RanksInterrupted&) {
      return kExitInterrupted;
    }
    settings_.handoff.wanted() ? handoff_.tell(output_) : tell();
    return interrupted() ? kExitInterrupted : kExitOk;
  }

 private:
  // Opens first, and goes on only where all could: what refuses a model refuses it at every rank, and one line is
  // enough. False: another rank says why.
  bool be_rank_together(Transport& transport) {
    std::optional<Error> failure;
    std::unique_ptr<RankedModel> ranked;
    try {
      ranked =
          std::make_unique<RankedModel>(settings_.model, ranked_settings(settings_, open_, 1), transport);
    } catch (const Error& error) {
      failure = error;
    }
    std::vector<std::size_t> everybody(transport.size());
    for (std::size_t i = 0; i < everybody.size(); ++i) everybody[i] = i;
    RankGroup all(transport, std::move(everybody), kOpening);
    const double failed[] = {failure ? 1.0 : 0.0};
    const auto told = all.all_gather(failed);
    std::size_t first = told.size();
    for (std::size_t r = told.size(); r-- > 0;)
      if (told[r].front() != 0) first = r;
    if (first == transport.rank()) throw Error(*failure);
    if (first < told.size()) return false;
    compute(*ranked);
    return true;
  }

  void be_rank(Transport& transport, int jobs) {
    RankedModel ranked(settings_.model, ranked_settings(settings_, open_, jobs), transport);
    compute(ranked);
  }

  void compute(RankedModel& ranked) {
    if (settings_.handoff.wanted()) return handoff_.be_rank(ranked);
    const RankPlace& place = ranked.place();
    std::vector<std::size_t> texts;
    std::vector<GenerationRequest> own;
    for (std::size_t i = place.copy(); i < requests_.size(); i += place.grid.dp) {
      texts.push_back(i);
      own.push_back(requests_[i]);
    }
    const Made generations = make(ranked, own);
    std::map<std::size_t, Generation> made;
    for (std::size_t i = 0; i < texts.size(); ++i) made[texts[i]] = generations.texts[i];
    ranked.model().keep_company(ranked.ops());

    RankGroups& groups = ranked.groups();
    const bool tells = place.in_tp() == 0 && place.first_stage();
    const auto letters = groups.all.all_gather(tells ? letter_of(made) : std::vector<double>());
    const std::vector<double> own_figures = {
        static_cast<double>(ranked.cut().held_bytes()), static_cast<double>(sent(groups)),
        static_cast<double>(ranked.model().idle_passes()), static_cast<double>(ranked.ops().sums())};
    const auto figures = groups.all.all_gather(own_figures);
    if (place.rank != 0) return;
    for (const std::vector<double>& letter : letters) read_letter(letter, made_);
    figures_ = figures;
    timing_ = generations.timing;
    speculation_ = generations.speculation;
  }

  struct Made {
    std::vector<Generation> texts;
    EngineTiming timing;
    Json speculation;  // of rank 0
  };
  Made make(RankedModel& ranked, const std::vector<GenerationRequest>& own) {
    if (!settings_.speculation.wanted()) {
      TextEngine engine(ranked.model(), ranked.ops());
      std::vector<Generation> texts = engine.generate(own);
      return {std::move(texts), engine.timing(), {}};
    }
    // All ranks guess the same, by themselves: from the same hidden states, or each with the whole draft.
    std::optional<RunSpeculation> guesses;
    {
      const std::lock_guard lock(mutex_);
      guesses.emplace(open_, settings_, ranked.model(), ranked.ops());
    }
    Made made;
    for (const GenerationRequest& request : own) {
      const Speculation text = speculate(ranked.model(), ranked.ops(), request, {}, guesses->options());
      made.texts.push_back(text.made);
      made.timing = {.prefill_tokens = text.counts.prompt_tokens,
                     .decode_tokens = text.counts.tokens - text.counts.prompt_tokens,
                     .steps = text.steps,
                     .decode_seconds = text.counts.draft_seconds + text.counts.target_seconds};
      if (ranked.place().rank != 0) continue;
      made.speculation = guesses->to_json(text);
      for (const std::string& line : guesses->lines(text)) write_message(line);
    }
    return made;
  }

  static std::uint64_t sent(const RankGroups& groups) {
    return groups.tensor.doubles_sent() + groups.stage.doubles_sent() + groups.expert.doubles_sent() +
           groups.pipeline.doubles_sent();
  }

  int claims(std::chrono::milliseconds limit) {
    RankClaimRequest request;
    request.path = settings_.model;
    request.settings = ranked_settings(settings_, open_, 1);
    request.tokens = prompts_.front().tokens;
    request.limit = limit;
    const RankVerdict verdict = rank_claims(request);
    Json document = {{"schema", "assay.run/1"},
                     {"model", describe_run(open_, settings_)},
                     {"grid", request.settings.grid.text()},
                     {"claims", to_json(verdict.claims)}};
    Json held = Json::array();
    for (const RankReport& rank : verdict.ranks) held.push_back(rank.held_bytes);
    document["held_bytes"] = std::move(held);
    if (const auto planned = planned_rank_bytes(open_, request.settings.grid); !planned.empty())
      document["planned_bytes"] = planned;
    if (!verdict.first_divergence.empty()) document["first_divergence"] = verdict.first_divergence;
    output_.json(document);
    const std::string table = claim_table(verdict.claims);
    output_.line(std::string_view(table).substr(0, table.size() - 1));
    std::size_t refuted = 0;
    for (const Claim& claim : verdict.claims) refuted += claim.holds() ? 0 : 1;
    output_.paint(refuted == 0
                      ? fmt::format("OK: {} claims hold on {} cut into {}", verdict.claims.size(),
                                    open_.title(), request.settings.grid.text())
                      : fmt::format("REFUTED: {} of {} claims on {} cut into {}", refuted,
                                    verdict.claims.size(), open_.title(), request.settings.grid.text()),
                  refuted == 0 ? Style::green : Style::red);
    return refuted == 0 ? kExitOk : kExitCheckFailed;
  }

  std::string text_of(const std::vector<TokenId>& ids) {
    if (!settings_.needs_text()) return {};
    ShownText stream(open_.tokenizer(), settings_.stop);
    std::string text;
    for (const TokenId id : ids) text += stream.push(id);
    return text + stream.finish();
  }

  void tell() {
    const RankGrid grid = grid_of(settings_.ranks);
    Json sequences = Json::array(), ranks = Json::array();
    const std::vector<std::uint64_t> planned = planned_rank_bytes(open_, grid);
    std::string told;  // at once: what mpirun has of it when a rank dies is all of it, or nothing
    for (std::size_t i = 0; i < made_.size(); ++i) {
      const std::string text = text_of(made_[i].ids);
      const std::string shown =
          settings_.needs_text() ? text : fmt::format("{}", fmt::join(made_[i].ids, ","));
      told += made_.size() == 1 ? shown : fmt::format("{}[{}] {}", i == 0 ? "" : "\n", i + 1, shown);
      sequences.push_back({{"prompt_ids", prompts_[i].tokens},
                           {"ids", made_[i].ids},
                           {"text", text},
                           {"finish_reason", name(made_[i].finish_reason)}});
    }
    output_.line(told);
    for (std::size_t r = 0; r < figures_.size(); ++r) {
      const auto number = [&](std::size_t i) { return static_cast<std::uint64_t>(figures_[r].at(i)); };
      Json rank = {{"rank", r},
                   {"held_bytes", number(0)},
                   {"sent_bytes", 8 * number(1)},
                   {"idle_passes", number(2)},
                   {"sums", number(3)}};
      if (!planned.empty()) rank["planned_bytes"] = planned.at(r);
      ranks.push_back(std::move(rank));
      const std::string plan = planned.empty() ? ""
                               : planned.at(r) == number(0)
                                   ? " as planned"
                                   : fmt::format(" ({} planned)", with_thousands(planned[r]));
      write_message(fmt::format("rank {}: {} bytes of weights{}, {} bytes sent{}", r,
                                with_thousands(number(0)), plan, with_thousands(8 * number(1)),
                                number(2) == 0 ? "" : fmt::format(", {} passes without texts", number(2))));
    }
    Json document = {{"schema", "assay.run/1"},      {"model", describe_run(open_, settings_)},
                     {"grid", grid.text()},          {"rank_sum", settings_.ranks.sum},
                     {"ranks", std::move(ranks)},    {"sequences", std::move(sequences)},
                     {"timing", to_json(timing_, 0)}};
    if (!speculation_.is_null()) document["speculation"] = speculation_;
    output_.json(document);
    write_message(fmt::format("{} over {} as {}: {}", open_.title(), grid.text(),
                              settings_.ranks.threads ? "threads" : "processes", timing_line(timing_, 0)));
  }

  static constexpr int kOpening = 6;  // a channel of its own
  const RunSettings& settings_;
  const Output& output_;
  OpenModel open_;
  std::vector<Prompt> prompts_;
  std::vector<GenerationRequest> requests_;
  std::optional<RequestRules> rules_;  // outlives the texts
  std::vector<Generation> made_;
  std::vector<std::vector<double>> figures_;  // of each rank
  EngineTiming timing_;
  Json speculation_;
  std::mutex mutex_;  // of what ranks that are threads open
  RankHandoff handoff_{settings_, open_};
};

}  // namespace

void add_rank_options(CLI::App& command, RankSettings& s) {
  const auto ranks = CLI::Range(std::size_t{1}, std::size_t{1024});
  command.add_option("--tp", s.tp, "Cut tensors over N ranks, under mpirun or as threads")
      ->type_name("N")
      ->check(ranks);
  command.add_option("--pp", s.pp, "Deal layers out over N stages")->type_name("N")->check(ranks);
  command.add_option("--ep", s.ep, "Deal experts out over N groups of a stage's ranks")
      ->type_name("N")
      ->check(ranks);
  command.add_option("--dp", s.dp, "N copies of all but the experts, each with prompts of its own")
      ->type_name("N")
      ->check(ranks);
  command.add_flag("--threads-as-ranks", s.threads, "Of --tp …: threads of this process, without mpirun");
  command
      .add_option(
          "--rank-sum", s.sum,
          "Of --tp: sums in one tree whose bits no number of ranks changes (tree, default), or in the "
          "order of ranks")
      ->check(CLI::IsMember({"tree", "order"}));
  command.add_option("--micro-batches", s.micro_batches, "Of --pp: parts of a batch at most (default: 2)")
      ->type_name("N")
      ->check(ranks);
  command
      .add_option("--rank-timeout", s.limit_seconds,
                  "Of --tp …: seconds to wait for another rank (default: 600)")
      ->type_name("S")
      ->check(CLI::Range(std::size_t{1}, std::size_t{86400}));
}

namespace {

void check_rank_guesses(const RunSettings& settings) {
  const SpeculationSettings& s = settings.speculation;
  if (!s.wanted()) return;
  const bool own_layers = s.model.empty() && s.source != "lookup";
  if (own_layers && (settings.ranks.pp > 1 || settings.ranks.dp > 1))
    throw Error::usage(
        "a model's own prediction layers guess under --tp and --ep: stages would have to be asked for each "
        "guess, and copies make different numbers of them")
        .remedy("take --pp 1 --dp 1, --speculate lookup, or a --draft-model");
}

}  // namespace

void check_rank_options(const RunSettings& settings) {
  if (!settings.ranks.wanted()) {
    const RankSettings plain, &s = settings.ranks;
    if (s.threads || s.sum != plain.sum || s.micro_batches != plain.micro_batches ||
        s.limit_seconds != plain.limit_seconds)
      throw Error::usage(
          "--threads-as-ranks, --rank-sum, --micro-batches and --rank-timeout go with --tp, --pp, --ep or "
          "--dp");
    const char* together = std::getenv("OMPI_COMM_WORLD_SIZE");
    if (together != nullptr && parse_u64(together).value_or(1) > 1)
      throw Error::usage(fmt::format("mpirun started {} of this, each of which would do all of it", together))
          .remedy("say how they are to share it: --tp, --pp, --ep, --dp");
    return;
  }
  const bool of_host =
      settings.kernels == "reference" || settings.kernels == "cpu" || settings.kernels == "cpu-invariant";
  if (!of_host)
    throw Error::usage("ranks compute with the reference's kernels, or the CPU's")
        .remedy("leave out --kernels, or take cpu with --rank-sum order");
  if (settings.kernels != "reference" && settings.ranks.sum != "order")
    throw Error::usage(
        "the tree is of the reference's sums: kernels add up a rank's in an order of their own")
        .remedy("take --rank-sum order, or leave out --kernels");
  if (!settings.logits.empty() || !settings.dump.empty() || !settings.perplexity.empty() ||
      settings.log_probabilities > 0 || settings.interactive || !settings.cache_dir.empty() ||
      !settings.kv_cache.empty())
    throw Error::usage("--tp, --pp, --ep and --dp go with texts that are made, or --claims")
        .remedy(
            "leave out --logits, --dump, --perplexity, --logprobs, --interactive, --cache-dir, --kv-cache");
  check_rank_guesses(settings);
}

int run_on_ranks(const RunSettings& settings, const Output& output) {
  return RankRunner(settings, output).run();
}

}  // namespace assay
