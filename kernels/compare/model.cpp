// One model under two selections of kernels, two precisions, or two checkpoints: where do they part first?
#include "kernels/compare/model.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <memory>

#include "core/numeric/simd_option.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/json.h"
#include "core/system/message.h"
#include "core/system/output_paths.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "kernels/compare/caches.h"
#include "kernels/compare/given_text.h"
#include "kernels/compare/model_ranks.h"
#include "kernels/compare/weights.h"
#include "kernels/selection/select.h"
#include "refimpl/models/model_notes.h"

namespace assay {
namespace {

constexpr std::size_t kBeginning = 64;  // of a text that is not cut into windows

constexpr const char* kModelExamples =
    "  assay compare model DIR                                     our CPU kernels against float64\n"
    "  assay compare model DIR --kernels cpu,attention=reference --html page.html\n"
    "  assay compare model DIR --precision bf16 --kernels reference -p 'Once upon a time'\n"
    "  assay compare model CONVERTED --against ORIGINAL --file text.txt --limit 200\n"
    "  assay compare model CONVERTED --against ORIGINAL --file text.txt --context 512 --stride 256\n"
    "  assay compare model DIR --precision f64 --tp 4 --pp 2       cut over ranks: which tap of which rank "
    "differs?\n"
    "  assay compare model DIR --cache kivi2 --cache h2o:budget=64 --file text.txt     what smaller caches "
    "lose\n"
    "  assay compare model DIR --mutants              plant faults in the layers; is each named?\n"
    "\nExit codes: 0 they agree, 1 they part, or nothing was proved, 2 wrong usage or unreadable input.";

struct Side {
  ModelSide model;
  std::shared_ptr<Fallbacks> fallbacks = std::make_shared<Fallbacks>();
};

Side side_of(const Weights& weights, const std::string& kernels, const std::string& precision) {
  Side side;
  side.model = {.weights = &weights,
                .arithmetic = {precision_from_text(precision).value()},
                .make_ops = [kernels, fallbacks = side.fallbacks](const Arithmetic& arithmetic, int jobs) {
                  return select_kernels(builtin_kernels(), kernels, arithmetic, jobs, fallbacks);
                }};
  return side;
}

// What a side was asked for and did not do, to be told beside what it did.
void tell_shortfalls(const Side& side, const std::string& title, const std::string& kernels) {
  std::vector<std::string> notes = model_notes(*side.model.weights, side.model.arithmetic.precision, kernels);
  if (std::string line = side.fallbacks->line(); !line.empty()) notes.push_back(std::move(line));
  for (const std::string& note : notes) write_message(fmt::format("note: {}: {}", title, note));
}

// The text in windows that the model can read; without --context and --stride its beginning alone.
std::vector<TextWindow> windows_of(const CompareModelSettings& s, const LanguageModel& model,
                                   GivenText& text) {
  const bool cut = s.context != 0 || s.stride != 0;
  const std::size_t room = model.context();
  if (s.context > room)
    throw Error::usage(fmt::format("--context {} is more than the model's context of {}", s.context, room));
  WindowRule rule;
  rule.context = s.context == 0 ? room : s.context;
  rule.stride = s.stride;
  if (s.stride != 0) rule.kind = WindowRule::Kind::transformers;
  if (s.stride > rule.context)
    throw Error::usage(fmt::format("--stride takes a number from 1 to the window's {} tokens", rule.context));
  std::size_t limit = s.limit.value_or(cut ? text.tokens.size() : kBeginning);
  if (!cut) limit = std::min(limit, room);
  if (text.tokens.size() > limit) {
    text.tokens.resize(limit);
    text.about += ", its beginning";
  }
  std::vector<TextWindow> windows;
  if (text.tokens.size() < 2) windows.push_back({text.tokens});
  for_each_window(text.tokens, text.bos, rule, [&](const TextWindow& window) {
    if (window.tokens.size() > 1) windows.push_back(window);  // one token is foretold by none
    return true;
  });
  text.about = fmt::format(
      "{} token{}{}: {}", text.tokens.size(), text.tokens.size() == 1 ? "" : "s",
      cut ? fmt::format(" in {} window{} of {}", windows.size(), windows.size() == 1 ? "" : "s", rule.context)
          : "",
      text.about);
  return windows;
}

std::string describe(const std::string& path, const std::string& precision, const std::string& kernels) {
  fs::path folder = fs::path(path).lexically_normal();
  if (folder.filename().empty()) folder = folder.parent_path();
  return fmt::format("{} in {}, {} kernels", escape_for_terminal(folder.filename().string()), precision,
                     escape_for_terminal(kernels));
}

int show_mutants(const CompareModelSettings& s, const ModelCompareRequest& request, const Output& output) {
  const std::vector<ModelMutantResult> results = run_model_mutants(request);
  if (interrupted()) return kExitInterrupted;
  const auto count = [&](MutantFate fate) {
    return static_cast<std::size_t>(std::count_if(
        results.begin(), results.end(), [&](const ModelMutantResult& r) { return r.fate == fate; }));
  };
  const std::size_t named = count(MutantFate::named), wrong = count(MutantFate::misnamed),
                    missed = count(MutantFate::missed), idle = count(MutantFate::idle);
  const bool good = wrong == 0 && missed == 0 && named > 0;
  const std::string verdict = fmt::format(
      "{}: {} faults planted in {}: {} named with layer and tap, {} misnamed, {} missed; {} "
      "change nothing on this text",
      good ? "OK" : "FAILED", results.size(), escape_for_terminal(s.model), named, wrong, missed, idle);
  if (output.text_wanted()) {
    print_model_mutants(output, results);
    output.paint(verdict, good ? Style::green : Style::red);
  }
  Json list = Json::array();
  for (const ModelMutantResult& r : results) list.push_back(to_json(r));
  output.json({{"schema", "assay.compare/1"},
               {"tool", "assay " ASSAY_VERSION},
               {"verdict", good ? "ok" : "failed"},
               {"verdict_line", verdict},
               {"mutants", std::move(list)},
               {"summary",
                {{"planted", results.size()},
                 {"named", named},
                 {"misnamed", wrong},
                 {"missed", missed},
                 {"idle", idle}}}});
  return good ? kExitOk : kExitCheckFailed;
}

// --cache: the same text read with smaller caches, as `compare caches` does.
int compare_its_caches(const CompareModelSettings& s) {
  if (!s.against.empty() || !s.csv.empty() || !s.variant.empty() || s.stride != 0 || s.limit || s.mutants ||
      s.over_ranks())
    throw Error::usage("--cache compares a model with itself, its cache in full")
        .remedy("leave out --against, --csv, --variant, --stride, --limit, --mutants, --tp and its kin");
  CompareCachesSettings caches;
  caches.common = s.common;
  caches.model = s.model;
  caches.kernels = s.kernels;
  caches.precision = s.precision;
  caches.file = s.file;
  caches.html = s.html;
  caches.prompt = s.prompt;
  caches.tokens = s.tokens;
  caches.context = s.context;
  if (s.caches != std::vector<std::string>{"all"}) caches.methods = s.caches;
  return run_compare_caches(caches);
}

int run_compare_model(const CompareModelSettings& s) {
  if (!s.caches.empty()) return compare_its_caches(s);
  const auto start = std::chrono::steady_clock::now();
  const Output output(s.common.json);
  check_outputs({s.csv, s.html, s.common.json});
  const Weights test(s.model, s.common.jobs);
  std::unique_ptr<Weights> other;
  if (!s.against.empty()) other = std::make_unique<Weights>(s.against, s.common.jobs);
  const Weights& reference = other ? *other : test;
  const Side reference_side = side_of(reference, s.against_kernels, s.against_precision);
  const Side test_side = side_of(test, s.kernels, s.precision);
  ModelCompareRequest request = {.reference = reference_side.model,
                                 .test = test_side.model,
                                 .options = {.variant = s.variant},
                                 .greedy = s.greedy,
                                 .jobs = s.common.jobs};
  const std::unique_ptr<LanguageModel> model = make_model(reference, request.options);
  GivenText text = given_text({s.prompt, s.tokens, s.file}, reference, *model);
  request.windows = windows_of(s, *model, text);
  request.tokens = request.windows.front().tokens;
  const bool same_file = !other || (fs::exists(s.against) && fs::equivalent(s.model, s.against));
  request.same_program = same_file && s.kernels == s.against_kernels && s.precision == s.against_precision;
  if (s.over_ranks()) return run_compare_ranks(s, request.tokens, text.about, output);
  if (s.mutants) return show_mutants(s, request, output);

  const ModelCompareTitle title = {
      describe(s.model, s.precision, s.kernels),
      describe(s.against.empty() ? s.model : s.against, s.against_precision, s.against_kernels), text.about};
  ModelComparison result = compare_models(request);
  if (other) judge_weights(test, reference, s.common, result);
  if (interrupted()) return kExitInterrupted;
  test.check_unchanged();
  reference.check_unchanged();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const bool good = result.status == CaseStatus::passed;
  const std::string verdict = verdict_line(result);
  if (output.text_wanted()) {
    output.line(
        fmt::format("{}\n  against {}\n  {}", title.test, title.reference, escape_for_terminal(title.text)));
    print_comparison(output, result);
    output.paint(verdict, good                                      ? Style::green
                          : result.status == CaseStatus::mistrusted ? Style::yellow
                                                                    : Style::red);
  }
  tell_shortfalls(test_side, title.test, s.kernels);
  tell_shortfalls(reference_side, title.reference, s.against_kernels);
  write_whole(s.csv, to_csv(result));
  if (!s.html.empty()) write_whole(s.html, to_page(result, title));
  if (output.json_wanted()) {
    Json document = {{"schema", "assay.compare/1"},
                     {"tool", "assay " ASSAY_VERSION},
                     {"verdict", good ? "ok" : "failed"},
                     {"verdict_line", verdict},
                     {"test", title.test},
                     {"reference", title.reference},
                     {"text", title.text},
                     {"seconds", seconds}};
    document.update(to_json(result));
    document["fallbacks"] = to_json(*test_side.fallbacks);
    document["against_fallbacks"] = to_json(*reference_side.fallbacks);
    output.json(document);
  }
  return good ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_compare_model(CLI::App& compare, Action& action) {
  auto settings = std::make_shared<CompareModelSettings>();
  CompareModelSettings& s = *settings;
  CLI::App& command = *compare.add_subcommand(
      "model", "One model under two kernels, precisions or checkpoints: where do they part first?");
  const auto precisions = CLI::IsMember({"f64", "f32", "bf16", "fp8-block", "int8", "int16", "int8-block"});
  command
      .add_option("MODEL", s.model, "A model's folder, a .safetensors with config.json beside it, or a .gguf")
      ->required();
  command
      .add_option("--against", s.against,
                  "Another checkpoint of the model: before a conversion (default: MODEL)")
      ->type_name("MODEL");
  command.add_option("--kernels", s.kernels, "Whose arithmetic: cpu (default), reference, or OP=KERNEL,…")
      ->type_name("SET");
  command.add_option("--against-kernels", s.against_kernels, "Of the other side (default: reference)")
      ->type_name("SET");
  command
      .add_option("--precision", s.precision,
                  "f64 | f32 | bf16 | fp8-block | int8 | int16 | int8-block (default: f32)")
      ->check(precisions);
  command.add_option("--against-precision", s.against_precision, "Of the other side (default: f64)")
      ->check(precisions);
  command.add_option("--variant", s.variant, "Where references disagree, which to follow")->type_name("NAME");
  command.add_option("-p,--prompt", s.prompt, "The text")->type_name("TEXT");
  command.add_option("--tokens", s.tokens, "Token ids in place of a text: 1,2,3")->type_name("IDS");
  command.add_option("--file", s.file, "The text")->type_name("FILE");
  command.add_option("--limit", s.limit, "Tokens of the text at most (default: 64; in windows: all)")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 40));
  command
      .add_option("--context", s.context,
                  "Cut the text into windows of N tokens (with --stride: default: the model's context)")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{2}, std::size_t{1} << 40));
  command.add_option("--stride", s.stride, "A window every N tokens; each token counts once")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 40));
  command.add_option("-n", s.greedy, "Tokens to go on with on both sides (default: 16)")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1} << 20));
  command
      .add_option(
          "--cache", s.caches,
          "Against itself with smaller caches: a table as of `compare caches`, which has more options "
          "(h2o:budget=64; all: every one); may be repeated")
      ->type_name("METHOD")
      ->allow_extra_args(false);
  CLI::Option* mutants = command.add_flag("--mutants", s.mutants,
                                          "Plant faults in single layers, and see whether each is named");
  command.add_option("--csv", s.csv, "A row a tap")->type_name("FILE")->excludes(mutants);
  command.add_option("--html", s.html, "A page with heat maps, layer by tap")
      ->type_name("FILE")
      ->excludes(mutants);
  const auto ranks = CLI::Range(std::size_t{1}, std::size_t{1024});
  for (const auto& [name, value, what] :
       {std::tuple{"--tp", &s.tp, "Against N ranks that share its tensors; whose reference adds in one tree"},
        {"--pp", &s.pp, "Of ranks: N stages"},
        {"--ep", &s.ep, "Of ranks: N groups that share the experts"},
        {"--dp", &s.dp, "Of ranks: N copies of all but the experts"}})
    command.add_option(name, *value, what)->type_name("N")->check(ranks);
  add_isa_option(command);
  add_common_options(command, s.common);
  set_examples(command, kModelExamples);
  command.callback([settings, &action] { action = [settings] { return run_compare_model(*settings); }; });
}

}  // namespace assay
