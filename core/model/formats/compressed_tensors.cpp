#include "core/model/formats/compressed_tensors.h"

#include "core/system/json.h"

namespace assay {

Json quantization_arguments(int bits, const char* type, const char* strategy, const Json& group,
                            bool dynamic) {
  return {{"num_bits", bits},    {"type", type},         {"symmetric", true},
          {"group_size", group}, {"strategy", strategy}, {"dynamic", dynamic}};
}

Json compressed_tensors_config(const CompressedScheme& scheme, const IgnoredModules& ignored) {
  const Json group = {{"targets", {"Linear"}},
                      {"weights", scheme.weights},
                      {"input_activations", scheme.inputs},
                      {"output_activations", nullptr},
                      {"format", scheme.format}};
  // A head that is the embedding over again has no tensor, but is a Linear to the loader.
  std::vector<std::string> names = ignored.for_compressed_tensors();
  if (!ignored.has_head) names.push_back("lm_head");
  return {{"config_groups", {{"group_0", group}}},
          {"quant_method", "compressed-tensors"},
          {"kv_cache_scheme", nullptr},
          {"format", scheme.format},
          {"quantization_status", "compressed"},
          {"global_compression_ratio", nullptr},
          {"ignore", names}};
}

bool take_ties(std::string_view option, Fp4Ties& ties) {
  if (option != "ties=even" && option != "ties=down") return false;
  ties = option == "ties=even" ? Fp4Ties::even : Fp4Ties::down;
  return true;
}

}  // namespace assay
