// The stored forms of integers packed into words, and of bitsandbytes' four-bit code books.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "core/formats/json.h"
#include "core/model/stored_checks.h"
#include "core/model/stored_resolve.h"
#include "core/system/error.h"

namespace assay {
namespace {

using Fill = IntPacking::Fill;

bool is_word(ElementType type) {
  return type == ElementType::I32 || type == ElementType::U32;
}

// The packing under which a line of `count` values fills `words` words, dense or by whole words.
std::optional<IntPacking> packing_of(std::uint64_t count, std::uint64_t words,
                                     std::optional<std::uint64_t> bits = std::nullopt) {
  if (count == 0 || words == 0 || words > count) return std::nullopt;
  for (const Fill fill : {Fill::dense, Fill::whole_words}) {
    for (std::uint32_t b = 1; b <= 8; ++b) {
      const IntPacking packing{b, fill};
      if ((!bits || *bits == b) && packing.words(count) == words) return packing;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> configured_bits(const StoredResolution& resolution) {
  const auto& config = resolution.quantization();
  if (!config) return std::nullopt;
  if (config->bits) return config->bits;
  return config->groups.size() == 1 ? config->groups.front().bits : std::nullopt;
}

std::optional<std::uint64_t> configured_group(const StoredResolution& resolution) {
  const auto& config = resolution.quantization();
  if (!config) return std::nullopt;
  if (config->group_size) return config->group_size;
  return config->groups.size() == 1 ? config->groups.front().group_size : std::nullopt;
}

// Columns of a group: equal ones, but for a shorter last.
std::optional<std::uint64_t> group_of(std::uint64_t columns, std::uint64_t groups,
                                      std::optional<std::uint64_t> configured) {
  if (groups == 0 || columns == 0) return std::nullopt;
  if (groups == 1) return columns;
  if (configured && *configured != 0 && LogicalTensor::ceil_div(columns, *configured) == groups)
    return configured;
  if (columns % groups != 0) return std::nullopt;
  return columns / groups;
}

// The shape that weight_shape spells out: a number a dimension, I64 or I32.
std::optional<StoredShape> spelled_shape(StoredResolution& resolution, std::uint32_t place) {
  const CheckpointTensor& tensor = resolution.stored(place);
  const bool wide = tensor.type == ElementType::I64;
  if (!wide && tensor.type != ElementType::I32) return std::nullopt;
  const auto bytes = resolution.small_tensor(place, 64);
  if (!bytes) return std::nullopt;
  StoredShape shape;
  const std::size_t size = wide ? 8 : 4;
  for (std::size_t at = 0; at + size <= bytes->size(); at += size) {
    std::int64_t value = 0;
    std::int32_t narrow = 0;
    if (wide)
      std::memcpy(&value, bytes->data() + at, size);
    else
      std::memcpy(&narrow, bytes->data() + at, size);
    if (!wide) value = narrow;
    if (value <= 0) return std::nullopt;
    shape.push_back(static_cast<std::uint64_t>(value));
  }
  return shape;
}

bool same_but_last(const StoredShape& a, const StoredShape& b) {
  return a.size() == b.size() && !a.empty() && std::equal(a.begin(), a.end() - 1, b.begin());
}

}  // namespace

// weight_packed [out, words], weight_scale [out, groups] (or [out, 1], [out]), weight_shape;
// weight_zero_point [words of out, groups], weight_g_idx [in].
void resolve_packed_int(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  tensor.scale = group.place("weight_scale");
  tensor.zeros = group.place("weight_zero_point");
  tensor.group_index = group.place("weight_g_idx");
  const auto spelled = group.place("weight_shape");
  if (spelled) tensor.companions.push_back(*spelled);
  const std::size_t known = 1 + known_beside(tensor) + (tensor.scale ? 1 : 0) + (tensor.zeros ? 1 : 0) +
                            (tensor.group_index ? 1 : 0);
  if (!tensor.scale || known != group.pieces.size() || !is_word(codes.type) || codes.shape.size() < 2)
    return resolution.unknown_form(tensor);
  tensor.form = {.kind = FormKind::packed, .codes = codes.type};
  if (!resolution.take_scale_type(tensor)) return;

  const MatrixSizes m = as_matrices(codes.shape);
  StoredShape grid = resolution.stored(*tensor.scale).shape;
  if (grid.size() + 1 == codes.shape.size()) grid.push_back(1);
  StoredShape shape = codes.shape;
  const auto bits = configured_bits(resolution);
  if (spelled) {
    const auto read = spelled_shape(resolution, *spelled);
    if (!read || !same_but_last(*read, shape)) return resolution.unknown_form(tensor, "weight_shape");
    shape = *read;
  } else {
    const auto size = configured_group(resolution);
    if (!bits || !size || !same_but_last(grid, shape))
      return resolution.unknown_form(tensor, "no weight_shape");
    if (__builtin_mul_overflow(grid.back(), *size, &shape.back())) return resolution.unknown_form(tensor);
  }
  auto packing = packing_of(shape.back(), m.columns, bits);
  if (!packing && spelled) packing = packing_of(shape.back(), m.columns);  // one of several config groups
  if (!packing) return resolution.unknown_form(tensor, "bits an element");
  if (!same_but_last(grid, shape)) return resolution.bad_grid(tensor, shape);
  const auto columns = group_of(shape.back(), grid.back(), configured_group(resolution));
  if (!columns) return resolution.bad_grid(tensor, shape);
  tensor.form.block_columns = *columns;
  tensor.form.packed.codes = *packing;

  if (tensor.zeros) {
    const CheckpointTensor& zeros = resolution.stored(*tensor.zeros);
    const std::uint64_t rows = shape[shape.size() - 2];
    StoredShape wanted = grid;
    wanted[wanted.size() - 2] = packing->words(rows);
    if (!is_word(zeros.type) || zeros.shape != wanted)
      return resolution.unknown_form(tensor, "weight_zero_point");
    tensor.form.packed.zeros = *packing;
    tensor.form.packed.zeros_across = true;
    tensor.form.packed.zero = ZeroPoint::packed;
  }
  if (tensor.group_index && (resolution.stored(*tensor.group_index).shape != StoredShape{shape.back()} ||
                             resolution.stored(*tensor.group_index).type != ElementType::I32))
    return resolution.unknown_form(tensor, "weight_g_idx");
  resolution.finish(tensor, shape);
}

namespace {

// How the zero points are meant: GPTQ's checkpoint_format and auto-round's packing_format tell.
std::optional<ZeroPoint> gptq_zero_point(const QuantizationConfig& config) {
  if (config.method == "gptq") {
    if (config.format.empty() || config.format == "gptq") return ZeroPoint::packed_less_1;
    return config.format == "gptq_v2" ? std::optional(ZeroPoint::packed) : std::nullopt;
  }
  if (config.method != "auto-round" && config.method != "intel/auto-round") return std::nullopt;
  if (config.format == "auto_round:auto_gptq") return ZeroPoint::packed_less_1;
  return config.format == "auto_round" || config.format == "auto_round:gptqmodel"
             ? std::optional(ZeroPoint::packed)
             : std::nullopt;
}

// qweight [in/8, out] when packed along inputs, [in, out/8] when along outputs; scales [groups, out] say out.
void resolve_gptq(StoredResolution& resolution, LogicalTensor& tensor, std::uint64_t out) {
  const auto& config = resolution.quantization();
  const auto zero = config ? gptq_zero_point(*config) : std::nullopt;
  if (!zero)
    return resolution.unknown_form(
        tensor, config
                    ? fmt::format("\"{}\" of {} does not tell how GPTQ's zero points are meant",
                                  config->format, config->method)
                    : "only quantization_config tells how GPTQ's zero points are meant, and there is none");
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  const CheckpointTensor& zeros = resolution.stored(*tensor.zeros);
  auto zero_packing = packing_of(out, zeros.shape.back(), config->bits);
  if (!zero_packing) zero_packing = packing_of(out, zeros.shape.back());  // this layer has a width of its own
  if (!zero_packing || zero_packing->fill != Fill::dense ||
      (zero_packing->bits != 2 && zero_packing->bits != 3 && zero_packing->bits != 4 &&
       zero_packing->bits != 8))
    return resolution.unknown_form(tensor, "bits an element");
  std::uint64_t in = codes.shape.front();
  if (__builtin_mul_overflow(in, std::uint64_t{32}, &in)) return resolution.unknown_form(tensor);
  in /= zero_packing->bits;
  if (tensor.group_index) {
    const CheckpointTensor& index = resolution.stored(*tensor.group_index);
    if (index.type != ElementType::I32 || index.shape.size() != 1)
      return resolution.unknown_form(tensor, "g_idx");
    in = index.shape.front();
  }
  if (zero_packing->words(in) != codes.shape.front()) return resolution.unknown_form(tensor, "sizes");
  const auto columns = group_of(in, zeros.shape.front(), config->group_size);
  if (!columns) return resolution.bad_grid(tensor, {out, in});
  tensor.form.block_columns = *columns;
  tensor.form.packed.codes = tensor.form.packed.zeros = *zero_packing;
  tensor.form.packed.codes_across = true;
  tensor.form.packed.zero = *zero;
  resolution.finish(tensor, {out, in});
}

void resolve_awq(StoredResolution& resolution, LogicalTensor& tensor, std::uint64_t out) {
  const auto& config = resolution.quantization();
  const bool gemm = !config || config->format.empty() || config->format == "gemm" ||
                    config->format == "GEMM" || config->format == "auto_round:auto_awq";
  if (!gemm || (config && config->bits && *config->bits != 4) || tensor.group_index)
    return resolution.unknown_form(tensor, "AWQ is known in its 4-bit gemm version");
  const std::uint64_t in = resolution.stored(tensor.codes).shape.front();
  const auto columns = group_of(in, resolution.stored(*tensor.scale).shape.front(),
                                config ? config->group_size : std::nullopt);
  if (!columns) return resolution.bad_grid(tensor, {out, in});
  tensor.form.block_columns = *columns;
  tensor.form.packed.codes = tensor.form.packed.zeros = {4, Fill::awq};
  tensor.form.packed.zero = tensor.zeros ? ZeroPoint::packed : ZeroPoint::middle;
  resolution.finish(tensor, {out, in});
}

}  // namespace

void resolve_qweight(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  tensor.scale = group.place("scales");
  tensor.zeros = group.place("qzeros");
  tensor.group_index = group.place("g_idx");
  const std::size_t known = 1 + known_beside(tensor) + (tensor.scale ? 1 : 0) + (tensor.zeros ? 1 : 0) +
                            (tensor.group_index ? 1 : 0);
  if (!tensor.scale || known != group.pieces.size() || !is_word(codes.type) || codes.shape.size() != 2)
    return resolution.unknown_form(tensor);
  const StoredShape& grid = resolution.stored(*tensor.scale).shape;
  tensor.form = {.kind = FormKind::packed, .codes = codes.type};
  tensor.form.transposed = true;
  if (grid.size() != 2 || !resolution.take_scale_type(tensor)) return resolution.unknown_form(tensor);
  const std::uint64_t out = grid.back();
  if (tensor.zeros) {
    const CheckpointTensor& zeros = resolution.stored(*tensor.zeros);
    if (!is_word(zeros.type) || zeros.shape.size() != 2 || zeros.shape.front() != grid.front())
      return resolution.unknown_form(tensor, "qzeros");
  }
  if (codes.shape.back() == out && tensor.zeros) return resolve_gptq(resolution, tensor, out);
  const bool eight_a_word = out % 8 == 0 && codes.shape.back() == out / 8 &&
                            (!tensor.zeros || resolution.stored(*tensor.zeros).shape.back() == out / 8);
  if (eight_a_word) return resolve_awq(resolution, tensor, out);
  resolution.unknown_form(tensor);
}

// weight U32 [out, words], scales and biases [out, groups]; stacked experts in front.
void resolve_mlx(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  tensor.scale = group.place("scales");
  tensor.zeros = group.place("biases");
  const std::size_t known = 1 + known_beside(tensor) + (tensor.scale ? 1 : 0);
  if (!tensor.scale || known != group.pieces.size() || !is_word(codes.type) || codes.shape.size() < 2)
    return resolution.unknown_form(tensor);
  const CheckpointTensor &scale = resolution.stored(*tensor.scale), &bias = resolution.stored(*tensor.zeros);
  tensor.form = {.kind = FormKind::packed, .codes = codes.type};
  tensor.form.packed.zero = ZeroPoint::bias;
  if (!resolution.take_scale_type(tensor)) return;
  if (scale.shape != bias.shape || scale.type != bias.type || !same_but_last(scale.shape, codes.shape))
    return resolution.bad_grid(tensor, codes.shape);
  // Nothing in the tensors says how long a row is; the config has one group size, and others for some
  // modules.
  auto bits = configured_bits(resolution), size = configured_group(resolution);
  if (resolution.quantization()) {
    for (const auto& module : resolution.quantization()->modules) {
      if (tensor.name == module.name + ".weight") bits = module.bits, size = module.group_size;
    }
  }
  StoredShape shape = codes.shape;
  if (!bits || !size || __builtin_mul_overflow(scale.shape.back(), *size, &shape.back()))
    return resolution.unknown_form(tensor, "config.json says no bits and group_size");
  const auto packing = packing_of(shape.back(), codes.shape.back(), bits);
  if (!packing || packing->fill != Fill::dense)
    return resolution.unknown_form(tensor, fmt::format("not {} bits in groups of {}", *bits, *size));
  tensor.form.packed.codes = *packing;
  tensor.form.block_columns = *size;
  resolution.finish(tensor, shape);
}

namespace {

// quant_state: what bitsandbytes keeps of a tensor, as JSON in bytes.
struct QuantState {
  StoredShape shape;
  CodebookForm form;
};
std::optional<QuantState> quant_state(StoredResolution& resolution, std::uint32_t place) {
  constexpr std::uint64_t kMost = 1 << 16;
  const auto text = resolution.small_tensor(place, kMost);
  if (!text) return std::nullopt;
  const std::string source = resolution.stored(place).name;
  const ParsedJson json = parse_json(*text, source);
  const auto shape = json.is_object() ? json.find("shape") : json.end();
  if (!json.is_object() || !json.contains("blocksize") || shape == json.end() || !shape->is_array() ||
      shape->size() > 8)
    return std::nullopt;
  QuantState state;
  for (const ParsedJson& size : *shape) state.shape.push_back(json_u64(size, "shape", source));
  state.form.block = json_u64(json["blocksize"], "blocksize", source);
  if (json.contains("nested_blocksize")) {
    state.form.nested = json_u64(json["nested_blocksize"], "nested_blocksize", source);
    if (!json.contains("nested_offset") || !json["nested_offset"].is_number()) return std::nullopt;
    state.form.offset = static_cast<float>(json["nested_offset"].get<double>());
    if (!std::isfinite(state.form.offset) || state.form.nested == 0) return std::nullopt;
  }
  if (state.form.block == 0) return std::nullopt;
  return state;
}

bool is_list(const CheckpointTensor& tensor, ElementType type, std::uint64_t length) {
  return tensor.type == type && tensor.shape == StoredShape{length};
}

}  // namespace

// weight U8 [elements/2, 1], absmax F32 [blocks], quant_map F32 [16]; nested: absmax U8, nested_absmax F32,
// nested_quant_map F32 [256].
void resolve_codebook(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  tensor.scale = group.place("weight.absmax");
  tensor.table = group.place("weight.quant_map");
  tensor.nested_scale = group.place("weight.nested_absmax");
  tensor.nested_table = group.place("weight.nested_quant_map");
  std::optional<std::uint32_t> described;
  for (const std::string_view suffix :
       {"weight.quant_state.bitsandbytes__nf4", "weight.quant_state.bitsandbytes__fp4"}) {
    if (!described) described = group.place(suffix);
  }
  if (!described || !tensor.scale || codes.type != ElementType::U8) return resolution.unknown_form(tensor);
  tensor.companions.push_back(*described);
  const auto state = quant_state(resolution, *described);
  const auto elements = state ? element_count(state->shape) : std::nullopt;
  if (!elements || *elements == 0 || LogicalTensor::ceil_div(*elements, 2) != codes.bytes)
    return resolution.unknown_form(tensor, "quant_state");
  const bool nested = tensor.nested_scale && tensor.nested_table && state->form.nested != 0;
  const std::uint64_t blocks = LogicalTensor::ceil_div(*elements, state->form.block);
  bool fits =
      is_list(resolution.stored(*tensor.table), ElementType::F32, 16) &&
      is_list(resolution.stored(*tensor.scale), nested ? ElementType::U8 : ElementType::F32, blocks) &&
      group.pieces.size() == 2 + known_beside(tensor) + (nested ? 2 : 0);
  if (fits && nested) {
    fits = is_list(resolution.stored(*tensor.nested_table), ElementType::F32, 256) &&
           is_list(resolution.stored(*tensor.nested_scale), ElementType::F32,
                   LogicalTensor::ceil_div(blocks, state->form.nested));
  }
  if (!fits) return resolution.unknown_form(tensor, "tables and scales");
  tensor.form = {.kind = FormKind::codebook, .codes = ElementType::U8};
  tensor.form.codebook = state->form;
  if (!nested) tensor.form.codebook.nested = 0;
  resolution.finish(tensor, state->shape);
}

}  // namespace assay
