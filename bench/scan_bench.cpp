// Processor time of the kernels of recurrent layers on cases of `assay compare kernels`, one thread: bench/scans holds
// them against PyTorch's. A line a kernel: case, name, seconds of the fastest of several runs.
//
//   scan_bench delta_rule:F32:m=512:heads=16:share=2:k=128:v=128
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "kernels/harness/cases.h"
#include "kernels/selection/select.h"

namespace assay {
namespace {

double processor_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Call>
void time_case(const CaseId& id, const std::vector<Kernel<Call>>& kernels) {
  const auto operands = cases_of<Call>().make(id);
  ReferenceOps ops(operands->arithmetic, 1);
  const Call call = operands->call(ops);
  for (const Kernel<Call>& kernel : kernels) {
    if (!kernel.takes(operands->arithmetic, call)) continue;
    double best = std::numeric_limits<double>::infinity();
    const double begin = processor_seconds();
    for (int runs = 0; runs < 2 || processor_seconds() < begin + 2; ++runs) {
      const double start = processor_seconds();
      kernel.run(ops, call);
      best = std::min(best, processor_seconds() - start);
    }
    fmt::print("{} {} {:.6f}\n", id.text(), kernel.name, best);
  }
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const assay::CaseId id = assay::CaseId::parse(argv[i]);
    assay::builtin_kernels().for_each_op([&]<class Call>(const std::vector<assay::Kernel<Call>>& kernels) {
      if (Call::kOp == id.op()) assay::time_case(id, kernels);
    });
  }
}
