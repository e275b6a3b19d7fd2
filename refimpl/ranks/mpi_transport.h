// Ranks as processes that mpirun started. Open MPI is opened when a run asks for it, and linked to nothing: what the
// build needs of it are its headers, and without them start_mpi() says so.
#pragma once

#include <memory>

#include "refimpl/ranks/transport.h"

namespace assay {

// Once a process. Throws Error::usage where the program was built without MPI or no mpirun started it, Error::io where
// the library cannot be opened.
std::unique_ptr<Transport> start_mpi(std::chrono::milliseconds limit);

}  // namespace assay
