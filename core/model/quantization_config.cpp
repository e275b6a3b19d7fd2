// quantization_config in its dialects: fp8 and int8 blocks, GPTQ, AWQ, MXFP4, ModelOpt, compressed-tensors,
// MLX.
#include <fmt/format.h>

#include <algorithm>

#include "core/formats/json.h"
#include "core/model/config.h"
#include "core/model/quantized_layers.h"
#include "core/system/error.h"

namespace assay {
namespace {

class Fields {
 public:
  Fields(const ParsedJson& object, const std::filesystem::path& source) : object_(object), source_(source) {}

  const ParsedJson* find(std::string_view key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  // A string; any other type is left alone, for dialects reuse these keys.
  std::string text(std::string_view key) const {
    const ParsedJson* value = find(key);
    return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
  }
  // GPTQ writes group_size -1 for "the whole row": no group at all.
  bool is_minus_one(std::string_view key) const {
    const ParsedJson* value = find(key);
    return value != nullptr && value->is_number_integer() && !value->is_number_unsigned() && *value == -1;
  }
  std::optional<std::uint64_t> number(std::string_view key) const {
    const ParsedJson* value = find(key);
    if (value == nullptr || is_minus_one(key)) return {};
    return json_u64(*value, fmt::format("quantization_config.{}", key), source_);
  }
  std::optional<bool> flag(std::string_view key) const {
    const ParsedJson* value = find(key);
    if (value == nullptr || !value->is_boolean()) return {};
    return value->get<bool>();
  }
  std::vector<std::string> texts(std::string_view key) const {
    std::vector<std::string> list;
    const ParsedJson* value = find(key);
    if (value == nullptr) return list;
    if (!value->is_array())
      throw Error::input(fmt::format("quantization_config.{} is not a list", key)).in(source_);
    for (const ParsedJson& entry : *value) {
      list.push_back(json_string(entry, fmt::format("quantization_config.{}[]", key), source_));
    }
    return list;
  }
  void block(std::string_view key, std::optional<std::uint64_t>& rows,
             std::optional<std::uint64_t>& columns) const {
    const ParsedJson* value = find(key);
    if (value == nullptr) return;
    const std::string label = fmt::format("quantization_config.{}", key);
    if (!value->is_array() || value->size() != 2) {
      throw Error::input(fmt::format("{} is not a list of two sizes", label)).in(source_);
    }
    rows = json_u64((*value)[0], label, source_);
    columns = json_u64((*value)[1], label, source_);
    if (*rows == 0 || *columns == 0) throw Error::input(fmt::format("{} holds a 0", label)).in(source_);
  }

 private:
  const ParsedJson& object_;
  const std::filesystem::path& source_;
};

QuantizationConfig::Group parse_group(const std::string& name, const ParsedJson& object,
                                      const std::filesystem::path& source) {
  QuantizationConfig::Group group;
  group.name = name;
  if (!object.is_object()) {
    throw Error::input(fmt::format("quantization_config.config_groups.{} is not an object", name)).in(source);
  }
  const Fields fields(object, source);
  group.format = fields.text("format");
  group.targets = fields.texts("targets");
  const ParsedJson* weights = fields.find("weights");
  if (weights == nullptr || !weights->is_object()) return group;
  const Fields weight_fields(*weights, source);
  group.type = weight_fields.text("type");
  group.strategy = weight_fields.text("strategy");
  group.bits = weight_fields.number("num_bits");
  group.group_size = weight_fields.number("group_size");
  group.whole_rows = weight_fields.is_minus_one("group_size");
  group.symmetric = weight_fields.flag("symmetric");
  group.group_index = weight_fields.text("actorder") == "group";
  if (group.bits == 0)
    throw Error::input(fmt::format("quantization_config.config_groups.{}.weights.num_bits is 0", name))
        .in(source);
  weight_fields.block("block_structure", group.block_rows, group.block_columns);
  return group;
}

// Some place of compressed-tensors' TransformConfig that is not a weight's, where it is multiplied in: an
// input or output, queries, the cache of keys.
bool transforms_activations(const ParsedJson& transforms) {
  const auto groups = transforms.is_object() ? transforms.find("config_groups") : transforms.end();
  if (!transforms.is_object() || groups == transforms.end() || !groups->is_object()) return false;
  for (const ParsedJson& scheme : *groups) {
    const auto places = scheme.is_object() ? scheme.find("apply") : scheme.end();
    if (!scheme.is_object() || places == scheme.end() || !places->is_array()) return true;
    for (const ParsedJson& place : *places) {
      const auto location = place.is_object() ? place.find("location") : place.end();
      if (!place.is_object() || location == place.end() || !location->is_string()) return true;
      if (!location->get<std::string>().starts_with("weight_")) return true;
    }
  }
  return false;
}

// Quark's description of one tensor: {"dtype": "int4", "qscheme": "per_group", "group_size": 128, …}; a list
// where scales are quantized in turn, the weights' own first.
QuantizationConfig::Group parse_quark_group(const std::string& name, const ParsedJson& layer,
                                            const std::filesystem::path& source) {
  QuantizationConfig::Group group;
  group.name = name;
  auto weight = layer.is_object() ? layer.find("weight") : layer.end();
  if (!layer.is_object() || weight == layer.end()) return group;
  const ParsedJson* spec = &*weight;
  if (spec->is_array() && !spec->empty()) spec = &spec->front();
  if (!spec->is_object()) return group;
  const Fields fields(*spec, source);
  group.type = fields.text("dtype");
  group.strategy = fields.text("qscheme");
  group.group_size = fields.number("group_size");
  return group;
}

// export.pack_method, global_quant_config, and layer_quant_config by pattern.
void parse_quark(const Fields& fields, const std::filesystem::path& source, QuantizationConfig& config) {
  if (const ParsedJson* exported = fields.find("export"); exported != nullptr && exported->is_object())
    config.format = Fields(*exported, source).text("pack_method");
  if (const ParsedJson* global = fields.find("global_quant_config"))
    config.groups.push_back(parse_quark_group("global", *global, source));
  const ParsedJson* layers = fields.find("layer_quant_config");
  if (layers == nullptr || !layers->is_object()) return;
  for (const auto& [pattern, layer] : layers->items())
    config.modules.push_back(parse_quark_group(pattern, layer, source));
}

// GPTQ's modules_in_block_to_quantize: lists of modules that are quantized one list after the other, or one list.
std::vector<std::string> modules_of_blocks(const Fields& fields, const std::filesystem::path& source) {
  constexpr std::string_view kKey = "modules_in_block_to_quantize";
  const ParsedJson* value = fields.find(kKey);
  if (value == nullptr) return {};
  const std::string label = fmt::format("quantization_config.{}", kKey);
  if (!value->is_array()) throw Error::input(label + " is not a list").in(source);
  std::vector<std::string> modules;
  for (const ParsedJson& entry : *value) {
    if (!entry.is_array()) {
      modules.push_back(json_string(entry, label + "[]", source));
      continue;
    }
    for (const ParsedJson& module : entry) modules.push_back(json_string(module, label + "[][]", source));
  }
  return modules;
}

void append(std::vector<std::string>& list, std::vector<std::string> more) {
  list.insert(list.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Entries that give a module bits of its own, and a group_size, where it is not that of all.
void append_modules(const ParsedJson& object, const std::filesystem::path& source,
                    QuantizationConfig& config) {
  for (const auto& [key, value] : object.items()) {
    if (!value.is_object() || !value.contains("bits")) continue;
    const Fields module(value, source);
    QuantizationConfig::Group& added = config.modules.emplace_back();
    added.name = key;
    added.bits = module.number("bits");
    const bool own_size = value.contains("group_size");
    added.group_size = own_size ? module.number("group_size") : config.group_size;
    added.whole_rows = own_size ? module.is_minus_one("group_size") : config.whole_rows;
  }
}

// GPTQModel names modules by expressions, "-:" before those that it leaves out; AutoRound by their names, or by
// expressions.
void append_modules_by_pattern(const ParsedJson& object, const std::filesystem::path& source,
                               bool by_expression, QuantizationConfig& config) {
  const std::size_t before = config.modules.size();
  append_modules(object, source, config);
  for (std::size_t i = before; i < config.modules.size(); ++i) {
    std::string& name = config.modules[i].name;
    if (name.starts_with("+:")) name.erase(0, 2);
    if (by_expression || name.find_first_of("*+?^$|()[]\\") != std::string::npos) name.insert(0, "re:");
  }
  for (const auto& [key, value] : object.items()) {
    if (key.starts_with("-:")) config.ignored.push_back("re:" + key.substr(2));
  }
}

// MLX: "model.layers.0.mlp.gate": false.
void append_left_out(const ParsedJson& object, std::vector<std::string>& ignored) {
  for (const auto& [key, value] : object.items()) {
    const bool names_module = key.find('.') != std::string::npos || key == "lm_head";
    if (value == false && names_module) ignored.push_back(key);
  }
}

}  // namespace

QuantizationConfig parse_quantization(const ParsedJson& object, const std::filesystem::path& source) {
  if (!object.is_object()) throw Error::input("quantization_config is not an object").in(source);
  const Fields fields(object, source);
  QuantizationConfig config;
  if (const ParsedJson* method = fields.find("quant_method"))
    config.method = json_string(*method, "quantization_config.quant_method", source);
  if (config.method.empty()) config.method = fields.text("quant_algo");  // NVIDIA ModelOpt
  for (const std::string_view key :
       {"quant_algo", "format", "checkpoint_format", "packing_format", "fmt", "version", "mode"}) {
    if (config.format.empty()) config.format = fields.text(key);
  }
  config.scale_format = fields.text("scale_fmt");
  config.activations = fields.text("activation_scheme");
  config.experts = fields.text("expert_dtype");
  // ExLlama's are a mean over all weights, 4.25, and no bits of a code.
  if (const ParsedJson* bits = fields.find("bits"); bits == nullptr || !bits->is_number_float())
    config.bits = fields.number("bits");
  if (!config.bits && fields.flag("load_in_4bit").value_or(false)) config.bits = 4;  // bitsandbytes
  if (!config.bits && fields.flag("load_in_8bit").value_or(false)) config.bits = 8;
  if (config.bits == 0) throw Error::input("quantization_config.bits is 0").in(source);
  config.nested_scales = fields.flag("bnb_4bit_use_double_quant");
  config.group_size = fields.number("group_size");
  config.whole_rows = fields.is_minus_one("group_size");
  if (const ParsedJson* sparsity = fields.find("sparsity_config");
      sparsity != nullptr && sparsity->is_object())
    config.sparsity = Fields(*sparsity, source).text("format");
  if (const ParsedJson* transforms = fields.find("transform_config"))
    config.transforms_activations = transforms_activations(*transforms);
  config.symmetric = fields.flag("sym");
  config.activation_order = fields.flag("desc_act");
  fields.block("weight_block_size", config.block_rows, config.block_columns);
  for (const std::string_view key : {"modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers",
                                     "llm_int8_skip_modules", "skip_modules"}) {
    append(config.ignored, fields.texts(key));
  }
  if (config.method == "quark") append(config.ignored, fields.texts("exclude"));
  config.only = modules_of_blocks(fields, source);
  // GPTQ says that it does; bitsandbytes spares it only where nobody says what to spare.
  config.head = fields.flag("lm_head").value_or(false) ||
                (config.method == "bitsandbytes" && fields.find("llm_int8_skip_modules") != nullptr);
  if (const ParsedJson* groups = fields.find("config_groups"); groups != nullptr && groups->is_object()) {
    for (const auto& [name, group] : groups->items())
      config.groups.push_back(parse_group(name, group, source));
  }
  if (const ParsedJson* layers = fields.find("quantized_layers");
      layers != nullptr && (layers->is_object() || layers->is_string()))
    config.layers = parse_quantized_layers(*layers, source);
  if (config.method == "quark") parse_quark(fields, source, config);
  append_modules(object, source, config);
  append_left_out(object, config.ignored);
  // GPTQModel and AutoRound name the modules that differ in an object of their own.
  for (const std::string_view key : {"dynamic", "extra_config"}) {
    const ParsedJson* apart = fields.find(key);
    if (apart != nullptr && apart->is_object())
      append_modules_by_pattern(*apart, source, key == "dynamic", config);
  }
  // Its groups and what it leaves out ("*.attn.*", which stays in blocks) are said of the mixture alone.
  if (mixed_over_blocks(config)) config.groups.clear(), config.ignored.clear();
  return config;
}

}  // namespace assay
