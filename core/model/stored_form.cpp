#include "core/model/stored_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "core/formats/json.h"
#include "core/model/stored_checks.h"
#include "core/model/stored_names.h"
#include "core/numeric/codec.h"
#include "core/system/error.h"

namespace assay {
namespace {

using Shape = std::vector<std::uint64_t>;

// A weight with whatever stands beside it under its name.
struct Part {
  std::string_view suffix;
  std::uint32_t place;
  StoredPart part;
};
struct Group {
  std::optional<std::uint32_t> plain;  // the tensor that bears the weight's own name
  std::vector<Part> parts;

  const Part* find(std::string_view suffix) const {
    const auto at =
        std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.suffix == suffix; });
    return at == parts.end() ? nullptr : &*at;
  }
};

bool is_one_byte_float(ElementType type) {
  switch (type) {
    case ElementType::F8_E4M3:
    case ElementType::F8_E5M2:
    case ElementType::F8_E4M3FNUZ:
    case ElementType::F8_E5M2FNUZ: return true;
    default: return false;
  }
}

// These endings are names of ordinary parameters too.
bool needs_a_weight_to_be_believed(std::string_view suffix) {
  return suffix == "scale" || suffix == "scales" || suffix == "biases" || suffix == "g_idx";
}

// Scales and zero points of activations: nothing of the weight is in them.
bool concerns_activations(std::string_view suffix) {
  return suffix.starts_with("input_") || suffix.starts_with("activation_") ||
         suffix.ends_with("_input_scale");
}

struct Sizes {
  std::uint64_t slices = 1, rows = 1, columns = 1;
};
Sizes as_matrices(const Shape& shape) {
  Sizes sizes;
  if (!shape.empty()) sizes.columns = shape.back();
  if (shape.size() >= 2) sizes.rows = shape[shape.size() - 2];
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) sizes.slices *= shape[i];
  return sizes;
}

struct Block {
  std::uint64_t rows, columns;
};

class Finder {
 public:
  Finder(const Checkpoint& checkpoint, const std::optional<QuantizationConfig>& quantization)
      : checkpoint_(checkpoint), quantization_(quantization) {}

  StoredTensors run() {
    check_method();
    collect();
    for (const std::string& weight : order_) resolve(weight, groups_[weight]);
    std::sort(result_.tensors.begin(), result_.tensors.end(),
              [](const LogicalTensor& a, const LogicalTensor& b) { return a.codes < b.codes; });
    for (const LogicalTensor& tensor : result_.tensors) result_.any_quantized |= tensor.quantized();
    return std::move(result_);
  }

 private:
  const CheckpointTensor& stored(std::uint32_t place) const { return checkpoint_.tensors[place]; }

  void fault(std::string code, const std::string& tensor, std::string message, std::string remedy = {}) {
    result_.findings.push_back({.severity = Severity::error,
                                .code = std::move(code),
                                .message = std::move(message),
                                .file = {},
                                .tensor = tensor,
                                .offset = {},
                                .remedy = std::move(remedy)});
  }

  void check_method() {
    static constexpr std::array<std::string_view, 7> kKnown = {
        "", "fp8", "blockwise_int8", "w8a8_int8", "compressed-tensors", "mxfp4", "modelopt"};
    if (!quantization_) return;
    if (std::find(kKnown.begin(), kKnown.end(), quantization_->method) != kKnown.end()) return;
    fault("stored.method_unknown", "",
          fmt::format("quantization_config.quant_method is \"{}\", whose stored form is not known here",
                      quantization_->method));
  }

  Group& group_of(const std::string& weight) {
    const auto [at, is_new] = groups_.try_emplace(weight);
    if (is_new) order_.push_back(weight);
    return at->second;
  }

  void collect() {
    groups_.reserve(checkpoint_.tensors.size());
    for (std::uint32_t i = 0; i < checkpoint_.tensors.size(); ++i) {
      const std::string& name = stored(i).name;
      const auto parsed = parse_stored_name(name);
      const bool believed = parsed && !parsed->weight.empty() &&
                            (!needs_a_weight_to_be_believed(parsed->suffix) || has_codes(parsed->weight));
      if (believed)
        group_of(parsed->weight).parts.push_back({parsed->suffix, i, parsed->part});
      else
        group_of(name).plain = i;
    }
  }

  bool has_codes(const std::string& weight) const {
    if (checkpoint_.find(weight) != nullptr) return true;
    if (!weight.ends_with(".weight")) return false;
    return checkpoint_.find(weight.substr(0, weight.size() - 6) + "qweight") != nullptr;
  }

