// Sends what is planned, and writes down what comes and when.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "refimpl/bench_url/latency.h"
#include "refimpl/bench_url/load_plan.h"
#include "refimpl/bench_url/server_probe.h"
#include "refimpl/endpoint/endpoint_client.h"

namespace assay {

struct LoadOptions {
  EndpointUrl url;
  EndpointOptions endpoint;
  std::size_t clients = 8;  // in flight at once, at most
  bool closed = true;       // … and that is how many are wanted
  std::uint64_t seed = 0;
};

struct LoadState {
  std::size_t over = 0, failed = 0, in_flight = 0, tokens = 0;
};

// Ends early where interrupted(): what is under way is cut off and said to be. `told` is called about ten times a second.
LoadRecords run_load(const LoadOptions& options, const ServerTraits& server, const LoadPlan& plan,
                     const std::function<void(const LoadState&)>& told);

}  // namespace assay
