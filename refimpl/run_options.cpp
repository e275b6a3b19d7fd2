#include "refimpl/run_options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <map>

#include "core/numeric/simd_option.h"
#include "core/system/error.h"
#include "core/system/not_empty.h"
#include "core/system/one_of.h"
#include "core/system/text.h"
#include "refimpl/run_cache.h"
#include "refimpl/run_handoff.h"
#include "refimpl/run_ranks.h"
#include "refimpl/run_sampling.h"
#include "refimpl/run_speculation.h"

namespace assay {
namespace {

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
    "  mpirun -n 2 assay run MODEL -p Hello --tp 2 --handoff-to DIR --handoff-ranks 2x3    two ranks feed "
    "six\n"
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
      ->transform(one_of(kWindowKinds))
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

}  // namespace

void add_run_options(CLI::App& command, RunSettings& settings) {
  command
      .add_option("MODEL", settings.model,
                  "A model's folder, one .safetensors with config.json beside it, or a .gguf")
      ->required();
  add_text(command, settings);
  add_numbers(command, settings);
  add_rank_options(command, settings.ranks);
  add_isa_option(command);
  add_common_options(command, settings.common);
  set_examples(command, kExamples);
}

void check_run_options(RunSettings& settings) {
  check_company(settings);
  check_sampling_options(settings);
  check_speculation_options(settings.speculation);
  check_rank_options(settings);
}

}  // namespace assay
