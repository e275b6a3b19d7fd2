#include "cli/check/stored_twice.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "core/model/value_error.h"

namespace assay {
namespace {

Finding differs(const std::string& name, const TensorSpec& spec, const ValueError& error) {
  const bool tied = spec.storage == Storage::tied;
  return {.severity = tied ? Severity::error : Severity::warning,
          .code = "model.stored_twice",
          .message = fmt::format("is {} by config.json, and holds other values, off by {:.2g} of their norm: "
                                 "loaders take those of one and drop the other's",
                                 tied ? fmt::format("tied to {} (tie_word_embeddings)", spec.same_as)
                                      : fmt::format("the same as {}", spec.same_as),
                                 error.relative()),
          .tensor = name,
          .remedy = tied ? "set tie_word_embeddings to false, or leave the tensor out"
                         : "take both from one checkpoint"};
}

}  // namespace

Findings compare_stored_twice(const Model& model, ProgressMode progress_mode) {
  Findings findings;
  if (!model.checkpoint || model.checkpoint->container != Checkpoint::Container::safetensors) return findings;
  const TensorLookup lookup(model.tree);
  const StoredTensors stored = find_stored(*model.checkpoint, model.config.quantization());
  std::map<std::string_view, const LogicalTensor*> own;  // by the template of the name
  std::vector<std::pair<const LogicalTensor*, const TensorSpec*>> again;
  for (const LogicalTensor& tensor : stored.tensors) {
    const auto found = lookup.find(tensor.name);
    if (!found || !is_decodable(tensor)) continue;
    const TensorSpec& spec = *found->spec;
    if (spec.storage == Storage::own)
      own.emplace(spec.name, &tensor);
    else if (spec.storage != Storage::buffer)
      again.emplace_back(&tensor, &spec);
  }
  const CheckpointReader reader(*model.checkpoint);
  for (const auto& [tensor, spec] : again) {
    const auto original = own.find(spec->same_as);
    if (original == own.end() || original->second->shape != tensor->shape) continue;
    Progress progress(progress_mode, "comparing what is stored twice", tensor->elements());
    const ValueComparison values = compare_by_parts(reader, *tensor, reader, *original->second, progress);
    if (values.whole.error != 0) findings.push_back(differs(tensor->name, *spec, values.whole));
  }
  return findings;
}

}  // namespace assay
