// One run of a kernel on a case: here, or in a process of its own.
//
// The examination is made of runs of the same case, varied one thing at a time: other strides, another number
// of threads, a part of the tokens. A run is named by the case and its variation alone, so that whoever knows
// the name can make the operands and do it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/harness/cases.h"
#include "kernels/harness/guarded_ops.h"
#include "kernels/registry/registry.h"

namespace assay {

enum class CallPart : std::uint8_t { whole, first_token, first_chunk };  // Operands' functions of these names

struct Variation {
  int jobs = 1;
  std::size_t padding = 0;  // elements between rows
  CallPart part = CallPart::whole;
  bool spoilt = false;  // Operands::spoil_last_token
  // The kernel runs a second time on memory it has never seen before the first, when that held other numbers.
  bool reused = false;
};

struct CaseRun {
  bool taken = true;   // false: the kernel refuses, or there is no such variation, or `check` says why not
  bool shared = true;  // false: nothing of it was work for a second thread
  std::string check, detail;  // what went wrong, if anything
  std::vector<OutputPart> parts;
};

// Thrown by a kernel's run: what a guard of its own has found, or what the kernel itself says went wrong.
class RunFault : public std::runtime_error {
 public:
  RunFault(std::string check, const std::string& detail)
      : std::runtime_error(detail), check_(std::move(check)) {}
  const std::string& check() const { return check_; }

 private:
  std::string check_;
};

// In guarded memory, which is left in `kept` if that is not null. What is lent to the kernel beside it
// `lend_others` lends anew with other contents (true), and gives the true ones at the same addresses (false).
template <class Call>
CaseRun run_case(const Kernel<Call>& kernel, const Operands<Call>& operands, const Variation& variation,
                 std::unique_ptr<GuardedOps>* kept = nullptr,
                 const std::function<void(bool)>& lend_others = {});

// A kernel that runs in a process of its own, which makes the operands itself. Called by many threads.
class RemoteKernel {
 public:
  virtual ~RemoteKernel() = default;
  virtual CaseRun run(const CaseId& id, const Variation& variation) = 0;
  // Of the fastest of several runs, `least` seconds of them; nullopt: not taken, or it failed.
  virtual std::optional<double> time(const CaseId& id, int jobs, double least) = 0;
};

}  // namespace assay
