// A workload served in some random way, and held against every request alone.
//
//   for (seed = 0; …) {
//     const ScheduleResult result = run_schedule(workload, random_schedule(workload, seed));
//     if (!result.wrong.empty()) …    // the seed is the reproducer
//   }
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "refimpl/claims/workload.h"

namespace assay {

// What another run of the program left in the second level of the pool.
enum class LeftBefore : std::uint8_t { nothing, same_weights, other_weights };

struct Schedule {
  ServingOptions options;
  std::vector<std::size_t> requests;             // of the workload, in the order of their numbers
  std::vector<std::size_t> arrival;              // the step before which each comes
  std::vector<std::string> salts;                // of each
  std::map<std::size_t, std::size_t> cancelled;  // which, before which step
  std::uint64_t disk_bytes = 0;                  // of a second level of the pool; 0: there is none
  LeftBefore before = LeftBefore::nothing;       // in it
  std::optional<std::size_t> hits;               // tokens that have to be hit, exactly
  std::set<std::size_t> refused = {};            // which can never be served, and have to be told so at once
};

// Blocks of 1 to 64 tokens, chunks, budgets, policies and preemptions of every kind, pools from barely enough on;
// fresh blocks hold NaN. A third with a second level on disk, in which another run may have left blocks.
Schedule random_schedule(const ServingWorkload& workload, std::uint64_t seed);

struct ScheduleResult {
  std::string wrong;  // what was other than alone, or is held at the end; empty: nothing
  double error = 0;   // of logits, relative to the largest of their row; tokens that differ: infinite
  ServingCounts counts;
  std::size_t evictions = 0;
};
// What a fault puts between the engine and the second level.
using OuterAround = std::function<std::unique_ptr<OuterLevel>(std::unique_ptr<OuterLevel>)>;
// Bit for bit. What the engine throws is something wrong, too.
ScheduleResult run_schedule(const ServingWorkload& workload, const Schedule& schedule,
                            const ServingParts& parts = {}, const OuterAround& around = {});

}  // namespace assay
