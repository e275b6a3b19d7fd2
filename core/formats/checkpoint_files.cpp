#include "core/formats/checkpoint_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/formats/two_models.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::string_view kSafetensors = ".safetensors", kGguf = ".gguf", kIndex = ".safetensors.index.json";
constexpr std::uint64_t kRefBytes = 4096;  // refs/main holds a commit's 40 digits

struct Listing {
  std::vector<std::string> safetensors, gguf, indexes;  // sorted
};

Listing list_folder(const fs::path& folder) {
  Listing listing;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (entry.is_directory(ignored)) continue;
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.')) continue;  // "._model.safetensors", and downloads under way
    if (name.ends_with(kIndex))
      listing.indexes.push_back(name);
    else if (name.ends_with(kSafetensors))
      listing.safetensors.push_back(name);
    else if (name.ends_with(kGguf))
      listing.gguf.push_back(name);
  }
  if (error) throw Error::from_errno("list the folder", error.value()).in(folder);
  for (auto* names : {&listing.safetensors, &listing.gguf, &listing.indexes}) {
    std::sort(names->begin(), names->end());
  }
  return listing;
}

// models--org--name/{refs/main, snapshots/<commit>/}: the snapshot that the reference names, or the only one.
fs::path enter_hub_cache(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder / "snapshots", ignored)) return folder;
  if (fs::is_regular_file(folder / "refs" / "main", ignored)) {
    const std::string text = read_small_file(folder / "refs" / "main", kRefBytes);
    const std::string commit(trim(text));
    const bool plain = is_safe_relative_path(commit) && commit.find('/') == std::string::npos;
    if (plain && fs::is_directory(folder / "snapshots" / commit, ignored))
      return folder / "snapshots" / commit;
  }
  std::vector<fs::path> snapshots;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "snapshots")) {
    if (entry.is_directory(ignored)) snapshots.push_back(entry.path());
  }
  if (snapshots.size() == 1) return snapshots.front();
  throw Error::input(
      fmt::format("hub cache holds {} snapshots and refs/main names none of them", snapshots.size()))
      .in(folder)
      .remedy("give the path of one snapshot");
}

// A numbered set of files: equal in all but the number. A name without a number is a family of its own.
using FamilyKey =
    std::tuple<std::string, std::uint64_t, std::string>;  // stem, count (0: no number), extension

FamilyKey family_of(const std::string& name) {
  const auto parsed = parse_shard_name(name);
  if (!parsed) return {name, 0, {}};
  return {parsed->stem, parsed->count, parsed->extension};
}

std::map<FamilyKey, std::vector<std::string>> families_of(const std::vector<std::string>& names) {
  std::map<FamilyKey, std::vector<std::string>> families;
  for (const std::string& name : names) families[family_of(name)].push_back(name);
  return families;
}

void leave_aside(CheckpointFiles& chosen, const std::string& name, std::string_view why) {
  chosen.findings.push_back({.severity = Severity::warning,
                             .code = "checkpoint.file_ignored",
                             .message = std::string(why),
                             .file = name,
                             .tensor = {},
                             .offset = {},
                             .remedy = "name this file to examine it by itself"});
}

std::string usual_index(const Listing& listing) {
  const auto usual =
      std::find(listing.indexes.begin(), listing.indexes.end(), "model.safetensors.index.json");
  return usual != listing.indexes.end() ? *usual : listing.indexes.front();
}

void choose_indexed(const Listing& listing, CheckpointFiles& chosen) {
  for (const std::string& name : listing.indexes) {
    if (name != chosen.index_name)
      leave_aside(chosen, name, fmt::format("{} is the index in use", chosen.index_name));
  }
  const std::vector<std::string> shards = chosen.index->shards();
  std::set<FamilyKey> indexed;
  for (const std::string& shard : shards) indexed.insert(family_of(shard));
  for (const std::string& name : listing.safetensors) {
    const FamilyKey family = family_of(name);
    if (std::binary_search(shards.begin(), shards.end(), name) ||
        (std::get<1>(family) > 0 && indexed.contains(family))) {
      chosen.names.push_back(name);
    } else {
      leave_aside(chosen, name,
                  fmt::format("not in {}, nor numbered as its shards are: not counted", chosen.index_name));
    }
  }
}

bool holds_whole_model(const Listing& listing) {
  return std::find(listing.safetensors.begin(), listing.safetensors.end(), kWholeModel) !=
         listing.safetensors.end();
}

