#include "kernels/compare/endpoint.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/system/error.h"
#include "core/system/not_empty.h"
#include "core/system/output_paths.h"
#include "core/system/real_range.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "kernels/compare/logprobs.h"
#include "kernels/compare/style.h"
#include "kernels/logprobs/ask_endpoint.h"
#include "kernels/logprobs/token_names.h"
#include "refimpl/tokenizers/load.h"

namespace assay {
namespace {

using namespace logprobs;

struct CompareEndpointSettings {
  CommonOptions common;
  std::string url, model, name, key_file, prompts, precision = "bf16", html, junit;
  std::size_t made = 16, longest = 512;
  double seconds = 600;
  std::uint64_t seed = 0;
};

// One way in which all prompts were asked, and what is true of the answers.
struct AskedSet {
  const char* name;
  const char* meaning;  // of errors that show here, and not before
  bool at_once;
  SavedResponses saved;
  LogprobComparison found;
};

// Against the first answers, all tokens' values.
struct Noise {
  PairFigures figures;
  std::size_t other_texts = 0;
  bool none() const { return figures.max_abs == 0 && other_texts == 0; }
};
Noise noise_of(const SavedResponses& first, const SavedResponses& other) {
  const MatchedPairs matched = match_responses(first, other);
  return {pair_figures(matched.pairs, std::nullopt), matched.faults.size()};
}

struct EndpointReport {
  std::string way, model;
  bool scores_prompts = false, cache_excluded = false;
  std::size_t missing = 0;            // log-probabilities that did not come
  std::size_t within_characters = 0;  // … since llama-server tells none of them
  std::vector<AskedSet> sets;
  Noise again, together;
  std::size_t other_texts() const { return again.other_texts + together.other_texts; }
  CaseStatus status = CaseStatus::passed;
  std::string verdict;
};

std::vector<EndpointPrompt> prompts_of(const CompareEndpointSettings& s, const LanguageModel& model,
                                       const Tokenizer* tokenizer) {
  const Encode encode = [&](std::string_view text) { return tokenizer->encode(text); };
  if (model.context() <= s.made + 2) throw Error::usage("--tokens leaves no room for a prompt");
  const std::size_t longest = std::min(s.longest, model.context() - s.made);
  if (s.prompts.empty())
    return built_in_prompts(tokenizer ? encode : Encode(), model.vocabulary(), longest, s.seed);
  std::ifstream in(s.prompts);
  if (!in) throw Error::input("cannot be read").in(s.prompts);
  std::vector<EndpointPrompt> prompts;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (trim(line).empty()) continue;
    prompts.push_back({fmt::format("line {}", number), tokenizer->encode(line)});
    if (prompts.back().ids.size() > longest) prompts.back().ids.resize(longest);
  }
  if (prompts.empty()) throw Error::input("holds no prompt").in(s.prompts);
  return prompts;
}

void hold(AskedSet& set, const CompareEndpointSettings& s, const Weights& weights) {
  set.found = compare_logprobs({.a = &set.saved,
                                .b = nullptr,
                                .model = &weights,
                                .precision_a = precision_from_text(s.precision).value(),
                                .before = {},
                                .limit = {},
                                .jobs = s.common.jobs});
}

void decide(EndpointReport& report) {
  for (const AskedSet& set : report.sets) {
    const CaseStatus status = set.found.status;
    if (status == CaseStatus::passed || report.status == CaseStatus::failed) continue;
    if (status != CaseStatus::failed && report.status != CaseStatus::passed) continue;
    report.status = status;
    report.verdict = fmt::format("{} ({}{})", set.found.verdict, set.name,
                                 &set == &report.sets.front() ? "" : fmt::format("; {}", set.meaning));
  }
  if (report.status != CaseStatus::passed) return;
  report.verdict =
      fmt::format("{}; asked again {:.2g} apart, all at once {:.2g}", report.sets.front().found.verdict,
                  report.again.figures.max_abs, report.together.figures.max_abs);
  std::string doubt;
  if (report.missing > 0)
    doubt = fmt::format("{} log-probabilities did not come", with_thousands(report.missing));
  else if (!report.cache_excluded)
    doubt =
        "what was right may have come out of a cache: the server takes no cache_salt, and does not tell "
        "that nothing was cached";
  if (doubt.empty()) return;
  report.status = CaseStatus::mistrusted;
  report.verdict = fmt::format("MISTRUSTED: {} ({})", doubt, report.verdict);
}

// Far better than its precision explains: then that is not its precision, and hides errors of others.
std::string finer_precision(const EndpointReport& report, Precision precision) {
  constexpr double kFar = 20;
  const bool coarse = precision != Precision::f64 && precision != Precision::f32;
  if (!coarse || report.status != CaseStatus::passed || report.sets.empty()) return "";
  const SideVerdict& side = *report.sets.front().found.a;
  if (side.tokens.size() < 16 || kFar * side.rms > side.rms_limit) return "";
  return fmt::format(
      "errors are {:.0f} times smaller than {} explains: ask for --precision f32, which sees more",
      side.rms_limit / std::max(side.rms, side.rms_limit * 1e-6), name(precision));
}

std::vector<AskedSet> asked_sets() {
  return {{"one by one", "", false, {}, {}},
          {"asked again", "right the first time: a cached prefix?", false, {}, {}},
          {"all at once", "right one by one: the company changes it", true, {}, {}}};
}

EndpointReport mistrusted(EndpointReport& report, const std::string& why) {
  report.sets.clear();
  report.status = CaseStatus::mistrusted;
  report.verdict = "MISTRUSTED: " + why;
  return std::move(report);
}

EndpointReport examine(const CompareEndpointSettings& s, const Weights& weights, const LanguageModel& model,
                       const Tokenizer* tokenizer) {
  const std::vector<EndpointPrompt> prompts = prompts_of(s, model, tokenizer);
  const EndpointUrl url = parse_endpoint_url(s.url);
  const EndpointOptions options = {s.key_file.empty() ? std::string() : read_key(s.key_file), s.seconds};
  const EndpointAsker asker([&] { return EndpointClient(url, options); }, s.name, prompts.front());
  EndpointReport report;
  if (!asker.refusal().empty())
    return mistrusted(report,
                      "the server gives log-probabilities in no way that we know: " + asker.refusal());
  report.way = asker.way().name;
  report.model = asker.model();
  report.scores_prompts = asker.way().scores_prompts;
  for (AskedSet& set : asked_sets()) {
    EndpointAsker::Answers answers = asker.ask(prompts, s.made, set.at_once);
    if (!answers.other_tokens.empty()) return mistrusted(report, answers.other_tokens);
    set.saved = std::move(answers.saved);
    report.missing += answers.missing;
    const std::size_t whole = tokenizer == nullptr ? 0 : not_within_characters(set.saved, *tokenizer);
    report.within_characters += answers.within_characters - whole;
    report.missing += whole;
    if (report.sets.empty()) report.cache_excluded = answers.cache_excluded;
    report.sets.push_back(std::move(set));
  }
  if (interrupted()) return report;
  report.again = noise_of(report.sets[0].saved, report.sets[1].saved);
  report.together = noise_of(report.sets[0].saved, report.sets[2].saved);
  hold(report.sets[0], s, weights);
  for (std::size_t i = 1; i < report.sets.size() && !interrupted(); ++i) {
    // What was said again to the bit is as true as before.
    if ((i == 1 ? report.again : report.together).none())
      report.sets[i].found = report.sets[0].found;
    else
      hold(report.sets[i], s, weights);
  }
  if (!interrupted()) decide(report);
  return report;
}

void print(const Output& output, const CompareEndpointSettings& s, const EndpointReport& report) {
  if (report.sets.empty()) return;
  output.line(fmt::format("{}, by {}: {} prompts{}", escape_for_terminal(s.url), report.way,
                          report.sets[0].saved.texts.size(),
                          report.scores_prompts ? "" : "; the prompts' own tokens are not told"));
  output.line(
      fmt::format("noise: asked again {:.3g} apart at most, all at once {:.3g}; {} texts written otherwise\n",
                  report.again.figures.max_abs, report.together.figures.max_abs, report.other_texts()));
  std::vector<std::pair<std::string, const PairFigures*>> figures;
  for (const AskedSet& set : report.sets)
    if (set.found.a) figures.emplace_back(std::string(set.name) + " − truth", &set.found.a->figures);
  print_figures(output, figures);
  for (const AskedSet& set : report.sets) {
    if (set.found.a) print_side(output, set.name, *set.found.a, set.saved);
  }
  if (report.within_characters > 0)
    output.line(fmt::format(
        "note: {} tokens end within a character: llama-server tells no log-probabilities of these",
        with_thousands(report.within_characters)));
  const std::string finer = finer_precision(report, precision_from_text(s.precision).value());
  if (!finer.empty()) output.line("note: " + finer);
}

Json document(const CompareEndpointSettings& s, const EndpointReport& report) {
  Json sets = Json::array();
  for (const AskedSet& set : report.sets)
    sets.push_back({{"asked", set.name},
                    {"against_model", set.found.a ? side_json(*set.found.a, set.saved) : Json(nullptr)}});
  return {{"schema", "assay.compare.endpoint/1"},
          {"url", s.url},
          {"way", report.way},
          {"model", report.model},
          {"prompts", report.sets.empty() ? 0 : report.sets[0].saved.texts.size()},
          {"prompts_scored", report.scores_prompts},
          {"precision", s.precision},
          {"cache_excluded", report.cache_excluded},
          {"missing", report.missing},
          {"within_characters", report.within_characters},
          {"noise",
           {{"again", report.again.figures.max_abs},
            {"at_once", report.together.figures.max_abs},
            {"other_texts", report.other_texts()}}},
          {"sets", std::move(sets)},
          {"status", status_name(report.status)},
          {"verdict", report.verdict}};
}

// Of each way of asking a test for each prompt; and the verdict, which alone there is where nothing could be asked.
std::vector<JunitCase> junit_cases(const EndpointReport& report) {
  std::vector<JunitCase> cases;
  for (const AskedSet& set : report.sets) {
    if (!set.found.a) continue;
    std::vector<JunitCase> of_set = side_cases(set.name, *set.found.a, set.saved);
    std::move(of_set.begin(), of_set.end(), std::back_inserter(cases));
  }
  cases.push_back(verdict_case("compare endpoint", report.status, report.verdict));
  return cases;
}

int run_compare_endpoint(const CompareEndpointSettings& s) {
  check_outputs({s.html, s.junit, s.common.json});
  const Weights weights(s.model, s.common.jobs);
  const std::unique_ptr<LanguageModel> model = make_model(weights, {});
  // Only prompts of the user's own have to be cut into tokens.
  const std::unique_ptr<Tokenizer> tokenizer =
      s.prompts.empty() ? find_tokenizer(weights.checkpoint(), model->vocabulary())
                        : load_tokenizer(weights.checkpoint(), model->vocabulary());
  const EndpointReport report = examine(s, weights, *model, tokenizer.get());
  if (interrupted()) return kExitInterrupted;
  const Output output(s.common.json);
  if (output.text_wanted()) {
    print(output, s, report);
    output.paint(report.verdict, style_of(report.status));
  }
  if (output.json_wanted()) output.json(document(s, report));
  if (!s.html.empty()) {
    std::vector<PageSide> sides;
    for (const AskedSet& set : report.sets)
      if (set.found.a) sides.push_back({set.name, set.saved, *set.found.a});
    std::optional<TextBehindOthers> words;
    if (tokenizer) words.emplace(*tokenizer);
    write_whole(s.html, to_page("assay compare endpoint", s.url, report.status, report.verdict, sides,
                                words ? &*words : nullptr));
  }
  if (!s.junit.empty()) write_whole(s.junit, to_junit("assay compare endpoint", junit_cases(report)));
  return report.status == CaseStatus::passed ? kExitOk : kExitCheckFailed;
}

constexpr const char* kEndpointExamples =
    "  assay compare endpoint http://127.0.0.1:8000 --model DIR                     prompts of our own\n"
    "  assay compare endpoint http://127.0.0.1:8080 --model model.gguf --precision f32 --html page.html\n"
    "  assay compare endpoint URL --model DIR --prompts texts.txt --tokens 64\n"
    "  assay compare endpoint URL --model DIR --junit endpoint.xml                  for CI\n"
    "\nExit codes: 0 within what the precision explains, 1 not, or nothing can be said, 2 wrong usage or no "
    "server.";

}  // namespace

