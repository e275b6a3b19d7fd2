#pragma once

#include <cstddef>

#include "core/numeric/element_type.h"

namespace assay::cpu {

// Some rows as they are stored, row_bytes apart.
struct StoredRows {
  ElementType type;
  const std::byte* at;
  std::size_t row_bytes, count;
};

}  // namespace assay::cpu
