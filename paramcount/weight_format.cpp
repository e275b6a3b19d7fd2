#include "paramcount/weight_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/numeric/ceil_div.h"
#include "core/system/text.h"

namespace assay {
namespace {

using Kind = WeightFormat::Kind;

WeightFormat plain(std::string name, std::string title, std::uint64_t bytes) {
  WeightFormat f;
  f.name = std::move(name);
  f.title = std::move(title);
  f.plain_bytes = bytes;
  f.bits = bytes * 8;
  return f;
}

// Scale types: F32 for FP8 and INT8 releases, BF16 for pack-quantized INT4, one byte for NVFP4 and MXFP4.
WeightFormat blocks(std::string name, std::string title, std::uint64_t bits, std::uint64_t rows,
                    std::uint64_t columns, std::uint64_t scale_bytes) {
  WeightFormat f = plain(std::move(name), std::move(title), 2);
  f.kind = Kind::blocks;
  f.bits = bits;
  f.block_rows = rows;
  f.block_columns = columns;
  f.scale_bytes = scale_bytes;
  return f;
}

WeightFormat grouped_int(std::uint64_t bits, std::uint64_t group) {
  const std::string b = std::to_string(bits), g = group == 0 ? "channel" : "g" + std::to_string(group);
  WeightFormat f =
      blocks("int" + b + "-" + g, "INT" + b + ", a scale each " + (group == 0 ? "row" : g.substr(1)), bits, 1,
             group, 2);
  f.word_bytes = 4;
  f.per_matrix_bytes = 16;  // weight_shape, I64[2]
  return f;
}

WeightFormat nvfp4() {
  WeightFormat f = blocks("nvfp4", "NVFP4: FP4, an FP8 scale each 16", 4, 1, 16, 1);
  f.per_matrix_bytes = 8;  // weight_scale_2 and input_scale, F32
  return f;
}

WeightFormat mxfp4() {
  WeightFormat f =
      blocks("mxfp4", "MXFP4: FP4, an E8M0 scale each 32; experts alone in MoE models", 4, 1, 32, 1);
  f.routed_experts_only = true;
  return f;
}

WeightFormat gguf(std::string name, std::string title, GgufFileType type) {
  WeightFormat f = plain(std::move(name), std::move(title), 4);
  f.kind = Kind::gguf;
  f.file_type = type;
  return f;
}

const std::vector<WeightFormat>& all_formats() {
  static const std::vector<WeightFormat> formats = {
      plain("bf16", "BF16", 2),
      blocks("fp8-block", "FP8 in 128x128 blocks", 8, 128, 128, 4),
      blocks("fp8-channel", "FP8, a scale each row", 8, 1, 0, 4),
      blocks("int8-channel", "INT8, a scale each row", 8, 1, 0, 4),
      grouped_int(4, 128),
      nvfp4(),
      mxfp4(),
      gguf("q8_0", "GGUF Q8_0", GgufFileType::Q8_0),
      gguf("q6_k", "GGUF Q6_K", GgufFileType::Q6_K),
      gguf("q5_k_m", "GGUF Q5_K_M", GgufFileType::Q5_K_M),
      gguf("q4_k_m", "GGUF Q4_K_M", GgufFileType::Q4_K_M),
  };
  return formats;
}

// "*" stands for anything; a plain entry names a module and all below it.
bool glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return p == pattern.size() && text[t] == '.';
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(p), pattern.end(),
                     [](char c) { return c == '*'; });
}

bool names_it(std::string_view entry, std::string_view tensor) {
  // Regular expressions are used for suffixes: "re:.*lm_head", "re:.*self_attn.*".
  if (entry.starts_with("re:")) {
    std::string pattern;
    for (const char c : entry.substr(3)) {
      if (c == '*' && !pattern.empty() && pattern.back() == '.') pattern.pop_back();
      if (c != '\\' && c != '$' && c != '^') pattern += c;
    }
    return glob(pattern, tensor);
  }
  return glob(entry, tensor) || (entry.find('.') == std::string_view::npos &&
                                 tensor.find("." + std::string(entry) + ".") != std::string_view::npos);
}