void add_compare_endpoint(CLI::App& compare, Action& action) {
  auto settings = std::make_shared<CompareEndpointSettings>();
  CompareEndpointSettings& s = *settings;
  CLI::App& command = *compare.add_subcommand(
      "endpoint", "A server's log-probabilities against those of the model it is to serve");
  command.add_option("URL", s.url, "vLLM, SGLang, llama-server, assay serve")->required()->check(not_empty());
  command.add_option("--model", s.model, "The model that it serves")
      ->type_name("MODEL")
      ->required()
      ->check(not_empty());
  command
      .add_option("--precision", s.precision,
                  "In which it computes: f32 | bf16 | fp8-block | … (default: bf16)")
      ->check(CLI::IsMember({"f64", "f32", "bf16", "fp8-block", "int8", "int16", "int8-block"}));
  command.add_option("--prompts", s.prompts, "Prompts, a line each (default: our own)")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_option("--tokens", s.made, "Written behind each prompt (default: 16)")
      ->check(CLI::Range(1, 100'000))
      ->type_name("N");
  command.add_option("--longest", s.longest, "Tokens of a prompt at most (default: 512)")
      ->check(CLI::Range(2, 10'000'000))
      ->type_name("N");
  command
      .add_option("--served-as", s.name, "As the server calls the model (default: the first of /v1/models)")
      ->type_name("NAME");
  command.add_option("--api-key-file", s.key_file, "The key that is sent, its first line")->type_name("FILE");
  command
      .add_option("--timeout", s.seconds,
                  "Seconds without a byte after which a request has failed (default: 600)")
      ->check(real_range(0.001, 1e6))
      ->type_name("S");
  command.add_option("--seed", s.seed, "Of prompts that are drawn (default: 0)")->type_name("N");
  command.add_option("--html", s.html, "A page with a strip of every text")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_option("--junit", s.junit, "Write JUnit XML: a test a prompt and way of asking")
      ->type_name("FILE")
      ->check(not_empty());
  add_common_options(command, s.common);
  set_examples(command, kEndpointExamples);
  command.callback([settings, &action] { action = [settings] { return run_compare_endpoint(*settings); }; });
}

}  // namespace assay
