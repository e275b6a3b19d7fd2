#include "verify/structure.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "core/formats/gguf.h"
#include "core/formats/shard_index.h"
#include "core/formats/shard_numbering.h"
#include "core/formats/two_models.h"
#include "core/system/error.h"
#include "core/system/threads.h"
#include "verify/expected/weight_files.h"
#include "verify/self_declared.h"

namespace assay {
namespace {

std::string folder_of(std::string_view name) {
  const auto slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(name.substr(0, slash + 1));
}

Finding malformed(const Error& error, const std::string& name) {
  return {.severity = Severity::error,
          .code = name.ends_with(".gguf") ? "gguf.malformed" : "safetensors.malformed",
          .message = error.message(),
          .file = name,
          .tensor = error.tensor(),
          .offset = error.offset()};
}

struct WeightHeader {
  std::optional<safetensors::Header> safetensors;  // for the index check
  std::vector<TensorRange> tensors;                // of a GGUF
  Findings findings;
};

WeightHeader read_safetensors(const File& file, safetensors::Reading reading) {
  WeightHeader result;
  result.safetensors = safetensors::read_header(file, reading);
  result.findings = result.safetensors->deviations;
  return result;
}

WeightHeader read_gguf(const File& file) {
  WeightHeader result;
  gguf::Header header = gguf::read_header(file);
  result.findings = std::move(header.deviations);
  result.tensors.reserve(header.tensors.size());
  for (gguf::Tensor& t : header.tensors) {
    const std::uint64_t begin = header.data_offset + t.offset;
    result.tensors.push_back({std::move(t.name), t.type, t.shape(), begin, begin + t.bytes});
  }
  return result;
}

std::vector<TensorRange> take_ranges(WeightHeader&& header) {
  if (!header.safetensors) return std::move(header.tensors);
  const std::uint64_t base = header.safetensors->buffer_offset();
  std::vector<TensorRange> ranges = std::move(header.safetensors->tensors);
  for (TensorRange& range : ranges) range.begin += base, range.end += base;
  header.safetensors.reset();
  return ranges;
}

WeightHeader read_weight(const PresentFile& present, safetensors::Reading reading) {
  WeightHeader result;
  try {
    const File file = File::open(present.path);
    result = present.name.ends_with(".gguf") ? read_gguf(file) : read_safetensors(file, reading);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    result.findings = {malformed(error, present.name)};
  }
  for (Finding& finding : result.findings) finding.file = present.name;
  return result;
}

struct Folder {
  std::vector<std::string> weights;   // base names of the files whose headers are read
  std::vector<std::string> numbered;  // and of weights of any format that are numbered as shards are
  std::set<std::string> names;        // all base names
  std::vector<PresentFile> indexes;
};

// The shards an index speaks of, and those that belong to the same numbered family: a
// `consolidated.safetensors` beside them holds the same weights once more and is none of the index's
// business.
std::set<std::string> shards_of(const std::vector<std::string>& named, const Folder& folder) {
  std::set<std::string> chosen;
  std::set<std::pair<std::string, std::string>> families;
  for (const std::string& shard : named) {
    if (folder.names.contains(shard)) chosen.insert(shard);
    if (const auto parsed = parse_shard_name(shard)) families.insert({parsed->stem, parsed->extension});
  }
  for (const std::string& shard : folder.numbered) {
    const auto parsed = parse_shard_name(shard);
    if (parsed && families.contains({parsed->stem, parsed->extension})) chosen.insert(shard);
  }
  return chosen;
}

class FolderCheck {
 public:
  FolderCheck(const std::string& folder, const Folder& contents,
              const std::map<std::string, WeightHeader>& headers, Structure& structure)
      : folder_(folder), contents_(contents), headers_(headers), structure_(structure) {}

  void run() {
    WeightFolder& weights = structure_.folders[folder_];
    std::vector<std::string> indexed;
    for (const PresentFile& present : contents_.indexes) {
      std::optional<ShardIndex> index = read_index(present);
      if (!index) continue;
      const std::vector<std::string> shards = index->shards();
      indexed.insert(indexed.end(), shards.begin(), shards.end());
      check_index(std::string(base_of(present.name)), *index, shards);
      if (!weights.index && is_first_choice(present.name)) weights.index = std::move(index);
    }
    add(check_shard_numbering(contents_.numbered, indexed));
    check_not_empty();
  }

