// Which kernels to run when n messages are at hand: for every n the cheapest sequence, by measured speed.
//
// Twelve lanes may be best served by the 8-lane kernel and a 4-lane one, or by the 16-lane one a quarter
// idle; which, differs from CPU to CPU, so a few milliseconds are spent on asking this one.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "core/formats/hash/sha256_kernels.h"

namespace assay::sha256 {

class KernelPlan {
 public:
  static KernelPlan typical();          // from the rates in the table
  static const KernelPlan& measured();  // from rates measured once, at the first call
  static KernelPlan only(
      std::string_view name);  // that kernel for any number of lanes; Error::usage if not here

  // Advances states[i] by `blocks` blocks at data[i]; at most kMaxLanes of them.
  void run(std::span<State* const> states, std::span<const std::byte* const> data, std::size_t blocks) const;

  // How many messages a thread should have at hand: where the rate levels off.
  int lanes() const { return lanes_; }
  const std::vector<const Kernel*>& kernels_for(int messages) const { return steps_[messages]; }

 private:
  struct Candidate {
    const Kernel* kernel;
    double seconds;  // for one block in each of its lanes
  };
  explicit KernelPlan(const std::vector<Candidate>& candidates);
  std::array<std::vector<const Kernel*>, kMaxLanes + 1> steps_;
  int lanes_ = 1;
};

// Best of a few short runs, in GB/s of all its lanes together.
double measure_rate(const Kernel& kernel, std::size_t bytes_per_lane, int repetitions);

}  // namespace assay::sha256
