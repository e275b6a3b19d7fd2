#include "core/numeric/simd_targets.h"

#include "core/numeric/vnni_targets.h"
//
#include <hwy/highway.h>

#include "core/system/error.h"

namespace assay {
namespace {

// Highway numbers its targets from best to worst, lowest bit first.
std::vector<std::int64_t> built_and_supported() {
  std::vector<std::int64_t> targets;
  for (std::int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    targets.push_back(rest & -rest);
  }
  return targets;
}

}  // namespace

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (const std::int64_t target : built_and_supported()) names.emplace_back(hwy::TargetName(target));
  return names;
}

void use_simd_target(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  if (!name.empty()) {
    std::int64_t wanted = 0;
    for (const std::int64_t target : built_and_supported()) {
      if (hwy::TargetName(target) == name) wanted = target;
    }
    if (wanted == 0) throw Error::internal("no vector target " + name);
    // Where it is not built in, the next best.
    hwy::SetSupportedTargetsForTest(hwy::SupportedTargets() & -wanted);
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace assay
