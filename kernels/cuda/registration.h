// How a kernel of this folder enters the registry: it takes what it can plan, where there is a machine.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/machine.h"
#include "kernels/cuda/plan_words.h"
#include "kernels/registry/registry.h"

namespace assay::cuda {

// plans(limits, arithmetic, call): every launch of the call, in order; none where element types, stored forms
// or shapes are not this kernel's. run(machine, ops, call) computes it. Where the code goes another way, its
// `edges` say; a library's are its own business.
template <class Call, class Plans, class Run>
Kernel<Call> cuda_kernel(Machine& machine, std::string_view name, std::string_view about, const Edges& edges,
                         Plans plans, Run run) {
  const auto fits = [](const LaunchPlan& plan) { return plan.fits; };
  return {.name = std::string(name),
          .about = std::string(about),
          .device = Device::cuda,
          .takes =
              [&machine, plans, fits](const Arithmetic& arithmetic, const Call& call) {
                if (!machine.unavailable().empty()) return false;
                const PlansWithoutWords none;
                const std::vector<LaunchPlan> planned = plans(machine.limits(), arithmetic, call);
                return !planned.empty() && std::all_of(planned.begin(), planned.end(), fits);
              },
          .run =
              [&machine, run](Ops& ops, const Call& call) {
                const PlansWithoutWords none;
                return run(machine, ops, call);
              },
          .edges = edges,
          .unavailable = [&machine] { return machine.unavailable(); },
          .plans = plans,
          .refusal = [&machine, plans](const Arithmetic& arithmetic, const Call& call) -> std::string {
            if (!machine.unavailable().empty()) return {};
            for (const LaunchPlan& plan : plans(machine.limits(), arithmetic, call)) {
              if (!plan.fits) return plan.why;
            }
            return {};
          }};
}

}  // namespace assay::cuda
