#include "kernels/compare/caches.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <set>

#include "core/numeric/simd_option.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/json.h"
#include "core/system/not_empty.h"
#include "core/system/output_paths.h"
#include "core/system/progress.h"
#include "core/system/table.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "kernels/compare/given_text.h"
#include "kernels/selection/select.h"
#include "refimpl/caches/grouped_model.h"

namespace assay {
namespace {

constexpr std::size_t kMostContext = 256;  // where none is asked for
constexpr double kDepths[] = {0, 0.25, 0.5, 0.75, 1};

constexpr const char* kCachesExamples =
    "  assay compare caches DIR --file text.txt                     every method, a quarter of the prompt "
    "kept\n"
    "  assay compare caches DIR --cache h2o:budget=64 --cache kivi2 --file text.txt --html caches.html\n"
    "  assay compare caches DIR --cache streaming:sinks=4,window=60 --context 512 --prefill 128 -p \"Once "
    "upon\"\n"
    "  assay compare caches DIR --cache snapkv:budget=all           everything is kept: nothing differs\n"
    "  assay compare caches data/models/llama --truth data/fixtures/caches/llama.safetensors\n"
    "                                     each method against its authors' rule, computed by others\n"
    "  assay compare caches data/models/llama --truth data/fixtures/caches/llama.safetensors --mutants\n"
    "                                     plant faults in them; is each named?\n"
    "\nExit codes: 0 measured, 1 what a method computed is no number, is not its rule's, or a fault was "
    "missed, "
    "2 wrong usage or\nunreadable input, 130 interrupted.";

// Every method, with room for a quarter of the prompt.
std::vector<std::string> usual_methods(std::size_t prefill) {
  const std::size_t budget = std::max<std::size_t>(8, prefill / 4);
  return {"fp8",
          "fp8:scale=head",
          "int8",
          "kivi4:residual=32",
          "kivi2:residual=32",
          fmt::format("streaming:sinks=4,window={}", budget - 4),
          fmt::format("h2o:budget={}", budget),
          fmt::format("snapkv:budget={}", budget),
          fmt::format("pyramidkv:budget={}", budget),
          fmt::format("grouped:window={}", budget)};
}

// Of the text, one after the other.
std::vector<std::vector<TokenId>> cut(const GivenText& text, std::size_t context, std::size_t most) {
  std::vector<std::vector<TokenId>> windows;
  std::size_t at = 0;
  while (at + 2 < text.tokens.size() && windows.size() < most) {
    std::vector<TokenId>& window = windows.emplace_back();
    if (at != 0 && text.bos) window.push_back(*text.bos);
    while (window.size() < context && at < text.tokens.size()) window.push_back(text.tokens[at++]);
  }
  return windows;
}

// Half, whole and quarter of the context: what a phrase is planted in.
std::vector<std::size_t> lengths_of(std::size_t context) {
  std::set<std::size_t> lengths;
  for (const std::size_t part : {8u, 4u, 2u, 1u}) {
    const std::size_t length = context / part - std::min<std::size_t>(context / part, 4);
    if (length >= 16) lengths.insert(length);
  }
  return {lengths.begin(), lengths.end()};
}

// Tokens that the text does not have, so that nothing else in it answers; where there are few such, its own.
std::vector<TokenId> phrase_tokens(const GivenText& text, std::size_t vocabulary) {
  constexpr std::size_t kFew = 8;
  std::set<TokenId> own(text.tokens.begin(), text.tokens.end());
  std::vector<TokenId> others;
  for (TokenId id = 0; id < vocabulary; ++id) {
    if (!own.contains(id)) others.push_back(id);
  }
  if (others.size() >= kFew) return others;
  if (text.bos) own.erase(*text.bos);
  return {own.begin(), own.end()};
}

class CacheRun {
 public:
  explicit CacheRun(const CompareCachesSettings& s)
      : s_(s),
        weights_(s.model, s.common.jobs),
        model_(make_model(weights_, {})),
        ops_(select_kernels(builtin_kernels(), s.kernels, {precision_from_text(s.precision).value()},
                            s.common.jobs)) {}

