// `assay compare kernels --dry-run --sm 89`: how every CUDA kernel would be launched, without a GPU.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/name_filter.h"
#include "core/system/table.h"
#include "core/system/threads.h"
#include "kernels/compare/kernels.h"
#include "kernels/cuda/device_limits.h"
#include "kernels/selection/select.h"

namespace assay {
namespace {

std::vector<cuda::DeviceLimits> wanted_limits(int sm) {
  const std::span<const cuda::DeviceLimits> all = cuda::all_device_limits();
  if (sm == 0) return {all.begin(), all.end()};
  if (const cuda::DeviceLimits* limits = cuda::limits_of(sm)) return {*limits};
  std::string known;
  for (const cuda::DeviceLimits& l : all) known += fmt::format("{}{}", known.empty() ? "" : ", ", l.sm);
  throw Error::usage(fmt::format("nothing is known of sm_{}", sm)).remedy("use one of " + known);
}

// The cases asked for, else those worth timing.
std::vector<CaseId> planned_cases(const OpExaminer& examiner, const SurveyRequest& request) {
  std::vector<CaseId> cases;
  for (const std::string& text : request.cases) {
    if (CaseId id = CaseId::parse(text); id.op() == examiner.op()) cases.push_back(std::move(id));
  }
  return request.cases.empty() ? examiner.perf_grid() : cases;
}

Json to_json(const cuda::LaunchPlan& plan) {
  return {{"kernel", plan.kernel},
          {"variant", plan.variant},
          {"grid", {plan.grid.x, plan.grid.y, plan.grid.z}},
          {"block", plan.block.x},
          {"shared_bytes", plan.shared_bytes},
          {"stages", plan.stages},
          {"registers", plan.registers},
          {"blocks_per_sm", plan.blocks_per_sm},
          {"fits", plan.fits},
          {"why", plan.why}};
}

std::vector<KernelPlans> plan_all(const CompareKernelsSettings& s) {
  const NameFilter op(s.request.op, ""), kernel(s.request.kernel, "");
  const std::vector<cuda::DeviceLimits> limits = wanted_limits(s.sm);
  const auto wanted = [&](const KernelLabel& k) {
    return k.device == Device::cuda && kernel.accepts(k.name);
  };
  std::vector<KernelPlans> all;
  for (const auto& examiner : examiners(builtin_kernels())) {
    const std::vector<KernelLabel> kernels = examiner->kernels();
    if (!op.accepts(examiner->op()) || std::none_of(kernels.begin(), kernels.end(), wanted)) continue;
    for (const CaseId& id : planned_cases(*examiner, s.request)) {
      if (interrupted()) return all;
      for (KernelPlans& plans : examiner->plans(id, wanted, limits)) all.push_back(std::move(plans));
    }
  }
  return all;
}

}  // namespace

int run_compare_plans(const CompareKernelsSettings& s) {
  const Output output(s.common.json);
  const std::vector<KernelPlans> all = plan_all(s);
  if (interrupted()) return kExitInterrupted;
  if (all.empty())
    throw Error::usage("no CUDA kernel is called so, or none takes the case")
        .remedy("see 'assay compare kernels --list --device cuda'");
  Table table({"case", "kernel", "sm", "launch", "plan"}, std::vector(5, Table::Align::left));
  Json list = Json::array();
  for (const KernelPlans& p : all) {
    Json launches = Json::array();
    for (const cuda::LaunchPlan& plan : p.plans) {
      table.add({p.id, p.kernel, std::to_string(p.sm), plan.kernel, describe(plan)});
      launches.push_back(to_json(plan));
    }
    list.push_back({{"id", p.id}, {"kernel", p.kernel}, {"sm", p.sm}, {"launches", std::move(launches)}});
  }
  output.line(table.render());
  output.json({{"schema", "assay.compare/1"}, {"tool", "assay " ASSAY_VERSION}, {"plans", std::move(list)}});
  return kExitOk;
}

}  // namespace assay
