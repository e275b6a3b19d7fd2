// bitsandbytes: NF4 and FP4, two codes a byte into a table of 16 values, a scale every 64, which may be codes of a
// second table; and LLM.int8, a row's largest magnitude beside codes of 8 bits.
#include <fmt/format.h>

#include <cmath>

#include "core/formats/json.h"
#include "core/model/formats/all.h"
#include "core/model/stored_checks.h"
#include "core/numeric/ceil_div.h"

namespace assay::formats {
namespace {

constexpr NameEnding kBitsandbytesEndings[] = {
    {".weight.nested_absmax", ".weight", StoredPart::scale},
    {".weight.nested_quant_map", ".weight", StoredPart::table},
    {".weight.absmax", ".weight", StoredPart::scale},
    {".weight.quant_map", ".weight", StoredPart::table},
    {".weight.quant_state.bitsandbytes__nf4", ".weight", StoredPart::table},
    {".weight.quant_state.bitsandbytes__fp4", ".weight", StoredPart::table},
    {".SCB", ".weight", StoredPart::scale},
    {".weight_format", ".weight", StoredPart::table},
};
constexpr std::string_view kBitsandbytesMethods[] = {"bitsandbytes"};

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
  tensor.auxiliary.push_back(*described);
  const auto state = quant_state(resolution, *described);
  const auto elements = state ? element_count(state->shape) : std::nullopt;
  if (!elements || *elements == 0 || ceil_div(*elements, 2) != codes.bytes)
    return resolution.unknown_form(tensor, "quant_state");
  const bool nested = tensor.nested_scale && tensor.nested_table && state->form.nested != 0;
  const std::uint64_t blocks = ceil_div(*elements, state->form.block);
  bool fits =
      is_list(resolution.stored(*tensor.table), ElementType::F32, 16) &&
      is_list(resolution.stored(*tensor.scale), nested ? ElementType::U8 : ElementType::F32, blocks) &&
      group.pieces.size() == 2 + known_beside(tensor) + (nested ? 2 : 0);
  if (fits && nested) {
    fits = is_list(resolution.stored(*tensor.nested_table), ElementType::F32, 256) &&
           is_list(resolution.stored(*tensor.nested_scale), ElementType::F32,
                   ceil_div(blocks, state->form.nested));
  }
  if (!fits) return resolution.unknown_form(tensor, "tables and scales");
  tensor.form = {.kind = FormKind::codebook, .codes = ElementType::U8};
  tensor.form.codebook = state->form;
  if (!nested) tensor.form.codebook.nested = 0;
  resolution.finish(tensor, state->shape);
}

// LLM.int8: SCB is a row's largest magnitude, in place of 127.
void resolve_row_maxima(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  if (const auto format = group.place("weight_format")) tensor.auxiliary.push_back(*format);
  const CheckpointTensor& codes = resolution.stored(tensor.codes);
  tensor.scale = group.find("SCB")->place;
  const bool is_int8 = codes.type == ElementType::I8 && codes.shape.size() == 2 &&
                       resolution.stored(*tensor.scale).shape == StoredShape{codes.shape.front()} &&
                       group.pieces.size() == 1 + known_beside(tensor);
  if (!is_int8) return resolution.unknown_form(tensor);
  tensor.form.scale_factor = 1.0F / 127;
  resolve_scaled(resolution, tensor);
}

bool claims_bitsandbytes(const StoredResolution&, const LogicalTensor&, const StoredGroup& group) {
  return group.plain && (group.find("weight.quant_map") != nullptr || group.find("SCB") != nullptr);
}

void resolve_bitsandbytes(StoredResolution& resolution, LogicalTensor& tensor, const StoredGroup& group) {
  if (group.find("weight.quant_map") != nullptr) return resolve_codebook(resolution, tensor, group);
  resolve_row_maxima(resolution, tensor, group);
}

// Two codes a byte, on end whatever the rows.
bool holds_on_end(const WeightMatrix& m, const CheckpointTensor& codes) {
  return codes.type == ElementType::U8 && codes.shape == StoredShape{ceil_div(m.elements, 2), 1};
}

// A scale each 64 codes in F32, or one byte where these are quantized in turn; the tables of values. Not counted is
// quant_state, a text of some 150 bytes a matrix that depends on its values.
std::optional<WeightFormat> configured_bitsandbytes(const QuantizationConfig& config) {
  if (!says(config, "bitsandbytes") || said_bits(config) != 4) return std::nullopt;
  const bool nested = config.nested_scales.value_or(false);
  WeightFormat format =
      WeightFormat::in_blocks("bnb-4bit", "bitsandbytes 4-bit, a scale each 64", 4, 1, 64, nested ? 1 : 4);
  format.on_end = true;
  format.scales_a_scale = nested ? 256 : 0;
  constexpr std::uint64_t kTable = 16 * 4, kTableOfScales = 256 * 4;
  format.per_matrix_bytes = nested ? kTable + kTableOfScales : kTable;
  return format;
}

}  // namespace

const StoredFormat kBitsandbytes = {.name = "bitsandbytes",
                                    .endings = kBitsandbytesEndings,
                                    .methods = kBitsandbytesMethods,
                                    .claims = claims_bitsandbytes,
                                    .resolve = resolve_bitsandbytes,
                                    .holds = holds_on_end,
                                    .configured = configured_bitsandbytes};

}  // namespace assay::formats
