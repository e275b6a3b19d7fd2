// A config.json or params.json from a stranger, described.
// link: assay_model
#include "core/formats/json.h"
#include "core/formats/mistral_params.h"
#include "core/model/module_tree.h"
#include "tests/fuzz/fuzz.h"

using namespace assay;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  const auto tree = fuzz::accepted([&] {
    ParsedJson document = parse_json(text, "fuzz.json", {1 << 16, 64, true});
    if (auto mistrals = config_of_mistral_params(document)) document = std::move(*mistrals);
    return describe(ModelConfig::from_json(std::move(document), "fuzz.json"));
  });
  if (!tree) return 0;

  const Totals totals = count(*tree);
  fuzz::require(totals.active <= totals.total, "no more parameters are active than there are");
  fuzz::require(totals.active_without_embedding <= totals.active, "the embedding is a part");
  fuzz::require(totals.mtp_active <= totals.mtp_own, "no more of MTP is active than there is");
  std::uint64_t by_module = 0, layers = 0;
  for (const Module& module : tree->modules) by_module += parameters(module);
  fuzz::require(by_module == totals.total, "the modules add up to the total");
  for (const AttentionGeometry& g : tree->attention) layers += g.layers.size();
  fuzz::require(layers <= tree->layers, "no layer attends two ways");

  if (totals.total > 1u << 24) return 0;  // expanding the names of a giant takes too long for a fuzzer
  const TensorLookup lookup(*tree);
  for_each_tensor(*tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
    const auto found = lookup.find(name);
    fuzz::require(found && found->spec == &spec, "every name leads back to its tensor");
  });
  return 0;
}
