#include "core/formats/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/formats/checkpoint_files.h"
#include "core/formats/mistral_params.h"
#include "core/formats/shard_numbering.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/memory_pages.h"
#include "core/system/threads.h"

namespace assay {
namespace {

constexpr std::size_t kToldTwice = 10;  // tensors found in two files; the others are counted

// What reading one file gave: one of the two headers, or a finding that says why not.
struct FileHeader {
  FileIdentity identity;
  std::optional<safetensors::Header> safetensors;
  std::optional<gguf::Header> gguf;
  Findings findings;
};

Finding unreadable(const Error& error) {
  return {.severity = Severity::error,
          .code = "checkpoint.unreadable",
          .message = error.message(),
          .file = {},
          .tensor = error.tensor(),
          .offset = error.offset(),
          .remedy = {}};
}

FileHeader read_one(const fs::path& path, Checkpoint::Container container) {
  FileHeader result;
  const File file = File::open(path);
  result.identity = file.identity();
  if (container == Checkpoint::Container::gguf) {
    result.gguf = gguf::read_header(file);
    result.findings = result.gguf->deviations;
  } else {
    result.safetensors = safetensors::read_header(file, safetensors::Reading::reference);
    result.findings = result.safetensors->deviations;
  }
  return result;
}

std::vector<FileHeader> read_headers(const CheckpointFiles& chosen, int jobs) {
  std::vector<FileHeader> headers(chosen.names.size());
  parallel_for(jobs, headers.size(), [&](std::size_t i) {
    try {
      headers[i] = read_one(chosen.root / chosen.names[i], chosen.container);
    } catch (const Error& error) {
      if (headers.size() == 1 || error.kind() == ErrorKind::internal) throw;
      headers[i].findings = {unreadable(error)};
    }
  });
  return headers;
}

// The shards against their index, or where there is none against their numbers, before headers are given
// away.
void check_shards(const CheckpointFiles& chosen, const std::vector<FileHeader>& headers, Findings& findings) {
  const auto add = [&](Findings more) { std::move(more.begin(), more.end(), std::back_inserter(findings)); };
  if (!chosen.index) {
    if (headers.size() > 1) add(check_shard_numbering(chosen.names));
    return;
  }
  add(check_shard_numbering(chosen.names, chosen.index->shards()));
  std::vector<ShardHeader> shards;
  for (std::size_t i = 0; i < headers.size(); ++i) {
    shards.push_back({chosen.names[i], headers[i].safetensors ? &*headers[i].safetensors : nullptr});
  }
  add(check_shard_index(*chosen.index, chosen.index_name, shards));
}

void take_tensors(FileHeader&& header, std::uint32_t file, Checkpoint& checkpoint) {
  if (header.safetensors) {
    const std::uint64_t base = header.safetensors->buffer_offset();
    auto& tensors = header.safetensors->tensors;
    drain_tail(tensors, tensors.size(), checkpoint.tensors, [&](safetensors::Tensor&& tensor) {
      return CheckpointTensor{std::move(tensor.name), tensor.type,    std::move(tensor.shape),
                              base + tensor.begin,    tensor.bytes(), file};
    });
    checkpoint.files[file].metadata = std::move(header.safetensors->metadata);
  }
  if (header.gguf) {
    const std::size_t first = checkpoint.tensors.size();
    for (gguf::Tensor& tensor : header.gguf->tensors) {
      checkpoint.tensors.push_back({std::move(tensor.name), tensor.type, tensor.shape(),
                                    header.gguf->data_offset + tensor.offset, tensor.bytes, file});
    }
    std::stable_sort(
        checkpoint.tensors.begin() + static_cast<std::ptrdiff_t>(first), checkpoint.tensors.end(),
        [](const CheckpointTensor& a, const CheckpointTensor& b) { return a.offset < b.offset; });
    if (!checkpoint.gguf) {
      header.gguf->tensors.clear();  // they are in the checkpoint's own list
      checkpoint.gguf = std::move(header.gguf);
    }
  }
}

void index_names(Checkpoint& checkpoint) {
  const auto& tensors = checkpoint.tensors;
  checkpoint.by_name.resize(tensors.size());
  std::iota(checkpoint.by_name.begin(), checkpoint.by_name.end(), 0u);
  std::sort(checkpoint.by_name.begin(), checkpoint.by_name.end(), [&](std::uint32_t a, std::uint32_t b) {
    const int compared = tensors[a].name.compare(tensors[b].name);
    return compared != 0 ? compared < 0 : a < b;
  });
}

// With an index, the index check has told of these.
void check_names_once(Checkpoint& checkpoint) {
  std::size_t twice = 0;
  for (std::size_t i = 1; i < checkpoint.by_name.size(); ++i) {
    const CheckpointTensor& first = checkpoint.tensors[checkpoint.by_name[i - 1]];
    const CheckpointTensor& second = checkpoint.tensors[checkpoint.by_name[i]];
    if (first.name != second.name || ++twice > kToldTwice) continue;
    checkpoint.findings.push_back(
        {.severity = Severity::error,
         .code = "checkpoint.tensor_twice",
         .message = fmt::format("it lies in {} too", checkpoint.files[first.file].name),
         .file = checkpoint.files[second.file].name,
         .tensor = second.name,
         .offset = {},
         .remedy = {}});
  }
  if (twice > kToldTwice) {
    checkpoint.findings.push_back(
        {.severity = Severity::error,
         .code = "checkpoint.tensor_twice",
         .message = fmt::format("and {} more tensors lie in two files", twice - kToldTwice),
         .file = {},
         .tensor = {},
         .offset = {},
         .remedy = {}});
  }
}

// A GGUF may hold a vocabulary alone.
void check_not_empty(Checkpoint& checkpoint) {
  const bool is_empty = checkpoint.tensors.empty() && !has_errors(checkpoint.findings) &&
                        checkpoint.container == Checkpoint::Container::safetensors;
  if (!is_empty) return;
  checkpoint.findings.push_back({.severity = Severity::error,
                                 .code = "checkpoint.no_tensors",
                                 .message = "there is no tensor in it",
                                 .file = checkpoint.files.empty() ? "" : checkpoint.files.front().name,
                                 .tensor = {},
                                 .offset = {},
                                 .remedy = "download or write it again"});
}

}  // namespace

const CheckpointTensor* Checkpoint::find(std::string_view name) const {
  const auto at = std::lower_bound(by_name.begin(), by_name.end(), name,
                                   [&](std::uint32_t i, std::string_view n) { return tensors[i].name < n; });
  return at != by_name.end() && tensors[*at].name == name ? &tensors[*at] : nullptr;
}

Checkpoint open_checkpoint(const fs::path& path, int jobs) {
  CheckpointFiles chosen = choose_checkpoint_files(path);
  std::vector<FileHeader> headers = read_headers(chosen, jobs);

  Checkpoint checkpoint;
  checkpoint.container = chosen.container;
  checkpoint.root = chosen.root;
  checkpoint.findings = std::move(chosen.findings);
  checkpoint.config = description_of_weights(chosen.root, chosen.names);
  check_shards(chosen, headers, checkpoint.findings);

  std::size_t count = 0;
  for (const FileHeader& header : headers) {
    count += header.safetensors ? header.safetensors->tensors.size()
             : header.gguf      ? header.gguf->tensors.size()
                                : 0;
  }
  checkpoint.tensors.reserve(count);
  for (std::size_t i = 0; i < headers.size(); ++i) {
    checkpoint.files.push_back(
        {chosen.names[i], chosen.root / chosen.names[i], headers[i].identity.size, {}, headers[i].identity});
    for (Finding& finding : headers[i].findings) {
      finding.file = chosen.names[i];
      checkpoint.findings.push_back(std::move(finding));
    }
    take_tensors(std::move(headers[i]), static_cast<std::uint32_t>(i), checkpoint);
  }
  checkpoint.index = std::move(chosen.index);
  index_names(checkpoint);
  if (!checkpoint.index) check_names_once(checkpoint);
  check_not_empty(checkpoint);
  return checkpoint;
}

}  // namespace assay
