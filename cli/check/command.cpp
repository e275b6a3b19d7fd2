#include "cli/check/command.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>

#include "cli/check/against.h"
#include "cli/check/behaviour.h"
#include "cli/check/fused.h"
#include "cli/check/golden.h"
#include "cli/check/render.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/not_empty.h"
#include "core/system/output_paths.h"
#include "core/system/real_range.h"
#include "core/system/threads.h"

namespace assay {
namespace {

template <class Work>
auto timed(double& seconds, Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  auto result = work();
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

void require_there(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    throw Error::input("no such file or directory").in(path).remedy("give a folder of weights, or one file");
}

CheckReport examine(CheckSettings settings) {
  CheckReport report{.path = settings.path};
  require_there(settings.path);
  if (!settings.against.empty()) require_there(settings.against);
  const std::optional<Golden> golden = find_golden(settings);
  const bool wants_digests = (golden && !golden->tensors.empty()) || !settings.record.empty();

  FileStages files = examine_files(settings, wants_digests);
  report.stages = {std::move(files.bytes), std::move(files.structure)};
  double seconds = 0;
  const auto stage = [&](auto&& work) {
    if (interrupted()) return;
    Stage done = timed(seconds, work);
    done.seconds = seconds;
    report.stages.push_back(std::move(done));
  };
  stage([&] { return examine_identity(settings); });
  report.stages.push_back(std::move(files.numbers));
  if (!settings.quick) {
    if (auto fused = timed(seconds, [&] { return examine_fused(settings); })) {
      fused->seconds = seconds;
      report.stages.push_back(std::move(*fused));
    }
  }
  if (golden) {
    stage([&] { return examine_golden(settings, *golden, files.digests); });
    settings.reencoded = report.stages.back().status == StageStatus::unproven;
  }
  if (!settings.against.empty()) stage([&] { return examine_against(settings); });
  BehaviourResult behaviour;
  stage([&] {
    behaviour = examine_behaviour(settings, golden);
    return behaviour.stage;
  });
  report.interrupted = files.interrupted || interrupted();
  if (!settings.record.empty() && !report.interrupted) {
    if (report.count(StageStatus::failed) > 0)
      throw Error::refused("a model that does not pass is not recorded")
          .remedy("see 'assay check' without --record");
    write_golden(settings.record, settings, files.digests, behaviour.tokens, behaviour.last_logits);
  }
  return report;
}

int run_check(const CheckSettings& settings) {
  const Output output(settings.common.json);
  check_outputs({settings.html, settings.record, settings.common.json});
  const CheckReport report = examine(settings);
  render_text(report, settings.strict, output);
  output.json(render_json(report, settings.strict));
  if (!settings.html.empty()) write_whole(settings.html, render_html(report, settings.strict));
  if (report.interrupted) return kExitInterrupted;
  return report.good(settings.strict) ? kExitOk : kExitCheckFailed;
}

constexpr const char* kExamples =
    "  assay check DIR                              bytes, structure, identity, numbers, behaviour\n"
    "  assay check DIR --manifest SHA256SUMS        with the publisher's word for the bytes\n"
    "  assay check DIR --against ORIGINAL           a converted checkpoint, and what it was made from\n"
    "  assay check DIR --text held-out.txt --max-perplexity 8\n"
    "  assay check DIR --record golden.json         of a trusted copy, once; then, anywhere:\n"
    "  assay check COPY --golden golden.json        names the tensor, the config key, the logit that "
    "differs\n"
    "\nExit codes: 0 all well, 1 something is wrong, 2 wrong usage or unreadable input, 130 interrupted.";

}  // namespace

void add_check(CLI::App& program, Action& action, const KernelSelector& select) {
  auto settings = std::make_shared<CheckSettings>();
  settings->select = select;
  CheckSettings& s = *settings;
  CLI::App& command = *program.add_subcommand("check", "The whole examination of a model, one verdict");
  command.add_option("DIR", s.path, "A folder of weights, a clone, a hub cache, a file")->required();
  command
      .add_option("--manifest", s.manifest, "Checksum file or saved hub listing that vouches for the bytes")
      ->type_name("FILE")
      ->check(not_empty());
  command
      .add_option("--golden", s.golden,
                  "A record to hold the model to (default: assay-golden.json beside the weights)")
      ->type_name("FILE");
  command.add_option("--record", s.record, "Write such a record of this model")
      ->type_name("FILE")
      ->excludes("--golden");
  command.add_option("--against", s.against, "A checkpoint whose values these should be, in whatever format")
      ->type_name("DIR");
  command.add_option("--text", s.text, "A text whose perplexity is measured")->type_name("FILE");
  command.add_option("--max-perplexity", s.most_perplexity, "With --text: how high it may be")
      ->type_name("X")
      ->check(positive_real())
      ->needs("--text");
  command.add_option("--kernels", s.kernels, "Kernels whose forward pass is held against the reference's")
      ->type_name("SELECTION")
      ->capture_default_str();
  command.add_option("--variant", s.variant, "Where references disagree, which one ('assay run --help')");
  command.add_flag("--quick", s.quick, "Headers only: nothing is hashed, nothing computed");
  command.add_flag("--run-large", s.run_large,
                   "Compute the forward pass even where it takes more than a minute");
  command.add_flag("--strict", s.strict,
                   "A warning, or a stage that could prove nothing, makes the verdict no");
  command.add_flag("--allow-nonfinite", s.allow_nonfinite, "NaN and Inf are warnings, not failures");
  command.add_option("--html", s.html, "Write the verdict as a page")->type_name("FILE");
  add_common_options(command, s.common);
  set_examples(command, kExamples);
  command.callback([settings, &action] { action = [settings] { return run_check(*settings); }; });
}

}  // namespace assay
