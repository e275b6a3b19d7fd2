// The stored forms of GGUF: blocks or floats under the weight's own name, and perhaps a factor outside of
// them.
#include <fmt/format.h>

#include "core/model/composed_tensor.h"
#include "core/model/stored_checks.h"
#include "core/model/stored_resolve.h"

namespace assay {

// llama.cpp multiplies what a matrix gives by the number in .scale: one for the whole, or one an expert.
// NVFP4 keeps its tensor-wide scale there; .input_scale is for activations.
void resolve_gguf(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  tensor.form = {.kind = FormKind::plain, .codes = codes.type};
  tensor.table = group.place("scale");
  if (group.pieces.size() != known_beside(tensor) + (tensor.table ? 1 : 0))
    return resolution.unknown_form(tensor);
  if (tensor.table) {
    const CheckpointTensor& factors = resolution.stored(*tensor.table);
    const auto count = element_count(factors.shape);
    if (factors.type != ElementType::F32 || (count != 1 && count != as_matrices(codes.shape).slices)) {
      return resolution.fault(
          "stored.scale_shape", factors.name,
          fmt::format("{} {} is neither one factor nor one for each of {} matrices of {}", name(factors.type),
                      shape_text(factors.shape), as_matrices(codes.shape).slices, tensor.name));
    }
    set_details(tensor, {.factors = tensor.table});
  }
  resolution.finish(tensor, codes.shape);
}

}  // namespace assay
