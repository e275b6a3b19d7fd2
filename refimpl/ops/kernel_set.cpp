#include "refimpl/ops/kernel_set.h"

#include <fmt/format.h>

#include "core/system/error.h"
#include "refimpl/ops/reference.h"

namespace assay {

KernelSet reference_kernels() {
  return {"reference", true, [](const Arithmetic& arithmetic, int jobs) {
            return std::make_unique<ReferenceOps>(arithmetic, jobs);
          }};
}

const KernelSet& find_kernels(const KernelSets& sets, const std::string& name) {
  std::string known;
  for (const KernelSet& set : sets) {
    if (set.name == name) return set;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", set.name);
  }
  throw Error::usage(fmt::format("this program has no \"{}\" kernels", name))
      .remedy(fmt::format("--kernels takes {}", known));
}

}  // namespace assay
