// What StoredForm does not say of a logical tensor, of the few that need more. It is read like any other
// (StoredReader), so that what works on weights need not know.
//
// One put together: rows of others, as a DerivedTensor says; no checkpoint stores it as such. Or one of a
// form with details of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/model/derived_tensor.h"

namespace assay {

struct FormDetails {
  std::string_view maker = {};  // for people: "Quark", where the form alone would not tell

  // FormKind::scaled, of matrices fused with a scale each (query, keys, values): how many block rows each
  // has.
  std::vector<std::uint64_t> parts;
  // A factor on the whole, or one for each slice, outside of it all: GGUF's .scale beside .weight. It is the
  // tensor's `table`, too.
  std::optional<std::uint32_t> factors;

  // FormKind::scaled and fp4: scales lie as a tensor core's threads take them, 128 rows by 4 at a time.
  bool swizzled = false;

  // FormKind::packed:
  bool twos_complement = false;  // of the codes, and of zero points packed as they are
  bool groups_first = false;     // scales and zero points lie [groups, rows]; codes do not
  bool tiled = false;            // codes lie as a tensor core's lanes take them; scale and bias side by side
  bool unscaled = false;         // read as q - z, under scales of 1 and without biases
  enum class Offset : std::uint8_t {
    zero_point,  // as PackedForm::zero says
    number,      // w = (q - z) s, z a number of its own for a group
    bias,        // w = (q - 2^(bits-1)) s + b
  } offset = Offset::zero_point;
};

struct ComposedTensor {
  DerivedTensor made;
  std::shared_ptr<const StoredTensors> sources;  // what made.pieces count in; null: it is not put together
  FormDetails details = {};
};

// The details of a tensor that has some, else those of all others.
const FormDetails& details_of(const LogicalTensor& tensor);
void set_details(LogicalTensor& tensor, FormDetails details);

inline bool is_put_together(const LogicalTensor& tensor) {
  return tensor.composed != nullptr && tensor.composed->sources != nullptr;
}

// Form and places are those of the first of its sources.
LogicalTensor compose(DerivedTensor made, const std::shared_ptr<const StoredTensors>& sources);

// LogicalTensor::rows_together, and of columns that become rows a strip that is worth reading.
std::uint64_t rows_read_together(const LogicalTensor& tensor);

}  // namespace assay
