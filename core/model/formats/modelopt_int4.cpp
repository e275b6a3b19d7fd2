// ModelOpt's INT4: bytes of two neighbouring rows, the even one low, under a float scale a group of columns.
#include "core/model/formats/all.h"
#include "core/model/stored_checks.h"

namespace assay::formats {
namespace {

// U8 [rows/2, columns] under floats [rows, groups]; FP4 would have scales of 8 bits.
bool pairs_rows(const CheckpointTensor& codes, const CheckpointTensor& scale) {
  return codes.type == ElementType::U8 && is_plain_float(scale.type) && codes.shape.size() >= 2 &&
         codes.shape.size() == scale.shape.size() &&
         as_matrices(codes.shape).slices == as_matrices(scale.shape).slices &&
         as_matrices(scale.shape).rows / 2 == as_matrices(codes.shape).rows &&
         as_matrices(scale.shape).rows % 2 == 0;
}

bool claims_paired_rows(const StoredResolution& resolution, const LogicalTensor& tensor,
                        const StoredGroup& group) {
  const auto scale = weight_scale_place(group);
  return group.plain && scale && pairs_rows(resolution.stored(tensor.codes), resolution.stored(*scale));
}

// W4A16 and W4A8 (whose weight_scale_2 is for the FP8 that the kernel makes of it on the
// way).
void resolve_paired_rows(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  if (!take_weight_scales(resolution, tensor, group)) return;
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  const MatrixSizes grid = as_matrices(resolution.stored(*tensor.scale).shape);
  if (tensor.global_scale) tensor.auxiliary.push_back(*tensor.global_scale);
  tensor.global_scale.reset();
  tensor.form = {.kind = FormKind::packed, .codes = codes.type};
  tensor.form.packed.codes = {4, IntPacking::Fill::dense};
  tensor.form.packed.paired_rows = true;
  if (!resolution.take_scale_type(tensor)) return;
  StoredShape shape = codes.shape;
  shape[shape.size() - 2] = grid.rows;
  if (grid.columns == 0 || shape.back() == 0 || shape.back() % grid.columns != 0)
    return resolution.bad_grid(tensor, shape);
  tensor.form.block_columns = shape.back() / grid.columns;
  resolution.finish(tensor, shape);
}

}  // namespace

const StoredFormat kModeloptInt4 = {
    .name = "ModelOpt INT4", .claims = claims_paired_rows, .resolve = resolve_paired_rows};

}  // namespace assay::formats
