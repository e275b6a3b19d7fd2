// What the recurrences share: token by token, where the state of a head goes through the nearest cache once a token,
// or a chunk of tokens at a time, where it is multiplied as a matrix.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "refimpl/ops/recurrent_calls.h"

namespace assay::cpu {

// automatic: by itself, for few tokens token by token.
enum class ScanWay : std::uint8_t { automatic, recurrent, chunked };

// Tokens from which chunks are faster, where all of a head's state decays at one speed. Where each channel has its own,
// the exponentials within a chunk cost more than its products save.
inline constexpr std::size_t kChunkFrom = 24;

inline bool in_chunks(ScanWay way, ScanForm form, std::size_t tokens, bool one_speed) {
  if (way != ScanWay::automatic) return way == ScanWay::chunked;
  return form == ScanForm::chunked || (one_speed && tokens >= kChunkFrom);
}

// Where the state of some rows lies while a sequence is gone through token by token: it comes from `before`, and
// goes to memory of its own, or to where it is asked for.
class StatePath {
 public:
  StatePath(const SequenceState& sequence, std::size_t first_row, std::size_t rows, std::size_t columns);
  struct Place {
    const float* from;
    std::size_t from_stride;
    float* to;  // may be `from`
    std::size_t to_stride;
  };
  Place of_token(std::size_t t);

 private:
  const SequenceState& sequence_;
  std::size_t first_row_, columns_;
  std::vector<float> own_;
  const float* at_;
  std::size_t stride_;
};

// A state as it is multiplied, [terms][width], rows beyond the columns that there are with zeros behind them.
struct PaddedState {
  PaddedState(std::size_t terms, std::size_t columns);
  void load(const SequenceState& sequence, std::size_t first_row);
  void store(const Matrix& to, std::size_t first_row) const;
  // The same, with the matrix' rows for columns.
  void load_transposed(const SequenceState& sequence, std::size_t first_row);
  void store_transposed(const Matrix& to, std::size_t first_row) const;

  std::size_t terms, columns, width;
  std::vector<float> values;
};

// Columns that whole panels have.
std::size_t padded_width(std::size_t columns);

// How many tokens from `t` on are taken at once: no more than `most`, and none behind which the state is asked for
// but the last.
std::size_t chunk_at(const SequenceState& sequence, std::size_t t, std::size_t most);

// y [rows, y_stride] (+)= x [rows, terms] · s [terms, width], all columns of s.
struct Product {
  const float* x;
  std::size_t rows, x_stride, terms;
  const float* s;
  float* y;
  std::size_t width;  // of s and of y: whole panels
  bool accumulate = false;
};
void multiply(const Product& product);

// y_i += Σ_{j<i} a_ij x_j, j = i with it where `inclusive`; a [rows, a_stride] a lower triangle, nothing above it is
// read. x and y may be the same memory, [rows, width]: then x_j is what has become of it.
struct LowerProduct {
  const float* a;
  std::size_t rows, a_stride;
  bool inclusive;
  const float* x;
  float* y;
  std::size_t width;
};
void multiply_lower(const LowerProduct& product);

// x[i] = e^x[i], 0 below the smallest normal number; x[i] no larger than 88.
void exponentials_of(std::span<float> x);

}  // namespace assay::cpu
