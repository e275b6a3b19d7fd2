#include "convert/config_rewrite.h"

#include <algorithm>

#include "convert/ignored_modules.h"
#include "convert/mtp.h"
#include "core/formats/json.h"
#include "core/model/nested_config.h"
#include "core/system/error.h"
#include "core/system/report.h"

namespace assay {
namespace {

constexpr std::uint64_t kLargestConfig = 1 << 20;

const char* fp8_name(ElementType type) {
  switch (type) {
    case ElementType::F8_E5M2: return "e5m2";
    case ElementType::F8_E4M3FNUZ: return "e4m3fnuz";
    case ElementType::F8_E5M2FNUZ: return "e5m2fnuz";
    default: return "e4m3";
  }
}

// DeepSeek's and Qwen's own form, read by vLLM, SGLang and transformers.
Json fp8_block(const ConversionPlan& plan) {
  const Spec& spec = plan.spec;
  Json config = {{"activation_scheme", "dynamic"},
                 {"fmt", fp8_name(spec.type)},
                 {"quant_method", "fp8"},
                 {"weight_block_size", {spec.block_rows, spec.block_columns}}};
  if (spec.scale == ScaleRounding::power_of_two) config["scale_fmt"] = "ue8m0";
  config["modules_to_not_convert"] = ignored_modules(plan).for_fp8();
  return config;
}

// SGLang's blockwise_int8.
Json int8_block(const ConversionPlan& plan) {
  return {{"activation_scheme", "dynamic"},
          {"quant_method", "blockwise_int8"},
          {"weight_block_size", {plan.spec.block_rows, plan.spec.block_columns}},
          {"ignored_layers", ignored_modules(plan).names}};
}

// compressed-tensors' QuantizationArgs, in the order it writes them.
Json arguments(int bits, const char* type, const char* strategy, const Json& group, bool dynamic) {
  return {{"num_bits", bits},    {"type", type},         {"symmetric", true},
          {"group_size", group}, {"strategy", strategy}, {"dynamic", dynamic}};
}

// Its presets: FP8_DYNAMIC and W8A8 (activations scaled as they come, per token), MXFP4A16, MXFP8, NVFP4A16
// and W4A16 (none: a calibration that weights alone do not give is not made up).
struct Scheme {
  const char* format;
  Json weights, inputs;
};
Scheme scheme_of(const Spec& spec) {
  switch (spec.family) {
    case Spec::Family::mxfp4: {
      Scheme scheme{"mxfp4-pack-quantized", arguments(4, "float", "group", 32, false), nullptr};
      scheme.weights["scale_dtype"] = "torch.uint8";
      return scheme;
    }
    case Spec::Family::mxfp8: {
      Scheme scheme{"mxfp8-quantized", arguments(8, "float", "group", 32, false),
                    arguments(8, "float", "group", 32, true)};
      scheme.weights["scale_dtype"] = scheme.inputs["scale_dtype"] = "torch.uint8";
      return scheme;
    }
    case Spec::Family::nvfp4: {
      Scheme scheme{"nvfp4-pack-quantized", arguments(4, "float", "tensor_group", 16, false), nullptr};
      scheme.weights["scale_dtype"] = "torch.float8_e4m3fn";
      return scheme;
    }
    case Spec::Family::int4: {
      const bool channel = spec.group == 0;
      Scheme scheme{"pack-quantized",
                    arguments(4, "int", channel ? "channel" : "group",
                              channel ? Json(nullptr) : Json(spec.group), false),
                    nullptr};
      scheme.weights["symmetric"] = !spec.asymmetric;
      return scheme;
    }
    case Spec::Family::scaled: break;
  }
  const bool is_int = spec.type == ElementType::I8;
  const char* type = is_int ? "int" : "float";
  const char* strategy = spec.grain == Spec::Grain::channel ? "channel" : "tensor";
  return {is_int ? "int-quantized" : "float-quantized", arguments(8, type, strategy, nullptr, false),
          arguments(8, type, "token", nullptr, true)};
}

Json compressed_tensors(const ConversionPlan& plan) {
  const Scheme scheme = scheme_of(plan.spec);
  const Json group = {{"targets", {"Linear"}},
                      {"weights", scheme.weights},
                      {"input_activations", scheme.inputs},
                      {"output_activations", nullptr},
                      {"format", scheme.format}};
  // A head that is the embedding over again has no tensor, but is a Linear to the loader.
  std::vector<std::string> ignored = ignored_modules(plan).for_compressed_tensors();
  const bool has_head = std::any_of(plan.works.begin(), plan.works.end(), [&](const Work& work) {
    return plan.stored.tensors[work.tensor].name == "lm_head.weight";
  });
  if (!has_head) ignored.push_back("lm_head");
  return {{"config_groups", {{"group_0", group}}},
          {"quant_method", "compressed-tensors"},
          {"kv_cache_scheme", nullptr},
          {"format", scheme.format},
          {"quantization_status", "compressed"},
          {"global_compression_ratio", nullptr},
          {"ignore", ignored}};
}

// ModelOpt: what hf_quant_config.json says, and the same in the words of config.json.
constexpr const char* kModelOptAlgorithm = "W4A16_NVFP4";
Json modelopt_file(const ConversionPlan& plan) {
  return {{"producer", {{"name", "modelopt"}}},
          {"quantization",
           {{"quant_algo", kModelOptAlgorithm},
            {"kv_cache_quant_algo", nullptr},
            {"group_size", 16},
            {"exclude_modules", ignored_modules(plan).for_modelopt()}}}};
}
Json modelopt(const ConversionPlan& plan) {
  const Json weights = {{"dynamic", false}, {"num_bits", 4}, {"type", "float"}, {"group_size", 16}};
  return {{"config_groups", {{"group_0", {{"weights", weights}, {"targets", {"Linear"}}}}}},
          {"ignore", ignored_modules(plan).for_modelopt()},
          {"quant_algo", kModelOptAlgorithm},
          {"producer", {{"name", "modelopt"}}},
          {"quant_method", "modelopt"}};
}

Json quantization_of(const ConversionPlan& plan) {
  const Spec& spec = plan.spec;
  if (spec.modelopt) return modelopt(plan);
  const bool blocks = spec.family == Spec::Family::scaled && spec.grain == Spec::Grain::block;
  if (!blocks) return compressed_tensors(plan);
  return spec.type == ElementType::I8 ? int8_block(plan) : fp8_block(plan);
}

void set_block(Json& quantization, const Spec& spec) {
  const Json block = {spec.block_rows, spec.block_columns};
  if (quantization.contains("weight_block_size")) quantization["weight_block_size"] = block;
  if (!quantization.contains("config_groups")) return;
  for (auto& group : quantization["config_groups"]) {
    if (!group.contains("weights") || !group["weights"].contains("block_structure")) continue;
    group["weights"]["block_structure"] = block;
    // Activations are scaled in groups as long as a block is wide.
    if (group.contains("input_activations") && group["input_activations"].is_object() &&
        group["input_activations"].value("strategy", "") == "group")
      group["input_activations"]["group_size"] = spec.block_columns;
  }
}

void set_dtype(Json& config, ElementType type) {
  const char* name = type == ElementType::BF16  ? "bfloat16"
                     : type == ElementType::F16 ? "float16"
                                                : "float32";
  for (const char* key : {"torch_dtype", "dtype"}) {
    if (config.contains(key)) config[key] = name;
  }
}

// The document, and the descriptions of a language model inside it.
std::vector<Json*> levels_of(Json& config) {
  std::vector<Json*> levels = {&config};
  for (const auto& [outer, inner] : kLanguageModelNests) {
    if (!config.contains(outer) || !config[outer].is_object()) continue;
    Json* nest = &config[outer];
    if (!inner.empty()) nest = nest->contains(inner) ? &(*nest)[inner] : nullptr;
    if (nest != nullptr && nest->is_object()) levels.push_back(nest);
  }
  return levels;
}

void set_quantization(Json& level, const Spec& spec) {
  for (const std::string_view key : kQuantizationKeys) {
    if (!level.contains(key) || !level[key].is_object()) continue;
    if (spec.kind == Spec::Kind::reblock)
      set_block(level[key], spec);
    else
      level.erase(key);
  }
}

std::string note_for(const Spec& spec) {
  if (spec.undeclared)
    return "config.json says nothing of these codes: start SGLang with --quantization w8a8_int8; others take "
           "them for weights";
  if (spec.kind == Spec::Kind::quantize &&
      (spec.type == ElementType::F8_E4M3FNUZ || spec.type == ElementType::F8_E5M2FNUZ))
    return "engines take FP8 for fn and turn it into fnuz themselves; these codes are fnuz already";
  return {};
}

}  // namespace

RewrittenConfig rewrite_config(const ConversionPlan& plan, const ConvertOptions& options) {
  const fs::path& path = plan.checkpoint.config;
  const std::string text = read_small_file(path, kLargestConfig);
  const ParsedJson checked = parse_json(text, path);  // refuses what the reading below would let pass
  if (!checked.is_object()) throw Error::input("is not a JSON object").in(path);
  Json config = Json::parse(text);
  const Spec& spec = plan.spec;
  for (Json* level : levels_of(config)) {
    if (spec.kind != Spec::Kind::keep) set_quantization(*level, spec);
    if (spec.kind == Spec::Kind::cast) set_dtype(*level, spec.type);
  }
  if (options.mtp == Mtp::drop) drop_mtp_from_config(config);
  RewrittenConfig made;
  made.note = note_for(spec);
  if (spec.kind == Spec::Kind::quantize && !spec.undeclared) {
    config["quantization_config"] = quantization_of(plan);
    if (spec.modelopt)
      made.beside.emplace_back("hf_quant_config.json", dump_json(modelopt_file(plan)) + "\n");
  }
  made.text = dump_json(config) + "\n";
  return made;
}

}  // namespace assay
