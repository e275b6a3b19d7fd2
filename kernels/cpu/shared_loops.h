// Whether a loop had work for more than one thread: without such a loop, the same bits under another number
// of threads prove nothing.
#pragma once

#include <cstddef>

namespace assay::cpu {

// How many loops of several pieces this thread has begun with team_for on more than one thread, so far.
std::size_t shared_loops();

}  // namespace assay::cpu
