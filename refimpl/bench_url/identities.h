// What has to hold between figures, whoever measured them. Where one does not, the figures are not to be trusted: the
// measuring is at fault, or the server says what did not happen. Each is made anew from the raw records, in another way than
// the figure it is held against.
#pragma once

#include <string>
#include <vector>

#include "refimpl/bench_url/latency.h"

namespace assay {

struct Identity {
  std::string name;  // "ΣITL = E2E − TTFT"
  bool holds = true;
  bool proved = true;  // false: there was nothing to hold it against
  std::string wrong;   // where it does not hold: how far, of which request
};

// `latencies` belong to the load's whole requests that bore tokens, in their order.
std::vector<Identity> check_identities(const LoadRecords& load, const std::vector<RequestLatency>& latencies,
                                       const LoadFigures& figures);

}  // namespace assay
