// Do two checkpoints, whatever their stored forms, decode to the same numbers?
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model/stored_reader.h"
#include "core/system/progress.h"

namespace assay {

// One checkpoint, opened for comparison.
struct Side {
  Side(const fs::path& path, int jobs);
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  Checkpoint checkpoint;
  StoredTensors stored;
  CheckpointReader reader;
};

struct Difference {
  std::string tensor;
  std::string what;  // "only in A", "[2, 3] against [3, 2]", "element 5: 1.5 against 1.25; 3 differ"
  double largest = 0;
};

struct EqualReport {
  std::uint64_t tensors = 0, elements = 0;
  std::vector<Difference> differences;  // in the order of A, then what only B has
  std::vector<std::string> notes;       // what one of them cannot hold
};

// What engines make of either side when they fuse matrices (convert/fused_errors.h): weights that are other
// ones on one side alone are differences, what is but rounded again is a note.
void compare_fused(const Side& a, const Side& b, int jobs, EqualReport& report);

// rtol 0: every value equal (-0 equals 0, NaN equals NaN). Otherwise |a - b| ≤ rtol · max(|a|, |b|).
EqualReport compare_values(const Side& a, const Side& b, double rtol, int jobs, Progress& progress);

// A NaN or infinity on both sides is equal, or a difference.
enum class NonFinite : std::uint8_t { equals, differs };

// Two readings of the same rows.
struct ComparedMatrix {
  std::string name;
  std::uint64_t rows, columns;
  std::uint64_t rows_together = 1;  // LogicalTensor::rows_together
};
using ReadRows = std::function<void(std::uint64_t first, std::uint64_t count, std::span<float> out)>;
std::optional<Difference> compare_rows(const ComparedMatrix& matrix, const ReadRows& left,
                                       const ReadRows& right, double rtol, Progress& progress,
                                       NonFinite non_finite = NonFinite::equals);

// Of one pair, rows at a time; nullopt: equal.
std::optional<Difference> compare_tensor(const CheckpointReader& a, const LogicalTensor& in_a,
                                         const CheckpointReader& b, const LogicalTensor& in_b, double rtol,
                                         Progress& progress, NonFinite non_finite = NonFinite::equals);

}  // namespace assay
