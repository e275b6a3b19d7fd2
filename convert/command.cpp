#include "convert/command.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <memory>

#include "convert/convert.h"
#include "convert/equal_command.h"
#include "convert/gguf_plan.h"
#include "convert/render.h"
#include "convert/report.h"
#include "convert/share.h"
#include "core/model/weight_encoder.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/launcher.h"
#include "core/system/text.h"
#include "core/system/threads.h"

namespace assay {
namespace {

struct Settings {
  CommonOptions common;
  ConvertOptions convert;
  GgufOptions gguf;
  std::string in, out, memory = "2GiB", int8_range = "127", max_shard_size, report;
  EqualOptions compare;
  RankRequest rank;
  bool equal = false, drop_mtp = false, only_mtp = false, share = false;
  std::vector<std::string> misplaced;  // options given that say nothing of a conversion, or of a comparison
};

constexpr std::array kOfComparison = {"--rtol", "--atol", "--norm"};
constexpr std::array kOfConversion = {
    "--to",        "--include",        "--exclude",          "--scales-from", "--int8-range",
    "--only-mtp",  "--max-shard-size", "--tokenizer-pre",    "--tensor-type", "--tensor-types",
    "--imatrix",   "--drop-unknown",   "--allow-requantize", "--tp",          "--ep",
    "--merge",     "--memory",         "--report",           "--dry-run",     "--resume",
    "--overwrite", "--prove",          "--allow-incomplete", "--allow-large", "--share",
    "--rank",      "--launcher"};

// Of the options given, those that would be without effect.
std::vector<std::string> misplaced_options(const CLI::App& command, bool equal) {
  std::vector<std::string> found;
  const auto look = [&](const char* option) {
    if (command.count(option) > 0) found.emplace_back(option);
  };
  if (equal)
    std::for_each(kOfConversion.begin(), kOfConversion.end(), look);
  else
    std::for_each(kOfComparison.begin(), kOfComparison.end(), look);
  return found;
}

int verdict(const Settings& settings, const ConvertResult& result, const Output& output) {
  if (result.interrupted) {
    output.line("interrupted; --resume goes on from here");
    return kExitInterrupted;
  }
  if (result.proof && !result.proof->holds()) {
    output.paint(fmt::format("FAILED: the output is not what was asked for; it is left in {}",
                             escape_for_terminal(partial_folder(settings.out).string())),
                 Style::red);
    return kExitCheckFailed;
  }
  output.paint(fmt::format("OK: {}", escape_for_terminal(settings.out)), Style::green);
  return kExitOk;
}

// What the rank that did what remains has to tell, or any process that converts alone.
int tell_result(const Settings& settings, const ConversionPlan& plan, const ConvertResult& result,
                const Output& output) {
  render_result(plan, result, output);
  if (output.json_wanted()) output.json(render_json(plan, settings.convert, settings.out, &result));
  if (!settings.report.empty() && !result.interrupted)
    write_report(settings.report, plan, settings.convert, settings.in, settings.out, result);
  return verdict(settings, result, output);
}

int run_share(Settings& settings, const ConversionPlan& plan, const LaunchedRank& rank,
              const Output& output) {
  SharedResult shared = convert_share(settings.out, plan, settings.convert,
                                      {.rank = rank.rank, .ranks = rank.ranks}, settings.common.progress);
  const std::string_view what = plan.gguf ? "sections" : "files";
  output.line(
      fmt::format("{}: {} of {} {} were its own{}", describe(rank), shared.mine, shared.all, what,
                  shared.reused > 0 ? fmt::format(", {} of them finished before", shared.reused) : ""));
  if (shared.interrupted) {
    output.line("interrupted; the same command goes on from here");
    return kExitInterrupted;
  }
  if (shared.whole) {
    shared.whole->reused = 0;  // by other ranks
    return tell_result(settings, plan, *shared.whole, output);
  }
  if (shared.finished_elsewhere)
    output.line("all is written; another rank does, or has done, the rest");
  else
    output.line(fmt::format("{} {} are left to other ranks; the last one does the rest", shared.left, what));
  return kExitOk;
}

// Ranks never begin anew: what lies there is what they have done so far.
std::optional<LaunchedRank> rank_of(Settings& settings) {
  if (!settings.share) {
    if (!settings.rank.rank.empty() || !settings.rank.launcher.empty())
      throw Error::usage("--rank and --launcher are for --share");
    return std::nullopt;
  }
  if (settings.convert.overwrite)
    throw Error::usage("--overwrite would remove what other ranks write").remedy("remove OUT beforehand");
  if (settings.convert.merge) throw Error::usage("--merge is not shared").remedy("leave out --share");
  settings.convert.resume = true;
  return launched_rank(settings.rank);
}

int run_convert(Settings& settings) {
  const Output output(settings.common.json);
  if (!settings.misplaced.empty())
    throw Error::usage(fmt::format("{} {} with --equal", settings.misplaced.front(),
                                   settings.equal ? "does not go" : "goes only"));
  if (settings.equal) {
    settings.compare.jobs = settings.common.jobs;
    settings.compare.without_mtp = settings.drop_mtp;
    return run_equal(settings.in, settings.out, settings.compare, settings.common.progress, output);
  }
  ConvertOptions& options = settings.convert;
  if (!settings.max_shard_size.empty()) {
    options.max_shard_size = parse_bytes(settings.max_shard_size);
    if (options.max_shard_size == 0) throw Error::usage("--max-shard-size takes a byte at least");
  }
  if (settings.drop_mtp) options.mtp = Mtp::drop;
  if (settings.only_mtp) options.mtp = Mtp::only;
  check_grid(options.grid);
  if (!settings.report.empty()) check_report_name(settings.report);
  const bool other_files = options.max_shard_size > 0 || options.mtp != Mtp::keep || options.grid.tp > 1;
  if (options.to.empty() && other_files) options.to = "copy";
  if (options.merge && (!options.to.empty() || other_files))
    throw Error::usage("--merge puts together what --tp cut, and does nothing else beside");
  if (options.merge) options.to = "copy";
  if (options.to.empty()) throw Error::usage("--to SPEC is needed").remedy("see 'assay convert --help'");
  options.jobs = settings.common.jobs;
  options.memory = parse_bytes(settings.memory);
  if (settings.int8_range == "compressed-tensors") options.int8_range = Int8Range::compressed_tensors;
  const std::optional<LaunchedRank> rank = rank_of(settings);
  check_output(settings.in, settings.out, options);
  const ConversionPlan plan = concerns_gguf(settings.in, options.to)
                                  ? make_gguf_plan(settings.in, settings.out, options, settings.gguf)
                                  : make_plan(settings.in, options);
  if (!options.resume && !options.overwrite) {
    for (const OutputShard& file : plan.shards) check_name_is_free(plan, file, settings.out);
  }
  if (!options.scales_from.empty() && plan.spec.kind != Spec::Kind::quantize)
    throw Error::usage("--scales-from goes with fp8:… and int8:…");
  if (!rank || rank->rank == 0) render_plan(plan, options, settings.out, output);
  if (!plan.feasible() || options.dry_run) {
    if (output.json_wanted()) output.json(render_json(plan, options, settings.out, nullptr));
    if (!plan.feasible()) output.paint("REFUSED: nothing was written", Style::red);
    if (!plan.feasible()) return kExitCheckFailed;
    rehearse(plan, options, settings.out);
    const Space space = check_space(plan, settings.out);
    const bool fits = space.needed <= space.free;
    output.paint(fits ? "OK: a dry run, nothing was written" : "FAILED: it does not fit on the disk",
                 fits ? Style::green : Style::red);
    return fits ? kExitOk : kExitCheckFailed;
  }
  if (rank) return run_share(settings, plan, *rank, output);
  const ConvertResult result = convert(settings.out, plan, options, settings.common.progress);
  return tell_result(settings, plan, result, output);
}

constexpr const char* kExamples =
    "  assay convert DeepSeek-V3 OUT --to reblock=64x64     same weights bit for bit, blocks that 32 ranks "
    "can cut\n"
    "  assay convert DeepSeek-V3 OUT --to bf16              FP8 to BF16 without a GPU\n"
    "  assay convert IN OUT --to int8:channel               one INT8 scale a row, from the source in "
    "float32\n"
    "  assay convert IN OUT --to fp8:block=128x128,scale=ue8m0\n"
    "  assay convert IN OUT --to bf16 --dry-run             every tensor's action, sizes, free space\n"
    "  assay convert IN OUT --max-shard-size 5GB            the same bytes in other files\n"
    "  assay convert IN OUT --to reblock=64x64 --tp 32      a folder for each rank; --merge puts them "
    "together\n"
    "  assay convert IN OUT.gguf --to gguf:q4_k_m           for llama.cpp; OUT.gguf back with --to bf16\n"
    "  srun assay convert IN OUT --to bf16 --share          many ranks write one OUT; any may be started "
    "again\n"
    "  assay convert --equal A B                            do two checkpoints decode to the same numbers?\n"
    "\nSPEC: copy | reblock=RxC | bf16 | f16 | f32\n";
constexpr const char* kExitCodes =
    "      | gguf:TYPE (q4_k_m, q5_k_m, q6_k, q8_0, bf16, …)\n"
    "Exit codes: 0 all well, 1 refused or different, 2 wrong usage or unreadable input, 130 interrupted.";

}  // namespace

void add_convert(CLI::App& program, Action& action) {
  auto settings = std::make_shared<Settings>();
  CLI::App& command =
      *program.add_subcommand("convert", "Other quantization blocks and precisions, with proof");
  Settings& s = *settings;
  command.add_option("IN", s.in, "A folder of safetensors shards, one safetensors, or a GGUF")->required();
  command.add_option("OUT", s.out, "A new folder, or GGUF; with --equal, the other checkpoint")->required();
  command.add_option("--to", s.convert.to, "What to make of the weights (below)")->type_name("SPEC");
  command.add_option("--include", s.convert.include, "Only weights whose name matches")->type_name("REGEX");
  command.add_option("--exclude", s.convert.exclude, "Not weights whose name matches")->type_name("REGEX");
  command.add_option("--scales-from", s.convert.scales_from, "Use the scales of this checkpoint again")
      ->type_name("DIR");
  command.add_option("--int8-range", s.int8_range, "int8:channel: scale = amax/127 or amax/127.5")
      ->check(CLI::IsMember({"127", "compressed-tensors"}));
  command.add_option("--max-shard-size", s.max_shard_size, "At most so many bytes of tensors in a file")
      ->type_name("BYTES");
  auto* drop = command.add_flag("--drop-mtp", s.drop_mtp, "Without the multi-token prediction layers");
  command.add_flag("--only-mtp", s.only_mtp, "Of these layers nothing but them")->excludes(drop);
  command.add_option("--tokenizer-pre", s.gguf.tokenizer_pre, "gguf: the pre-tokenizer; none: no tokenizer")
      ->type_name("NAME");
  command.add_option("--tensor-type", s.gguf.tensor_types, "gguf: this type for tensors whose name matches")
      ->type_name("REGEX=TYPE")
      ->allow_extra_args(false);
  command.add_option("--tensor-types", s.gguf.tensor_types_file, "gguf: a file of such choices")
      ->type_name("FILE");
  command
      .add_option("--imatrix", s.gguf.imatrix, "gguf: an importance matrix of llama.cpp's (.dat or .gguf)")
      ->type_name("FILE");
  command.add_flag("--allow-requantize", s.gguf.allow_requantize,
                   "gguf: of a GGUF that is quantized already");
  command.add_flag("--drop-unknown", s.gguf.drop_unknown,
                   "Of a GGUF: leave out tensors that the architecture has no place for");
  command.add_option("--tp", s.convert.grid.tp, "Cut over N ranks, a folder for each")->type_name("N");
  command.add_option("--ep", s.convert.grid.ep, "With --tp: experts over M groups of these ranks")
      ->type_name("M");
  command.add_flag("--merge", s.convert.merge, "Put together again what --tp cut");
  command.add_option("--memory", s.memory, "At most this much for weights under way (default: 2GiB)")
      ->type_name("BYTES");
  command.add_option("--report", s.report, "Every tensor's error, and the proof: .json or .html")
      ->type_name("FILE");
  command.add_flag("--dry-run", s.convert.dry_run, "Say what would be done; write nothing");
  auto* resume =
      command.add_flag("--resume", s.convert.resume, "Go on with what an earlier run left unfinished");
  command.add_flag("--overwrite", s.convert.overwrite, "Replace what earlier runs wrote or left unfinished")
      ->excludes(resume);
  command.add_flag("--prove,!--no-prove", s.convert.prove, "reblock: re-read and certify (default: yes)");
  command.add_flag("--allow-incomplete", s.convert.allow_incomplete, "Convert what is there of the shards");
  command.add_flag("--allow-large", s.convert.allow_large, "Accept weights as large as raw codes");
  command.add_flag("--share", s.share,
                   "One of many ranks: each writes a part of OUT, the last one finishes it");
  command.add_option("--rank", s.rank.rank, "With --share: which of how many, where no launcher says it")
      ->type_name("R/N");
  command.add_option("--launcher", s.rank.launcher, "Whom to believe: slurm, openmpi, pmi, torchrun")
      ->type_name("NAME");
  command.add_flag("--equal", s.equal, "Compare IN and OUT by their decoded values; convert nothing");
  command.add_option("--rtol", s.compare.tolerance.relative, "With --equal: relative difference allowed")
      ->type_name("X");
  command.add_option("--atol", s.compare.tolerance.absolute, "With --equal: absolute difference allowed")
      ->type_name("X");
  command
      .add_option("--norm", s.compare.tolerance.norm,
                  "With --equal: relative Frobenius error allowed of a tensor, whatever its values")
      ->type_name("X");
  add_common_options(command, s.common);
  set_examples(command, kExamples + weight_target_usage() + kExitCodes);
  command.callback([settings, &command, &action] {
    settings->misplaced = misplaced_options(command, settings->equal);
    action = [settings] { return run_convert(*settings); };
  });
}

}  // namespace assay
