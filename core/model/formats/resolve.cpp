#include "core/model/formats/resolve.h"

#include <fmt/format.h>

#include "core/formats/json.h"
#include "core/formats/safetensors.h"
#include "core/model/formats/format.h"
#include "core/model/nested_config.h"
#include "core/model/said_form.h"
#include "core/model/stored_checks.h"
#include "core/numeric/ceil_div.h"
#include "core/system/error.h"

namespace assay {

const StoredPiece* StoredGroup::codes() const {
  const auto at = std::find_if(pieces.rbegin(), pieces.rend(),
                               [](const StoredPiece& p) { return p.ending->part == StoredPart::codes; });
  return at == pieces.rend() ? nullptr : &*at;
}

void StoredResolution::fault(std::string code, const std::string& tensor, std::string message,
                             std::string remedy) {
  result.findings.push_back(tensor_error(std::move(code), tensor, std::move(message), std::move(remedy)));
}

void StoredResolution::unknown_form(const LogicalTensor& tensor, std::string_view why) {
  const CheckpointTensor& codes = stored(tensor.codes);
  fault("stored.form_unknown", codes.name,
        fmt::format("{} {}, with what stands beside it, is no stored form known here{}{}", name(codes.type),
                    shape_text(codes.shape), why.empty() ? "" : ": ", why));
}

void StoredResolution::form_differs(const LogicalTensor& tensor, std::string_view said,
                                    std::string_view held) {
  result.findings.push_back(form_fault(stored(tensor.codes).name, said, held));
}

void StoredResolution::finish(LogicalTensor& tensor, const StoredShape& shape) {
  const MatrixSizes sizes = as_matrices(shape);
  if (tensor.input_factors) {
    const CheckpointTensor& factors = stored(*tensor.input_factors);
    if (!tensor.quantized() || sizes.slices != 1 || !is_plain_float(factors.type) ||
        factors.type == ElementType::F64 || element_count(factors.shape) != sizes.columns)
      return unknown_form(tensor, fmt::format("{} is no factor for each of {} inputs of a quantized matrix",
                                              factors.name, sizes.columns));
  }
  tensor.shape = shape;
  tensor.slices = sizes.slices;
  tensor.rows = sizes.rows;
  tensor.columns = sizes.columns;
  result.tensors.push_back(std::move(tensor));
}

bool StoredResolution::take_scale_type(LogicalTensor& tensor) {
  const CheckpointTensor& scale = stored(*tensor.scale);
  tensor.form.scales = scale.type == ElementType::U8 ? ElementType::F8_E8M0 : scale.type;
  switch (tensor.form.scales) {
    case ElementType::F32:
    case ElementType::BF16:
    case ElementType::F16: return true;
    case ElementType::F8_E8M0:
      if (tensor.form.kind == FormKind::scaled || tensor.form.kind == FormKind::fp4) return true;
      break;
    case ElementType::F8_E4M3:
      if (tensor.form.kind == FormKind::fp4) return true;
      break;
    default: break;
  }
  fault("stored.scale_type", scale.name, fmt::format("a scale cannot be {}", name(scale.type)));
  return false;
}

void StoredResolution::bad_grid(const LogicalTensor& tensor, const StoredShape& shape) {
  const CheckpointTensor& scale = stored(*tensor.scale);
  const auto block = configured_block(quantization_);
  const MatrixSizes m = as_matrices(shape);
  std::string wanted;
  if (block) {
    wanted = fmt::format("; {}x{} blocks of {} want [{}, {}]", block->rows, block->columns, shape_text(shape),
                         ceil_div(m.rows, block->rows), ceil_div(m.columns, block->columns));
  }
  if (const auto group = configured_group(quantization_);
      !block && group && *group != 0 && tensor.form.kind == FormKind::packed)
    wanted = fmt::format("; {} inputs in groups of {}, as the config says, have {} scales a row", m.columns,
                         *group, ceil_div(m.columns, *group));
  fault("stored.scale_shape", scale.name,
        fmt::format("{} is no grid of scales over {} {}{}", shape_text(scale.shape), tensor.name,
                    shape_text(shape), wanted));
}

std::optional<AttentionSizes> StoredResolution::attention() {
  if (attention_) return *attention_;
  attention_.emplace();
  if (checkpoint_.config.empty()) return std::nullopt;
  const ParsedJson document = read_json(checkpoint_.config);
  *attention_ = attention_of(document);
  for (const ParsedJson* nest : language_model_nests(document)) {
    if (!*attention_) *attention_ = attention_of(*nest);
  }
  return *attention_;
}

std::optional<std::string> StoredResolution::small_tensor(std::uint32_t place, std::uint64_t most) {
  const CheckpointTensor& tensor = stored(place);
  if (tensor.bytes > most) return std::nullopt;
  if (!reader_) reader_ = std::make_unique<CheckpointReader>(checkpoint_);
  std::string bytes(tensor.bytes, '\0');
  reader_->read(tensor, 0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

ParsedJson StoredResolution::described(const LogicalTensor& tensor) {
  if (!descriptions_) read_descriptions();
  const auto entry = descriptions_->find(tensor.name);
  return entry == descriptions_->end() ? ParsedJson() : parse_json(entry->second, stored(tensor.codes).name);
}

// A list of tensors that was lent (verify) comes without the metadata of its files.
void StoredResolution::read_descriptions() {
  descriptions_.emplace();
  for (const CheckpointFile& file : checkpoint_.files) {
    auto metadata = file.metadata;
    try {
      if (metadata.empty())
        metadata = safetensors::read_header(File::open(file.path), safetensors::Reading::reference).metadata;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;  // the file's own findings tell of all others
    }
    for (auto& [key, text] : metadata) descriptions_->emplace(std::move(key), std::move(text));
  }
}

}  // namespace assay
