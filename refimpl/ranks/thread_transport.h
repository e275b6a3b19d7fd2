// Ranks as threads of one process: for tests, for claims, and where there is no mpirun.
//
//   run_on_threads(4, limit, [&](Transport& transport) { … });      once for each rank, at the same time
#pragma once

#include <functional>

#include "refimpl/ranks/transport.h"

namespace assay {

// Returns when all have; rethrows what the first of them to fail threw. Others, which waited for it, end with it.
void run_on_threads(std::size_t ranks, std::chrono::milliseconds limit,
                    const std::function<void(Transport&)>& body);

}  // namespace assay
