#include "kernels/harness/made_weight.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>

#include "core/model/weight_encoder.h"
#include "core/numeric/block_quantizer.h"
#include "core/numeric/codec.h"
#include "core/numeric/gguf_quantize.h"
#include "core/system/error.h"
#include "core/system/text.h"
#include "kernels/harness/encoded_weight.h"

namespace assay {
namespace {

// Of a block whose codes are integers: 1/2, 1, 2 or 4, another one where rows and columns are exchanged.
float exact_scale(std::size_t block_row, std::size_t block_column) {
  constexpr float kScales[] = {0.5F, 1, 2, 4};
  return kScales[(3 * block_row + 5 * block_column) % 4];
}

// "64x32" → 64, 32.
bool parse_block(std::string_view text, WeightForm& form) {
  const auto x = text.find('x');
  if (x == std::string_view::npos) return false;
  const auto rows = parse_u64(text.substr(0, x)), columns = parse_u64(text.substr(x + 1));
  if (!rows || !columns || *rows == 0 || *columns == 0 || *rows > 65536 || *columns > 65536) return false;
  form.block_rows = *rows;
  form.block_columns = *columns;
  return true;
}

// "INT4_CHANNEL" → the encoder of `--to int4:channel`; null: no format has the name. The options of FP8 and INT8
// are blocks, which have a place of their own here.
std::shared_ptr<const WeightEncoder> encoder_of(std::string_view text) {
  if (text.starts_with("FP8_") || text.starts_with("INT8_")) return nullptr;
  std::string target(text);
  for (char& c : target) c = c == '_' ? ':' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return weight_encoder({.text = target});
}

}  // namespace

MadeWeight::~MadeWeight() = default;

WeightForm weight_form(std::string_view text) {
  WeightForm form;
  for (const auto& [prefix, type] :
       {std::pair<std::string_view, ElementType>{"FP8_", ElementType::F8_E4M3}, {"INT8_", ElementType::I8}}) {
    if (!text.starts_with(prefix)) continue;
    form.type = type;
    form.scaled = true;
    const std::string_view block = text.substr(prefix.size());
    if (block == "CHANNEL") {
      form.block_columns = 0;
      return form;
    }
    if (parse_block(block, form)) return form;
  }
  const auto type = element_type_from_text(text);
  const bool plain = type && (*type == ElementType::F32 || float_format(*type) != nullptr);
  if (!plain && !(type && gguf_can_quantize_to(*type))) {
    form.encoder = encoder_of(text);
    if (form.encoder != nullptr) return form;
    throw Error::usage(fmt::format("no weight is stored as '{}'", escape_for_terminal(text)))
        .remedy("write F32, BF16, F16, FP8_128x128, INT8_CHANNEL, Q8_0, Q4_K, MXFP8, INT4_CHANNEL …");
  }
  form.type = *type;
  return form;
}

MadeWeight::MadeWeight(const WeightForm& form, InputKind kind, const FillOptions& options) {
  view_.rows = options.rows;
  view_.columns = options.columns;
  const bool exact = kind == InputKind::exact;
  if (form.encoder == nullptr) lay_out(form);
  if (ShapesOnly::asked() && form.encoder == nullptr) return;
  std::vector<float> values(options.rows * options.columns);
  if (!ShapesOnly::asked()) fill_inputs(kind, options, values);
  form.encoder == nullptr ? store(form, values, exact) : encode_as(form, values, exact);
  declare_lasting();
}

MadeWeight::MadeWeight(std::vector<float> values, std::size_t rows, std::size_t columns) {
  view_.rows = rows;
  view_.columns = columns;
  lay_out({});
  store({}, values, false);
  declare_lasting();
}

void MadeWeight::declare_lasting() {
  if (view_.codes != nullptr) lasting_codes_ = LastingMemory(codes());
  lasting_scales_ = LastingMemory(std::as_bytes(std::span(scales_)));
}

void MadeWeight::Free::operator()(void* memory) const {
  std::free(memory);
}

// Everything of a weight but its numbers.
void MadeWeight::lay_out(const WeightForm& form) {
  const ElementInfo& element = info(form.type);
  if (view_.columns % element.block_elements != 0)
    throw Error::usage(fmt::format("rows of {} do not fill blocks of {}", view_.columns, element.name))
        .remedy("choose a multiple of " + std::to_string(element.block_elements));
  view_.name = &name_;
  view_.type = form.type;
  view_.row_bytes = view_.columns / element.block_elements * element.block_bytes;
  codes_.reset(
      static_cast<std::byte*>(std::calloc(std::max<std::size_t>(1, view_.rows * view_.row_bytes), 1)));
  if (codes_ == nullptr) throw std::bad_alloc();
  view_.codes = codes_.get();
  if (!form.scaled) return;
  const std::size_t across =
      form.block_columns == 0 ? std::max<std::size_t>(1, view_.columns) : form.block_columns;
  view_.kind = FormKind::scaled;
  view_.block_rows = form.block_rows;
  view_.block_columns = across;
  view_.scale_columns = (view_.columns + across - 1) / across;
  scales_.assign((view_.rows + form.block_rows - 1) / form.block_rows * view_.scale_columns, 1.0F);
  view_.scales = reinterpret_cast<const std::byte*>(scales_.data());
}

// Decoded row by row, as what `run` finds in a checkpoint and no kernel multiplies from its bytes.
void MadeWeight::encode_as(const WeightForm& form, std::span<const float> values, bool exact) {
  if (exact)
    throw Error::usage("exact numbers are made for plain weights and for FP8 and INT8 in blocks alone")
        .remedy("leave out in=exact");
  encoded_ = std::make_unique<const EncodedWeight>(*form.encoder, values, view_.rows, view_.columns);
  const LogicalTensor& tensor = encoded_->tensor();
  view_.name = &tensor.name;
  view_.kind = tensor.form.kind;
  view_.type = tensor.form.codes;
  view_.block_rows = tensor.form.block_rows;
  view_.block_columns = tensor.form.block_columns;
  view_.reader = &encoded_->reader();
}

void MadeWeight::store(const WeightForm& form, std::vector<float>& values, bool exact) {
  if (form.scaled) {
    const BlockQuantizer quantizer = {.codes = form.type,
                                      .block_rows = form.block_rows,
                                      .block_columns = view_.block_columns,
                                      .limit = form.type == ElementType::I8 ? 127.0F : 448.0F};
    if (exact) {
      for (std::size_t i = 0; i < scales_.size(); ++i)
        scales_[i] = exact_scale(i / view_.scale_columns, i % view_.scale_columns);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] *=
            exact_scale(i / view_.columns / form.block_rows, i % view_.columns / view_.block_columns);
    } else {
      block_amax(values, view_.rows, view_.columns, form.block_rows, view_.block_columns, scales_);
      for (float& scale : scales_) scale = quantizer.scale_for(scale);
    }
    quantize_with_scales(quantizer, values, view_.rows, view_.columns, scales_, codes());
  } else if (info(form.type).in_safetensors) {
    encode(form.type, values, Overflow::saturate, codes_.get());
  } else if (gguf_quantize(form.type, values, codes_.get())) {
    throw Error::internal("a made weight that its form cannot hold");
  }
}

std::vector<float> MadeWeight::values() const {
  std::vector<float> values(view_.rows * view_.columns);
  decode_rows(view_, 0, view_.rows, values.data());
  return values;
}

}  // namespace assay
