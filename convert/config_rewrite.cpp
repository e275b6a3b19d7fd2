#include "convert/config_rewrite.h"

#include "convert/mtp.h"
#include "core/formats/json.h"
#include "core/system/error.h"
#include "core/system/report.h"

namespace assay {
namespace {

constexpr std::uint64_t kLargestConfig = 1 << 20;

// DeepSeek's and Qwen's own form, read by vLLM, SGLang and transformers.
Json fp8_block(const ConversionPlan& plan) {
  const Spec& spec = plan.spec;
  Json config = {{"activation_scheme", "dynamic"},
                 {"fmt", spec.type == ElementType::F8_E5M2 ? "e5m2" : "e4m3"},
                 {"quant_method", "fp8"},
                 {"weight_block_size", {spec.block_rows, spec.block_columns}}};
  if (spec.scale == ScaleRounding::power_of_two) config["scale_fmt"] = "ue8m0";
  config["modules_to_not_convert"] = plan.unquantized_matrices();
  return config;
}

// SGLang's blockwise_int8.
Json int8_block(const ConversionPlan& plan) {
  return {{"activation_scheme", "dynamic"},
          {"quant_method", "blockwise_int8"},
          {"weight_block_size", {plan.spec.block_rows, plan.spec.block_columns}},
          {"ignored_layers", plan.unquantized_matrices()}};
}

// compressed-tensors: one scale a row or a tensor, activations scaled as they come, per token.
Json compressed_tensors(const ConversionPlan& plan) {
  const bool is_int = plan.spec.type == ElementType::I8;
  const char* type = is_int ? "int" : "float";
  const char* format = is_int ? "int-quantized" : "float-quantized";
  const char* strategy = plan.spec.grain == Spec::Grain::channel ? "channel" : "tensor";
  const Json weights = {{"num_bits", 8},     {"type", type},     {"strategy", strategy},
                        {"symmetric", true}, {"dynamic", false}, {"observer", "minmax"}};
  const Json inputs = {
      {"num_bits", 8}, {"type", type}, {"strategy", "token"}, {"symmetric", true}, {"dynamic", true}};
  const Json group = {{"targets", {"Linear"}},
                      {"weights", weights},
                      {"input_activations", inputs},
                      {"output_activations", nullptr},
                      {"format", format}};
  return {{"config_groups", {{"group_0", group}}}, {"format", format},
          {"ignore", plan.unquantized_matrices()}, {"kv_cache_scheme", nullptr},
          {"quant_method", "compressed-tensors"},  {"quantization_status", "compressed"}};
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
  for (const char* key : {"text_config", "llm_config"}) {
    if (config.contains(key) && config[key].is_object()) set_dtype(config[key], type);
  }
}

std::string int8_channel_note(const ConversionPlan& plan) {
  const bool bare = plan.spec.kind == Spec::Kind::quantize && plan.spec.type == ElementType::I8 &&
                    plan.spec.grain == Spec::Grain::channel &&
                    plan.spec.int8_range == Int8Range::symmetric_127;
  return bare ? "config.json has no word for this form: start SGLang with --quantization w8a8_int8" : "";
}

}  // namespace

RewrittenConfig rewrite_config(const ConversionPlan& plan, const ConvertOptions& options) {
  const fs::path& path = plan.checkpoint.config;
  const std::string text = read_small_file(path, kLargestConfig);
  const ParsedJson checked = parse_json(text, path);  // refuses what the reading below would let pass
  if (!checked.is_object()) throw Error::input("is not a JSON object").in(path);
  Json config = Json::parse(text);
  const char* key = config.contains("compression_config") ? "compression_config" : "quantization_config";
  const Spec& spec = plan.spec;
  if (spec.kind == Spec::Kind::reblock) {
    if (config.contains(key)) set_block(config[key], spec);
  } else if (spec.kind != Spec::Kind::keep) {
    config.erase(key);
    config.erase("quantization_config");
    if (config.contains("quantization") && config["quantization"].is_object()) config.erase("quantization");
  }
  if (options.mtp == Mtp::drop) drop_mtp_from_config(config);
  const std::string note = int8_channel_note(plan);
  if (spec.kind == Spec::Kind::cast) set_dtype(config, spec.type);
  if (spec.kind == Spec::Kind::quantize && note.empty()) {
    config["quantization_config"] = spec.grain != Spec::Grain::block ? compressed_tensors(plan)
                                    : spec.type == ElementType::I8   ? int8_block(plan)
                                                                     : fp8_block(plan);
  }
  return {dump_json(config) + "\n", note};
}

}  // namespace assay
