#include "core/model/stored_form.h"

#include <fmt/format.h>

#include "core/model/composed_tensor.h"
#include "core/numeric/codec.h"
#include "core/system/error.h"

namespace assay {
namespace {

std::string packed_name(const LogicalTensor& tensor) {
  const PackedForm& packed = tensor.form.packed;
  const std::string_view told = details_of(tensor).maker;
  const std::string maker = !told.empty()                                ? std::string(told) + " "
                            : packed.paired_rows                         ? "ModelOpt "
                            : packed.codes.fill == IntPacking::Fill::awq ? "AWQ "
                            : packed.codes_across                        ? "GPTQ "
                            : packed.zero == ZeroPoint::bias             ? "MLX "
                                                                         : "";
  if (tensor.form.block_columns == tensor.columns)
    return fmt::format("{}INT{} channel", maker, packed.codes.bits);
  return fmt::format("{}INT{} group {}", maker, packed.codes.bits, tensor.form.block_columns);
}

}  // namespace

std::vector<std::uint32_t> LogicalTensor::places() const {
  std::vector<std::uint32_t> all = {codes};
  for (const auto& place :
       {scale, global_scale, zeros, group_index, table, nested_table, nested_scale, input_factors}) {
    if (place) all.push_back(*place);
  }
  all.insert(all.end(), auxiliary.begin(), auxiliary.end());
  return all;
}

std::string form_name(const LogicalTensor& tensor) {
  const StoredForm& form = tensor.form;
  if (const std::string_view title = details_of(tensor).title; !title.empty()) return std::string(title);
  switch (form.kind) {
    case FormKind::plain: return std::string(name(form.codes));
    case FormKind::fp4: return form.scales == ElementType::F8_E8M0 ? "MXFP4" : "NVFP4";
    case FormKind::packed: return packed_name(tensor);
    case FormKind::codebook: return fmt::format("bitsandbytes 4-bit, {} a scale", form.codebook.block);
    case FormKind::scaled: break;
  }
  if (form.block_rows == 1 && form.block_columns == 32 && form.scales == ElementType::F8_E8M0) return "MXFP8";
  if (const auto& parts = details_of(tensor).parts; !parts.empty())
    return fmt::format("{} tensor, {} fused", name(form.codes), parts.size());
  if (form.block_rows == tensor.rows && form.block_columns == tensor.columns)
    return fmt::format("{} tensor", name(form.codes));
  if (form.block_rows == 1 && form.block_columns == tensor.columns)
    return fmt::format("{} channel", name(form.codes));
  return fmt::format("{} {}x{}", name(form.codes), form.block_rows, form.block_columns);
}

const FormDetails& details_of(const LogicalTensor& tensor) {
  static const FormDetails kNone;
  return tensor.composed == nullptr ? kNone : tensor.composed->details;
}

void set_details(LogicalTensor& tensor, FormDetails details) {
  tensor.composed = std::make_shared<const ComposedTensor>(ComposedTensor{{}, nullptr, std::move(details)});
}

float largest_code_value(ElementType type) {
  if (type == ElementType::I8) return 127.0F;
  const FloatFormat* format = float_format(type);
  if (format == nullptr) throw Error::internal(fmt::format("{} is no type of codes", name(type)));
  return decode(*format, format->max_code());
}

}  // namespace assay
