#include "verify/identity.h"

#include <algorithm>

#include "core/formats/checkpoint.h"
#include "core/model/module_tree.h"
#include "core/model/reconcile.h"
#include "core/system/error.h"

namespace assay {
namespace {

bool is_in(const std::string& folder, const std::string& name) {
  return name.starts_with(folder) && name.find('/', folder.size()) == std::string::npos &&
         name.ends_with(".safetensors");
}

// The folder's weight files as the one list of tensors that a model is compared with. The tensors are lent: a
// header may hold a million of them.
Checkpoint lend(const std::string& folder, Structure& structure, const fs::path& root) {
  Checkpoint checkpoint;
  checkpoint.root = root / folder;
  for (auto& [name, tensors] : structure.tensors) {
    if (!is_in(folder, name)) continue;
    const auto file = static_cast<std::uint32_t>(checkpoint.files.size());
    checkpoint.files.push_back({.name = name.substr(folder.size()), .path = root / name});
    for (TensorRange& t : tensors) {
      checkpoint.tensors.push_back(
          {std::move(t.name), t.type, std::move(t.shape), t.begin, t.end - t.begin, file});
    }
  }
  return checkpoint;
}

void give_back(const std::string& folder, Checkpoint&& checkpoint, Structure& structure) {
  auto tensor = checkpoint.tensors.begin();
  for (auto& [name, tensors] : structure.tensors) {
    if (!is_in(folder, name)) continue;
    for (TensorRange& t : tensors) {
      t.name = std::move(tensor->name);
      t.shape = std::move(tensor->shape);
      ++tensor;
    }
  }
}

Findings compare(const fs::path& config_file, const Checkpoint& checkpoint) {
  const ModelConfig config = ModelConfig::read(config_file);
  const ModuleTree tree = describe(config);
  return reconcile(tree, config, checkpoint).findings;
}

}  // namespace

Findings check_identity(Structure& structure, const fs::path& root) {
  Findings all;
  for (auto& [folder, weights] : structure.folders) {
    const fs::path config_file = root / folder / "config.json";
    std::error_code ignored;
    if (!fs::is_regular_file(config_file, ignored)) continue;
    Checkpoint checkpoint = lend(folder, structure, root);
    if (checkpoint.tensors.empty()) continue;
    checkpoint.index = std::move(weights.index);
    try {
      for (Finding& finding : compare(config_file, checkpoint)) {
        finding.severity = std::min(finding.severity, Severity::warning);
        if (!finding.file.empty()) finding.file.insert(0, folder);
        all.push_back(std::move(finding));
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      all.push_back({.severity = Severity::note,
                     .code = "model.not_compared",
                     .message = "tensors were not compared with it: " + error.message(),
                     .file = folder + "config.json"});
    }
    weights.index = std::move(checkpoint.index);
    give_back(folder, std::move(checkpoint), structure);
  }
  return all;
}

}  // namespace assay
