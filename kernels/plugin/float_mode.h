// How this thread rounds, and whether it flushes small numbers to zero: what a library changes that was
// linked with -ffast-math, when it is loaded, and what a kernel ought to leave as it found it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace assay {

class FloatMode {
 public:
  static FloatMode now();
  // Sets it again; what had been changed, if anything: "subnormal numbers became zero".
  std::optional<std::string> restore() const;

 private:
  int rounding_ = 0;
  std::uint32_t control_ = 0;  // MXCSR without its flags
};

}  // namespace assay
