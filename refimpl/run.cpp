#include "refimpl/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>

#include "core/numeric/simd_option.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/message.h"
#include "core/system/not_empty.h"
#include "core/system/report.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "refimpl/claims/claims.h"
#include "refimpl/engine/tap_recorder.h"
#include "refimpl/logits_file.h"
#include "refimpl/models/model_notes.h"
#include "refimpl/run_cache.h"
#include "refimpl/run_chat.h"
#include "refimpl/run_handoff.h"
#include "refimpl/run_model.h"
#include "refimpl/run_perplexity.h"
#include "refimpl/run_ranks.h"
#include "refimpl/run_report.h"
#include "refimpl/run_sampling.h"
#include "refimpl/run_served.h"
#include "refimpl/run_speculation.h"

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
      tell_hits(served);
    } else {
      made_ = engine.generate(requests, show);
      add(engine.timing());
    }
    if (stream) show_end(text);
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
    const HandoffSent sent =
        send_handoff(handoff_model(*open_, settings_), settings_, request(prompts_.front(), rules));
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

// Options that say how something is done that was not asked for.
void check_company(const RunSettings& settings) {
  const WindowRule& windows = settings.windows;
  const bool cut = windows.by_paragraph || windows.context != 0 || windows.stride != 0 ||
                   windows.kind != WindowRule::Kind::whole;
  if (settings.perplexity.empty() && cut)
    throw Error::usage("--by-paragraph, --windows, --context and --stride go with --perplexity");
  if (settings.perplexity.empty() && !settings.against.empty())
    throw Error::usage("--kl-from goes with --perplexity");
  if (windows.stride != 0 && windows.kind != WindowRule::Kind::transformers)
    throw Error::usage("--stride goes with --windows transformers");
  if (windows.by_paragraph && windows.kind != WindowRule::Kind::whole)
    throw Error::usage("--by-paragraph and --windows exclude one another");
  if (settings.dump.empty() && !settings.taps.empty()) throw Error::usage("--taps goes with --dump");
  if (settings.cache_dir.empty() && !settings.cache_bytes.empty())
    throw Error::usage("--cache-bytes goes with --cache-dir");
  if (settings.cache_dir.empty() && !settings.cache_memory.empty())
    throw Error::usage("--cache-memory goes with --cache-dir");
  if (!settings.cache_dir.empty() &&
      (settings.speculation.wanted() || settings.interactive || settings.claims ||
       !settings.perplexity.empty() || !settings.dump.empty() || settings.tokens_to_make() == 0))
    throw Error::usage("--cache-dir goes with texts that are made")
        .remedy("leave out --speculate, --interactive, --claims, --perplexity, --dump, -n 0");
  check_cache_options(settings);
  check_handoff_options(settings);
  if (!settings.interactive) check_chat_options(settings.chat);
}

const std::map<std::string, WindowRule::Kind> kWindowKinds = {
    {"whole", WindowRule::Kind::whole},
    {"transformers", WindowRule::Kind::transformers},
    {"llama.cpp", WindowRule::Kind::llama_cpp}};

// CLI11 reads "-1" into an unsigned number, as C does.
const CLI::Validator kWholeNumber(
    [](const std::string& text) {
      return parse_u64(text) ? std::string() : fmt::format("\"{}\" is no whole number from 0 up", text);
    },
    "", "whole number");

constexpr const char* kExamples =
    "  assay run MODEL -p \"Once upon a time\" -n 100         the likeliest text\n"
    "  assay run MODEL -p Hello --chat --temperature 0.7 --seed 1\n"
    "  assay run MODEL -p \"A person:\" --json-schema person.json\n"
    "  assay run MODEL --tokens 1,2,3 --logits out.safetensors --precision f64\n"
    "  assay run MODEL -p Hello --dump taps.safetensors --taps 'layers\\.0\\.'\n"
    "  assay run MODEL --perplexity text.txt --kl-from ORIGINAL\n"
    "  assay run MODEL -p Hello --kv-cache h2o:budget=64\n"
    "  assay run MODEL --handoff-from tcp://127.0.0.1:7001       one process writes the text,\n"
    "  assay run MODEL -p Hello --handoff-to tcp://127.0.0.1:7001     another has read the prompt\n"
    "  assay run MODEL -p Hello --claims             do the fast ways compute the same as the plain ones?\n"
    "  mpirun -n 4 assay run MODEL -p Hello --tp 2 --pp 2    cut over processes; --claims holds them to the "
    "whole\n"
    "\nExit codes: 0 all well, 1 a claim is refuted, 2 wrong usage or unreadable input, 130 interrupted.";

