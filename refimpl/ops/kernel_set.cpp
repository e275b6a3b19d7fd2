#include "refimpl/ops/kernel_set.h"

#include "refimpl/ops/reference.h"

namespace assay {

KernelSet reference_kernels() {
  return {"reference", true, [](const Arithmetic& arithmetic, int jobs) {
            return std::make_unique<ReferenceOps>(arithmetic, jobs);
          }};
}

}  // namespace assay
