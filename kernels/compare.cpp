#include "kernels/compare.h"

#include <memory>

#include "core/system/error.h"
#include "kernels/compare_dumps.h"
#include "kernels/compare_kernels.h"

namespace assay {
namespace {

constexpr const char* kKernelsExamples =
    "  assay compare kernels                          the whole grid, every kernel of this machine\n"
    "  assay compare kernels --op linear --kernel cpu\n"
    "  assay compare kernels --case linear:Q4_K:m=9:k=768:n=35:in=heavy:seed=1\n"
    "  assay compare kernels --list\n";

void add_kernels(CLI::App& compare, Action& action) {
  auto settings = std::make_shared<CompareKernelsSettings>();
  CompareKernelsSettings& s = *settings;
  CLI::App& command = *compare.add_subcommand(
      "kernels", "Optimized kernels against float64 truth, within budgets derived from the arithmetic");
  command.add_option("--op", s.request.op, "Operations whose name matches")->type_name("REGEX");
  command.add_option("--kernel", s.request.kernel, "Kernels whose name matches")->type_name("REGEX");
  command.add_option("--device", s.device, "Kernels of this device only")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command.add_option("--case", s.request.cases, "This case, in place of the grid; may be repeated")
      ->type_name("ID")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--seeds", s.request.seeds, "Each case under N seeds (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1000}));
  command.add_flag("--list", s.list, "The kernels there are");
  command.add_flag("--mutants", s.mutants, "Plant faults, and see whether each is caught");
  command.add_flag("--perf", s.perf, "Time, GB/s, GFLOP/s and share of the roof, on shapes worth timing");
  command.add_flag("-v,--verbose", s.verbose, "Every case, not only those that failed");
  command.add_option("--csv", s.csv, "A row a case and kernel")->type_name("FILE");
  add_common_options(command, s.common);
  set_examples(command, kKernelsExamples);
  command.callback([settings, &action] {
    CompareKernelsSettings& chosen = *settings;
    if (!chosen.device.empty()) chosen.request.device = chosen.device == "cuda" ? Device::cuda : Device::cpu;
    chosen.request.jobs = chosen.common.jobs;
    action = [settings] { return run_compare_kernels(*settings); };
  });
}

constexpr const char* kDumpsExamples =
    "  assay run MODEL -p Hello --dump ref.safetensors       our own, in float32\n"
    "  assay compare dumps ref.safetensors engine/ --map names.map\n"
    "  assay compare dumps f64.safetensors bf16.npz --yardstick plain-bf16.safetensors\n"
    "  assay compare dumps ref.safetensors test.safetensors --include 'layers\\.[0-3]\\.' --html page.html\n";

void add_dumps(CLI::App& compare, Action& action) {
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

}  // namespace

void add_compare(CLI::App& program, Action& action) {
  CLI::App& compare = *program.add_subcommand("compare", "Hold what computes against what is right");
  compare.require_subcommand(1);
  add_kernels(compare, action);
  add_dumps(compare, action);
}

}  // namespace assay