 private:
  // Files that are whole, and of which loaders get nothing.
  void check_not_empty() {
    std::string first;
    for (const std::string& name : contents_.weights) {
      const auto it = headers_.find(folder_ + name);
      if (!name.ends_with(".safetensors") || it == headers_.end()) continue;
      if (!it->second.safetensors || !it->second.safetensors->tensors.empty()) return;
      if (first.empty()) first = name;
    }
    if (first.empty()) return;
    add({{.severity = Severity::error,
          .code = "checkpoint.no_tensors",
          .message = "there is no tensor in it",
          .file = first,
          .remedy = "download or write it again"}});
  }

  // The one that loaders look for first. Others may come with a download of other files (*.json).
  static bool is_first_choice(std::string_view name) { return name.ends_with(".safetensors.index.json"); }

  void add(Findings findings) {
    for (Finding& finding : findings) {
      if (!finding.file.empty()) finding.file.insert(0, folder_);
      structure_.whole.push_back(std::move(finding));
    }
  }

  std::optional<ShardIndex> read_index(const PresentFile& present) {
    try {
      return read_shard_index(present.path);
    } catch (const Error& error) {
      structure_.whole.push_back({.severity = Severity::error,
                                  .code = "index.malformed",
                                  .message = error.message(),
                                  .file = present.name,
                                  .tensor = error.tensor(),
                                  .offset = error.offset()});
      return std::nullopt;
    }
  }

  void check_index(const std::string& name, const ShardIndex& index, const std::vector<std::string>& named) {
    const std::set<std::string> here = shards_of(named, contents_);
    if (here.empty() && !contents_.weights.empty() && !is_first_choice(name)) {
      add({{.severity = Severity::note,
            .code = "index.unused",
            .message = "none of its files is here; the weights are, in others",
            .file = name}});
      return;
    }
    const bool is_beside = is_first_choice(name) && contents_.names.contains(std::string(kWholeModel)) &&
                           !named.empty() && !std::binary_search(named.begin(), named.end(), kWholeModel);
    if (is_beside) add({two_models(name, named.size())});
    std::vector<ShardHeader> shards;
    for (const std::string& shard : here) {
      const auto it = headers_.find(folder_ + shard);
      const bool readable = it != headers_.end() && it->second.safetensors;
      shards.push_back({shard, readable ? &*it->second.safetensors : nullptr});
    }
    add(check_shard_index(index, name, shards));
  }

  const std::string& folder_;
  const Folder& contents_;
  const std::map<std::string, WeightHeader>& headers_;
  Structure& structure_;
};

// The formats that loaders split into numbered files.
bool is_sharded_format(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kEndings = {".safetensors", ".gguf", ".bin",    ".pt",
                                                               ".pth",         ".h5",   ".msgpack"};
  return std::any_of(kEndings.begin(), kEndings.end(), [&](auto end) { return name.ends_with(end); });
}

}  // namespace

bool is_weight_name(std::string_view name) {
  return name.ends_with(".safetensors") || name.ends_with(".gguf");
}

Structure check_structure(const std::vector<PresentFile>& files, safetensors::Reading reading, int jobs) {
  std::vector<const PresentFile*> weights;
  std::map<std::string, Folder> folders;
  for (const PresentFile& file : files) {
    Folder& folder = folders[folder_of(file.name)];
    const std::string base(base_of(file.name));
    folder.names.insert(base);
    if (is_weight_name(base)) {
      weights.push_back(&file);
      folder.weights.push_back(base);
    }
    if (is_sharded_format(base) && parse_shard_name(base)) folder.numbered.push_back(base);
    if (is_shard_index_name(base)) folder.indexes.push_back(file);
  }
  std::vector<WeightHeader> read(weights.size());
  parallel_for(jobs, weights.size(), [&](std::size_t i) { read[i] = read_weight(*weights[i], reading); });

  Structure structure;
  std::map<std::string, WeightHeader> headers;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!read[i].findings.empty()) structure.per_file[weights[i]->name] = std::move(read[i].findings);
    headers.emplace(weights[i]->name, std::move(read[i]));
  }
  for (const auto& [folder, contents] : folders) {
    const bool of_interest =
        !contents.weights.empty() || !contents.numbered.empty() || !contents.indexes.empty();
    if (of_interest) FolderCheck(folder, contents, headers, structure).run();
  }
  for (const auto& [name, header] : headers) {
    if (!header.safetensors || header.safetensors->metadata.empty()) continue;
    Findings findings;
    if (FileClaims claims = self_declared(*header.safetensors, name, findings); !claims.empty())
      structure.declared[name] = std::move(claims);
    if (!findings.empty()) {
      Findings& known = structure.per_file[name];
      std::move(findings.begin(), findings.end(), std::back_inserter(known));
    }
  }
  for (auto& [name, header] : headers) structure.tensors.emplace(name, take_ranges(std::move(header)));
  return structure;
}

}  // namespace assay
