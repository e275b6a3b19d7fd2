#include "refimpl/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <memory>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/message.h"
#include "core/system/report.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "refimpl/claims/claims.h"
#include "refimpl/logits_file.h"
#include "refimpl/models/model_notes.h"
#include "refimpl/run_cache.h"
#include "refimpl/run_chat.h"
#include "refimpl/run_handoff.h"
#include "refimpl/run_model.h"
#include "refimpl/run_options.h"
#include "refimpl/run_perplexity.h"
#include "refimpl/run_ranks.h"
#include "refimpl/run_report.h"
#include "refimpl/run_sampling.h"
#include "refimpl/run_served.h"
#include "refimpl/run_speculation.h"
#include "refimpl/tap_recorder.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostDumped = 4ull << 30;

// One run of the command: prompts in, text and numbers out.
class Runner {
 public:
  Runner(const RunSettings& settings, const Output& output)
      : settings_(settings), output_(output), open_(load(settings)) {
    document_ = {{"schema", "assay.run/1"}, {"model", describe_run(*open_, settings)}};
    for (const std::string& line :
         model_notes(open_->weights, open_->arithmetic.precision, open_->kernels.name))
      note(line);
  }

  int run() {
    if (!settings_.perplexity.empty()) return run_loss();
    if (settings_.interactive) return chat(*open_, settings_);
    if (settings_.handoff.wanted()) return run_handoff();
    prompts_ = read_prompts(*open_, settings_);
    if (!settings_.kv_cache.empty()) cache_.emplace(*open_, settings_);
    if (settings_.claims) return run_all_claims();
    if (!settings_.dump.empty()) recorder_.emplace(*open_->ops, settings_.taps, kMostDumped);
    if (needs_scoring()) score();
    if (settings_.tokens_to_make() > 0 && !interrupted())
      settings_.speculation.wanted() ? speculate_text() : generate();
    if (recorder_) write_dump();
    return finish();
  }

 private:
  static std::unique_ptr<OpenModel> load(const RunSettings& settings) {
    const auto start = std::chrono::steady_clock::now();
    auto open = std::make_unique<OpenModel>(settings.model, settings);
    open->load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return open;
  }

  // To stderr, and into the document.
  void note(const std::string& line) {
    write_message("note: " + line);
    document_["notes"].push_back(line);
  }

  Taps taps() { return recorder_ ? Taps(*recorder_) : Taps(); }
  // The tokenizer where one is known to be there: prompts of tokens need none.
  const Tokenizer* tokenizer() {
    return settings_.needs_text() || text_came_ ? &open_->tokenizer() : nullptr;
  }

  bool needs_scoring() const {
    const bool only_prompt = settings_.tokens_to_make() == 0;
    return !settings_.logits.empty() || (only_prompt && (settings_.log_probabilities > 0 || recorder_));
  }

  // ---- numbers of the prompt itself

