// torchao's tensor subclasses, flattened as transformers saves them: `…_weight_qdata` with what stands
// beside, and the class in the file's header. What is laid out for one device's kernels alone is refused by
// name.
//
//   Float8Tensor, Int8Tensor      a code a value, a scale a row, block or tensor
//   IntxUnpackedToInt8Tensor      w = (q - z) s, s and z of a group; Int8Tensor with zero points, too
//   Int4Tensor                    two signed codes a byte, w = q s + b; s and b lie [groups, rows]
//   Int4TilePackedTo4dTensor      tiles of a tensor core, w = (q - 8) s + b
//   MXTensor, NVFP4Tensor         MXFP8, MXFP4, NVFP4; scales in rows, or swizzled
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/formats/json.h"
#include "core/model/composed_tensor.h"
#include "core/model/formats/all.h"
#include "core/model/read_rectangle.h"
#include "core/model/stored_checks.h"
#include "core/numeric/ceil_div.h"

namespace assay::formats {
namespace {

using Belief = NameEnding::Belief;

constexpr NameEnding kTorchaoEndings[] = {
    {"._weight_qdata", ".weight", StoredPart::codes},
    {"._weight_scale", ".weight", StoredPart::scale},
    {"._weight_zero_point", ".weight", StoredPart::zero_point},
    {"._weight_per_tensor_scale", ".weight", StoredPart::scale},
    {"._weight_scale_and_zero", ".weight", StoredPart::scale},
    {"._weight_act_per_tensor_scale", ".weight", StoredPart::scale, Belief::always, true},
    {"._weight_act_quant_scale", ".weight", StoredPart::scale, Belief::always, true},
    {"._weight_act_quant_zero_point", ".weight", StoredPart::zero_point, Belief::always, true},
    {"._weight_act_pre_scale", ".weight", StoredPart::scale},
};
constexpr std::string_view kTorchaoMethods[] = {"torchao"};

const ParsedJson* member(const ParsedJson& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string class_of(const ParsedJson& described) {
  const ParsedJson* type = member(described, "_type");
  return type != nullptr && type->is_string() ? type->get<std::string>() : std::string();
}

bool is_swizzled(const ParsedJson& described) {
  const ParsedJson* data = member(described, "_data");
  const ParsedJson* flag = data == nullptr ? nullptr : member(*data, "is_swizzled_scales");
  return flag != nullptr && flag->is_boolean() && flag->get<bool>();
}

// The shape that the header gives for the values; empty where it gives none.
StoredShape described_shape(const ParsedJson& described) {
  const ParsedJson* data = member(described, "_data");
  const ParsedJson* shape = data == nullptr ? nullptr : member(*data, "shape");
  StoredShape sizes;
  if (shape == nullptr || !shape->is_array() || shape->size() > 4) return sizes;
  for (const ParsedJson& size : *shape) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() == 0) return {};
    sizes.push_back(size.get<std::uint64_t>());
  }
  return sizes;
}

// Nothing else stands beside but `known` tensors and those that concern activations.
bool only(const StoredGroup& group, const LogicalTensor& tensor, std::size_t known) {
  return group.pieces.size() == known + known_beside(tensor);
}

bool is_number(const CheckpointTensor& tensor) {
  return tensor.type == ElementType::I8 || (is_plain_float(tensor.type) && tensor.type != ElementType::F64);
}

// Codes of 8 bits with a zero point a group.
void resolve_offset(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  tensor.scale = group.place("_weight_scale");
  tensor.zeros = group.place("_weight_zero_point");
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  if (!tensor.scale || !tensor.zeros || !only(group, tensor, 3) || codes.type != ElementType::I8 ||
      codes.shape.size() != 2 || codes.shape.back() == 0 || codes.shape.back() % 4 != 0)
    return resolution.unknown_form(tensor, "codes of 8 bits, a scale and a zero point a group are read");
  tensor.form = {.kind = FormKind::packed, .codes = codes.type};
  tensor.form.packed.codes = {8, IntPacking::Fill::dense};
  set_details(tensor, {.maker = "torchao", .twos_complement = true, .offset = FormDetails::Offset::number});
  if (!resolution.take_scale_type(tensor)) return;
  const StoredShape &grid = resolution.stored(*tensor.scale).shape, &shape = codes.shape;
  const bool fits = grid.size() == 2 && grid[0] == shape[0] && grid[1] != 0 && shape[1] % grid[1] == 0;
  if (!fits) return resolution.bad_grid(tensor, shape);
  const CheckpointTensor& zeros = resolution.stored(*tensor.zeros);
  if (zeros.shape != grid || !is_number(zeros))
    return resolution.unknown_form(
        tensor, fmt::format("zero points are {} {}", name(zeros.type), shape_text(zeros.shape)));
  tensor.form.block_columns = shape[1] / grid[1];
  resolution.finish(tensor, shape);
}

// qdata [.., rows, columns/2], low half first; scale and zero_point [.., groups, rows].
void resolve_int4(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  tensor.scale = group.place("_weight_scale");
  tensor.zeros = group.place("_weight_zero_point");
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  const bool bytes = codes.type == ElementType::I8 || codes.type == ElementType::U8;
  if (!tensor.scale || !tensor.zeros || !only(group, tensor, 3) || !bytes || codes.shape.size() < 2 ||
      codes.shape.size() > 3 || codes.shape.back() == 0 || codes.shape.back() % 4 != 0)
    return resolution.unknown_form(tensor, "no Int4Tensor of torchao");
  tensor.form = {.kind = FormKind::packed, .codes = codes.type};
  tensor.form.packed.codes = {4, IntPacking::Fill::dense};
  set_details(tensor, {.maker = "torchao",
                       .twos_complement = true,
                       .groups_first = true,
                       .offset = FormDetails::Offset::bias});
  if (!resolution.take_scale_type(tensor)) return;
  StoredShape shape = codes.shape;
  if (__builtin_mul_overflow(shape.back(), 2, &shape.back())) return resolution.unknown_form(tensor);
  const StoredShape& grid = resolution.stored(*tensor.scale).shape;
  const std::size_t last = shape.size() - 1;
  const bool fits = grid.size() == shape.size() && grid[last] == shape[last - 1] && grid[last - 1] != 0 &&
                    shape[last] % grid[last - 1] == 0 && (last == 1 || grid[0] == shape[0]);
  if (!fits) return resolution.bad_grid(tensor, shape);
  const CheckpointTensor& biases = resolution.stored(*tensor.zeros);
  if (biases.shape != grid || !is_number(biases)) return resolution.unknown_form(tensor, "zero_point");
  tensor.form.block_columns = shape[last] / grid[last - 1];
  resolution.finish(tensor, shape);
}

// torchao's INT4 for tensor cores. Eight rows by 16·k columns are a tile of 32 lanes; lane 4·(row % 8) +
// (column % 8) / 2 has, of each 16 columns, four values, and a word holds those of two times 16: the even
// ones in its lower half. Scale and bias of a group and row lie side by side. Rows and columns are padded.
// Source: ATen's int4mm.cu, matrix_to_m16n8k16_Bint4_layout (NVIDIA's lanes; AMD's differ).
void decode_tiles(const CheckpointReader& source, const LogicalTensor& tensor, std::uint64_t first,
                  std::uint64_t count, std::span<float> out) {
  constexpr std::uint64_t kRows = 8, kLanes = 32, kColumns = 16;
  const CheckpointTensor& stored = source.checkpoint().tensors[tensor.codes];
  const CheckpointTensor& numbers = source.checkpoint().tensors[*tensor.scale];
  const std::uint64_t lane_words = stored.shape[3], across = lane_words * 2 * kColumns;  // of a tile
  const std::uint64_t row_words = stored.shape[1] * kLanes * lane_words;                 // of eight rows
  const std::uint64_t padded = numbers.shape[1], groups = tensor.scale_columns(), columns = tensor.columns;
  const std::uint64_t begin = first / kRows, end = (first + count - 1) / kRows + 1;
  const auto words =
      read_rectangle<std::uint32_t>(source, stored, row_words, begin, end - begin, 0, row_words);
  const auto pairs = read_floats(source, numbers, 2 * padded, 0, groups, 2 * first, 2 * count);
  for (std::uint64_t r = 0; r < count; ++r) {
    const std::uint64_t row = first + r;
    const std::uint32_t* band = &words[(row / kRows - begin) * row_words];
    for (std::uint64_t c = 0; c < columns; ++c) {
      const std::uint64_t within = c % across, lane = row % kRows * 4 + c % 8 / 2;
      const std::uint64_t word = (c / across * kLanes + lane) * lane_words + within / (2 * kColumns);
      const std::uint64_t value = within / kColumns % 2 * 4 + within % kColumns / 8 * 2;  // of eight
      const int q = static_cast<int>(band[word] >> (c % 2 * 16 + value / 2 * 4) & 0xF);
      const float* pair = &pairs[(c / tensor.form.block_columns * count + r) * 2];
      const float product = static_cast<float>(q - 8) * pair[0];
      out[r * columns + c] = product + pair[1];
    }
  }
}

// qdata I32 [rows/8, columns/(32·k), 32, k], scale_and_zero [groups, rows, 2]; both padded.
void resolve_tiled(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group,
                   const StoredShape& shape) {
  tensor.scale = group.place("_weight_scale_and_zero");
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  if (!tensor.scale || !only(group, tensor, 2) || codes.type != ElementType::I32 || codes.shape.size() != 4 ||
      shape.size() != 2)
    return resolution.unknown_form(tensor, "no Int4TilePackedTo4dTensor of torchao");
  tensor.form = {.kind = FormKind::packed, .codes = codes.type};
  tensor.form.packed.codes = {4, IntPacking::Fill::dense};
  set_details(tensor, {.maker = "torchao", .decode = decode_tiles, .offset = FormDetails::Offset::bias});
  if (!resolution.take_scale_type(tensor)) return;
  const StoredShape &tiles = codes.shape, &grid = resolution.stored(*tensor.scale).shape;
  constexpr std::uint64_t kPadding = 1024;
  const bool known = tiles[2] == 32 && (tiles[3] == 1 || tiles[3] == 2 || tiles[3] == 4);
  const std::uint64_t columns = known ? tiles[1] * 32 * tiles[3] : 0;
  if (!known || tiles[0] != ceil_div(shape[0], 8) || columns < shape[1] || columns - shape[1] >= kPadding)
    return resolution.unknown_form(tensor, fmt::format("tiles of {}", shape_text(shape)));
  const bool fits =
      grid.size() == 3 && grid[0] != 0 && columns % grid[0] == 0 && grid[1] == tiles[0] * 8 && grid[2] == 2;
  if (!fits) return resolution.bad_grid(tensor, shape);
  tensor.form.block_columns = columns / grid[0];
  resolution.finish(tensor, shape);
}

// Scales in the order of cuBLAS's block scaling factors: tiles of 128 rows by 4 groups, padded.
void resolve_swizzled(StoredResolution& resolution, LogicalTensor& tensor) {
  const CheckpointTensor &codes = resolution.stored(tensor.codes), &scale = resolution.stored(*tensor.scale);
  const bool eight = is_one_byte_float(codes.type);
  tensor.form.kind = eight ? FormKind::scaled : FormKind::fp4;
  tensor.form.codes = eight ? codes.type : ElementType::F4;
  if (!resolution.take_scale_type(tensor)) return;
  const bool of_powers = tensor.form.scales == ElementType::F8_E8M0;
  StoredShape shape = codes.shape;
  const bool known = shape.size() == 2 && (eight || codes.type == ElementType::U8) &&
                     (of_powers || (!eight && tensor.form.scales == ElementType::F8_E4M3));
  if (!known || (!eight && __builtin_mul_overflow(shape.back(), 2, &shape.back())))
    return resolution.unknown_form(tensor, "swizzled scales belong to matrices of MXFP8, MXFP4 and NVFP4");
  tensor.form.block_columns = of_powers ? 32 : 16;
  const std::uint64_t groups = ceil_div(shape[1], tensor.form.block_columns);
  const std::uint64_t tiles = ceil_div(shape[0], 128) * ceil_div(groups, 4);
  if (tiles == 0 || scale.bytes / 512 != tiles || scale.bytes % 512 != 0)
    return resolution.bad_grid(tensor, shape);
  if (tensor.global_scale) {
    const CheckpointTensor& global = resolution.stored(*tensor.global_scale);
    if (eight || element_count(global.shape) != 1 || global.type != ElementType::F32)
      return resolution.unknown_form(tensor, "per_tensor_scale");
    tensor.form.global = GlobalScale::multiply;
  }
  set_details(tensor, {.maker = "torchao", .swizzled = true});
  resolution.finish(tensor, shape);
}

void resolve_small_floats(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group,
                          const ParsedJson& described) {
  tensor.scale = group.place("_weight_scale");
  tensor.global_scale = group.place("_weight_per_tensor_scale");
  if (!tensor.scale || !only(group, tensor, tensor.global_scale ? 3 : 2))
    return resolution.unknown_form(tensor);
  if (is_swizzled(described)) return resolve_swizzled(resolution, tensor);
  if (is_one_byte_float(resolution.stored(tensor.codes).type)) return resolve_scaled(resolution, tensor);
  if (tensor.global_scale) tensor.form.global = GlobalScale::multiply;
  resolve_fp4(resolution, tensor);
}

// Symmetric weights have zero points, too: of 0.
bool has_no_offset(StoredResolution& resolution, const StoredGroup& group) {
  constexpr std::uint64_t kMost = 1 << 22;
  const auto zeros = resolution.small_tensor(*group.place("_weight_zero_point"), kMost);
  return zeros && zeros->find_first_not_of('\0') == std::string::npos;
}

// As far as types tell without the header: a code a value, and its scale.
void resolve_one_a_value(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  tensor.scale = group.place("_weight_scale");
  if (const auto zeros = group.place("_weight_zero_point"); zeros && has_no_offset(resolution, group))
    tensor.auxiliary.push_back(*zeros);
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  const bool known = tensor.scale && only(group, tensor, 2) &&
                     (is_one_byte_float(codes.type) || codes.type == ElementType::I8);
  if (!known)
    return resolution.unknown_form(tensor,
                                   "which of torchao's tensors it is, the file's header would have to say");
  resolve_scaled(resolution, tensor);
}

void resolve_torchao(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  const ParsedJson described = resolution.described(tensor);
  const std::string type = class_of(described);
  tensor.input_factors = group.place("_weight_act_pre_scale");
  if (type == "Int4Tensor") return resolve_int4(resolution, tensor, group);
  if (type == "Int4TilePackedTo4dTensor")
    return resolve_tiled(resolution, tensor, group, described_shape(described));
  if (type == "MXTensor" || type == "NVFP4Tensor")
    return resolve_small_floats(resolution, tensor, group, described);
  const bool offset = group.find("_weight_zero_point") != nullptr;
  if (type == "IntxUnpackedToInt8Tensor" ||
      (type == "Int8Tensor" && offset && !has_no_offset(resolution, group)))
    return resolve_offset(resolution, tensor, group);
  if (type.empty() || type == "Float8Tensor" || type == "Int8Tensor")
    return resolve_one_a_value(resolution, tensor, group);
  resolution.unknown_form(tensor,
                          fmt::format("torchao's {} is packed for one device's kernels, and is not read "
                                      "here",
                                      type));
}

bool claims_torchao(const StoredResolution&, const LogicalTensor&, const StoredGroup& group) {
  return group.codes_are("_weight_qdata");
}

// INT4: tiles of eight rows and 32 lanes; rows and columns are padded.
bool holds_in_tiles(const WeightMatrix& m, const CheckpointTensor& codes) {
  const StoredShape& shape = codes.shape;
  return m.leading.empty() && shape.size() == 4 && shape[2] == 32 && shape[0] == ceil_div(m.out, 8) &&
         shape[3] != 0 && shape[3] <= 4 && shape[1] >= ceil_div(m.in, 32 * shape[3]);
}

}  // namespace

const StoredFormat kTorchao = {.name = "torchao",
                               .endings = kTorchaoEndings,
                               .methods = kTorchaoMethods,
                               .claims = claims_torchao,
                               .resolve = resolve_torchao,
                               .holds = holds_in_tiles};

}  // namespace assay::formats
