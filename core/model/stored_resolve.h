// Inside find_stored(): a weight with whatever stands beside it under its name, and the families of forms
// that may explain it. A family fills in the LogicalTensor, or says what is wrong.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/scale_grid.h"
#include "core/model/stored_form.h"
#include "core/model/stored_names.h"
#include "core/model/stored_reader.h"

namespace assay {

struct StoredPiece {
  std::string_view suffix;
  std::uint32_t place;
  StoredPart part;
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
};

class StoredResolution {
 public:
  StoredResolution(const Checkpoint& checkpoint, const std::optional<QuantizationConfig>& quantization)
      : checkpoint_(checkpoint), quantization_(quantization) {}

  const CheckpointTensor& stored(std::uint32_t place) const { return checkpoint_.tensors[place]; }
  const std::optional<QuantizationConfig>& quantization() const { return quantization_; }
  // Of the config.json beside; nullopt where that is silent.
  std::optional<AttentionSizes> attention();
  std::string_view method() const { return quantization_ ? std::string_view(quantization_->method) : ""; }

  void fault(std::string code, const std::string& tensor, std::string message, std::string remedy = {});
  void unknown_form(const LogicalTensor& tensor, std::string_view why = {});
  // The tensor is understood: `shape` is that of its values.
  void finish(LogicalTensor& tensor, const StoredShape& shape);
  // False, with the fault told, when a scale of this type cannot be.
  bool take_scale_type(LogicalTensor& tensor);
  void bad_grid(const LogicalTensor& tensor, const StoredShape& shape);
  // The bytes of a small tensor that describes another; nullopt when it is larger than `most`.
  std::optional<std::string> small_tensor(std::uint32_t place, std::uint64_t most);

  StoredTensors result;

 private:
  const Checkpoint& checkpoint_;
  const std::optional<QuantizationConfig>& quantization_;
  std::optional<std::optional<AttentionSizes>> attention_;  // once asked for
  std::unique_ptr<CheckpointReader> reader_;                // opened when the first small tensor is read
};

// Of a group's pieces, how many a tensor knows already: companions and factors of its inputs.
inline std::size_t known_beside(const LogicalTensor& tensor) {
  return tensor.companions.size() + (tensor.input_factors ? 1 : 0);
}

// Each takes a tensor whose name, codes, companions and factors of inputs are set.

// One code an element under tensor.scale; two E2M1 codes a byte, in blocks of 16 or 32. What the families
// below share.
void resolve_scaled(StoredResolution& resolution, LogicalTensor& tensor);
void resolve_fp4(StoredResolution& resolution, LogicalTensor& tensor);

// FP8 and INT8 with a scale a block (`scale` beside the weight's own name); FP4 under such names.
void resolve_weight(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group);
// compressed-tensors: FP4 in weight_packed.
void resolve_packed_fp4(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group);
// gpt-oss: MXFP4 in …_blocks.
void resolve_gpt_oss(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group);

// compressed-tensors: integers in weight_packed.
void resolve_packed_int(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group);
// GPTQ and AWQ: integers in qweight.
void resolve_qweight(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group);
// MLX: integers in weight, beside scales and biases; or small floats, beside scales.
void resolve_mlx(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group);
void resolve_mlx_float(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group);
// torchao: FP8, INT8, INT4 and small floats in _weight_qdata. `described`: what the file's header says of the
// tensor that was flattened into several; null where that is silent.
void resolve_torchao(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group,
                     const ParsedJson& described);
// AMD Quark: integers in weight, beside weight_scale and weight_zero_point.
void resolve_quark(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group);
// GGUF: blocks, or floats, and perhaps a factor on the whole of them in .scale.
void resolve_gguf(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group);
// bitsandbytes: NF4 and FP4; its INT8 is a scaled form.
void resolve_codebook(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group);

}  // namespace assay
