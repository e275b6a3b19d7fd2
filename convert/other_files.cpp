#include "convert/other_files.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "convert/destination.h"
#include "core/system/file.h"

namespace assay {
namespace {

// Weights in whatever container, and lists of what is no longer so.
bool is_left_behind(const std::string& name, const ConversionPlan& plan) {
  static constexpr std::array<std::string_view, 12> kEndings = {".safetensors", ".safetensors.index.json",
                                                                ".bin",         ".bin.index.json",
                                                                ".pth",         ".pt",
                                                                ".gguf",        ".msgpack",
                                                                ".h5",          ".ot",
                                                                ".sha256",      ".onnx"};
  // A golden record (assay check) tells what the source is, not what becomes of it.
  if (name == "config.json" || name == kManifest || name == "assay-golden.json") return true;
  // Mistral's own description is written anew with the weights that it describes; of others it says what engines would go by
  // before config.json.
  if (name == "params.json") return !plan.checkpoint.config.empty();
  const bool stays_quantized = plan.spec.kind == Spec::Kind::keep || plan.spec.kind == Spec::Kind::reblock;
  for (const std::string_view quantizer :
       {"hf_quant_config.json", "quantize_config.json", "quant_config.json"})
    if (name == quantizer) return !stays_quantized;
  for (const CheckpointFile& file : plan.checkpoint.files) {
    if (file.name == name) return true;
  }
  return std::any_of(kEndings.begin(), kEndings.end(), [&](auto ending) { return name.ends_with(ending); });
}

}  // namespace

std::vector<OtherFile> other_files(const ConversionPlan& plan) {
  static constexpr std::array<std::string_view, 2> kSkipped = {".git", ".cache"};
  std::vector<OtherFile> files;
  if (plan.gguf || !plan.from_folder) return files;
  for (const TreeEntry& entry : list_tree(plan.checkpoint.root, kSkipped)) {
    const fs::path from = plan.checkpoint.root / entry.name;
    std::error_code error;
    const bool is_file = entry.kind == TreeEntry::Kind::regular ||
                         (entry.kind == TreeEntry::Kind::link && fs::is_regular_file(from, error));
    if (!is_file || is_left_behind(entry.name, plan)) continue;
    const std::uint64_t bytes = fs::file_size(from, error);
    files.push_back({entry.name, error ? 0 : bytes});
  }
  return files;
}

}  // namespace assay
