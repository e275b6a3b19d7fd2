#include "kernels/plugin/float_mode.h"

#include <cfenv>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace assay {
namespace {

constexpr std::uint32_t kFlags = 0x3F;              // of exceptions that happened: anybody's
constexpr std::uint32_t kFlushing = 0x8000 | 0x40;  // FTZ, DAZ

std::uint32_t control() {
#if defined(__x86_64__)
  return _mm_getcsr() & ~kFlags;
#else
  return 0;
#endif
}

void set_control([[maybe_unused]] std::uint32_t value) {
#if defined(__x86_64__)
  _mm_setcsr(value);
#endif
}

}  // namespace

FloatMode FloatMode::now() {
  FloatMode mode;
  mode.rounding_ = std::fegetround();
  mode.control_ = control();
  return mode;
}

std::optional<std::string> FloatMode::restore() const {
  const FloatMode other = now();
  if (other.rounding_ == rounding_ && other.control_ == control_) return std::nullopt;
  std::fesetround(rounding_);
  set_control(control_);
  if (((other.control_ ^ control_) & kFlushing) != 0) return "subnormal numbers became zero (-ffast-math?)";
  return other.rounding_ != rounding_ ? "the direction of rounding" : "which exceptions trap";
}

}  // namespace assay
