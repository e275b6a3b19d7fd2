#include "kernels/compare/command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "core/numeric/simd_option.h"
#include "core/system/error.h"
#include "kernels/compare/caches.h"
#include "kernels/compare/dumps.h"
#include "kernels/compare/endpoint.h"
#include "kernels/compare/kernels.h"
#include "kernels/compare/logprobs.h"
#include "kernels/compare/model.h"
#include "kernels/compare/serving.h"
#include "kernels/compare/tensors.h"
#include "kernels/plugin/worker.h"

namespace assay {
namespace {

constexpr const char* kKernelsExamples =
    "  assay compare kernels                          the whole grid, every kernel of this machine\n"
    "  assay compare kernels --op linear --kernel cpu\n"
    "  assay compare kernels --case linear:Q4_K:m=9:k=768:n=35:in=heavy:seed=1\n"
    "  assay compare kernels --plugin ./libmine.so    kernels of your own\n"
    "  assay compare kernels --list\n"
    "  assay compare kernels --mutants                plant faults; is each caught?\n"
    "  assay compare kernels --perf                   time, and how far below the roof\n"
    "  assay compare kernels --tune board.json        which of a GPU's kernels is fastest where\n"
    "  assay compare kernels --dry-run --sm 89        launch plans of the CUDA kernels\n"
    "\nExit codes: 0 nothing failed, 1 something did, or proved nothing, 2 wrong usage or unreadable input.";

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
  add_plugin_options(command, s.plugins);
  command.add_flag("--list", s.list, "The kernels there are");
  command.add_flag("--mutants", s.mutants, "Plant faults, and see whether each is caught");
  command.add_flag("--perf", s.perf, "Time, GB/s, GFLOP/s and share of the roof, on shapes worth timing");
  command.add_option("--tune", s.tune, "Time a GPU's products, and write which kernel is fastest where")
      ->type_name("FILE");
  command.add_flag("--dry-run", s.dry_run,
                   "How CUDA kernels would be launched on those shapes: needs no GPU");
  command
      .add_option("--sm", s.sm, "Of --dry-run: compute capability, 89 for 8.9 (default: all that are known)")
      ->type_name("N");
  command.add_flag("-v,--verbose", s.verbose, "Every case, not only those that failed");
  command.add_option("--csv", s.csv, "A row a case and kernel; of --perf too")->type_name("FILE");
  add_isa_option(command);
  add_common_options(command, s.common);
  set_examples(command, kKernelsExamples);
  command.callback([settings, &action] {
    CompareKernelsSettings& chosen = *settings;
    if (!chosen.device.empty()) chosen.request.device = chosen.device == "cuda" ? Device::cuda : Device::cpu;
    chosen.request.jobs = chosen.common.jobs;
    action = [settings] { return run_compare_kernels(*settings); };
  });
}

// What --plugin runs, once for each process that a plugin lives in.
void add_plugin_worker(CLI::App& program, Action& action) {
  auto library = std::make_shared<std::string>();
  CLI::App& command = *program.add_subcommand(kWorkerCommand, "")->group("");
  command.add_option("library", *library)->required();
  command.callback([library, &action] { action = [library] { return serve_plugin(*library); }; });
}

}  // namespace

void add_compare(CLI::App& program, Action& action) {
  CLI::App& compare = *program.add_subcommand("compare", "Hold what computes against what is right");
  compare.require_subcommand(1);
  add_kernels(compare, action);
  add_compare_model(compare, action);
  add_compare_serving(compare, action);
  add_compare_caches(compare, action);
  add_compare_dumps(compare, action);
  add_compare_tensors(compare, action);
  add_compare_logprobs(compare, action);
  add_compare_endpoint(compare, action);
  add_plugin_worker(program, action);
}

}  // namespace assay
