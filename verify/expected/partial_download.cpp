#include "verify/expected/partial_download.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/formats/shard_index.h"
#include "verify/expected/weight_files.h"

namespace assay {
namespace {

constexpr std::size_t kNamesShown = 3;

std::string folder_of(const std::string& name) {
  const auto slash = name.rfind('/');
  return slash == name.npos ? std::string() : name.substr(0, slash + 1);
}

bool is_model_weight(const std::string& name) {
  return may_hold_weights(name) && !is_training_state(name);
}

// "unet/model.safetensors" of "unet/model-00001-of-00003.safetensors", "consolidated.pth" of Llama's
// "consolidated.00.pth"; nullopt for what is no shard.
std::optional<std::string> family_of(const std::string& name) {
  const std::string folder = folder_of(name), base = name.substr(folder.size());
  if (base.starts_with("consolidated.") && base.ends_with(".pth")) return folder + "consolidated.pth";
  const auto shard = parse_shard_name(base);
  if (!shard) return std::nullopt;
  return folder + shard->stem + shard->extension;
}

// What is here, by what the absent files are asked about.
struct Summary {
  explicit Summary(const std::set<std::string>& present) {
    for (const std::string& name : present) {
      if (!is_model_weight(name)) continue;
      const std::string folder = folder_of(name);
      folders.insert(folder);
      if (!name.ends_with(".gguf")) configured.insert(folder);
      if (const auto family = family_of(name)) families.insert(*family);
    }
  }
  std::set<std::string> families;    // of which a shard is here
  std::set<std::string> folders;     // with weights
  std::set<std::string> configured;  // with weights that a config.json describes
};

bool is_missed(const std::string& name, const DownloadedPart& part, const Summary& here) {
  const std::string folder = folder_of(name);
  if (is_model_weight(name)) {
    if (const auto family = family_of(name); family && here.families.contains(*family)) return true;
    if (folder.empty()) return here.folders.empty();
    return !here.folders.contains(folder) && part.present.contains(folder + "config.json");
  }
  if (is_shard_index_name(name)) return here.families.contains(name.substr(0, name.find(".index.")));
  return name == folder + "config.json" && here.configured.contains(folder);
}

// Weights that are never published without a config.json beside them. Elsewhere than at the top model.safetensors
// may be a trainer's checkpoint.
bool is_described(const std::string& folder, const std::string& name) {
  static constexpr std::array<std::string_view, 2> kOfTransformers = {"model.safetensors",
                                                                      "pytorch_model.bin"};
  static constexpr std::array<std::string_view, 2> kOfDiffusers = {"diffusion_pytorch_model.safetensors",
                                                                   "diffusion_pytorch_model.bin"};
  const auto is_one_of = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return (folder.empty() && is_one_of(kOfTransformers)) || is_one_of(kOfDiffusers);
}

}  // namespace

std::set<std::string> missed(const DownloadedPart& part) {
  const Summary here(part.present);
  std::set<std::string> names;
  for (const std::string& name : part.absent) {
    if (is_missed(name, part, here)) names.insert(name);
  }
  return names;
}

Findings missed_without_listing(const std::set<std::string>& present, const std::string& prefix) {
  std::set<std::string> wanted, indexed;
  for (const std::string& name : present) {
    if (is_shard_index_name(name)) indexed.insert(folder_of(name));
  }
  for (const std::string& name : present) {
    if (!is_model_weight(name) || name.ends_with(".gguf")) continue;
    const std::string folder = folder_of(name), base = name.substr(folder.size());
    const auto shard = parse_shard_name(base);
    if (shard && !indexed.contains(folder))
      wanted.insert(folder + shard->stem + shard->extension + ".index.json");
    if (is_described(folder, shard ? shard->stem + shard->extension : base))
      wanted.insert(folder + "config.json");
  }
  Findings findings;
  for (const std::string& name : wanted) {
    if (present.contains(name)) continue;
    findings.push_back({.severity = Severity::error,
                        .code = "download.incomplete",
                        .message = "is not here, and the weights beside it cannot be loaded without it",
                        .file = prefix + name,
                        .remedy = "run the download again"});
  }
  return findings;
}

void note_left_out(const std::vector<std::string>& names, const std::string& place, Findings& findings) {
  if (names.empty()) return;
  std::string shown;
  for (std::size_t i = 0; i < std::min(kNamesShown, names.size()); ++i)
    shown += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kNamesShown) shown += ", …";
  findings.push_back({.severity = Severity::note,
                      .code = "download.partial",
                      .message = fmt::format("{} of the commit's files {} not downloaded ({}): not judged",
                                             names.size(), names.size() == 1 ? "was" : "were", shown),
                      .file = place,
                      .remedy = "download again without patterns if they are wanted"});
}

}  // namespace assay
