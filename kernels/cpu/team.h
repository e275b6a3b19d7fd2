// Loops over threads that wait for them. A pass through a model for one token is some hundred loops of a few
// dozen microseconds each: threads that went to sleep in between would be woken for as long as they work. So
// they look for the next loop for a while first, and sleep only then.
//
//   team_for(jobs, pieces, [&](std::size_t i) { … });   // as core/system/threads.h's parallel_for
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace assay::cpu {

// body(i) for every i in [0, count), on at most `jobs` threads. Each has a run of pieces of its own, and
// takes those of others when it is done: what is read once streams from memory a quarter faster in a few long
// runs than in pieces by turns. The first exception thrown by a body is rethrown here. A loop inside a loop,
// or beside another one, runs on its own thread alone.
void team_for(int jobs, std::size_t count, const std::function<void(std::size_t)>& body);

// Bytes that the threads of a team of so many will probably read next, a range each; they fetch them while they wait for
// work. Memory that is gone by then does no harm.
void fetch_while_waiting(std::span<const std::span<const std::byte>> of_threads);

}  // namespace assay::cpu
