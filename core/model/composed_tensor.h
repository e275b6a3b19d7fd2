// What StoredForm does not say of a logical tensor, of the few that need more. It is read like any other
// (StoredReader), so that what works on weights need not know.
//
// One put together: rows of others, as a DerivedTensor says; no checkpoint stores it as such. Or one of a
// form with details of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/model/derived_tensor.h"

namespace assay {

class CheckpointReader;

// Rows of a form that none of FormKind's arithmetics reads, as StoredReader::decode_rows() gives them.
using RowDecoder = void (*)(const CheckpointReader& source, const LogicalTensor& tensor, std::uint64_t first,
                            std::uint64_t count, std::span<float> out);

struct FormDetails {
  std::string_view maker = {};  // for people: "Quark", where the form alone would not tell
  std::string_view title = {};  // all of form_name(), of a form with a decoder of its own

  // Then the form is FormKind::packed, whose bits and block_columns say what rounding to it costs; no other
  // detail and no other part of it is looked at, and it is not cut over ranks.
  RowDecoder decode = nullptr;

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
