// Many kernels on many cases: what `compare kernels` shows and `gate` remembers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/harness/examine.h"

namespace assay {

struct SurveyRequest {
  std::string op, kernel;          // regular expressions, searched; empty: all
  std::optional<Device> device;    // of the kernels
  std::vector<std::string> cases;  // these, in place of the grids
  std::uint64_t seeds = 1;         // each case again under so many seeds
  std::size_t every = 1;           // of each grid only every so many-th case, all of OpExaminer::always()
  int jobs = 1;
};

// Kernels that a request names, in the order of the registry.
std::vector<KernelLabel> wanted_kernels(const Registry& registry, const SurveyRequest& request);

// Operations for which the registry has no kernel of this device but the reference.
std::vector<std::string> unimplemented(const Registry& registry, const SurveyRequest& request, Device device);

// The `check` of a kernel that runs nothing on this machine: one SKIPPED for all its cases.
inline constexpr std::string_view kUnavailable = "unavailable";

// The `check` of a case that the examination itself could not do: its operands or its truth threw. It counts
// as failed, and the others go on.
inline constexpr std::string_view kHarnessFault = "harness";

// Cases in the order of the registry and the grids, the kernels of a case side by side. Throws Error::usage
// where nothing is asked for. `done` is called after each case, by any thread.
std::vector<CaseResult> run_survey(const Registry& registry, const SurveyRequest& request,
                                   const std::function<void(std::size_t done, std::size_t all)>& done = {});

}  // namespace assay