std::uint64_t product(std::span<const std::uint64_t> shape) {
  std::uint64_t elements = 1;
  for (const std::uint64_t d : shape) elements *= d;
  return elements;
}

// Matrices of a stack one by one; each [out, in] once input_major is undone.
std::uint64_t block_bytes(const WeightFormat& f, const TensorSpec& spec,
                          std::span<const std::uint64_t> shape) {
  std::uint64_t out = shape[shape.size() - 2], in = shape.back();
  if (spec.input_major) std::swap(out, in);
  const std::uint64_t matrices = product(shape.first(shape.size() - 2));
  const std::uint64_t rows = f.block_rows == 0 ? 1 : ceil_div(out, f.block_rows);
  const std::uint64_t columns = f.block_columns == 0 ? 1 : ceil_div(in, f.block_columns);
  const std::uint64_t codes = out * ceil_div(in * f.bits, 8 * f.word_bytes) * f.word_bytes;
  return matrices * (codes + rows * columns * f.scale_bytes + f.per_matrix_bytes);
}

}  // namespace

std::span<const WeightFormat> weight_formats() {
  return all_formats();
}

std::optional<WeightFormat> weight_format(std::string_view name) {
  for (const WeightFormat& format : all_formats()) {
    if (format.name == name) return format;
  }
  if (name == "f32") return plain("f32", "F32", 4);
  if (name == "f16") return plain("f16", "F16", 2);
  return std::nullopt;
}

namespace {

WeightFormat unquantized(const ModelConfig& config) {
  if (config.dtype() == "float32") return plain("f32", "F32", 4);
  if (config.dtype() == "float16") return plain("f16", "F16", 2);
  return plain("bf16", "BF16", 2);
}

// bitsandbytes: a scale each 64 codes in F32, or one byte where these are quantized in turn.
WeightFormat bitsandbytes_4bit(bool nested_scales) {
  return blocks("bnb-4bit", "bitsandbytes 4-bit, a scale each 64", 4, 1, 64, nested_scales ? 1 : 4);
}

// FP8 without blocks: compressed-tensors says whether a scale serves a row or a matrix; FBGEMM's serve rows,
// those of other releases a matrix.
WeightFormat fp8_without_blocks(const QuantizationConfig& q, const std::string& strategy) {
  if (strategy == "channel" || q.method == "fbgemm_fp8") return *weight_format("fp8-channel");
  return blocks("fp8-tensor", "FP8, a scale each matrix", 8, 0, 0, 4);
}

// What `q` stores; nullopt where it says nothing that is known.
std::optional<WeightFormat> quantized(const QuantizationConfig& q) {
  const QuantizationConfig::Group group = q.groups.empty() ? QuantizationConfig::Group{} : q.groups.front();
  const auto rows = q.block_rows ? q.block_rows : group.block_rows;
  const auto columns = q.block_columns ? q.block_columns : group.block_columns;
  const std::uint64_t bits = q.bits.value_or(group.bits.value_or(0));
  const std::uint64_t size = q.group_size.value_or(group.group_size.value_or(0));
  const std::string all = q.method + " " + q.format + " " + group.format + " " + group.type;
  const auto says = [&](std::string_view word) { return all.find(word) != std::string::npos; };
  if (says("mxfp4")) return mxfp4();
  if (says("nvfp4") || says("NVFP4")) return nvfp4();
  if (rows && columns) {
    const std::string title = std::to_string(*rows) + "x" + std::to_string(*columns) + " blocks";
    return says("int8") ? blocks("int8-block", "INT8 in " + title, 8, *rows, *columns, 4)
                        : blocks("fp8-block", "FP8 in " + title, 8, *rows, *columns, 4);
  }
  if (says("bitsandbytes") && bits == 4) return bitsandbytes_4bit(q.nested_scales.value_or(false));
  if (says("gptq") || says("awq") || says("pack-quantized") || (bits > 0 && bits < 8 && size > 0))
    return grouped_int(bits == 0 || bits > 8 ? 4 : bits, size);
  if (says("fp8") || says("FP8") || says("float")) return fp8_without_blocks(q, group.strategy);
  if (bits == 8) return weight_format("int8-channel");
  return std::nullopt;
}

}  // namespace

