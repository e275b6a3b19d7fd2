// Every kernel there is, several for an operation: what `compare` walks, `run --kernels` chooses from
// (kernels/selection/select.h) and a plugin adds to.
//
//   for (const Kernel<LinearCall>& kernel : registry.of<LinearCall>()) …
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "kernels/operands/rounded_operands.h"
#include "kernels/registry/edges.h"
#include "refimpl/ops/every_call.h"
#include "refimpl/ops/interface.h"

namespace assay {

class RemoteKernel;  // kernels/harness/case_run.h
namespace cuda {
struct DeviceLimits;
struct LaunchPlan;
}  // namespace cuda

enum class Device : std::uint8_t { cpu, cuda };
std::string_view name(Device device);

// What a kernel says of its bits. The comparison measures all of it and holds a kernel to what it says.
struct Invariants {
  bool batch_invariant = true;   // a token's (in attention: a sequence's) result does not depend on others
  bool chunk_invariant = true;   // a prompt's first token has the same result when it comes by itself
  bool thread_invariant = true;  // nothing depends on the number of threads
  bool layout_invariant = true;  // nor on where matrices lie and how far apart their rows
};

// Unit roundoffs that a kernel declares, and is allowed.
struct Roundoffs {
  // Of its accumulators: 2^-24 for float32, more where a tensor core keeps fewer bits.
  double accumulator = 0x1p-24;
  // So many terms at a time are summed like that, and their sums in float32; 0: all of them.
  std::size_t promoted = 0;
  // What a product of two operands is off by, relatively, where they are rounded first to coarser numbers
  // than the arithmetic's: 0 where they are not.
  double operands = 0;
  // Takes numbers below 2^-126 for 0: what would be exact may be off by as much.
  bool flushes_subnormals = false;
};

template <class Call>
struct Kernel {
  std::string name;  // "cpu.gemv"; what stands before the point is a group: reference, cpu, cuda, library
  std::string about;
  Device device = Device::cpu;
  // Element types, stored forms and shapes.
  std::function<bool(const Arithmetic&, const Call&)> takes;
  // Results lie in the memory of the Ops given, whose arithmetic and jobs() hold.
  std::function<ResultOf<Call>(Ops&, const Call&)> run;
  // Several calls of one input side by side, each with the bits that run() gives. Not set: one after the other.
  std::function<std::vector<ResultOf<Call>>(Ops&, std::span<const Call>)> run_together = {};
  Invariants invariants = {};
  Roundoffs roundoffs = {};
  // How it rounds a call's operands before it multiplies them, where the arithmetic leaves that to kernels.
  // Not set: it never does.
  std::function<std::optional<RoundedOperands>(const Arithmetic&, const Call&)> operands = {};
  // Where its code goes another way; the grid has cases on both sides.
  Edges edges = {};
  // Of a kernel that is examined in a process of its own: it has no `takes` and no `run` here.
  std::shared_ptr<RemoteKernel> remote = {};
  // Why it can take nothing on this machine: "no CUDA device: …"; empty, or not set: it can.
  std::function<std::string()> unavailable = {};
  // On a GPU: how it would be launched on one of these limits, present or not. Empty: it takes no such call.
  std::function<std::vector<cuda::LaunchPlan>(const cuda::DeviceLimits&, const Arithmetic&, const Call&)>
      plans = {};
  // Why this call is not taken, where that can be told: "sm_89 has no wgmma". Empty, or not set: it cannot.
  std::function<std::string(const Arithmetic&, const Call&)> refusal = {};
};

class Registry {
 public:
  template <class Call>
  void add(Kernel<Call> kernel) {
    std::get<std::vector<Kernel<Call>>>(kernels_).push_back(std::move(kernel));
  }
  template <class Call>
  const std::vector<Kernel<Call>>& of() const {
    return std::get<std::vector<Kernel<Call>>>(kernels_);
  }
  // visit(kernels of one operation), for every operation.
  template <class Visitor>
  void for_each_op(Visitor&& visit) const {
    std::apply([&](const auto&... kernels) { (visit(kernels), ...); }, kernels_);
  }

 private:
  template <class List>
  struct Lists;
  template <class... Calls>
  struct Lists<CallList<Calls...>> {
    using Type = std::tuple<std::vector<Kernel<Calls>>...>;
  };
  Lists<EveryCall>::Type kernels_;
};

// "cpu" of "cpu.gemv".
std::string_view kernel_group(std::string_view kernel_name);

}  // namespace assay
