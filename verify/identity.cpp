#include "verify/identity.h"

#include <algorithm>
#include <numeric>

#include "core/formats/checkpoint.h"
#include "core/formats/mistral_params.h"
#include "core/model/adapter_faults.h"
#include "core/model/class_and_type.h"
#include "core/model/expert_layout.h"
#include "core/model/reconcile.h"
#include "core/system/error.h"
#include "core/system/memory_pages.h"

namespace assay {
namespace {

bool is_in(const std::string& folder, const std::string& name) {
  return name.starts_with(folder) && name.find('/', folder.size()) == std::string::npos &&
         name.ends_with(".safetensors");
}

// The folder's weight files as the one list of tensors that a model is compared with. The tensors are lent,
// and leave no room behind: a header may hold a million of them.
Checkpoint lend(const std::string& folder, Structure& structure, const fs::path& root) {
  Checkpoint checkpoint;
  checkpoint.root = root / folder;
  std::size_t count = 0;
  for (const auto& [name, tensors] : structure.tensors) count += is_in(folder, name) ? tensors.size() : 0;
  checkpoint.tensors.reserve(count);
  for (auto& [name, tensors] : structure.tensors) {
    if (!is_in(folder, name)) continue;
    const auto file = static_cast<std::uint32_t>(checkpoint.files.size());
    std::error_code ignored;
    checkpoint.files.push_back({.name = name.substr(folder.size()),
                                .path = root / name,
                                .bytes = fs::file_size(root / name, ignored)});
    drain_tail(tensors, tensors.size(), checkpoint.tensors, [&](TensorRange&& t) {
      return CheckpointTensor{std::move(t.name), t.type, std::move(t.shape), t.begin, t.end - t.begin, file};
    });
    std::vector<TensorRange>().swap(tensors);
  }
  checkpoint.by_name.resize(checkpoint.tensors.size());
  std::iota(checkpoint.by_name.begin(), checkpoint.by_name.end(), 0u);
  std::ranges::sort(checkpoint.by_name, {},
                    [&](std::uint32_t i) -> const std::string& { return checkpoint.tensors[i].name; });
  return checkpoint;
}

void give_back(const std::string& folder, Checkpoint&& checkpoint, Structure& structure) {
  std::vector<CheckpointTensor>& lent = checkpoint.tensors;
  auto file = static_cast<std::uint32_t>(checkpoint.files.size());
  for (auto entry = structure.tensors.rbegin(); entry != structure.tensors.rend(); ++entry) {
    auto& [name, tensors] = *entry;
    if (!is_in(folder, name)) continue;
    --file;
    const auto first = std::partition_point(lent.begin(), lent.end(),
                                            [&](const CheckpointTensor& t) { return t.file < file; });
    const auto count = static_cast<std::size_t>(lent.end() - first);
    tensors.reserve(count);
    drain_tail(lent, count, tensors, [](CheckpointTensor&& t) {
      return TensorRange{std::move(t.name), t.type, std::move(t.shape), t.offset, t.offset + t.bytes};
    });
  }
}

Findings compare(const fs::path& config_file, const Checkpoint& checkpoint) {
  const ModelConfig config = ModelConfig::read(config_file);
  const ModuleTree published = describe(config), tree = in_layout_of(published, checkpoint);
  Findings findings = reconcile(tree, config, checkpoint).findings;
  if (auto stacked = stacked_unlike_releases(published, tree)) findings.push_back(std::move(*stacked));
  if (auto unlike = class_unlike_type(config)) findings.push_back(std::move(*unlike));
  return findings;
}

}  // namespace

Findings check_identity(Structure& structure, const fs::path& root) {
  Findings all;
  for (auto& [folder, weights] : structure.folders) {
    std::error_code ignored;
    const bool is_adapter = fs::is_regular_file(root / folder / "adapter_config.json", ignored);
    if (model_description_in(root / folder).empty() && !is_adapter) continue;
    Checkpoint checkpoint = lend(folder, structure, root);
    if (checkpoint.tensors.empty()) continue;
    std::vector<std::string> names;
    for (const CheckpointFile& file : checkpoint.files) names.push_back(file.name);
    const fs::path config_file = checkpoint.config = description_of_weights(root / folder, names);
    checkpoint.index = std::move(weights.index);
    try {
      for (Finding& finding :
           config_file.empty() ? adapter_faults(checkpoint) : compare(config_file, checkpoint)) {
        finding.severity = std::min(finding.severity, Severity::warning);
        if (!finding.file.empty()) finding.file.insert(0, folder);
        all.push_back(std::move(finding));
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      all.push_back(
          {.severity = Severity::note,
           .code = "model.not_compared",
           .message = "tensors were not compared with it: " + error.message(),
           .file =
               folder +
               (config_file.empty() ? fs::path("adapter_config.json") : config_file.filename()).string()});
    }
    weights.index = std::move(checkpoint.index);
    give_back(folder, std::move(checkpoint), structure);
  }
  return all;
}

}  // namespace assay