  void resolve(const std::string& weight, const Group& group) {
    const Part* codes = nullptr;
    for (const Part& part : group.parts) {
      if (part.part == StoredPart::codes) codes = &part;
    }
    if (!group.plain && codes == nullptr) {
      const bool only_activations = std::all_of(group.parts.begin(), group.parts.end(),
                                                [](const Part& p) { return concerns_activations(p.suffix); });
      if (only_activations) {
        for (const Part& part : group.parts) keep_plain(stored(part.place).name, part.place);
      } else {
        fault("stored.scale_without_weight", stored(group.parts.front().place).name,
              fmt::format("it belongs to {}, which is not here", weight),
              "complete the checkpoint, or leave the tensor out");
      }
      return;
    }
    LogicalTensor tensor;
    tensor.name = weight;
    tensor.codes = group.plain ? *group.plain : codes->place;
    for (const Part& part : group.parts) {
      if (concerns_activations(part.suffix)) tensor.companions.push_back(part.place);
    }
    if (group.plain && codes == nullptr)
      resolve_weight(tensor, group);
    else if (!group.plain && codes->suffix == "weight_packed")
      resolve_packed(tensor, group);
    else if (!group.plain && codes->suffix == "proj_blocks")
      resolve_gpt_oss(tensor, group);
    else
      unknown_form(tensor);
  }

  void unknown_form(const LogicalTensor& tensor) {
    const CheckpointTensor& codes = stored(tensor.codes);
    fault("stored.form_unknown", codes.name,
          fmt::format("{} {}, with what stands beside it, is no stored form known here", name(codes.type),
                      shape_text(codes.shape)));
  }

  void keep_plain(const std::string& name, std::uint32_t place) {
    LogicalTensor tensor;
    tensor.name = name;
    tensor.codes = place;
    finish_plain(tensor);
  }

  void finish_plain(LogicalTensor& tensor) {
    const CheckpointTensor& codes = stored(tensor.codes);
    tensor.form = {.kind = FormKind::plain, .codes = codes.type};
    finish(tensor, codes.shape);
  }

  void finish(LogicalTensor& tensor, const Shape& shape) {
    tensor.shape = shape;
    const Sizes sizes = as_matrices(shape);
    tensor.slices = sizes.slices;
    tensor.rows = sizes.rows;
    tensor.columns = sizes.columns;
    result_.tensors.push_back(std::move(tensor));
  }

  // The tensor has the weight's own name: plain, scaled, or two FP4 codes a byte beside a scale (ModelOpt,
  // V4).
  void resolve_weight(LogicalTensor& tensor, const Group& group) {
    const CheckpointTensor& codes = stored(tensor.codes);
    const Part* scale = nullptr;
    for (const std::string_view suffix : {"weight_scale_inv", "weight_scale", "scale", "proj_weight_scale"}) {
      if (scale == nullptr) scale = group.find(suffix);
    }
    const std::size_t known = tensor.companions.size() + (scale != nullptr ? 1 : 0) +
                              (group.find("weight_scale_2") != nullptr ? 1 : 0);
    if (known != group.parts.size()) return unknown_form(tensor);  // MLX, bitsandbytes, zero points

    if (scale == nullptr) {
      if (is_one_byte_float(codes.type)) {
        fault("stored.scale_missing", codes.name, fmt::format("{} codes without a scale", name(codes.type)),
              "complete the checkpoint: without scales these are not the weights");
      } else if (needs_scale(codes.type) && codes.shape.size() >= 2 && codes.name.ends_with(".weight")) {
        fault(
            "stored.scale_missing", codes.name,
            fmt::format("{} {} called a weight, without a scale", name(codes.type), shape_text(codes.shape)));
      } else {
        finish_plain(tensor);
      }
      return;
    }
    tensor.scale = scale->place;
    if (const Part* global = group.find("weight_scale_2")) {
      tensor.global_scale = global->place;
      tensor.form.global = GlobalScale::multiply;
    }
    if (is_one_byte_float(codes.type) || (codes.type == ElementType::I8 && !packs_two(codes, *scale)))
      return resolve_scaled(tensor, codes.shape);
    if (codes.type == ElementType::U8 || codes.type == ElementType::I8 || codes.type == ElementType::F4)
      return resolve_fp4(tensor);
    fault("stored.scale_without_codes", stored(scale->place).name,
          fmt::format("a scale for {}, which is {} and needs none", codes.name, name(codes.type)));
  }

