// Kernels under the emulator, through the whole examination: budgets, canaries, poison, properties.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "kernels/cuda/machine.h"
#include "kernels/harness/examine.h"
#include "kernels/registry/registry.h"

namespace assay {

// One of `turns` cases, whichever: of those that differ in little.
inline bool in_turn(const CaseId& id, std::size_t turns) {
  std::size_t hash = 0;
  for (const char c : id.text()) hash = hash * 31 + static_cast<unsigned char>(c);
  return hash % turns == 0;
}

// Cases of the grid, or of those it is never without (OpCases::always), for which `wanted` says yes. Each has
// to be passed by every kernel that `add` put into the registry; returns how many examinations were passed,
// so that a test can demand some.
inline std::size_t pass_emulated(
    int sm, const std::function<void(Registry&, cuda::Machine&)>& add,
    const std::function<bool(const CaseId&)>& wanted = [](const CaseId&) { return true; },
    bool always = false) {  // of always, what the kernels themselves declare (kernels/edges.h) is most
  const std::unique_ptr<cuda::Machine> machine = cuda::emulated_machine(sm);
  Registry registry;
  add(registry, *machine);
  std::size_t passed = 0;
  for (const auto& examiner : examiners(registry)) {
    if (examiner->kernels().empty()) continue;
    for (const CaseId& id : always ? examiner->always() : examiner->grid()) {
      if (!wanted(id)) continue;
      for (const CaseResult& r : examiner->examine(id, [](const KernelLabel&) { return true; }, {})) {
        if (r.status == CaseStatus::passed) ++passed;
        EXPECT_TRUE(r.status == CaseStatus::passed || r.status == CaseStatus::skipped)
            << r.kernel << " " << r.id << ": " << r.check << ": " << r.detail;
      }
    }
  }
  return passed;
}

// Some kernel that `add` put into the registry plans the product of this case, but none one of more rows, outputs or
// inputs than `most`, nor of an x of another width. No memory is touched: plans look at shapes.
inline void expect_no_linear_beyond(int sm, const std::function<void(Registry&, cuda::Machine&)>& add,
                                    const std::string& id, std::size_t most) {
  const std::unique_ptr<cuda::Machine> machine = cuda::emulated_machine(sm);
  Registry registry;
  add(registry, *machine);
  const auto made = cases_of<LinearCall>().make(CaseId::parse(id));
  ReferenceOps ops(made->arithmetic, 1);
  const LinearCall call = made->call(ops);
  const auto planned = [&](const LinearCall& c) {
    std::size_t plans = 0;
    for (const Kernel<LinearCall>& kernel : registry.of<LinearCall>())
      plans += kernel.plans(machine->limits(), made->arithmetic, c).size();
    return plans > 0;
  };
  const auto x = [&](std::size_t rows, std::size_t columns) { return Matrix({}, Real::f32, rows, columns); };
  EXPECT_TRUE(planned(call)) << id;
  LinearCall tall = call, wide = call, many = call, other = call;
  tall.weight.rows = most + 1;
  wide.weight.columns = most + 1;
  wide.x = x(3, most + 1);
  many.x = x(most + 1, call.x.columns());
  other.x = x(3, call.x.columns() - 1);
  for (const LinearCall& c : {tall, wide, many, other})
    EXPECT_FALSE(planned(c)) << id << ": " << c.weight.rows << " x " << c.weight.columns << ", "
                             << c.x.rows();
}

}  // namespace assay