WeightFormat configured_format(const ModelConfig& config) {
  const WeightFormat otherwise = unquantized(config);
  const auto& q = config.quantization();
  if (!q) return otherwise;
  auto format = quantized(*q);
  if (!format) {
    format = otherwise;
    format->title +=
        fmt::format("; what quantization method \"{}\" stores is not known", escape_for_terminal(q->method));
  }
  format->plain_bytes = otherwise.plain_bytes;
  format->ignored = q->ignored;
  return *format;
}

void set_block(WeightFormat& format, std::uint64_t rows, std::uint64_t columns) {
  if (format.kind != Kind::blocks || format.block_columns == 0 || format.block_rows <= 1) return;
  format.block_rows = rows;
  format.block_columns = columns;
  format.title = (format.name == "int8-block" ? "INT8 in " : "FP8 in ") + std::to_string(rows) + "x" +
                 std::to_string(columns) + " blocks";
}

bool quantizes(const WeightFormat& format, const TensorSpec& spec, std::uint64_t layer) {
  if (format.kind != Kind::blocks || !spec.quantizable || spec.bias || spec.shape.size() < 2) return false;
  if (format.ignored.empty()) return true;
  const std::string name = expand(spec.name, {layer, 0});
  return std::none_of(format.ignored.begin(), format.ignored.end(),
                      [&](const std::string& entry) { return names_it(entry, name); });
}

WeightSizes::WeightSizes(const ModuleTree& tree, const WeightFormat& format) : tree_(tree), format_(format) {
  if (format.kind == Kind::gguf) gguf_.emplace(tree, format.file_type);
}

std::uint64_t WeightSizes::of_tensor(const TensorSpec& spec, std::span<const std::uint64_t> shape,
                                     std::uint64_t layer) const {
  if (gguf_) return gguf_->bytes(spec, layer, product(shape));
  const bool experts_alone = format_.routed_experts_only && tree_.experts > 0;
  if (quantizes(format_, spec, layer) && (!experts_alone || spec.part == Part::routed_expert))
    return block_bytes(format_, spec, shape);
  // The bias that corrects the choice of experts is F32 in every release.
  const std::uint64_t element = spec.role == Role::router_correction ? 4 : format_.plain_bytes;
  return product(shape) * element;
}

std::vector<std::uint64_t> layers_of(const Occurrence& where) {
  for (const Module* module : where.path) {
    if (module->repeat.over == Repeat::Over::layers) return module->repeat.indices;
  }
  return {0};
}

std::uint64_t WeightSizes::of_spec(const TensorSpec& spec, const Occurrence& where) const {
  const std::vector<std::uint64_t> layers = layers_of(where);
  const std::uint64_t in_a_layer = where.copies / layers.size();
  // Only where the config exempts modules by name, or GGUF by layer, do layers differ.
  if (format_.ignored.empty() && !gguf_) return where.copies * of_tensor(spec, spec.shape, layers.front());
  std::uint64_t sum = 0;
  for (const std::uint64_t layer : layers) sum += in_a_layer * of_tensor(spec, spec.shape, layer);
  return sum;
}

WeightBytes weight_bytes(const ModuleTree& tree, const WeightFormat& format) {
  WeightBytes result;
  const WeightSizes sizes(tree, format);
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (spec.storage == Storage::buffer || spec.storage == Storage::tied) return;
    const std::uint64_t bytes = sizes.of_spec(spec, where);
    (where.mtp ? result.mtp : result.main) += bytes;
    if (where.mtp) return;
    const double share = static_cast<double>(active_elements(spec, where)) /
                         static_cast<double>(spec.elements.value() * where.copies);
    const bool lookup = spec.role == Role::position_embedding ||
                        (spec.role == Role::token_embedding && !tree.tied_embeddings);
    if (!lookup) result.active += static_cast<std::uint64_t>(static_cast<double>(bytes) * share + 0.5);
  });
  result.total = result.main + result.mtp;
  return result;
}

}  // namespace assay
