#include "convert/scale_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/model/composed_tensor.h"
#include "core/model/zero_scales.h"
#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::uint64_t kScalesAtOnce = 1 << 16;

class ScaleCheck {
 public:
  ScaleCheck(const CheckpointReader& source, const LogicalTensor& tensor)
      : source_(source), tensor_(tensor), reader_(source, tensor) {}

  void run() const {
    const std::uint64_t columns = tensor_.scale_columns(), rows = tensor_.slices * tensor_.scale_rows();
    if (columns == 0) return;
    const std::uint64_t step = std::max<std::uint64_t>(1, kScalesAtOnce / columns);
    std::vector<float> scales;
    for (std::uint64_t first = 0; first < rows; first += step) {
      const std::uint64_t count = std::min(step, rows - first);
      scales.resize(count * columns);
      reader_.decode_scales(first, count, scales);
      for (std::size_t i = 0; i < scales.size(); ++i) check(scales[i], first + i / columns, i % columns);
    }
  }

 private:
  void check(float scale, std::uint64_t block_row, std::uint64_t block_column) const {
    if (scale > 0 || scale != scale) return;  // a NaN shows in the values
    if (scale == 0 && !block_holds_codes(source_, tensor_, block_row, block_column)) return;
    throw Error::refused(fmt::format("the scale of block row {}, column {} is {}{}", block_row, block_column,
                                     scale, scale == 0 ? " over codes that are not zero" : ""))
        .tensor(source_.checkpoint().tensors[*tensor_.scale].name)
        .remedy("the source is damaged: no quantizer writes such a scale");
  }

  const CheckpointReader& source_;
  const LogicalTensor& tensor_;
  StoredReader reader_;
};

}  // namespace

void check_scales(const CheckpointReader& source, const LogicalTensor& tensor) {
  if (is_put_together(tensor)) {
    std::set<std::uint32_t> parts;
    for (const DerivedTensor::Piece& piece : tensor.composed->made.pieces) parts.insert(piece.source);
    for (const std::uint32_t part : parts) check_scales(source, tensor.composed->sources->tensors[part]);
    return;
  }
  const bool one_a_block = tensor.form.kind == FormKind::scaled || tensor.form.kind == FormKind::fp4;
  if (one_a_block && tensor.scale && !tensor.form.transposed) ScaleCheck(source, tensor).run();
}

}  // namespace assay
