// The stored forms of GGUF: blocks or floats under the weight's own name, and perhaps a factor outside of
// them.
#include <fmt/format.h>

#include "core/model/composed_tensor.h"
#include "core/model/formats/all.h"
#include "core/model/stored_checks.h"

namespace assay::formats {
namespace {

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

bool claims_gguf(const StoredResolution& resolution, const LogicalTensor&, const StoredGroup& group) {
  return resolution.container() == Checkpoint::Container::gguf && group.plain;
}

std::vector<WeightFormat> gguf_sizes() {
  const auto mix = [](std::string name, std::string title, GgufFileType type) {
    WeightFormat format = WeightFormat::plain(std::move(name), std::move(title), 4);
    format.kind = WeightFormat::Kind::gguf;
    format.file_type = type;
    return format;
  };
  return {mix("q8_0", "GGUF Q8_0", GgufFileType::Q8_0), mix("q6_k", "GGUF Q6_K", GgufFileType::Q6_K),
          mix("q5_k_m", "GGUF Q5_K_M", GgufFileType::Q5_K_M),
          mix("q4_k_m", "GGUF Q4_K_M", GgufFileType::Q4_K_M)};
}

}  // namespace

const StoredFormat kGguf = {
    .name = "GGUF", .claims = claims_gguf, .resolve = resolve_gguf, .sizes = gguf_sizes};

}  // namespace assay::formats