  CacheFindings run() {
    plan();
    std::vector<std::size_t> measured;
    CacheComparison c = {*model_, *ops_, {}};
    for (std::size_t i = 0; i < found_.rows.size(); ++i) {
      const CachedModel method = suited(found_.rows[i]);
      if (method.model == nullptr) continue;
      c.methods.push_back(method);
      measured.push_back(i);
    }
    const std::vector<std::vector<TokenId>> texts = cut(text_, found_.context, s_.windows);
    Progress progress(s_.common.progress, "read", tokens_to_read(texts), ProgressUnit::ones);
    c.read = [&](std::uint64_t tokens) { progress.add(tokens); };
    const std::vector<CacheReport> reports = compare_caches(c, texts, found_.prefill);
    for (const auto& window : texts) found_.texts += window.size() >= found_.prefill + 2 ? 1 : 0;
    if (found_.texts == 0)
      throw Error::usage(fmt::format("the text has {} tokens: no {} to read at once and 2 behind them",
                                     text_.tokens.size(), found_.prefill))
          .remedy("give a longer one, or a smaller --prefill");
    for (std::size_t m = 0; m < measured.size(); ++m) found_.rows[measured[m]].report = reports[m];
    if (s_.trials > 0 && !interrupted()) plant(c, measured);
    weights_.check_unchanged();
    return std::move(found_);
  }

 private:
  void plan() {
    found_.context = s_.context != 0 ? s_.context : std::min(model_->context(), kMostContext);
    if (found_.context > model_->context())
      throw Error::usage(fmt::format("--context {} is more than the model's context of {}", found_.context,
                                     model_->context()));
    found_.prefill = s_.prefill != 0 ? s_.prefill : found_.context / 2;
    if (found_.prefill + 2 > found_.context)
      throw Error::usage(fmt::format("--prefill {} leaves nothing to foretell of {} tokens", found_.prefill,
                                     found_.context));
    text_ = given_text({s_.prompt, s_.tokens, s_.file}, weights_, *model_, found_.context);
    found_.text = text_.about;
    found_.title = fmt::format("{} in {}, {} kernels", weights_.tree().family, s_.precision, s_.kernels);
    const std::vector<std::string> asked = s_.methods.empty() ? usual_methods(found_.prefill) : s_.methods;
    for (const std::string& method : asked) found_.rows.push_back({.method = method});
  }

  // Of all texts, and of those that phrases are planted in.
  std::uint64_t tokens_to_read(const std::vector<std::vector<TokenId>>& texts) const {
    std::uint64_t tokens = 0;
    for (const std::vector<TokenId>& text : texts)
      tokens += text.size() - std::min<std::size_t>(1, text.size());
    for (const std::size_t length : lengths_of(found_.context))
      tokens += s_.trials * std::size(kDepths) * (length + 4);
    return tokens;
  }

  // No model: it makes no sense here, which is told where all were asked for, and an error where this one was.
  CachedModel suited(CacheRow& row) {
    CachedModel of = {cache_method(row.method), model_.get()};
    try {
      if (!of.method->groups().as_ever())
        of.model = &grouped_.emplace_back(s_.model, s_.common.jobs, of.method->groups()).model();
      row.layers = require_suitable(*of.method, *of.model);
    } catch (const Error& error) {
      if (!s_.methods.empty()) throw;
      row.refused = fmt::format("{}: {}", row.method, error.what());
      of.model = nullptr;
    }
    return of;
  }

  void plant(const CacheComparison& c, const std::vector<std::size_t>& measured) {
    const std::vector<TokenId> words = phrase_tokens(text_, model_->vocabulary());
    found_.plan = {lengths_of(found_.context), {std::begin(kDepths), std::end(kDepths)}, s_.trials, s_.seed};
    if (found_.plan.lengths.empty() || words.size() < 4) return;
    const std::span<const TokenId> all(text_.tokens);
    const std::size_t begin = text_.bos ? 1 : 0;
    std::vector<RetrievalMap> maps = retrieve(c, found_.plan, all.subspan(begin), all.first(begin), words);
    found_.full_retrieval = std::move(maps[0]);
    for (std::size_t m = 0; m < measured.size(); ++m)
      found_.rows[measured[m]].retrieval = std::move(maps[m + 1]);
  }

