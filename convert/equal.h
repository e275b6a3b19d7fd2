// Do two checkpoints, whatever their stored forms, decode to the same numbers?
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model/open_model.h"
#include "core/system/progress.h"

namespace assay {

// One checkpoint, opened for comparison. Throws the first error found in it.
struct Side : OpenedModel {
  Side(const fs::path& path, int jobs) : OpenedModel(path, jobs) { throw_errors(); }
};

struct Difference {
  std::string tensor;
  std::string what;  // "only in A", "[2, 3] against [3, 2]", "element 5: 1.5 against 1.25; 3 differ"
  double largest = 0;
};

struct EqualReport {
  std::uint64_t tensors = 0, elements = 0;  // tensors: of both sides together, each name once
  std::vector<Difference> differences;      // in the order of A, then what only B has
  std::vector<std::string> notes;           // what one of them cannot hold
};

// What engines make of either side when they fuse matrices (convert/fused_errors.h): weights that are other
// ones on one side alone are differences, what is but rounded again is a note.
void compare_fused(const Side& a, const Side& b, int jobs, EqualReport& report);

// A NaN or infinity on both sides is equal, or a difference.
enum class NonFinite : std::uint8_t { equals, differs };

// What is still called equal. All zero: every value (-0 equals 0, NaN equals NaN). Otherwise a value where
// |a - b| ≤ absolute + relative · max(|a|, |b|); with `norm` a tensor where ‖a - b‖ ≤ norm · ‖a‖ (Frobenius),
// whatever its single values. An infinity equals itself alone.
struct Tolerance {
  double relative = 0, absolute = 0, norm = 0;
  NonFinite non_finite = NonFinite::equals;
  bool exact() const { return relative == 0 && absolute == 0 && norm == 0; }
};

struct EqualOptions {
  Tolerance tolerance;
  bool without_mtp = false;  // multi-token prediction, which GGUF has no place for, is not asked for
  int jobs = 1;
};
EqualReport compare_values(const Side& a, const Side& b, const EqualOptions& options, Progress& progress);

// Two readings of the same rows.
struct ComparedMatrix {
  std::string name;
  std::uint64_t rows, columns;
  std::uint64_t rows_together = 1;  // LogicalTensor::rows_together
};
using ReadRows = std::function<void(std::uint64_t first, std::uint64_t count, std::span<float> out)>;
std::optional<Difference> compare_rows(const ComparedMatrix& matrix, const ReadRows& left,
                                       const ReadRows& right, const Tolerance& tolerance, Progress& progress);

// Of one pair, rows at a time; nullopt: equal.
std::optional<Difference> compare_tensor(const CheckpointReader& a, const LogicalTensor& in_a,
                                         const CheckpointReader& b, const LogicalTensor& in_b,
                                         const Tolerance& tolerance, Progress& progress);

}  // namespace assay
