#include "core/model/weight_bytes.h"

#include <algorithm>
#include <cmath>

#include "core/model/stage_parts.h"
#include "core/numeric/ceil_div.h"

namespace assay {
namespace {

using FormatKind = WeightFormat::Kind;

std::uint64_t elements_in(std::span<const std::uint64_t> shape) {
  std::uint64_t elements = 1;
  for (const std::uint64_t d : shape) elements *= d;
  return elements;
}

std::uint64_t bytes_on_end(const WeightFormat& f, std::uint64_t elements) {
  const std::uint64_t scales = ceil_div(elements, f.block_columns);
  const std::uint64_t of_scales = f.scales_a_scale == 0 ? 0 : ceil_div(scales, f.scales_a_scale) * 4;
  return ceil_div(elements * f.bits, 8) + scales * f.scale_bytes + of_scales + f.per_matrix_bytes;
}

// Matrices of a stack one by one; each [out, in] once input_major is undone.
std::uint64_t block_bytes(const WeightFormat& f, const TensorSpec& spec,
                          std::span<const std::uint64_t> shape) {
  std::uint64_t out = shape[shape.size() - 2], in = shape.back();
  if (spec.input_major) std::swap(out, in);
  const std::uint64_t matrices = elements_in(shape.first(shape.size() - 2));
  if (f.on_end) return matrices * bytes_on_end(f, out * in);
  const std::uint64_t rows = f.block_rows == 0 ? 1 : ceil_div(out, f.block_rows);
  const std::uint64_t columns = f.block_columns == 0 ? 1 : ceil_div(in, f.block_columns);
  const std::uint64_t codes = out * ceil_div(in * f.bits, 8 * f.word_bytes) * f.word_bytes;
  const std::uint64_t zeros = columns * ceil_div(rows * f.zero_bits, 8 * f.word_bytes) * f.word_bytes;
  const std::uint64_t scales = rows * columns * f.scale_bytes;
  return matrices * (codes + scales + zeros + in * f.input_bytes + f.per_matrix_bytes);
}

// What releases keep in F32 whatever the rest is in: the bias that corrects the choice of experts; where keys are values
// (DeepSeek V4) the matrices that mix streams, sinks, and compressors' tables of positions.
bool kept_in_f32(const ModuleTree& tree, const TensorSpec& spec) {
  if (spec.role == Role::router_correction) return true;
  const bool is_table = spec.role == Role::compressor && spec.name.ends_with(".ape");
  return (spec.role == Role::residual_mix || spec.role == Role::sinks || is_table) &&
         std::any_of(tree.attention.begin(), tree.attention.end(),
                     [](const AttentionGeometry& g) { return g.keys_are_values; });
}

// Whether the config spares the module. Of towers it has the names of modules, which may stand one level deeper than the
// checkpoint's ("model.visual", "visual").
bool is_left_out(const WeightFormat& format, const TensorSpec& spec, const std::string& name) {
  constexpr std::string_view kModel = "model.";
  if (format.only && spec.role != Role::output_head && !format.only->name(name)) return true;
  if (!format.ignored) return false;
  if (format.ignored->name(name)) return true;
  if (!spec.tower_linear) return false;
  return name.starts_with(kModel) ? format.ignored->name(name.substr(kModel.size()))
                                  : format.ignored->name(std::string(kModel) + name);
}

const WeightFormat* mixed_form(const WeightFormat& format, const std::string& name) {
  for (const MixedFormat& group : *format.mixed)
    if (group.modules.name(name)) return &group.format;
  return nullptr;
}

// Whether a format takes this matrix, as far as its kind tells.
bool is_taken(const WeightFormat& f, const TensorSpec& spec) {
  return spec.quantizable || (f.towers && spec.tower_linear) || (f.head && spec.role == Role::output_head);
}

// Whether a format that quantizes every module it can takes this matrix.
bool is_of_every_module(const WeightFormat& f, const TensorSpec& spec) {
  const std::size_t rank = spec.shape.size();
  const std::uint64_t in = spec.shape[spec.input_major ? rank - 2 : rank - 1];
  if (in % f.block_columns != 0) return false;
  switch (spec.role) {
    case Role::token_embedding:
    case Role::per_layer_embedding:
    case Role::output_head:
    case Role::shared_expert_gate: return true;
    case Role::router: return f.every_module == WeightFormat::EveryModule::with_routers;
    case Role::tower: return false;
    default: return spec.quantizable;
  }
}

// The form of the matrix, of all or of its own; nullptr: it is not quantized.
const WeightFormat* form_in(const WeightFormat& format, const TensorSpec& spec, std::uint64_t layer) {
  if (format.kind != FormatKind::blocks || spec.bias || spec.shape.size() < 2) return nullptr;
  const bool every = format.every_module != WeightFormat::EveryModule::no;
  const bool taken = every ? is_of_every_module(format, spec) : is_taken(format, spec);
  if (!taken && !format.mixed) return nullptr;
  if (!format.ignored && !format.mixed && !format.only) return &format;
  const std::string name = expand(spec.name, {layer, 0});
  if (is_left_out(format, spec, name)) return nullptr;
  if (format.mixed) {
    const WeightFormat* own = mixed_form(format, name);
    if (own != nullptr || !format.mixed_beside) return own;
  }
  return taken ? &format : nullptr;
}

bool is_stored(const TensorSpec& spec) {
  return spec.storage == Storage::own || spec.storage == Storage::duplicate;
}

}  // namespace

bool quantizes(const WeightFormat& format, const TensorSpec& spec, std::uint64_t layer) {
  return form_in(format, spec, layer) != nullptr;
}

WeightSizes::WeightSizes(const ModuleTree& tree, const WeightFormat& format) : tree_(tree), format_(format) {
  if (format.kind == FormatKind::gguf) gguf_.emplace(tree, format.file_type);
}

const WeightFormat* WeightSizes::form_of(const TensorSpec& spec, std::uint64_t layer) const {
  const WeightFormat* form = form_in(format_, spec, layer);
  const bool experts_alone = format_.routed_experts_only && tree_.experts > 0;
  return form == &format_ && experts_alone && spec.part != Part::routed_expert ? nullptr : form;
}

std::string WeightSizes::type_of(const TensorSpec& spec, std::uint64_t layer) const {
  if (gguf_) return gguf_->types_of(spec, layer);
  if (const WeightFormat* form = form_of(spec, layer)) return form->name;
  return kept_in_f32(tree_, spec) ? "F32" : format_.plain_type;
}

std::uint64_t WeightSizes::of_tensor(const TensorSpec& spec, std::span<const std::uint64_t> shape,
                                     std::uint64_t layer) const {
  if (gguf_) return gguf_->bytes(spec, layer, elements_in(shape));
  if (const WeightFormat* form = form_of(spec, layer)) return block_bytes(*form, spec, shape);
  const std::uint64_t element = kept_in_f32(tree_, spec) ? 4 : format_.plain_bytes;
  return elements_in(shape) * element;
}

std::uint64_t WeightSizes::of_spec(const TensorSpec& spec, const Occurrence& where) const {
  const std::vector<std::uint64_t> layers = layers_of(where);
  const std::uint64_t in_a_layer = where.copies / layers.size();
  // Only where the config exempts modules by name, or GGUF by layer, do layers differ.
  if (!format_.ignored && !format_.only && !format_.mixed && !gguf_)
    return where.copies * of_tensor(spec, spec.shape, layers.front());
  std::uint64_t sum = 0;
  for (const std::uint64_t layer : layers) sum += in_a_layer * of_tensor(spec, spec.shape, layer);
  return sum;
}

SpecBytes spec_bytes(const ModuleTree& tree, const WeightFormat& format) {
  SpecBytes bytes;
  const WeightSizes sizes(tree, format);
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (is_stored(spec)) bytes[&spec] = sizes.of_spec(spec, where);
  });
  return bytes;
}

WeightBytes weight_bytes(const ModuleTree& tree, const WeightFormat& format) {
  WeightBytes result;
  const WeightSizes sizes(tree, format);
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (!is_stored(spec)) return;
    const std::uint64_t bytes = sizes.of_spec(spec, where);
    (where.mtp ? result.mtp : where.tower ? result.towers : result.main) += bytes;
    if (!where.main()) return;
    const double share = static_cast<double>(active_elements(spec, where)) /
                         static_cast<double>(spec.elements.value() * where.copies);
    const bool lookup = spec.role == Role::position_embedding ||
                        (spec.role == Role::token_embedding && !tree.tied_embeddings);
    if (!lookup)
      result.active += static_cast<std::uint64_t>(std::llround(static_cast<double>(bytes) * share));
  });
  result.total = result.main + result.mtp + result.towers;
  return result;
}

}  // namespace assay
