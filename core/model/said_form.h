// What quantization_config says of the stored form of its weights, held against the form in which they are stored:
// NVFP4 in groups of 32 where files have 16, 8 bits where they have 4, blocks where one scale serves a matrix. Engines
// go by the config alone, and read such weights as others, or not at all.
//
// Only what a config spells out is held against anything; a method or a scheme that is not known here says nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/stored_form.h"

namespace assay {

struct SaidForm {
  enum class Codes : std::uint8_t { integers, fp8, nvfp4, mxfp4 } codes = Codes::integers;
  enum class Packing : std::uint8_t { any, gptq, awq } packing = Packing::any;
  // Where a scale stands: not_rows is FP8 without a block size, whose square blocks are another finding's.
  enum class Grain : std::uint8_t { any, tensor, row, block, group, not_rows } grain = Grain::any;
  std::uint64_t rows = 1, columns = 1;  // of a block; columns of a group
  std::optional<std::uint64_t> bits;    // of integers
  std::optional<bool> zero_points;      // whether integers have some of their own

  bool operator==(const SaidForm&) const = default;
};

// The forms that the config names, any of which a weight may have; empty: it does not say, or not in words known here.
std::vector<SaidForm> said_forms(const QuantizationConfig& config);
// The form of a weight as said_forms() would have named it; nullopt: nothing to hold against a config.
std::optional<SaidForm> held_form(const LogicalTensor& tensor);
bool agrees(const SaidForm& said, const LogicalTensor& tensor);
std::string describe(const SaidForm& form);  // "GPTQ INT4 in groups of 32"

// The finding stored.form_differs: "quantization_config says {said}, and the file holds {held}".
Finding form_fault(const std::string& tensor, std::string_view said, std::string_view held);

// What is stored otherwise than the config says: another form (stored.form_differs), modules that it leaves out
// (stored.exempt_quantized), NVFP4 without the scale of the whole tensor (stored.scale_missing). What is equal is told
// once, of the first tensor, with the number of the others. Throws Error::input for a pattern that is none.
Findings hold_against_config(const Checkpoint& checkpoint, const StoredTensors& stored,
                             const QuantizationConfig& config);

// Of these findings, and of those that are true of whole matrices (numbers.group_index), the ones with the same message
// become the first of them, which says of how many others it is true.
Findings told_once(Findings findings);

}  // namespace assay