  // DeepSeek-V4 keeps two E2M1 codes in an I8, a power of two for every 32: told from INT8 by the scale.
  bool packs_two(const CheckpointTensor& codes, const Part& scale) const {
    const CheckpointTensor& s = stored(scale.place);
    return s.type == ElementType::F8_E8M0 && !codes.shape.empty() && s.shape.size() == codes.shape.size() &&
           s.shape.back() == LogicalTensor::ceil_div(codes.shape.back(), 16);
  }

  void resolve_scaled(LogicalTensor& tensor, const Shape& shape) {
    const CheckpointTensor& codes = stored(tensor.codes);
    const CheckpointTensor& scale = stored(*tensor.scale);
    if (tensor.global_scale) return unknown_form(tensor);
    tensor.form.kind = FormKind::scaled;
    tensor.form.codes = codes.type;
    if (!take_scale_type(tensor, scale)) return;
    const auto block = find_block(as_matrices(shape), scale.shape, scale.type);
    if (!block) return bad_grid(tensor, shape, scale);
    tensor.form.block_rows = block->rows;
    tensor.form.block_columns = block->columns;
    finish(tensor, shape);
  }

  bool take_scale_type(LogicalTensor& tensor, const CheckpointTensor& scale) {
    tensor.form.scales = scale.type == ElementType::U8 ? ElementType::F8_E8M0 : scale.type;
    switch (tensor.form.scales) {
      case ElementType::F32:
      case ElementType::BF16:
      case ElementType::F16:
      case ElementType::F8_E8M0: return true;
      case ElementType::F8_E4M3: return tensor.form.kind == FormKind::fp4;
      default: break;
    }
    fault("stored.scale_type", scale.name, fmt::format("a scale cannot be {}", name(scale.type)));
    return false;
  }

  void bad_grid(const LogicalTensor& tensor, const Shape& shape, const CheckpointTensor& scale) {
    const auto block = configured_block();
    const Sizes m = as_matrices(shape);
    std::string wanted;
    if (block) {
      wanted = fmt::format("; {}x{} blocks of {} want [{}, {}]", block->rows, block->columns,
                           shape_text(shape), LogicalTensor::ceil_div(m.rows, block->rows),
                           LogicalTensor::ceil_div(m.columns, block->columns));
    }
    fault("stored.scale_shape", scale.name,
          fmt::format("{} is no grid of scales over {} {}{}", shape_text(scale.shape), tensor.name,
                      shape_text(shape), wanted));
  }

  std::optional<Block> configured_block() const {
    if (!quantization_) return std::nullopt;
    if (quantization_->block_rows && quantization_->block_columns)
      return Block{*quantization_->block_rows, *quantization_->block_columns};
    for (const auto& group : quantization_->groups) {
      if (group.block_rows && group.block_columns) return Block{*group.block_rows, *group.block_columns};
    }
    return std::nullopt;
  }

  // The configured block first, since a small matrix of one block would also pass for "one scale a tensor".
  std::optional<Block> find_block(const Sizes& m, const Shape& grid, ElementType scale_type) const {
    const auto is_grid_of = [&](const Block& block) {
      const Sizes g = as_matrices(grid);
      return grid.size() >= 2 && g.slices == m.slices &&
             g.rows == LogicalTensor::ceil_div(m.rows, block.rows) &&
             g.columns == LogicalTensor::ceil_div(m.columns, block.columns);
    };
    if (m.rows == 0 || m.columns == 0) return std::nullopt;
    const bool powers_of_two = scale_type == ElementType::U8 || scale_type == ElementType::F8_E8M0;
    if (powers_of_two && is_grid_of({1, 32})) return Block{1, 32};  // MXFP8
    if (const auto block = configured_block(); block && is_grid_of(*block)) return block;
    if (element_count(grid) == m.slices) return Block{m.rows, m.columns};
    if (is_grid_of({1, m.columns}) || (m.slices == 1 && grid == Shape{m.rows})) return Block{1, m.columns};
    for (const std::uint64_t side : {128, 64, 32, 256, 16}) {
      if (is_grid_of({side, side})) return Block{side, side};
    }
    return std::nullopt;
  }

  // compressed-tensors: weight_packed U8 is FP4 with a scale every 16 (NVFP4) or 32 (MXFP4) elements.
  void resolve_packed(LogicalTensor& tensor, const Group& group) {
    const Part* scale = group.find("weight_scale");
    if (scale == nullptr || stored(tensor.codes).type != ElementType::U8) return unknown_form(tensor);
    tensor.scale = scale->place;
    if (const Part* global = group.find("weight_global_scale")) {
      tensor.global_scale = global->place;
      tensor.form.global = GlobalScale::divide;
    }
    const std::size_t known = 2 + tensor.companions.size() + (tensor.global_scale ? 1 : 0);
    if (known != group.parts.size()) return unknown_form(tensor);
    resolve_fp4(tensor);
  }