  const CompareCachesSettings& s_;
  Weights weights_;
  std::unique_ptr<LanguageModel> model_;
  std::deque<GroupedModel> grouped_;
  std::unique_ptr<Ops> ops_;
  GivenText text_;
  CacheFindings found_;
};

void require_no_measure(const CompareCachesSettings& s) {
  if (s.truth.empty() && s.mutants)
    throw Error::usage("--mutants goes with --truth: faults are told from what others computed")
        .remedy(
            "--truth data/fixtures/caches/llama.safetensors of data/models/llama, or a file that "
            "data/make_cache_fixtures.py makes of your model");
  if (s.truth.empty()) return;
  if (!s.methods.empty() || s.prompt || s.tokens || !s.file.empty() || !s.html.empty() || s.context != 0 ||
      s.prefill != 0)
    throw Error::usage("--truth says itself which methods read which text")
        .remedy("leave out --cache, -p, --tokens, --file, --context, --prefill, --html");
}

}  // namespace

int run_compare_caches(const CompareCachesSettings& s) {
  require_no_measure(s);
  const Output output(s.common.json);
  if (!s.truth.empty()) return run_cache_rules(s, output);
  check_outputs({s.html, s.common.json});
  const CacheFindings found = CacheRun(s).run();
  if (interrupted()) return kExitInterrupted;
  output.json(to_json(found));
  output.line(fmt::format("{}: {} text{} of at most {} tokens, {} of them read at once; {}", found.title,
                          found.texts, found.texts == 1 ? "" : "s", found.context, found.prefill,
                          escape_for_terminal(found.text)));
  output.line(cache_table(found));
  if (!s.html.empty()) write_whole(s.html, to_page(found));
  const bool numbers = std::all_of(found.rows.begin(), found.rows.end(), [](const CacheRow& row) {
    return std::isfinite(row.report.logits.kl_mean) && std::isfinite(row.report.logits.loss_test);
  });
  if (!numbers) output.paint("FAILED: what a method computed is no number", Style::red);
  return numbers ? kExitOk : kExitCheckFailed;
}

void add_compare_caches(CLI::App& compare, Action& action) {
  auto settings = std::make_shared<CompareCachesSettings>();
  CompareCachesSettings& s = *settings;
  CLI::App& command = *compare.add_subcommand(
      "caches", "Caches in fewer bits or rows against the full one: bytes, predictions, what is still found");
  command
      .add_option("MODEL", s.model, "A model's folder, a .safetensors with config.json beside it, or a .gguf")
      ->required();
  command
      .add_option("--cache", s.methods,
                  "fp8, int8, kivi4, kivi2, streaming, h2o, snapkv, pyramidkv, grouped, with options "
                  "(h2o:budget=64); may be "
                  "repeated; default: all of them")
      ->type_name("METHOD")
      ->allow_extra_args(false);
  command.add_option("-p,--prompt", s.prompt, "The text")->type_name("TEXT");
  command.add_option("--tokens", s.tokens, "Token ids in place of a text: 1,2,3")->type_name("IDS");
  command.add_option("--file", s.file, "The text")->type_name("FILE");
  const CLI::Range from_one(std::size_t{1}, std::size_t{1} << 40);
  command
      .add_option("--context", s.context,
                  "Cut the text into windows of N tokens (default: the model's, 256 at most)")
      ->type_name("N")
      ->check(from_one);
  command.add_option("--prefill", s.prefill, "Of each the first N are read at once (default: half)")
      ->type_name("N")
      ->check(from_one);
  command.add_option("--windows", s.windows, "At most so many of them (default: 4)")
      ->type_name("N")
      ->check(from_one);
  command.add_option("--trials", s.trials, "Phrases planted at each depth and length (default: 4; 0: none)")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{0}, std::size_t{10000}));
  command.add_option("--seed", s.seed, "Of the phrases (default: 1)")->type_name("N");
  command.add_option("--kernels", s.kernels, "Whose arithmetic: reference (default), cpu, or OP=KERNEL,…")
      ->type_name("SET");
  command
      .add_option("--precision", s.precision,
                  "f64 | f32 | bf16 | fp8-block | int8 | int16 | int8-block (default: f32)")
      ->check(CLI::IsMember({"f64", "f32", "bf16", "fp8-block", "int8", "int16", "int8-block"}));
  command.add_option("--html", s.html, "A page with maps of what is still found, depth by length")
      ->type_name("FILE");
  command
      .add_option(
          "--truth", s.truth,
          "Against what others computed by the authors' rules, in float64 (data/make_cache_fixtures.py)")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_flag("--mutants", s.mutants, "Of --truth: plant faults, and see whether each is named");
  add_isa_option(command);
  add_common_options(command, s.common);
  set_examples(command, kCachesExamples);
  command.callback([settings, &action] { action = [settings] { return run_compare_caches(*settings); }; });
}

}  // namespace assay
