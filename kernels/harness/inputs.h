// What a kernel is fed: the same numbers for the same seed on every machine, each kind bringing to light what
// the others hide.
//
//   exact          small integers, mostly zero: every partial sum is representable, so that equality is the
//                  test and needs no tolerance
//   zero_mean      N(0, 1): errors do not grow with K, so that the budget is tightest in relation to faults
//   positive_mean  1 + N(0, 1)/10: every product counts the same way, so that bias and lost terms add up
//   heavy_tailed   N(0, 1) with whole columns 20 to 100 times larger, as activations have outlier channels
//   large          N(0, 1) × 30: logits that overflow an exponential taken without subtracting the maximum
//   one_hot        one 1 a row: a product with a weight is the weight itself, bit for bit, whatever its form
//   signature      every row and column has a value of its own: swapped or shifted ones show
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace assay {

enum class InputKind : std::uint8_t {
  exact,
  zero_mean,
  positive_mean,
  heavy_tailed,
  large,
  one_hot,
  signature
};
inline constexpr std::array kInputKinds = {
    InputKind::exact, InputKind::zero_mean, InputKind::positive_mean, InputKind::heavy_tailed,
    InputKind::large, InputKind::one_hot,   InputKind::signature};
std::string_view name(InputKind kind);

// SplitMix64 (Steele, Lea, Flood 2014): one multiply-xor chain a number, the same everywhere; the standard
// library's distributions are not.
class InputStream {
 public:
  explicit InputStream(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  double uniform();                                           // [0, 1), 53 bits
  double normal();                                            // Box–Muller
  std::int64_t integer(std::int64_t low, std::int64_t high);  // both ends included
  std::uint64_t state() const { return state_; }              // InputStream(state()) goes on as this one does
  void skip(std::uint64_t count);                             // as many calls of next()

 private:
  std::uint64_t state_;
};

// The largest magnitude and the share of non-zero elements that keep all partial sums of `terms` products
// below 2^digits, the integers an accumulator holds exactly (24 for float32).
struct ExactFill {
  std::int64_t largest = 1;
  double density = 1;
};
// `largest_code` bounds the magnitudes by what the operand's element type represents exactly.
ExactFill exact_fill(std::uint64_t terms, int digits, std::int64_t largest_code);

// `values` is rows × columns. `terms` is the length of the sums the values will enter (K of a linear op),
// used by InputKind::exact alone.
struct FillOptions {
  std::uint64_t rows = 1, columns = 1;
  std::uint64_t terms = 1;
  std::uint64_t seed = 1;
  int digits = 24;
  std::int64_t largest_code = 8;
  int halvings = 0;  // all of it × 2^-halvings: down to subnormal numbers, or (negative) up
};
void fill_inputs(InputKind kind, const FillOptions& options, std::span<float> values);

// While one of these lives, operands made by this thread have their shapes and forms but no numbers: inputs
// stay zero, and weights are memory that nobody touches. For who asks how a call would be launched.
class ShapesOnly {
 public:
  ShapesOnly();
  ~ShapesOnly();
  ShapesOnly(const ShapesOnly&) = delete;
  ShapesOnly& operator=(const ShapesOnly&) = delete;
  static bool asked();
};

}  // namespace assay
