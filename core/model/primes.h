// Primes one after the other, by trial division: of sizes of tables, which lie below 10¹¹.
#pragma once

#include <cstdint>

namespace assay {

constexpr bool is_prime(std::uint64_t n) {
  if (n < 4) return n > 1;
  if (n % 2 == 0) return false;
  for (std::uint64_t d = 3; d * d <= n; d += 2) {
    if (n % d == 0) return false;
  }
  return true;
}

constexpr std::uint64_t next_prime(std::uint64_t n) {
  do ++n;
  while (!is_prime(n));
  return n;
}

}  // namespace assay
