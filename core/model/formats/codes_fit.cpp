#include <algorithm>
#include <array>
#include <span>

#include "core/model/formats/format.h"
#include "core/model/module_tree.h"
#include "core/model/stored_checks.h"
#include "core/numeric/ceil_div.h"

namespace assay {
namespace {

// How many bits codes of a type may have. Small floats are never packed; bytes hold one integer, or two of 4 bits (MXFP4 in an
// I8), and without a sign also codes of 2 and 6; words hold any.
std::span<const std::uint64_t> bits_in(ElementType type) {
  static constexpr std::array<std::uint64_t, 7> kWords = {4, 8, 2, 3, 6, 5, 1};
  static constexpr std::array<std::uint64_t, 4> kBytes = {4, 8, 2, 6};
  if (is_one_byte_float(type)) return std::span(kBytes).subspan(1, 1);
  if (type == ElementType::F4) return std::span(kBytes).first(1);
  if (type == ElementType::I8) return std::span(kBytes).first(2);
  if (type == ElementType::U8) return kBytes;
  return kWords;
}

// Packed along rows or columns, whatever comes first, in whole words. Sizes are below 2^32, so nothing overflows.
bool packs(const WeightMatrix& m, const CheckpointTensor& codes) {
  const ElementInfo& type = info(codes.type);
  const std::uint64_t word = std::uint64_t{8} * type.block_bytes / type.block_elements;
  for (const std::uint64_t bits : bits_in(codes.type)) {
    const std::uint64_t in = ceil_div(m.in * bits, word), out = ceil_div(m.out * bits, word);
    if (m.stacks(codes.shape, {m.out, in})) return true;  // compressed-tensors, ModelOpt, MLX
    if (m.stacks(codes.shape, {in, m.out})) return true;  // GPTQ
    if (m.stacks(codes.shape, {m.in, out})) return true;  // AWQ
  }
  return false;
}

}  // namespace

bool codes_fit(const TensorSpec& spec, const CheckpointTensor& stored) {
  if (spec.shape.size() < 2) return false;
  const WeightMatrix matrix = weight_matrix(spec);
  const auto formats = stored_formats();
  return packs(matrix, stored) ||
         std::any_of(formats.begin(), formats.end(), [&](const StoredFormat* format) {
           return format->holds != nullptr && format->holds(matrix, stored);
         });
}

}  // namespace assay
