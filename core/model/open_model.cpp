#include "core/model/open_model.h"

#include "core/system/error.h"
#include "core/system/finding_error.h"

namespace assay {

ModelConfig read_config(const Checkpoint& checkpoint) {
  if (checkpoint.gguf)
    return ModelConfig::from_gguf(*checkpoint.gguf, checkpoint.files.front().path, checkpoint.tensors);
  if (checkpoint.config.empty())
    throw Error::input("no config.json beside the weights: nothing says what the tensors are")
        .in(checkpoint.root)
        .remedy("bring the model's config.json, or list the tensors with 'assay inspect'");
  return ModelConfig::read(checkpoint.config);
}

DescribedModel describe_model(const Checkpoint& checkpoint) {
  ModelConfig config = read_config(checkpoint);
  ModuleTree tree = describe(config);
  return {std::move(config), std::move(tree)};
}

std::optional<DescribedModel> try_describe(const Checkpoint& checkpoint, std::string* why_not) {
  try {
    return describe_model(checkpoint);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    if (why_not != nullptr) *why_not = error.message();
    return std::nullopt;
  }
}

OpenedModel::OpenedModel(const fs::path& path, int jobs)
    : checkpoint(open_checkpoint(path, jobs)),
      stored(find_stored(checkpoint, read_quantization(checkpoint))),
      reader(checkpoint) {}

void OpenedModel::throw_errors() const {
  throw_first_error(checkpoint.findings, checkpoint.root);
  throw_first_error(stored.findings, checkpoint.root);
}

}  // namespace assay