  void resolve_fp4(LogicalTensor& tensor) {
    const CheckpointTensor& codes = stored(tensor.codes);
    const CheckpointTensor& scale = stored(*tensor.scale);
    tensor.form.kind = FormKind::fp4;
    tensor.form.codes = ElementType::F4;
    if (!take_scale_type(tensor, scale)) return;
    Shape shape = codes.shape;
    if (shape.size() < 2) return unknown_form(tensor);
    if (codes.type != ElementType::F4 && __builtin_mul_overflow(shape.back(), 2, &shape.back()))
      return unknown_form(tensor);
    const std::uint64_t group = tensor.form.scales == ElementType::F8_E8M0 ? 32 : 16;
    Shape grid = shape;
    grid.back() = LogicalTensor::ceil_div(shape.back(), group);
    if (scale.shape != grid) return bad_grid(tensor, shape, scale);
    if (tensor.global_scale && (element_count(stored(*tensor.global_scale).shape) != 1 ||
                                stored(*tensor.global_scale).type != ElementType::F32))
      return unknown_form(tensor);
    tensor.form.block_columns = group;
    finish(tensor, shape);
  }

  // gpt-oss: blocks [E, R, C/32, 16], scales [E, R, C/32].
  void resolve_gpt_oss(LogicalTensor& tensor, const Group& group) {
    const Part* scale = group.find("proj_scales");
    const CheckpointTensor& codes = stored(tensor.codes);
    if (scale == nullptr || group.parts.size() != 2 || codes.type != ElementType::U8 ||
        codes.shape.size() < 3 || codes.shape.back() != 16)
      return unknown_form(tensor);
    tensor.scale = scale->place;
    tensor.form = {.kind = FormKind::fp4, .codes = ElementType::F4};
    tensor.form.block_columns = 32;
    if (!take_scale_type(tensor, stored(*tensor.scale))) return;
    Shape shape(codes.shape.begin(), codes.shape.end() - 1);
    if (stored(*tensor.scale).shape != shape || tensor.form.scales != ElementType::F8_E8M0)
      return bad_grid(tensor, shape, stored(*tensor.scale));
    if (__builtin_mul_overflow(shape.back(), 32, &shape.back())) return unknown_form(tensor);
    finish(tensor, shape);
  }

  const Checkpoint& checkpoint_;
  const std::optional<QuantizationConfig>& quantization_;
  std::unordered_map<std::string, Group> groups_;
  std::vector<std::string> order_;
  StoredTensors result_;
};

}  // namespace

std::string form_name(const LogicalTensor& tensor) {
  const StoredForm& form = tensor.form;
  if (form.kind == FormKind::plain) return std::string(name(form.codes));
  if (form.kind == FormKind::fp4) return form.scales == ElementType::F8_E8M0 ? "MXFP4" : "NVFP4";
  if (form.block_rows == 1 && form.block_columns == 32 && form.scales == ElementType::F8_E8M0) return "MXFP8";
  if (form.block_rows == tensor.rows && form.block_columns == tensor.columns)
    return fmt::format("{} tensor", name(form.codes));
  if (form.block_rows == 1 && form.block_columns == tensor.columns)
    return fmt::format("{} channel", name(form.codes));
  return fmt::format("{} {}x{}", name(form.codes), form.block_rows, form.block_columns);
}

StoredTensors find_stored(const Checkpoint& checkpoint,
                          const std::optional<QuantizationConfig>& quantization) {
  return Finder(checkpoint, quantization).run();
}

std::optional<QuantizationConfig> read_quantization(const fs::path& config_json) {
  if (config_json.empty()) return std::nullopt;
  const ParsedJson document = read_json(config_json);
  if (!document.is_object()) throw Error::input("is not a JSON object").in(config_json);
  for (const std::string_view key : {"quantization_config", "compression_config"}) {
    const auto found = document.find(key);
    if (found != document.end() && found->is_object()) return parse_quantization(*found, config_json);
  }
  return std::nullopt;
}

float largest_code_value(ElementType type) {
  if (type == ElementType::I8) return 127.0F;
  const FloatFormat* format = float_format(type);
  if (format == nullptr) throw Error::internal("no codes of this type are known");
  return decode(*format, format->max_code());
}

}  // namespace assay
