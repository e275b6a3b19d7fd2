// Bytes from file to file without passing through us, where the kernel can.
#pragma once

#include <cstdint>

#include "core/system/file.h"

namespace assay {

// copy_file_range, which shares extents on file systems that can; plain reads and writes where it cannot.
void copy_range(const File& from, std::uint64_t from_offset, AtomicFile& to, std::uint64_t to_offset,
                std::uint64_t bytes);

}  // namespace assay
