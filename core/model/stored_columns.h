// Columns of a stored matrix as rows: what is kept [inputs, outputs] and wanted the other way about.
#pragma once

#include <cstdint>
#include <span>

#include "core/model/stored_reader.h"

namespace assay {

// Columns `first_column`, `first_column` + 1 … of some rows, all of one slice.
struct ColumnStrip {
  std::uint64_t first_row = 0, rows = 0;  // rows count over all slices
  std::uint64_t first_column = 0, columns = 0;
};

// The values of StoredReader, a column after the other: `out` has room for columns × rows. Reads what it
// needs of plain and scaled forms and of gpt-oss's; of others whole rows.
void decode_columns(const CheckpointReader& source, const LogicalTensor& tensor, const ColumnStrip& strip,
                    std::span<float> out);

}  // namespace assay
