#include "core/model/gguf_shapes.h"

#include <algorithm>

#include "core/model/gguf_export.h"
#include "core/model/gguf_names.h"
#include "core/model/scale_grid.h"
#include "core/system/error.h"

namespace assay {
namespace {

bool is_imagined(const TensorSpec& spec, const TensorLookup::Found& found, const GgufRules& rules) {
  if (spec.part == Part::mtp || found.mtp || found.tower) return false;
  return spec.storage == Storage::own ||
         (spec.storage == Storage::buffer && own_gguf_name(spec, rules) != nullptr);
}

}  // namespace

ImaginedCheckpoint imagine(const ModuleTree& tree, const GgufRules& rules) {
  ImaginedCheckpoint made;
  made.checkpoint.files.emplace_back();
  const TensorLookup lookup(tree);
  for_each_tensor(tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
    const auto found = lookup.find(name);
    if (!found || !is_imagined(spec, *found, rules)) return;
    CheckpointTensor& tensor = made.checkpoint.tensors.emplace_back();
    tensor.name = name;
    tensor.type = ElementType::F32;
    tensor.shape = spec.shape;
    LogicalTensor& logical = made.stored.tensors.emplace_back();
    logical.name = name;
    logical.shape = spec.shape;
    const MatrixSizes sizes = as_matrices(spec.shape);
    logical.slices = sizes.slices, logical.rows = sizes.rows, logical.columns = sizes.columns;
    logical.form.codes = ElementType::F32;
    logical.codes = static_cast<std::uint32_t>(made.checkpoint.tensors.size() - 1);
  });
  return made;
}

GgufShapes planned_gguf_shapes(const ModelConfig& config, const ModuleTree& tree, const GgufFamily& family) {
  GgufShapes shapes;
  try {
    const ImaginedCheckpoint imagined = imagine(tree, gguf_rules(family));
    for (GgufTensor& tensor : gguf_tensors(config, tree, family, imagined.checkpoint, imagined.stored))
      shapes.emplace(std::move(tensor.made.name), std::move(tensor.made.shape));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    shapes.clear();  // the converter writes no such model, and yet someone may have
  }
  return shapes;
}

std::vector<std::uint64_t> plain_gguf_shape(const TensorSpec& spec, std::uint64_t experts,
                                            const GgufFamily* family) {
  const GgufOwnName* own = family == nullptr ? nullptr : own_gguf_name(spec, gguf_rules(*family));
  if (own != nullptr && own->make != nullptr) return {};
  std::vector<std::uint64_t> shape = spec.shape;
  const bool turned = own == nullptr && spec.input_major && shape.size() == 2 && !spec.bias;
  if (spec.stacked != 0 && own == nullptr) return {};
  if (turned) std::swap(shape[0], shape[1]);
  if (spec.name.find("{expert}") != std::string::npos) shape.insert(shape.begin(), experts);
  return shape;
}

bool is_same_gguf_shape(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  const auto more_than_one = [](std::uint64_t size) { return size != 1; };
  const auto first_a = std::find_if(a.begin(), a.end(), more_than_one);
  const auto first_b = std::find_if(b.begin(), b.end(), more_than_one);
  return std::equal(first_a, a.end(), first_b, b.end());
}

}  // namespace assay