  void score() {
    TextEngine engine(*open_->model, *open_->ops, taps());
    const std::unique_ptr<LogitsFile> logits = logits_file();
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
      const std::vector<TokenId>& tokens = prompts_[i].tokens;
      engine.score(tokens, [&](std::size_t position, std::span<const double> row) {
        if (logits) logits->put(i, position, row);
        if (settings_.tokens_to_make() == 0 && settings_.log_probabilities > 0 &&
            position + 1 < tokens.size())
          say_likely(i, row, tokens[position + 1]);
      });
    }
    add(engine.timing());
    if (!logits || interrupted()) return;
    logits->commit();
    write_message(fmt::format("logits of {} tokens in {}", prompts_.front().tokens.size(),
                              escape_for_terminal(settings_.logits)));
  }

  std::unique_ptr<LogitsFile> logits_file() const {
    if (settings_.logits.empty()) return nullptr;
    std::vector<std::size_t> tokens;
    for (const Prompt& prompt : prompts_) {
      check_prompt(prompt.tokens, *open_->model);  // before room is taken for its rows
      tokens.push_back(prompt.tokens.size());
    }
    return std::make_unique<LogitsFile>(settings_.logits, tokens, open_->model->vocabulary(),
                                        open_->arithmetic.storage() == Real::f64, metadata());
  }

  void write_dump() {
    if (interrupted()) return;
    recorder_->require_some(settings_.taps);
    recorder_->write(settings_.dump, metadata());
    write_message(
        fmt::format("{} intermediates in {}", recorder_->size(), escape_for_terminal(settings_.dump)));
  }

  std::vector<std::pair<std::string, std::string>> metadata() const {
    return {{"format", "pt"},
            {"assay.model", settings_.model},
            {"assay.precision", std::string(name(open_->arithmetic.precision))},
            {"assay.kernels", open_->kernels.name}};
  }

  // ---- text

  void generate() {
    std::vector<GenerationRequest> requests;
    const RequestRules rules(*open_, settings_);
    for (const Prompt& prompt : prompts_) requests.push_back(request(prompt, rules));
    TextEngine engine(*open_->model, *open_->ops, taps());
    if (cache_) cache_->keep(engine);
    const bool stream = prompts_.size() == 1;
    std::optional<ShownText> text;
    if (stream && tokenizer() != nullptr) text.emplace(*tokenizer(), settings_.stop);
    const auto show = [&](std::size_t i, TokenId id, std::span<const double> logits) {
      if (stream) show_token(text, id);
      if (settings_.log_probabilities > 0) say_likely(i, logits, id);
    };
    if (!settings_.cache_dir.empty()) {
      const ServedTexts served =
          serve_texts(*open_, settings_, requests, show, [this](const std::string& line) { note(line); });
      made_ = served.made;
      add(served.timing);
      if (stream) show_end(text);
      tell_hits(served);
    } else {
      made_ = engine.generate(requests, show);
      add(engine.timing());
      if (stream) show_end(text);
    }
    if (cache_) document_["kv_cache"] = cache_->to_json(), write_message(cache_->line());
  }

  void tell_hits(const ServedTexts& served) {
    const ServingCounts& counts = served.counts;
    document_["cache"] = {{"hit_tokens", counts.hit_tokens},
                          {"loaded_blocks", counts.loaded_blocks},
                          {"from_memory", served.from_memory},
                          {"computed_tokens", counts.prompt_tokens},
                          {"timeline", to_json(served.arrivals)}};
    write_message(
        fmt::format("{} tokens of prompts were known, {} computed", counts.hit_tokens, counts.prompt_tokens));
    if (const std::string line = line_of(served.arrivals); !line.empty()) write_message(line);
  }

  void speculate_text() {
    if (prompts_.size() != 1) throw Error::usage("--speculate takes one prompt");
    std::optional<ShownText> text;
    if (tokenizer() != nullptr) text.emplace(*tokenizer(), settings_.stop);
    const RunSpeculation guesses(*open_, settings_);
    const Speculation result = speculate(
        *open_->model, *open_->ops, request(prompts_.front(), RequestRules(*open_, settings_)),
        [&](TokenId id, std::span<const double> logits) {
          show_token(text, id);
          if (settings_.log_probabilities > 0) say_likely(0, logits, id);
        },
        guesses.options());
    show_end(text);
    made_ = {result.made};
    document_["speculation"] = guesses.to_json(result);
    for (const std::string& line : guesses.lines(result)) write_message(line);
    timing_.prefill_tokens = result.counts.prompt_tokens;
    timing_.decode_tokens = result.counts.tokens - result.counts.prompt_tokens;
    timing_.decode_seconds = result.counts.draft_seconds + result.counts.target_seconds;
    timing_.steps = result.steps;
  }

  // ---- two processes

  int run_handoff() {
    try {
      return settings_.handoff.from.empty() ? hand_over_prompt() : take_over_text();
    } catch (const Error&) {
      if (interrupted()) return kExitInterrupted;  // the other side may have gone first
      throw;
    }
  }

  int hand_over_prompt() {
    prompts_ = read_prompts(*open_, settings_);
    if (prompts_.size() != 1) throw Error::usage("--handoff-to takes one prompt");
    const RequestRules rules(*open_, settings_);
    const HandoffModel whole = handoff_model(*open_, settings_);
    const HandoffSent sent = send_handoff(whole, whole, settings_, request(prompts_.front(), rules));
    const std::size_t tokens = prompts_.front().tokens.size();
    document_["handoff"] = to_json(sent, tokens);
    output_.line(handoff_lines(sent, tokens));
    timing_ = {.prefill_tokens = tokens, .steps = 1, .prefill_seconds = sent.prefill_seconds};
    return finish();
  }

  int take_over_text() {
    RunTakeover taking(handoff_model(*open_, settings_), settings_,
                       [](const std::string& line) { write_message(line); });
    prompts_ = {{"", taking.ticket().tokens}};
    text_came_ = taking.ticket().text;
    std::optional<ShownText> text;
    if (tokenizer() != nullptr) text.emplace(*tokenizer(), settings_.stop);
    std::optional<RunSpeculation> guesses;
    if (settings_.speculation.wanted()) guesses.emplace(*open_, settings_);
    const RequestRules rules(*open_, settings_);
    const RunTakeover::Text written =
        taking.write(request(prompts_.front(), rules), guesses ? guesses->options() : SpeculationOptions(),
                     [&](TokenId id, std::span<const double> logits) {
                       show_token(text, id);
                       if (settings_.log_probabilities > 0 && !logits.empty()) say_likely(0, logits, id);
                     });
    show_end(text);
    made_ = {written.made};
    document_["handoff"] = taking.to_json();
    if (guesses) {
      const ServingCounts& counts = written.counts;
      const Speculation result{written.made, counts, counts.guessed, counts.accepted, counts.steps};
      document_["speculation"] = guesses->to_json(result);
      for (const std::string& line : guesses->lines(result)) write_message(line);
    }
    timing_ = {.decode_tokens = written.made.ids.size(),
               .steps = written.counts.steps,
               .decode_seconds = written.seconds};
    return finish();
  }

  GenerationRequest request(const Prompt& prompt, const RequestRules& rules) const {
    GenerationRequest request = {.prompt = prompt.tokens, .max_new_tokens = settings_.tokens_to_make()};
    rules.apply(request);
    return request;
  }

  void show_token(std::optional<ShownText>& text, TokenId id) {
    if (!output_.text_wanted() || settings_.log_probabilities > 0) return;
    const std::string shown = text ? text->push(id) : fmt::format("{}{}", first_ ? "" : ",", id);
    first_ = false;
    stream_output(shown);
  }
  void show_end(std::optional<ShownText>& text) {
    if (!output_.text_wanted() || settings_.log_probabilities > 0) return;
    stream_output((text ? text->finish() : std::string()) + "\n");
  }

  void say_likely(std::size_t prompt, std::span<const double> logits, TokenId chosen) {
    const LikelyTokens likely = likely_tokens(logits, chosen, settings_.log_probabilities);
    if (likely_.size() <= prompt) likely_.resize(prompt + 1);
    likely_[prompt].push_back(to_json(likely));
    output_.line(likely_line(likely, tokenizer()));
  }

  // ---- claims and losses

  int run_all_claims() {
    const std::vector<Claim> claims =
        run_claims(open_->weights, open_->options, open_->kernels, open_->arithmetic, settings_.common.jobs,
                   prompts_.front().tokens);
    document_["claims"] = to_json(claims);
    tell_fallbacks();
    output_.json(document_);
    const std::string table = claim_table(claims);
    output_.line(std::string_view(table).substr(0, table.size() - 1));
    std::size_t refuted = 0;
    std::size_t promised = 0;
    for (const Claim& claim : claims) {
      refuted += claim.holds() ? 0 : 1;
      promised += claim.promised ? 1 : 0;
    }
    if (interrupted()) return kExitInterrupted;
    output_.paint(
        refuted == 0
            ? fmt::format("OK: {} claims hold on {}{}", promised, open_->title(),
                          promised == claims.size() ? ""
                                                    : fmt::format(", {} are not promised by these kernels",
                                                                  claims.size() - promised))
            : fmt::format("REFUTED: {} of {} claims on {}", refuted, claims.size(), open_->title()),
        refuted == 0 ? Style::green : Style::red);
    return refuted == 0 ? kExitOk : kExitCheckFailed;
  }

  int run_loss() {
    std::unique_ptr<OpenModel> other;
    if (!settings_.against.empty()) {
      RunSettings reference = settings_;
      reference.model = settings_.against;
      reference.kernels = "reference";
      if (reference.precision != "f64") reference.precision = "f32";
      other = load(reference);
    }
    const TextLoss loss = measure_loss(*open_, other.get(), settings_.perplexity, settings_.windows);
    if (loss.tokens > 0) {
      document_["perplexity"] = to_json(loss);
      output_.line(fmt::format("perplexity {:.6g}, loss {:.6g} nats a token, over {} tokens",
                               loss.perplexity(), loss.mean(), with_thousands(loss.tokens)));
      if (loss.against)
        output_.line(fmt::format(
            "KL from {}: {:.4g} nats a token; same first choice {:.2f}%",
            escape_for_terminal(settings_.against), loss.divergence / static_cast<double>(loss.tokens),
            100.0 * static_cast<double>(loss.same_choice) / static_cast<double>(loss.tokens)));
    }
    return finish();
  }

  // ---- the end

  void add(const EngineTiming& timing) {
    timing_.prefill_tokens += timing.prefill_tokens;
    timing_.prefill_seconds += timing.prefill_seconds;
    timing_.decode_tokens += timing.decode_tokens;
    timing_.decode_seconds += timing.decode_seconds;
    timing_.steps += timing.steps;
  }

  std::string text_of(const std::vector<TokenId>& ids) {
    if (tokenizer() == nullptr) return {};
    ShownText stream(*tokenizer(), settings_.stop);
    std::string text;
    for (const TokenId id : ids) text += stream.push(id);
    return text + stream.finish();
  }

  // What the chosen kernels left to the reference.
  void tell_fallbacks() {
    if (!open_->kernels.fallbacks) return;
    document_["fallbacks"] = to_json(*open_->kernels.fallbacks);
    if (const std::string line = open_->kernels.fallbacks->line(); !line.empty()) note(line);
  }

  void tell_full_contexts() {
    for (std::size_t i = 0; i < made_.size(); ++i) {
      if (made_[i].finish_reason == FinishReason::context)
        note(fmt::format("{} ended after {} tokens: the model's context of {} is full",
                         made_.size() == 1 ? std::string("the text") : fmt::format("text {}", i + 1),
                         made_[i].ids.size(), open_->model->context()));
    }
  }

  int finish() {
    open_->weights.check_unchanged();
    tell_fallbacks();
    tell_full_contexts();
    Json sequences = Json::array();
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
      Json sequence = {{"prompt_ids", prompts_[i].tokens}};
      if (i < made_.size()) {
        sequence["ids"] = made_[i].ids;
        sequence["text"] = text_of(made_[i].ids);
        sequence["finish_reason"] = name(made_[i].finish_reason);
      }
      if (i < likely_.size()) sequence["logprobs"] = likely_[i];
      sequences.push_back(std::move(sequence));
    }
    if (!made_.empty()) {
      document_["text"] = sequences[0]["text"];
      document_["ids"] = sequences[0]["ids"];
      show_several(sequences);
    }
    document_["sequences"] = std::move(sequences);
    document_["timing"] = to_json(timing_, open_->load_seconds);
    output_.json(document_);
    write_message(fmt::format("{}: {}", open_->title(), timing_line(timing_, open_->load_seconds)));
    return interrupted() ? kExitInterrupted : kExitOk;
  }

  // Several prompts are answered at once, so their texts are shown at the end.
  void show_several(const Json& sequences) {
    if (made_.size() < 2 || settings_.log_probabilities > 0) return;
    for (std::size_t i = 0; i < made_.size(); ++i)
      output_.line(fmt::format("[{}] {}", i + 1,
                               tokenizer() == nullptr ? fmt::format("{}", fmt::join(made_[i].ids, ","))
                                                      : sequences[i]["text"].get<std::string>()));
  }

  const RunSettings& settings_;
  const Output& output_;
  std::unique_ptr<OpenModel> open_;
  std::vector<Prompt> prompts_;
  std::optional<TapRecorder> recorder_;
  std::optional<RunCache> cache_;
  std::vector<Generation> made_;
  std::vector<Json> likely_;
  EngineTiming timing_;
  Json document_;
  bool first_ = true, text_came_ = false;
};

// Each token's logits are vectors of the same sizes again: memory given back to the system in between would
// be cleared for every one of them.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

}  // namespace

void add_run(CLI::App& program, Action& action, const KernelSelector& select) {
  auto settings = std::make_shared<RunSettings>();
  CLI::App& command =
      *program.add_subcommand("run", "The reference engine: text, logits, intermediates, perplexity");
  settings->select = select;
  add_run_options(command, *settings);
  command.callback([settings, &action, &command] {
    settings->isa =
        command.get_option("--isa")->count() > 0 ? command.get_option("--isa")->as<std::string>() : "";
    action = [settings] {
      check_run_options(*settings);
      keep_freed_memory();
      const Output output(settings->common.json);
      if (settings->ranks.wanted()) return run_on_ranks(*settings, output);
      return Runner(*settings, output).run();
    };
  });
}

}  // namespace assay
