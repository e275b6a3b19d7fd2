// Inside find_stored(): a weight with whatever stands beside it under its name, and what the formats that may
// explain it are given to do so.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/model/scale_grid.h"
#include "core/model/stored_form.h"
#include "core/model/stored_names.h"
#include "core/model/stored_reader.h"

namespace assay {

struct NameEnding;  // core/model/formats/format.h

struct StoredPiece {
  std::string_view suffix;  // "weight_scale_inv"
  std::uint32_t place;
  const NameEnding* ending;
};

struct StoredGroup {
  std::optional<std::uint32_t> plain;  // the tensor that bears the weight's own name
  std::vector<StoredPiece> pieces;

  const StoredPiece* find(std::string_view suffix) const {
    const auto at =
        std::find_if(pieces.begin(), pieces.end(), [&](const StoredPiece& p) { return p.suffix == suffix; });
    return at == pieces.end() ? nullptr : &*at;
  }
  std::optional<std::uint32_t> place(std::string_view suffix) const {
    const StoredPiece* piece = find(suffix);
    return piece == nullptr ? std::nullopt : std::optional(piece->place);
  }
  const StoredPiece* codes() const;  // nullptr: the weight's own name holds them
  bool codes_are(std::string_view suffix) const {
    const StoredPiece* piece = codes();
    return piece != nullptr && piece->suffix == suffix;
  }
};

class StoredResolution {
 public:
  StoredResolution(const Checkpoint& checkpoint, const std::optional<QuantizationConfig>& quantization)
      : checkpoint_(checkpoint), quantization_(quantization) {}

  const CheckpointTensor& stored(std::uint32_t place) const { return checkpoint_.tensors[place]; }
  Checkpoint::Container container() const { return checkpoint_.container; }
  const std::optional<QuantizationConfig>& quantization() const { return quantization_; }
  // Of the config.json beside; nullopt where that is silent.
  std::optional<AttentionSizes> attention();
  std::string_view method() const { return quantization_ ? std::string_view(quantization_->method) : ""; }

  void fault(std::string code, const std::string& tensor, std::string message, std::string remedy = {});
  void unknown_form(const LogicalTensor& tensor, std::string_view why = {});
  // "quantization_config says {said}, and the file holds {held}".
  void form_differs(const LogicalTensor& tensor, std::string_view said, std::string_view held);
  // The tensor is understood: `shape` is that of its values.
  void finish(LogicalTensor& tensor, const StoredShape& shape);
  // False, with the fault told, when a scale of this type cannot be.
  bool take_scale_type(LogicalTensor& tensor);
  void bad_grid(const LogicalTensor& tensor, const StoredShape& shape);
  // The bytes of a small tensor that describes another; nullopt when it is larger than `most`.
  std::optional<std::string> small_tensor(std::uint32_t place, std::uint64_t most);
  // What the file's header says, in JSON, of a weight that was flattened into several tensors; null where it
  // is silent.
  ParsedJson described(const LogicalTensor& tensor);

  StoredTensors result;

 private:
  const Checkpoint& checkpoint_;
  const std::optional<QuantizationConfig>& quantization_;
  std::optional<std::optional<AttentionSizes>> attention_;  // once asked for
  std::unique_ptr<CheckpointReader> reader_;                // opened when the first small tensor is read
  // The metadata of all files, once asked for.
  std::optional<std::unordered_map<std::string, std::string>> descriptions_;
  void read_descriptions();
};

// Of a group's pieces, how many a tensor knows already: auxiliary tensors and factors of its inputs.
inline std::size_t known_beside(const LogicalTensor& tensor) {
  return tensor.auxiliary.size() + (tensor.input_factors ? 1 : 0);
}

// The scales beside a weight's own name, `weight_scale` and what others call it, and a second, tensor-wide one,
// into the tensor. False, with the fault told, where something else stands beside.
bool take_weight_scales(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group);
// The place of the first of them; nullopt: there is none.
std::optional<std::uint32_t> weight_scale_place(const StoredGroup& group);

// What formats share once tensor.scale is known: one code an element; two E2M1 codes a byte, in blocks of 16
// or 32.
void resolve_scaled(StoredResolution& resolution, LogicalTensor& tensor);
void resolve_fp4(StoredResolution& resolution, LogicalTensor& tensor);
// Whether codes are two E2M1 values a byte under scales of that type's kind: powers of two, or others.
enum class Fp4Scales : std::uint8_t { powers_of_two, others };
bool holds_fp4(const StoredResolution& resolution, const LogicalTensor& tensor, const StoredGroup& group,
               Fp4Scales scales);
void resolve_fp4_beside_scales(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group);

}  // namespace assay
