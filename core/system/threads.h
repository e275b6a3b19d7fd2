// Work spread over cores (oneTBB underneath), and the user's Ctrl-C.
#pragma once

#include <cstddef>
#include <functional>

namespace assay {

// The cores this process may use: CPU affinity, lowered by a cgroup CPU quota; at least 1.
int available_cores();

// Calls body(i) for every i in [0, count), at most `jobs` at a time, in no particular order. The first
// exception thrown by a body is rethrown here, after the others have stopped.
void parallel_for(int jobs, std::size_t count, const std::function<void(std::size_t)>& body);

// SIGINT and SIGTERM set a flag instead of killing us; long loops ask interrupted() and wind down, leaving a
// resumable state. A second signal ends the process at once.
void install_interrupt_handler();
bool interrupted();
// As if a signal had come, or had not: for code that winds down on its own account, and for tests.
void set_interrupted(bool value);

}  // namespace assay
