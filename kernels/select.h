// A selection of kernels that keeps count of what it leaves to the reference.
#pragma once

#include <memory>

#include "kernels/registry.h"
#include "refimpl/ops/fallbacks.h"

namespace assay {

// `fallbacks` grows with every call; of several Ops, as long as they do not compute at the same time.
std::unique_ptr<Ops> select_kernels(const Registry& registry, std::string_view selection,
                                    const Arithmetic& arithmetic, int jobs,
                                    std::shared_ptr<Fallbacks> fallbacks);

}  // namespace assay
