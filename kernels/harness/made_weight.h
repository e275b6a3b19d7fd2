// A weight made for a case, in memory of its own, stored as checkpoints store theirs.
//
//   form            stored as
//   F32 … F16       plain elements; F8_E4M3 and F8_E5M2 too
//   FP8_128x128     F8_E4M3 codes, a float32 scale for each block; also FP8_64x64, FP8_1x128 …
//   INT8_CHANNEL    I8 codes, a scale a row; INT8_128x128 …
//   Q8_0, Q4_K …    GGUF's blocks
//   MXFP8, INT4_CHANNEL …   what `convert --to mxfp8`, `--to int4:channel` makes: any format with an encoder
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/system/lasting_memory.h"
#include "kernels/harness/inputs.h"
#include "refimpl/ops/weight_view.h"

namespace assay {

class EncodedWeight;
class WeightEncoder;

struct WeightForm {
  ElementType type = ElementType::F32;
  bool scaled = false;
  std::size_t block_rows = 1, block_columns = 1;      // of a scale; columns 0: the whole row
  std::shared_ptr<const WeightEncoder> encoder = {};  // of the forms that are none of these
};
// Throws Error::usage for a form there is not.
WeightForm weight_form(std::string_view text);

// Views point into it, so that it stays where it was made.
class MadeWeight {
 public:
  // Random numbers of `kind`; exact ones get powers of two for scales.
  MadeWeight(const WeightForm& form, InputKind kind, const FillOptions& options);
  // These very numbers, as F32.
  MadeWeight(std::vector<float> values, std::size_t rows, std::size_t columns);
  ~MadeWeight();
  MadeWeight(const MadeWeight&) = delete;
  MadeWeight& operator=(const MadeWeight&) = delete;

  const WeightView& view() const { return view_; }
  std::vector<float> values() const;  // decoded

 private:
  void lay_out(const WeightForm& form);
  void encode_as(const WeightForm& form, std::span<const float> values, bool exact);
  void store(const WeightForm& form, std::vector<float>& values, bool exact);
  void declare_lasting();
  std::span<std::byte> codes() const { return {codes_.get(), view_.rows * view_.row_bytes}; }

  struct Free {
    void operator()(void* memory) const;
  };
  std::string name_ = "weight";
  std::unique_ptr<std::byte, Free> codes_;  // zero at first, and no memory before it is touched
  std::vector<float> scales_;
  std::unique_ptr<const EncodedWeight> encoded_;
  WeightView view_;
  // Nothing of it changes any more: who keeps copies need not look at its bytes at every call.
  LastingMemory lasting_codes_, lasting_scales_;
};
using MadeWeightPtr = std::shared_ptr<const MadeWeight>;

}  // namespace assay
