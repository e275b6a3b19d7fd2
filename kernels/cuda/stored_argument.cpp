#include "kernels/cuda/stored_argument.h"

namespace assay::cuda {
namespace {

StoredAs stored_as(ElementType type) {
  switch (type) {
    case ElementType::F32: return StoredAs::f32;
    case ElementType::BF16: return StoredAs::bf16;
    case ElementType::F16: return StoredAs::f16;
    default: return StoredAs::none;
  }
}

}  // namespace

bool is_stored_vector(const WeightView& weight) {
  if (weight.kind != FormKind::plain || weight.codes == nullptr) return false;
  if (stored_as(weight.type) == StoredAs::none) return false;
  return weight.rows <= 1 || weight.row_bytes == weight.columns * info(weight.type).block_bytes;
}

StoredVector stored_vector(Staging& staging, const WeightView& weight) {
  if (!weight) return {};
  return {staging.codes(weight), stored_as(weight.type)};
}

}  // namespace assay::cuda
