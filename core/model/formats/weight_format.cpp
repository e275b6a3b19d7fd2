#include "core/model/weight_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/formats/json.h"
#include "core/model/config.h"
#include "core/model/formats/format.h"
#include "core/model/nested_config.h"
#include "core/model/quantized_layers.h"
#include "core/system/text.h"

namespace assay {
namespace {

// dtype in torch's words, with or without "torch."; BF16 where nothing is said.
WeightFormat unquantized(const ModelConfig& config) {
  struct Dtype {
    std::string_view said;
    const char *name, *title;
    std::uint64_t bytes;
  };
  constexpr Dtype kDtypes[] = {
      {"bfloat16", "bf16", "BF16", 2},
      {"float16", "f16", "F16", 2},
      {"half", "f16", "F16", 2},
      {"float32", "f32", "F32", 4},
      {"float", "f32", "F32", 4},
      {"float64", "f64", "F64", 8},
      {"double", "f64", "F64", 8},
      {"float8_e4m3fn", "f8_e4m3", "F8_E4M3", 1},
      {"float8_e5m2", "f8_e5m2", "F8_E5M2", 1},
  };
  constexpr std::string_view kTorch = "torch.";
  std::string_view said = config.dtype();
  if (said.starts_with(kTorch)) said.remove_prefix(kTorch.size());
  WeightFormat format = *weight_format("bf16");
  if (said.empty() || said == "auto") return format;
  for (const Dtype& dtype : kDtypes) {
    if (dtype.said == said) return WeightFormat::plain(dtype.name, dtype.title, dtype.bytes);
  }
  format.title += fmt::format("; what the dtype \"{}\" is, is not known", escape_for_terminal(said));
  return format;
}

// What the config stores; nullopt where it says nothing that is known.
std::optional<WeightFormat> quantized(const QuantizationConfig& config) {
  const auto formats = stored_formats();
  for (auto format = formats.rbegin(); format != formats.rend(); ++format) {
    if ((*format)->configured == nullptr) continue;
    if (auto found = (*format)->configured(config)) return found;
  }
  return std::nullopt;
}

// Of ModelOpt's groups one may have some ten thousand.
QuantizationConfig::Group without_targets(const QuantizationConfig::Group& of) {
  QuantizationConfig::Group group = {
      .name = of.name, .type = of.type, .strategy = of.strategy, .format = of.format};
  group.bits = of.bits, group.group_size = of.group_size;
  group.block_rows = of.block_rows, group.block_columns = of.block_columns;
  group.symmetric = of.symmetric, group.group_index = of.group_index;
  return group;
}

bool of_a_class(const QuantizationConfig::Group& group) {
  return std::find(group.targets.begin(), group.targets.end(), "Linear") != group.targets.end();
}

// Groups that name their modules, and beside them at most one of a class, "Linear", which stands for all others.
struct GroupedFormats {
  std::vector<MixedFormat> named;
  std::optional<WeightFormat> others;
};
GroupedFormats grouped_formats(const QuantizationConfig& config) {
  const auto& groups = config.layers.empty() ? config.groups : config.layers;
  GroupedFormats found;
  for (const QuantizationConfig::Group& group : groups) {
    QuantizationConfig alone;
    alone.method = config.method;
    alone.format = group.format.empty() && groups.size() == 1 ? config.format : group.format;
    alone.group_size = group.group_size;
    alone.groups = {without_targets(group)};
    const auto format = quantized(alone);
    const bool second_of_class = of_a_class(group) && found.others;
    const bool of_none = group.targets.empty() && group.modules.empty();
    if (of_none || second_of_class || !format) return {};
    if (of_a_class(group))
      found.others = *format;
    else
      found.named.push_back({ModulePatterns(group.targets, group.modules), *format});
  }
  // The most used first: it is the one that speaks for all.
  std::stable_sort(found.named.begin(), found.named.end(), [](const MixedFormat& a, const MixedFormat& b) {
    return a.modules.size() > b.modules.size();
  });
  if (mixed_over_blocks(config)) {
    QuantizationConfig blocks = config;
    blocks.layers.clear();
    found.others = quantized(blocks);
  }
  return found;
}

WeightFormat joined(GroupedFormats groups) {
  WeightFormat format = groups.others ? *groups.others : groups.named.front().format;
  format.mixed_beside = groups.others.has_value();
  const std::size_t told = format.mixed_beside ? 0 : 1;
  for (std::size_t i = told; i < groups.named.size(); ++i)
    format.title += "; " + groups.named[i].format.title;
  if (groups.named.size() > told) format.title.insert(0, "mixed: ");
  format.mixed = std::make_shared<const std::vector<MixedFormat>>(std::move(groups.named));
  return format;
}

// Said in text_config alone (Kimi K2.5), it is said of the language model.
bool is_of_language_model(const ModelConfig& config) {
  const auto is_said = [&](std::string_view key) {
    const auto found = config.document().find(key);
    return found != config.document().end() && found->is_object();
  };
  return !config.nested_in().empty() &&
         std::none_of(std::begin(kQuantizationKeys), std::end(kQuantizationKeys), is_said);
}

// Which modules the config means, beside those that are quantized as a rule.
void set_scope(WeightFormat& format, const QuantizationConfig& config, bool of_language_model) {
  // Both replace Linear wherever it is: the lists of what they spared are complete.
  const bool every_linear = config.method == "bitsandbytes" || config.method == "compressed-tensors";
  const bool by_class =
      config.groups.empty() || std::any_of(config.groups.begin(), config.groups.end(), of_a_class);
  format.towers = every_linear && by_class && !of_language_model;
  format.head = config.head || (config.method == "compressed-tensors" && by_class);
  if (config.only.empty()) return;
  std::vector<std::string> in_blocks;
  for (const std::string& module : config.only) in_blocks.push_back("*." + module);
  format.only = std::make_shared<const ModulePatterns>(in_blocks);
}

// What MLX calls a module, and the names that published checkpoints have for it.
std::vector<std::string> spellings(std::string name) {
  constexpr std::string_view kStacked = ".switch_mlp.", kBody = "language_model.model.",
                             kHead = "language_model.lm_head";
  if (const auto at = name.find(kStacked); at != std::string::npos)
    name.replace(at, kStacked.size(), ".experts.*.");
  std::vector<std::string> all = {name};
  if (name.starts_with(kBody)) {
    all.push_back("model." + name.substr(kBody.size()));
    all.push_back("model.language_model." + name.substr(kBody.size()));
  }
  if (name == kHead) all.emplace_back("lm_head");
  return all;
}

// Modules with bits and a group of their own, beside one form for all others; 16 bits are none.
void set_apart(WeightFormat& format, const QuantizationConfig& config, std::vector<std::string>& ignored) {
  using Size = std::pair<std::uint64_t, std::uint64_t>;
  std::map<Size, std::vector<std::string>> by_size;
  for (const QuantizationConfig::Group& module : config.modules) {
    if (!module.bits) continue;
    auto& names = *module.bits >= 16 ? ignored : by_size[{*module.bits, module.group_size.value_or(0)}];
    for (std::string& name : spellings(module.name)) names.push_back(std::move(name));
  }
  std::vector<MixedFormat> apart;
  for (const auto& [size, names] : by_size) {
    QuantizationConfig alone;
    alone.method = config.method;
    alone.format = config.format;
    alone.symmetric = config.symmetric;
    alone.bits = size.first;
    if (size.second > 0) alone.group_size = size.second;
    if (auto own = quantized(alone)) apart.push_back({ModulePatterns(names), *own});
  }
  if (apart.empty()) return;
  format.mixed = std::make_shared<const std::vector<MixedFormat>>(std::move(apart));
  format.mixed_beside = true;
}

// DeepSeek V4 says beside its FP8 blocks that experts are FP4, V4.1 among them. Scales are powers of two, a byte each.
void set_experts(WeightFormat& format, const ModelConfig& config) {
  std::string type = config.quantization()->experts;
  for (const ParsedJson* object : {&config.text(), &config.document()}) {
    const auto found = object->is_object() ? object->find("expert_dtype") : object->end();
    if (type.empty() && found != object->end() && found->is_string()) type = found->get<std::string>();
  }
  if (type != "fp4" || format.name != "fp8-block") return;
  const WeightFormat experts = WeightFormat::in_blocks("mxfp4", "MXFP4", 4, 1, 32, 1);
  const WeightFormat rows = WeightFormat::in_blocks("mxfp8", "MXFP8", 8, 1, 32, 1);  // of n-grams
  std::vector<MixedFormat> all = format.mixed ? *format.mixed : std::vector<MixedFormat>();
  format.scale_bytes = 1;
  format.title += all.empty() ? "; experts in MXFP4" : "; other experts in MXFP4";
  all.push_back({ModulePatterns({"*.experts.*"}), experts});
  all.push_back({ModulePatterns({"*.engram.embed"}), rows});
  format.mixed = std::make_shared<const std::vector<MixedFormat>>(std::move(all));
  format.mixed_beside = true;
}

const QuantizationConfig::Group& first_group(const QuantizationConfig& config) {
  static const QuantizationConfig::Group kNone;
  return config.groups.empty() ? kNone : config.groups.front();
}

}  // namespace

bool says(const QuantizationConfig& config, std::string_view word) {
  const QuantizationConfig::Group& group = first_group(config);
  const auto holds = [&](const std::string& text) { return text.find(word) != std::string::npos; };
  return holds(config.method) || holds(config.format) || holds(group.format) || holds(group.type);
}

std::uint64_t said_bits(const QuantizationConfig& config) {
  return config.bits.value_or(first_group(config).bits.value_or(0));
}

std::uint64_t said_group(const QuantizationConfig& config) {
  return config.group_size.value_or(first_group(config).group_size.value_or(0));
}

WeightFormat WeightFormat::plain(std::string name, std::string title, std::uint64_t bytes) {
  WeightFormat format;
  format.name = std::move(name);
  format.title = format.plain_type = std::move(title);
  format.plain_bytes = bytes;
  format.bits = bytes * 8;
  return format;
}

WeightFormat WeightFormat::in_blocks(std::string name, std::string title, std::uint64_t bits,
                                     std::uint64_t rows, std::uint64_t columns, std::uint64_t scale_bytes) {
  WeightFormat format;
  format.name = std::move(name);
  format.title = std::move(title);
  format.kind = Kind::blocks;
  format.bits = bits;
  format.block_rows = rows;
  format.block_columns = columns;
  format.scale_bytes = scale_bytes;
  return format;
}

void WeightFormat::set_block(std::uint64_t rows, std::uint64_t columns) {
  if (codes_title.empty()) return;
  block_rows = rows;
  block_columns = columns;
  title = fmt::format("{} in {}x{} blocks", codes_title, rows, columns);
}

std::vector<WeightFormat> weight_formats() {
  std::vector<WeightFormat> all;
  for (const StoredFormat* format : stored_formats()) {
    if (format->sizes == nullptr) continue;
    for (WeightFormat& size : format->sizes()) all.push_back(std::move(size));
  }
  return all;
}

std::optional<WeightFormat> weight_format(std::string_view name) {
  for (WeightFormat& format : weight_formats()) {
    if (format.name == name) return std::move(format);
  }
  if (name == "f32") return WeightFormat::plain("f32", "F32", 4);
  if (name == "f16") return WeightFormat::plain("f16", "F16", 2);
  return std::nullopt;
}

WeightFormat configured_format(const ModelConfig& config) {
  WeightFormat otherwise = unquantized(config);
  const auto& quantization = config.quantization();
  if (!quantization) return otherwise;
  GroupedFormats groups = grouped_formats(*quantization);
  auto format = groups.named.empty() ? quantized(*quantization) : joined(std::move(groups));
  if (!format) {
    format = otherwise;
    format->title += fmt::format("; what quantization method \"{}\" stores is not known",
                                 escape_for_terminal(quantization->method));
    format->not_known = escape_for_terminal(quantization->method);
  }
  format->plain_bytes = otherwise.plain_bytes;
  format->plain_type = otherwise.plain_type;
  format->method = quantization->method;
  if (format->kind == WeightFormat::Kind::blocks)
    set_scope(*format, *quantization, is_of_language_model(config));
  std::vector<std::string> ignored = quantization->ignored;
  if (!format->mixed) set_apart(*format, *quantization, ignored);
  if (!format->mixed || mixed_over_blocks(*quantization)) set_experts(*format, config);
  if (!ignored.empty()) format->ignored = std::make_shared<const ModulePatterns>(ignored);
  // DeepSeek and its kin hold what chooses experts as a bare parameter, which MLX's quantization passes by.
  using Every = WeightFormat::EveryModule;
  if (format->every_module == Every::with_routers && config.text().contains("n_routed_experts"))
    format->every_module = Every::without_routers;
  return *format;
}

}  // namespace assay