// Without an index: model.safetensors before anything numbered, as transformers has it; else a numbered
// family, "model" before others, the larger before the smaller; else every single file but those that hold
// the same model in its author's own layout.
void choose_unindexed(const Listing& listing, CheckpointFiles& chosen) {
  const auto families = families_of(listing.safetensors);
  const std::pair<const FamilyKey, std::vector<std::string>>* best = nullptr;
  const auto rank = [](const auto& family) {
    return std::tuple(std::get<0>(family.first) == "model", family.second.size());
  };
  const bool has_model = holds_whole_model(listing);
  for (const auto& family : families) {
    if (std::get<1>(family.first) == 0 || has_model) continue;
    if (best == nullptr || rank(family) > rank(*best)) best = &family;
  }
  for (const auto& family : families) {
    for (const std::string& name : family.second) {
      if (best != nullptr && &family != best) {
        leave_aside(chosen, name, "a numbered set of shards lies beside it and is taken for the model");
      } else if (has_model && (std::get<1>(family.first) > 0 || name.starts_with("consolidated"))) {
        leave_aside(chosen, name, "model.safetensors lies beside it and is taken for the model");
      } else {
        chosen.names.push_back(name);
      }
    }
  }
}

// model.safetensors beside an index that does not name it: it is the model, and the index's files are not.
bool choose_whole_model(const Listing& listing, CheckpointFiles& chosen) {
  const std::vector<std::string> shards = chosen.index->shards();
  if (shards.empty() || !holds_whole_model(listing) ||
      std::binary_search(shards.begin(), shards.end(), kWholeModel))
    return false;
  chosen.findings.push_back(two_models(chosen.index_name, shards.size()));
  chosen.findings.back().message += "; taken here is " + std::string(kWholeModel);
  chosen.findings.back().remedy += ", or name the index to examine its files";
  chosen.index.reset();
  chosen.index_name.clear();
  Listing others = listing;
  std::erase_if(others.safetensors, [&](const std::string& name) {
    return std::binary_search(shards.begin(), shards.end(), name);
  });
  choose_unindexed(others, chosen);
  return true;
}

void choose_gguf(const Listing& listing, CheckpointFiles& chosen) {
  chosen.container = Checkpoint::Container::gguf;
  auto families = families_of(listing.gguf);
  // A multimodal projector lies beside the model it belongs to and is none itself.
  for (auto it = families.begin(); it != families.end() && families.size() > 1;) {
    if (!it->second.front().starts_with("mmproj")) {
      ++it;
      continue;
    }
    for (const std::string& name : it->second) leave_aside(chosen, name, "a projector beside the model");
    it = families.erase(it);
  }
  if (families.size() > 1) {
    throw Error::input(fmt::format("folder holds {} GGUF models", families.size()))
        .in(chosen.root)
        .remedy(fmt::format(
            "name one of them: {}",
            fmt::join(listing.gguf.begin(),
                      listing.gguf.begin() + std::min<std::ptrdiff_t>(5, std::ssize(listing.gguf)), ", ")));
  }
  chosen.names = families.begin()->second;
}

void choose_in_folder(CheckpointFiles& chosen) {
  const Listing listing = list_folder(chosen.root);
  if (!listing.indexes.empty()) {
    const bool is_named = !chosen.index_name.empty();
    if (!is_named) chosen.index_name = usual_index(listing);
    chosen.index = read_shard_index(chosen.root / chosen.index_name);
    if (is_named || !choose_whole_model(listing, chosen)) choose_indexed(listing, chosen);
  } else if (!listing.safetensors.empty()) {
    choose_unindexed(listing, chosen);
  } else if (!listing.gguf.empty()) {
    choose_gguf(listing, chosen);
  } else {
    throw Error::input("folder holds no .safetensors and no .gguf file").in(chosen.root);
  }
  if (chosen.container == Checkpoint::Container::safetensors) {
    for (const std::string& name : listing.gguf)
      leave_aside(chosen, name, "a GGUF file beside a safetensors model");
  }
}

// One file stands for itself; a part of a split GGUF stands for all of them, as it does for the loader.
void choose_single(const fs::path& path, CheckpointFiles& chosen) {
  const std::string name = path.filename().string();
  const File file = File::open(path);
  char magic[4] = {};
  file.read_at(0, std::as_writable_bytes(std::span(magic)));
  chosen.names = {name};
  if (std::string_view(magic, 4) != "GGUF") return;
  chosen.container = Checkpoint::Container::gguf;
  if (parse_shard_name(name)) chosen.names = families_of(list_folder(chosen.root).gguf)[family_of(name)];
  if (chosen.names.empty()) chosen.names = {name};
}

}  // namespace

CheckpointFiles choose_checkpoint_files(const fs::path& path) {
  CheckpointFiles chosen;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    chosen.root = enter_hub_cache(path);
    choose_in_folder(chosen);
  } else {
    chosen.root = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (path.filename().string().ends_with(kIndex)) {
      chosen.index_name = path.filename().string();
      choose_in_folder(chosen);
    } else {
      choose_single(path, chosen);
    }
  }
  std::sort(chosen.names.begin(), chosen.names.end());
  return chosen;
}

}  // namespace assay
