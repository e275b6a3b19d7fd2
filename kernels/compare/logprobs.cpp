#include "kernels/compare/logprobs.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/system/error.h"
#include "core/system/not_empty.h"
#include "core/system/output_paths.h"
#include "core/system/real_range.h"
#include "core/system/threads.h"
#include "kernels/compare/style.h"
#include "refimpl/tokenizers/load.h"
#include "refimpl/tokenizers/token_list.h"

namespace assay {
namespace {

using namespace logprobs;

constexpr const char* kLogprobExamples =
    "  assay compare logprobs vllm.json sglang.json                 how far apart, and the importance "
    "ratios\n"
    "  assay compare logprobs trainer.csv rollout.jsonl --limit 0.05\n"
    "  assay compare logprobs vllm.json sglang.json --model DIR     and who is wrong\n"
    "  assay compare logprobs llama.kld --model model.gguf --precision f32 --html page.html\n"
    "\nExit codes: 0 within limits, or none asked for; 1 somebody is wrong, or nothing can be said; 2 wrong "
    "usage or "
    "unreadable input.";

void write_page(const CompareLogprobsSettings& s, const ComparedResponses& compared, const Weights* model) {
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<TextBehindOthers> words;
  if (model != nullptr) tokenizer = find_tokenizer(model->checkpoint(), make_model(*model, {})->vocabulary());
  if (tokenizer) words.emplace(*tokenizer);
  write_whole(s.html, to_page(s, compared, words ? &*words : nullptr));
}

int run_compare_logprobs(const CompareLogprobsSettings& s) {
  check_outputs({s.html, s.junit, s.common.json});
  if (s.b.empty() && s.model.empty()) throw Error::usage("A alone is held against --model DIR; or name B");
  if (s.limit && !s.model.empty())
    throw Error::usage("--limit is for A and B alone: against --model the precision says what is too far");
  if (s.model.empty() && !s.before.empty()) throw Error::usage("--prompt-tokens is for --model");
  if (s.model.empty() && !(s.precision_a.empty() && s.precision_b.empty()))
    throw Error::usage("--precision is for --model");
  const std::string precision_a = s.precision_a.empty() ? "bf16" : s.precision_a;
  const SavedResponses a = read_responses(s.a);
  std::optional<SavedResponses> b;
  if (!s.b.empty()) b = read_responses(s.b);
  std::optional<Weights> weights;
  if (!s.model.empty()) weights.emplace(s.model, s.common.jobs);
  LogprobRequest request = {
      .a = &a,
      .b = b ? &*b : nullptr,
      .model = weights ? &*weights : nullptr,
      .precision_a = precision_from_text(precision_a).value(),
      .precision_b = precision_from_text(s.precision_b.empty() ? precision_a : s.precision_b).value(),
      .before = s.before.empty() ? std::vector<TokenId>() : parse_tokens(s.before, "--prompt-tokens"),
      .limit = s.limit,
      .jobs = s.common.jobs};
  const LogprobComparison found = compare_logprobs(request);
  if (interrupted()) return kExitInterrupted;
  const ComparedResponses compared = {a, request.b, found};
  const Output output(s.common.json);
  if (output.text_wanted()) {
    print_logprobs(output, s, compared);
    output.paint(found.verdict, style_of(found.status));
  }
  if (output.json_wanted()) output.json(to_json(s, compared));
  if (!s.html.empty()) write_page(s, compared, request.model);
  if (!s.junit.empty()) write_whole(s.junit, to_junit("assay compare logprobs", junit_cases(compared)));
  return found.status == CaseStatus::passed ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_compare_logprobs(CLI::App& compare, Action& action) {
  auto settings = std::make_shared<CompareLogprobsSettings>();
  CompareLogprobsSettings& s = *settings;
  CLI::App& command = *compare.add_subcommand(
      "logprobs", "Log-probabilities that engines saved, against each other and against the model");
  command
      .add_option(
          "A", s.a,
          "Responses of vLLM, SGLang, llama.cpp, OpenAI's API, llama-perplexity --kl-divergence-base; CSV or "
          "JSONL of ids and log-probabilities")
      ->required()
      ->check(not_empty());
  command.add_option("B", s.b, "Likewise, of the same tokens")->check(not_empty());
  command.add_option("--model", s.model, "What is true: float64, and what a precision explains")
      ->type_name("MODEL")
      ->check(not_empty());
  const auto precisions = CLI::IsMember({"f64", "f32", "bf16", "fp8-block", "int8", "int16", "int8-block"});
  command
      .add_option("--precision", s.precision_a,
                  "In which the engines computed: f32 | bf16 | fp8-block | … (default: bf16)")
      ->check(precisions);
  command.add_option("--precision-b", s.precision_b, "In which B's did, if in another")->check(precisions);
  command
      .add_option("--prompt-tokens", s.before,
                  "What stood before texts that do not begin at their beginning: 1,2,3")
      ->type_name("IDS");
  command.add_option("--limit", s.limit, "Of A and B alone: so far apart two may be, in nats")
      ->type_name("NATS")
      ->check(real_range(0.0, 1e6));
  command.add_option("--html", s.html, "A page with a strip of every text")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_option("--junit", s.junit, "Write JUnit XML")->type_name("FILE")->check(not_empty());
  add_common_options(command, s.common);
  set_examples(command, kLogprobExamples);
  command.callback([settings, &action] { action = [settings] { return run_compare_logprobs(*settings); }; });
}

}  // namespace assay
