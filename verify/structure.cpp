#include "verify/structure.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/formats/gguf.h"
#include "core/formats/shard_index.h"
#include "core/system/error.h"
#include "core/system/threads.h"

namespace assay {
namespace {

std::string folder_of(std::string_view name) {
  const auto slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(name.substr(0, slash + 1));
}

std::string base_of(std::string_view name) {
  return std::string(name.substr(folder_of(name).size()));
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
  std::optional<safetensors::Header> safetensors;  // kept for the index check
  std::vector<TensorRange> tensors;
  Findings findings;
};

WeightHeader read_safetensors(const File& file, safetensors::Reading reading) {
  WeightHeader result;
  result.safetensors = safetensors::read_header(file, reading);
  result.findings = result.safetensors->deviations;
  const std::uint64_t base = result.safetensors->buffer_offset();
  for (const auto& t : result.safetensors->tensors) {
    result.tensors.push_back({t.name, t.type, t.shape, base + t.begin, base + t.end});
  }
  return result;
}

WeightHeader read_gguf(const File& file) {
  WeightHeader result;
  const gguf::Header header = gguf::read_header(file);
  result.findings = header.deviations;
  for (const auto& t : header.tensors) {
    const std::uint64_t begin = header.data_offset + t.offset;
    result.tensors.push_back({t.name, t.type, t.shape(), begin, begin + t.bytes});
  }
  return result;
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
  std::vector<std::string> weights;  // base names
  std::vector<PresentFile> indexes;
};

// The shards an index speaks of, and those that belong to the same numbered family: a
// `consolidated.safetensors` beside them holds the same weights once more and is none of the index's
// business.
std::vector<std::string> shards_of(const ShardIndex& index, const std::vector<std::string>& weights) {
  std::set<std::string> named;
  std::set<std::string> stems;
  for (const std::string& shard : index.shards()) {
    named.insert(shard);
    if (const auto parsed = parse_shard_name(shard)) stems.insert(parsed->stem);
  }
  std::vector<std::string> chosen;
  for (const std::string& weight : weights) {
    const auto parsed = parse_shard_name(weight);
    if (named.contains(weight) || (parsed && stems.contains(parsed->stem))) chosen.push_back(weight);
  }
  return chosen;
}

void check_folder(const std::string& folder, const Folder& contents,
                  const std::map<std::string, WeightHeader>& headers, Structure& structure) {
  Findings& whole = structure.whole;
  WeightFolder& weights = structure.folders[folder];
  const auto add = [&](Findings findings) {
    for (Finding& finding : findings) {
      if (!finding.file.empty()) finding.file.insert(0, folder);
      whole.push_back(std::move(finding));
    }
  };
  add(check_shard_numbering(contents.weights));
  for (const PresentFile& present : contents.indexes) {
    try {
      ShardIndex index = read_shard_index(present.path);
      std::vector<ShardHeader> shards;
      for (const std::string& shard : shards_of(index, contents.weights)) {
        const auto it = headers.find(folder + shard);
        const bool readable = it != headers.end() && it->second.safetensors;
        shards.push_back({shard, readable ? &*it->second.safetensors : nullptr});
      }
      add(check_shard_index(index, base_of(present.name), shards));
      if (!weights.index) weights.index = std::move(index);
    } catch (const Error& error) {
      whole.push_back({.severity = Severity::error,
                       .code = "index.malformed",
                       .message = error.message(),
                       .file = present.name,
                       .tensor = error.tensor(),
                       .offset = error.offset()});
    }
  }
}

}  // namespace

bool is_weight_name(std::string_view name) {
  return name.ends_with(".safetensors") || name.ends_with(".gguf");
}

bool is_index_name(std::string_view name) {
  return name.ends_with(".safetensors.index.json");
}

Structure check_structure(const std::vector<PresentFile>& files, safetensors::Reading reading, int jobs) {
  std::vector<const PresentFile*> weights;
  std::map<std::string, Folder> folders;
  for (const PresentFile& file : files) {
    if (is_weight_name(file.name)) {
      weights.push_back(&file);
      folders[folder_of(file.name)].weights.push_back(base_of(file.name));
    } else if (is_index_name(file.name)) {
      folders[folder_of(file.name)].indexes.push_back(file);
    }
  }
  std::vector<WeightHeader> read(weights.size());
  parallel_for(jobs, weights.size(), [&](std::size_t i) { read[i] = read_weight(*weights[i], reading); });

  Structure structure;
  std::map<std::string, WeightHeader> headers;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!read[i].findings.empty()) structure.per_file[weights[i]->name] = std::move(read[i].findings);
    headers.emplace(weights[i]->name, std::move(read[i]));
  }
  for (const auto& [folder, contents] : folders) check_folder(folder, contents, headers, structure);
  for (auto& [name, header] : headers) structure.tensors.emplace(name, std::move(header.tensors));
  return structure;
}

}  // namespace assay
