// Which of a board's kernels multiplies fastest, as measured there: a table of data/tuning, which `assay compare kernels
// --tune` makes and `--kernels cuda` goes by. Of the operations only linear has kernels that compete.
//
//   {"schema": "assay.tuning/1", "device": "NVIDIA H100 80GB HBM3", "measured": [
//     {"form": "BF16", "precision": "bf16", "tokens": 1, "inputs": 4096, "outputs": 4096,
//      "kernel": "cuda.gemv", "seconds": 1.42e-05}, …]}
//
// A table chooses among kernels that are all right; it never changes what one computes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/system/report.h"
#include "refimpl/ops/calls.h"

namespace assay {

// How a weight is stored, in a word: "BF16", "F8_E4M3 with scales", "MXFP4".
std::string form_of(const WeightView& weight);

struct TunedProduct {
  std::string form, precision;
  std::uint64_t tokens = 1, inputs = 1, outputs = 1;
  std::string kernel;
  double seconds = 0;
};

struct Tuning {
  std::string device;  // the board's name, as its driver gives it
  std::vector<TunedProduct> measured;

  // The kernel that was fastest where a product was most alike: of the same form and precision, the fewest octaves off in
  // tokens, inputs and outputs together. Empty: nothing of that form and precision was measured.
  std::string_view fastest(const LinearCall& call, const Arithmetic& arithmetic) const;
};

// Throws Error::input with `source` as the file.
Tuning parse_tuning(std::string_view json, const std::filesystem::path& source);
Json to_json(const Tuning& tuning);
// The same as a file: a product a line.
std::string text_of(const Tuning& tuning);

// The one in the program for a board of this name; null: none was measured.
const Tuning* builtin_tuning(std::string_view device);

}  // namespace assay
