// One kernel on one case: the checks, in an order in which the first that fails explains the later ones.
//
//   1 shape        the parts of the result are as large as they ought to be
//   2 canaries     nothing was written before, behind or between the rows of any matrix, no argument changed
//   3 pattern      NaN and infinities stand where they ought to and nowhere else
//   4 exact        on inputs without rounding: equality
//   5 budget       else: error within what rounding explains
//   6 operands     where operands are quantized first: the error that came of that within what the format
//                  explains, the budget being of the product of what they became
//   7 type         results that are due in bfloat16 are numbers of it
//   8 repeat       the same bits when run again
//   9 layout       the same bits with other strides, where the kernel promises that
//  10 threads      the same bits with another number of threads, where the kernel promises that
//  11 batch        f(x)[:1] has the bits of f(x[:1]), where the kernel promises that; in attention, a
//                  sequence alone those it has among others
//  12 chunk        in attention, a prompt's first token those it has when it comes by itself
//  13 isolation    a NaN token spoils no other
//  14 stale        plugins: the same bits where the same addresses held other numbers in an earlier call
//
// Outputs whose truth is all zeros, all NaN, or has suspiciously few digits prove nothing: MISTRUSTED.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/device_limits.h"
#include "kernels/cuda/launch_plan.h"
#include "kernels/harness/case_run.h"
#include "kernels/harness/cases.h"
#include "kernels/registry/registry.h"

namespace assay {

enum class Kept : std::uint8_t { untested, yes, no };
std::string_view name(Kept kept);  // "untested", "yes", "no"
struct Properties {
  Kept repeatable = Kept::untested, layout_invariant = Kept::untested, thread_invariant = Kept::untested,
       batch_invariant = Kept::untested, chunk_invariant = Kept::untested, isolated = Kept::untested;
};

struct CaseResult {
  std::string id, kernel;
  Device device = Device::cpu;
  std::string plugin;  // the library the kernel comes from; empty: ours
  CaseStatus status = CaseStatus::skipped;
  std::string check;      // which of the above said no; empty when none did
  std::string detail;     // a sentence for people
  ErrorMeasure measured;  // of the worst part
  Properties properties;
  Roundoffs roundoffs;  // as the kernel declares them
};

struct ExamineSettings {
  int jobs = 1;
  // Kernels slower than this a case are examined for their numbers only, without the properties.
  double flops_for_properties = 4e8;
};

// Truth against an output that may be sabotaged on the way: what the comparator does with both.
struct Comparison {
  CaseStatus status = CaseStatus::passed;
  std::string check, detail;
  ErrorMeasure measured;
};
Comparison compare_parts(const Truth& truth, const std::vector<OutputPart>& parts,
                         const Roundoffs& roundoffs = {});

template <class Call>
CaseResult examine(const Kernel<Call>& kernel, const Operands<Call>& operands, const Truth& truth,
                   const ExamineSettings& settings);

// What is known of a kernel without its types.
struct KernelLabel {
  std::string op, name, about;
  Device device = Device::cpu;
  std::string unavailable;  // why it takes nothing on this machine; empty: it can
};

// Seconds of the fastest run: of at least two, that take `least` together.
double fastest(const std::function<void()>& work, double least);

struct KernelTime {
  std::string id, kernel;
  double seconds = 0;           // of the fastest run
  double flops = 0, bytes = 0;  // of one run
};

// How a kernel would be launched on a GPU.
struct KernelPlans {
  std::string id, kernel;
  int sm = 0;
  std::vector<cuda::LaunchPlan> plans;
};

// An operation without its types.
class OpExaminer {
 public:
  virtual ~OpExaminer() = default;
  virtual std::string_view op() const = 0;
  virtual std::vector<CaseId> grid() const = 0;
  // Those of OpCases::always(), and on both sides of every edge that a kernel declares.
  virtual std::vector<CaseId> always() const = 0;
  virtual std::vector<CaseId> perf_grid() const = 0;
  virtual std::vector<KernelLabel> kernels() const = 0;
  // All kernels wanted on one case; truth is computed once.
  virtual std::vector<CaseResult> examine(const CaseId& id,
                                          const std::function<bool(const KernelLabel&)>& wanted,
                                          const ExamineSettings& settings) const = 0;
  // Those that take the case, each run for at least `least` seconds and twice.
  virtual std::vector<KernelTime> time(const CaseId& id,
                                       const std::function<bool(const KernelLabel&)>& wanted, int jobs,
                                       double least) const = 0;
  // Of those that take the case, on each of these devices; what does not fit is told in its plan. A case is
  // its shapes here: no numbers are made.
  virtual std::vector<KernelPlans> plans(const CaseId& id,
                                         const std::function<bool(const KernelLabel&)>& wanted,
                                         std::span<const cuda::DeviceLimits> devices) const = 0;
};
// One for every operation of the registry, which outlives them.
std::vector<std::unique_ptr<OpExaminer>> examiners(const Registry& registry);

}  // namespace assay
