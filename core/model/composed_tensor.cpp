#include "core/model/composed_tensor.h"

#include <algorithm>

namespace assay {

LogicalTensor compose(DerivedTensor made, const std::shared_ptr<const StoredTensors>& sources) {
  made.check(*sources);
  LogicalTensor tensor = sources->tensors.at(made.pieces.empty() ? 0 : made.pieces.front().source);
  tensor.name = made.name;
  tensor.input_factors.reset();  // of the source, which reads with them
  tensor.shape = made.shape;
  tensor.slices = 1;
  tensor.rows = made.rows();
  tensor.columns = made.columns();
  tensor.composed = std::make_shared<const ComposedTensor>(ComposedTensor{std::move(made), sources});
  return tensor;
}

std::uint64_t rows_read_together(const LogicalTensor& tensor) {
  constexpr std::uint64_t kStrip = 256;
  if (!is_put_together(tensor)) return tensor.rows_together();
  const auto& pieces = tensor.composed->made.pieces;
  const bool turned = std::any_of(pieces.begin(), pieces.end(), [](const auto& p) { return p.transposed; });
  return turned ? kStrip : 1;
}

}  // namespace assay
