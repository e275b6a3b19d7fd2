// Intermediates of one run kept, and those of another held against them, tap by tap, while it runs.
//
// A run that is compared may be forced: once its error at a tap has been taken, the tap gets the kept run's
// numbers, and goes on from these. Its next tap's error is then what was done since, and nothing inherited:
// all that a layer hands on passes through taps (residual stream, keys and values on their way to the cache).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/harness/measure.h"
#include "refimpl/ops/interface.h"
#include "refimpl/step/taps.h"

namespace assay {

// Errors of many elements, as sums that can be added up.
struct ErrorTotals {
  std::uint64_t elements = 0, zeros = 0;  // zeros: of what is right
  std::uint64_t pattern_faults = 0;       // NaN or infinite in one of the two alone
  std::uint64_t not_finite = 0;           // of what is right
  double error_squares = 0, truth_squares = 0, out_squares = 0, products = 0, max_abs = 0;
  double worst_row_error = 0;  // the largest |error| / |truth| of a row, and which row
  std::size_t worst_row = 0;
  double row_squares = 0;                         // Σ error² of the row where it is largest
  double row_truth_squares = 0;                   // Σ truth² of that row
  std::vector<double> column_squares;             // Σ error² of each column
  std::array<std::uint64_t, kUlpClasses> ulps{};  // none under float64

  void add(const ErrorTotals& more);
  double relative() const;  // Frobenius; infinite with a fault of the pattern
  double worst_column_squares() const;
  double nmse() const;
  double one_minus_cosine() const;
  double beyond_16_ulps() const;  // share of the elements
};

// The columns of each head in another order: RopeLayout::half_split against interleaved.
struct HeadOrder {
  std::size_t head_dim = 0;                  // 0: as they are
  RopeLayout from = RopeLayout::half_split;  // of the kept run
};

// Keeps every tap of a run, as doubles, and the order in which they came.
class KeptTaps final : public TapListener {
 public:
  // At most `limit` bytes: beyond, Error::input.
  KeptTaps(Ops& ops, std::uint64_t limit) : ops_(ops), limit_(limit) {}
  void see(const std::string& name, const Matrix& value) override;

  struct Taken {
    std::size_t width = 0;
    std::vector<double> values;  // [tokens, width]
    std::size_t rows() const { return width == 0 ? 0 : values.size() / width; }
  };
  const std::vector<std::string>& names() const { return names_; }
  const Taken* find(const std::string& name) const;

 private:
  Ops& ops_;
  std::uint64_t limit_, bytes_ = 0;
  std::vector<std::string> names_;
  std::map<std::string, Taken> taken_;
};

// The errors of one tap: of the tokens read at once, and of those read one by one.
struct TapErrors {
  ErrorTotals prefill, decode;
  ErrorTotals all() const;
};

class ComparedTaps final : public TapListener {
 public:
  struct Settings {
    bool forced = false;
    std::size_t prefill = 0;                  // tokens below are prefill
    std::size_t first = 0;                    // the token of the kept run's first row
    std::map<std::string, HeadOrder> orders;  // by tap
    TapListener* also = nullptr;              // sees each tap too
  };
  ComparedTaps(Ops& ops, const KeptTaps& kept, Settings settings)
      : ops_(ops), kept_(kept), settings_(std::move(settings)) {}
  // Throws Error::input on a tap that the kept run has not, or in another width.
  void see(const std::string& name, const Matrix& value) override;
  const std::map<std::string, TapErrors>& errors() const { return errors_; }

 private:
  Ops& ops_;
  const KeptTaps& kept_;
  Settings settings_;
  std::map<std::string, TapErrors> errors_;
  std::map<std::string, std::size_t> seen_;  // rows
};

// Rows of `out` against rows of `truth`; `first_row` is the number of the first.
ErrorTotals compare_rows(std::span<const double> out, std::span<const double> truth, std::size_t width,
                         std::size_t first_row, const Arithmetic& arithmetic);

}  // namespace assay
