#include "kernels/compare/dumps.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/output_paths.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr const char* kDumpsExamples =
    "  assay run MODEL -p Hello --dump ref.safetensors       our own, in float32\n"
    "  assay compare dumps ref.safetensors engine/ --map names.map\n"
    "  assay compare dumps f64.safetensors bf16.npz --yardstick plain-bf16.safetensors\n"
    "  assay compare dumps ref.safetensors test.safetensors --include 'layers\\.[0-3]\\.' --html page.html\n";

}  // namespace

int run_compare_dumps(const CompareDumpsSettings& s) {
  dumps::CompareRequest request = s.request;
  request.ref = s.ref;
  request.test = s.test;
  request.map = s.map;
  request.yardstick = s.yardstick;
  request.jobs = s.common.jobs;
  check_outputs({s.csv, s.html, s.common.json});
  if (s.rtol && !(*s.rtol > 0 && *s.rtol <= 1e6)) throw Error::usage("--rtol takes a number above 0");
  request.rtol = s.rtol;
  if (s.rtol && !s.yardstick.empty()) throw Error::usage("--rtol and --yardstick exclude each other");
  const dumps::DumpComparison found = dumps::compare_dumps(request);
  if (interrupted()) return kExitInterrupted;
  const Output output(s.common.json);
  if (output.text_wanted()) {
    print_comparison(output, s, found);
    output.paint(verdict_line(found), found.good() ? Style::green : Style::red);
  }
  write_whole(s.csv, s.csv.empty() ? std::string() : to_csv(found));
  write_whole(s.html, s.html.empty() ? std::string() : to_page(s, found));
  if (output.json_wanted()) output.json(to_json(s, found));
  return found.good() ? kExitOk : kExitCheckFailed;
}

void add_compare_dumps(CLI::App& compare, Action& action) {
  auto settings = std::make_shared<CompareDumpsSettings>();
  CompareDumpsSettings& s = *settings;
  CLI::App& command = *compare.add_subcommand("dumps", "Activations that two engines saved, tap by tap");
  command.add_option("REF", s.ref, "A .safetensors, .npz, .npy, or a folder of them: what is right")
      ->required();
  command.add_option("TEST", s.test, "The same, of what is examined")->required();
  command.add_option("--map", s.map, "Names, axes, and joins of ranks, as docs/dumps.md has it")
      ->type_name("FILE");
  command
      .add_option("--yardstick", s.yardstick,
                  "A plain computation of TEST's precision: at most twice its error")
      ->type_name("DUMP");
  command.add_option("--rtol", s.rtol, "Limit, relative, in place of the one derived from the precision")
      ->type_name("R");
  command.add_option("--include", s.request.include, "Taps whose name matches")->type_name("REGEX");
  command.add_option("--exclude", s.request.exclude, "No taps whose name matches")->type_name("REGEX");
  command.add_flag("--all", s.all, "Every tap, not only the first and the worst");
  command.add_option("--csv", s.csv, "A row a tap")->type_name("FILE");
  command.add_option("--html", s.html, "A page with heat maps")->type_name("FILE");
  add_common_options(command, s.common);
  set_examples(command, kDumpsExamples);
  command.callback([settings, &action] { action = [settings] { return run_compare_dumps(*settings); }; });
}

}  // namespace assay
