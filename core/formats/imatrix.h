// llama.cpp's importance matrix: for columns of a weight, the mean square of the activations they were
// multiplied by. Both of its files: a GGUF of sums and counts, and the older .dat.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/system/file.h"

namespace assay {

struct ImportanceMatrix {
  std::map<std::string, std::vector<float>> entries;  // by GGUF name; of stacked experts one after the other
  std::string dataset;                                // the first it was computed on; empty: not said
  std::uint64_t chunks = 0;
};

// Throws Error::input for a file of another kind, a malformed one, and values that are negative, NaN or
// infinite.
ImportanceMatrix read_imatrix(const fs::path& path);

}  // namespace assay
