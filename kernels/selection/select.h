// Kernels chosen for a forward pass.
//
//   auto ops = select_kernels(builtin_kernels(), "cpu", arithmetic, jobs);    // an Ops like any other
//   auto ops = select_kernels(registry, "linear=library.openblas", arithmetic, jobs);
//
// A selection is a comma-separated list, later entries on top of earlier ones:
//   reference   nothing but the meaning of the operations
//   cpu, cuda   our kernels of that device, for each operation the first registered that takes a call
//   cpu-invariant, cuda-invariant   of these only such as promise a token the same bits whatever comes with it
//                                   and wherever its prompt is cut
//   OP=NAME     for this operation the kernel of this name, where it takes the call
//   tuning=FILE linear by a table of measured times (tuning.h) in place of the one that the board has in the program
// What no chosen kernel takes is computed by the reference.
#pragma once

#include <memory>
#include <string_view>

#include "kernels/registry/model_memory.h"
#include "kernels/registry/registry.h"
#include "refimpl/ops/fallbacks.h"

namespace assay {

// The reference, our own kernels, and those of the libraries found when assay was built.
const Registry& builtin_kernels();

// Throws Error::usage for a selection that names what there is not.
std::unique_ptr<Ops> select_kernels(const Registry& registry, std::string_view selection,
                                    const Arithmetic& arithmetic, int jobs);
// Whether all kernels it names promise that.
bool is_invariant(const Registry& registry, std::string_view selection);
// Counts in `fallbacks` what is left to the reference; of several Ops, as long as they do not compute at the
// same time.
std::unique_ptr<Ops> select_kernels(const Registry& registry, std::string_view selection,
                                    const Arithmetic& arithmetic, int jobs,
                                    std::shared_ptr<Fallbacks> fallbacks);
// The same where kernels of a device find another one than that at hand: an emulated one, in tests.
std::unique_ptr<Ops> select_kernels(const Registry& registry, std::string_view selection,
                                    const Arithmetic& arithmetic, int jobs,
                                    std::shared_ptr<Fallbacks> fallbacks, ModelDevice (*device)());

}  // namespace assay
