// The most memory that a run of the program has had.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::test {

struct Peak {
  int exit_code = -1;
  std::uint64_t bytes = 0;  // resident at most, as wait4() tells
};
// What it prints is not kept: memory of ours that is resident when it starts counts as its own.
Peak assay_peak(const std::vector<std::string>& arguments);

}  // namespace assay::test