void add_numbers(CLI::App& command, RunSettings& s) {
  command
      .add_option("--precision", s.precision,
                  "f64 | f32 | bf16 | fp8-block | int8 | int16 | int8-block (default: f32)")
      ->check(CLI::IsMember({"f64", "f32", "bf16", "fp8-block", "int8", "int16", "int8-block"}));
  command
      .add_option("--kernels", s.kernels,
                  "Whose arithmetic: reference (default), cpu, cpu-invariant, cuda, or OP=KERNEL,…")
      ->type_name("SET");
  command.add_option("--variant", s.variant, "Where references disagree, which to follow")->type_name("NAME");
  command.add_option("--mla", s.mla, "Latent attention absorbed or naive")
      ->check(CLI::IsMember({"absorbed", "naive"}));
  command.add_option("--experts", s.experts, "Mixtures sparse, or dense: every expert on every token")
      ->check(CLI::IsMember({"sparse", "dense"}));
  command.add_option("--logits", s.logits, "Write the logits of the prompt's positions, as safetensors")
      ->type_name("FILE");
  command.add_option("--logprobs", s.log_probabilities, "Show each token's ln p, and the K likeliest")
      ->check(kWholeNumber)
      ->type_name("K");
  command.add_option("--dump", s.dump, "Write named intermediates, as safetensors")->type_name("FILE");
  command.add_option("--taps", s.taps, "Of --dump: those whose name matches")->type_name("REGEX");
  command.add_option("--perplexity", s.perplexity, "How well the model predicts a text")->type_name("FILE");
  command.add_flag("--by-paragraph", s.windows.by_paragraph,
                   "Of --perplexity: each paragraph alone, as BOS, text, EOS");
  command
      .add_option("--windows", s.windows.kind,
                  "Of --perplexity: whole (default), or cut and counted as by transformers or llama.cpp")
      ->transform(CLI::CheckedTransformer(kWindowKinds))
      ->type_name("KIND");
  command
      .add_option("--context", s.windows.context, "Of --perplexity: tokens a window (default: the model's)")
      ->check(CLI::Range(std::size_t{2}, std::size_t{1} << 40))
      ->type_name("N");
  command.add_option("--stride", s.windows.stride, "Of --windows transformers: a window every N tokens")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 40))
      ->type_name("N");
  command
      .add_option("--kl-from", s.against, "Of --perplexity: KL divergence from another model's predictions")
      ->type_name("MODEL");
  command.add_flag("--claims", s.claims, "Hold the engine's techniques against the plain way, on the prompt");
}

void add_text(CLI::App& command, RunSettings& s) {
  command.add_option("-p,--prompt", s.prompts, "Text to go on from; several are computed as one batch")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command.add_option("--tokens", s.token_lists, "Token ids to go on from: 1,2,3")
      ->type_name("IDS")
      ->allow_extra_args(false);
  command.add_option("-n", s.most, "Tokens to make at most (default: 64; 0 with --logits or --dump)")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1} << 40))
      ->type_name("N");
  add_sampling_options(command, s);
  add_chat_options(command, s.chat, "The prompt is a user's message: the model's chat template around it");
  command.add_flag("--interactive", s.interactive, "A conversation, a line a turn");
  command
      .add_option("--cache-dir", s.cache_dir,
                  "Keep what was computed of texts here, and read what begins alike in place of computing it")
      ->type_name("DIR")
      ->check(not_empty());
  command.add_option("--cache-bytes", s.cache_bytes, "Of --cache-dir: at most so much (default: 4GiB)")
      ->type_name("SIZE");
  command
      .add_option("--cache-memory", s.cache_memory,
                  "Of --cache-dir: at most so much stays in memory, too, and goes to disk behind the work")
      ->type_name("SIZE");
  add_speculation_options(command, s.speculation);
  add_cache_options(command, s);
  add_handoff_options(command, s.handoff);
}

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
  RunSettings& s = *settings;
  s.select = select;
  command
      .add_option("MODEL", s.model,
                  "A model's folder, one .safetensors with config.json beside it, or a .gguf")
      ->required();
  add_text(command, s);
  add_numbers(command, s);
  add_rank_options(command, s.ranks);
  add_isa_option(command);
  add_common_options(command, s.common);
  set_examples(command, kExamples);
  command.callback([settings, &action, &command] {
    settings->isa =
        command.get_option("--isa")->count() > 0 ? command.get_option("--isa")->as<std::string>() : "";
    action = [settings] {
      check_company(*settings);
      check_sampling_options(*settings);
      check_speculation_options(settings->speculation);
      check_rank_options(*settings);
      keep_freed_memory();
      const Output output(settings->common.json);
      if (settings->ranks.wanted()) return run_on_ranks(*settings, output);
      return Runner(*settings, output).run();
    };
  });
}

}  // namespace assay
