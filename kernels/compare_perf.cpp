// `assay compare kernels --perf`: how fast, and how far below the roof of this machine.
#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "core/system/name_filter.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "kernels/compare_kernels.h"
#include "kernels/harness/roof.h"

namespace assay {
namespace {

constexpr double kLeastSeconds = 0.2;

// The time nobody can be below: all bytes read once, all sums done at the peak, side by side.
double roof_seconds(const KernelTime& t, const Roof& roof) {
  return std::max(t.flops / roof.flops, t.bytes / roof.bytes);
}

double seconds_of(const std::vector<KernelTime>& times, std::string_view kernel) {
  double best = 0;
  for (const KernelTime& t : times) {
    if (t.kernel.starts_with(kernel) && (best == 0 || t.seconds < best)) best = t.seconds;
  }
  return best;
}

std::string against(double other, double mine) {
  return other == 0 ? "-" : fmt::format("{:.2f}", other / mine);
}

}  // namespace

int run_compare_perf(const CompareKernelsSettings& s) {
  const Output output(s.common.json);
  const NameFilter op(s.request.op, ""), kernel(s.request.kernel, "");
  const auto wanted = [&](const KernelLabel& k) {
    const bool yardstick = k.name == "reference" || kernel_group(k.name) == "library";
    return (kernel.accepts(k.name) || yardstick) && (!s.request.device || *s.request.device == k.device);
  };
  const Roof roof = measure_roof(s.request.jobs);
  using Align = Table::Align;
  Table table({"case", "kernel", "time", "GFLOP/s", "GB/s", "of the roof", "× library", "× reference"},
              {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right});
  Json list = Json::array();
  for (const auto& examiner : examiners(builtin_kernels())) {
    if (!op.accepts(examiner->op())) continue;
    std::vector<CaseId> cases = examiner->perf_grid();
    if (!s.request.cases.empty()) {
      cases.clear();
      for (const std::string& text : s.request.cases) {
        if (const CaseId id = CaseId::parse(text); id.op() == examiner->op()) cases.push_back(id);
      }
    }
    for (const CaseId& id : cases) {
      if (interrupted()) return kExitInterrupted;
      const std::vector<KernelTime> times = examiner->time(id, wanted, s.request.jobs, kLeastSeconds);
      const double library = seconds_of(times, "library"), reference = seconds_of(times, "reference");
      for (const KernelTime& t : times) {
        if (!kernel.accepts(t.kernel)) continue;
        const double share = roof_seconds(t, roof) / t.seconds;
        table.add({t.id, t.kernel, human_duration(t.seconds),
                   fmt::format("{:.1f}", t.flops / t.seconds / 1e9),
                   fmt::format("{:.1f}", t.bytes / t.seconds / 1e9), fmt::format("{:.0f} %", 100 * share),
                   against(library, t.seconds), against(reference, t.seconds)});
        list.push_back({{"id", t.id},
                        {"kernel", t.kernel},
                        {"seconds", t.seconds},
                        {"flops", t.flops},
                        {"bytes", t.bytes},
                        {"share_of_roof", share}});
      }
    }
  }
  output.line(table.render());
  output.line(fmt::format("roof with {} threads, measured now: {:.0f} GFLOP/s in float32, {:.1f} GB/s read",
                          s.request.jobs, roof.flops / 1e9, roof.bytes / 1e9));
  output.json({{"schema", "assay.compare/1"},
               {"tool", "assay " ASSAY_VERSION},
               {"roof", {{"threads", s.request.jobs}, {"flops", roof.flops}, {"bytes", roof.bytes}}},
               {"perf", std::move(list)}});
  return kExitOk;
}

}  // namespace assay
