#include "convert/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "convert/layout.h"
#include "convert/ranks.h"
#include "core/formats/json.h"
#include "core/model/stored_checks.h"
#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

struct Folder {
  std::uint64_t rank = 0;
  fs::path path;
};

std::vector<Folder> rank_folders(const fs::path& in) {
  std::vector<Folder> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(in, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("rank-") || !entry.is_directory()) continue;
    if (const auto rank = parse_u64(std::string_view(name).substr(5)))
      folders.push_back({*rank, entry.path()});
  }
  if (error) throw Error::input("cannot be read as a folder").in(in);
  std::sort(folders.begin(), folders.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  if (folders.empty())
    throw Error::input("holds no rank-00, rank-01, …").in(in).remedy("--merge takes what --tp wrote");
  for (std::size_t i = 0; i < folders.size(); ++i) {
    if (folders[i].rank != i) throw Error::input(fmt::format("rank {} is missing", i)).in(in);
  }
  return folders;
}

std::string metadata_of(const CheckpointFile& file, std::string_view key) {
  for (const auto& [name, value] : file.metadata) {
    if (name == key) return value;
  }
  throw Error::input(fmt::format("its __metadata__ has no \"{}\"", key))
      .in(file.path)
      .remedy("--merge takes what --tp wrote");
}

// What one file says of the part it holds of a tensor, held to the shape of that part.
class PartReader {
 public:
  PartReader(const fs::path& file, const CheckpointTensor& tensor) : file_(file), tensor_(tensor) {}

  struct Read {
    std::vector<std::uint64_t> whole;  // shape
    TensorCut cut;                     // with the one part
  };

  Read whole() const {
    Read read;
    read.whole = tensor_.shape;
    read.cut.row_bytes = tensor_.bytes;
    RankPart part;
    part.rows = {0, 1};
    part.ranges.push_back({{0, tensor_.bytes}});
    part.row_bytes = tensor_.bytes;
    read.cut.parts.push_back(std::move(part));
    return read;
  }

  Read cut(const ParsedJson& told) const {
    Read read;
    read.whole = numbers(told, "of");
    const std::uint64_t axis = number(told, "axis");
    if (read.whole.size() != tensor_.shape.size() || axis >= read.whole.size()) contradiction();
    std::vector<std::uint64_t> expected = read.whole;
    const std::uint64_t outer = product(std::span(read.whole).first(axis));
    const std::uint64_t inner = bytes_of(product(std::span(read.whole).subspan(axis + 1)));
    read.cut.rows = outer;
    read.cut.row_bytes = times(read.whole[axis], inner);
    RankPart part;
    part.rows = {0, outer};
    std::uint64_t held = 0;
    if (!told.contains("ranges") || !told["ranges"].is_array()) contradiction();
    for (const ParsedJson& item : told["ranges"]) {
      const IndexRange range = range_of(item, read.whole[axis]);
      held += range.size();
      part.ranges.push_back({{range.begin * inner, range.end * inner}});
    }
    if (held > tensor_.shape[axis]) contradiction();
    expected[axis] = tensor_.shape[axis];  // held, and zeros that pad a vocabulary
    part.row_bytes = times(tensor_.shape[axis], inner);
    if (told.contains("experts")) {
      const IndexRange experts = range_of(told["experts"], read.whole[0]);
      if (axis == 0) contradiction();
      const std::uint64_t each = outer / std::max<std::uint64_t>(1, read.whole[0]);
      part.rows = {experts.begin * each, experts.end * each};
      expected[0] = experts.size();
    }
    if (expected != tensor_.shape) contradiction();
    read.cut.parts.push_back(std::move(part));
    return read;
  }

 private:
  [[noreturn]] void contradiction() const {
    throw Error::input("what its file says of the part it holds contradicts its shape")
        .in(file_)
        .tensor(tensor_.name);
  }
  std::uint64_t times(std::uint64_t a, std::uint64_t b) const {
    std::uint64_t result;
    if (__builtin_mul_overflow(a, b, &result)) contradiction();
    return result;
  }
  std::uint64_t product(std::span<const std::uint64_t> shape) const {
    std::uint64_t result = 1;
    for (const std::uint64_t d : shape) result = times(result, d);
    return result;
  }
  std::uint64_t bytes_of(std::uint64_t elements) const {
    const auto bytes = storage_bytes(tensor_.type, elements);
    if (!bytes) contradiction();
    return *bytes;
  }
  std::uint64_t number(const ParsedJson& object, const char* key) const {
    if (!object.is_object() || !object.contains(key) || !object[key].is_number_unsigned()) contradiction();
    return object[key].get<std::uint64_t>();
  }
  std::vector<std::uint64_t> numbers(const ParsedJson& object, const char* key) const {
    if (!object.is_object() || !object.contains(key) || !object[key].is_array()) contradiction();
    std::vector<std::uint64_t> values;
    for (const ParsedJson& value : object[key]) {
      if (!value.is_number_unsigned()) contradiction();
      values.push_back(value.get<std::uint64_t>());
    }
    return values;
  }
  IndexRange range_of(const ParsedJson& pair, std::uint64_t limit) const {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() ||
        !pair[1].is_number_unsigned())
      contradiction();
    const IndexRange range{pair[0].get<std::uint64_t>(), pair[1].get<std::uint64_t>()};
    if (range.begin > range.end || range.end > limit) contradiction();
    return range;
  }

  const fs::path& file_;
  const CheckpointTensor& tensor_;
};

class Merger {
 public:
  Merger(const fs::path& in, const ConvertOptions& options) : in_(in), options_(options) {
    plan_.spec = parse_spec("copy", options.int8_range);
    plan_.from_folder = true;
  }

  ConversionPlan run() {
    const std::vector<Folder> folders = rank_folders(in_);
    for (const Folder& folder : folders) take(folder, folders.size());
    for (auto& [name, whole] : tensors_) finish(name, whole);
    tensors_.clear();
    lay_out(plan_, options_.jobs);
    for (const CheckpointFile& file : plan_.checkpoint.files) plan_.read_bytes += file.bytes;
    return std::move(plan_);
  }

 private:
  struct Whole {
    std::string shard;
    ElementType type;
    std::vector<std::uint64_t> shape;
    TensorCut cut;
    fs::path first;  // the file that told of it first
  };

  void take(const Folder& folder, std::size_t ranks) {
    Checkpoint part = open_checkpoint(folder.path, options_.jobs);
    for (const Finding& finding : part.findings) {
      if (finding.severity == Severity::error)
        throw Error::input(finding.message).in(folder.path).tensor(finding.tensor).remedy(finding.remedy);
    }
    if (folder.rank == 0) {
      plan_.checkpoint.root = part.root;
      plan_.checkpoint.config = part.config;
      plan_.checkpoint.index = part.index;
    }
    const auto first = static_cast<std::uint32_t>(plan_.checkpoint.files.size());
    std::vector<ParsedJson> cuts;
    for (CheckpointFile& file : part.files) {
      const std::string rank = metadata_of(file, kRankMetadata);
      if (rank != fmt::format("{}/{}", folder.rank, ranks)) {
        throw Error::input(
            fmt::format("says that it is of rank {}, in folder {} of {}", rank, folder.rank, ranks))
            .in(file.path);
      }
      cuts.push_back(parse_json(metadata_of(file, kCutMetadata), file.path));
      shard_of(file);
      file.name = folder.path.filename().string() + '/' + file.name;
      plan_.checkpoint.files.push_back(file);
    }
    for (const CheckpointTensor& tensor : part.tensors) {
      const fs::path& path = part.files[tensor.file].path;
      const ParsedJson& told = cuts[tensor.file];
      const PartReader reader(path, tensor);
      auto read =
          told.is_object() && told.contains(tensor.name) ? reader.cut(told[tensor.name]) : reader.whole();
      read.cut.parts.front().file = first + tensor.file;
      read.cut.parts.front().offset = tensor.offset;
      add(tensor, metadata_of(part.files[tensor.file], kShardMetadata), path, std::move(read));
    }
  }

  OutputShard& shard_of(const CheckpointFile& file) {
    const std::string name = metadata_of(file, kShardMetadata);
    if (!is_safe_relative_path(name) || !name.ends_with(".safetensors"))
      throw Error::input("names no file that it could be a part of").in(file.path);
    for (OutputShard& shard : plan_.shards) {
      if (shard.name == name) return shard;
    }
    OutputShard& shard = plan_.shards.emplace_back();
    shard.name = name;
    for (const auto& entry : file.metadata) {
      if (!entry.first.starts_with("assay.")) shard.metadata.push_back(entry);
    }
    return shard;
  }

  void add(const CheckpointTensor& tensor, const std::string& shard, const fs::path& path,
           PartReader::Read read) {
    const auto [place, fresh] = tensors_.try_emplace(tensor.name);
    Whole& whole = place->second;
    if (fresh) {
      whole = {shard, tensor.type, std::move(read.whole), std::move(read.cut), path};
      return;
    }
    if (whole.type != tensor.type || whole.shape != read.whole || whole.shard != shard ||
        whole.cut.rows != read.cut.rows || whole.cut.row_bytes != read.cut.row_bytes)
      throw Error::input(fmt::format("is another tensor than in {}", whole.first.string()))
          .in(path)
          .tensor(tensor.name);
    RankPart& part = read.cut.parts.front();
    // What several ranks hold alike is taken from the first of them.
    for (PartRange& range : part.ranges) {
      for (const RankPart& known : whole.cut.parts) {
        if (known.rows != part.rows) continue;
        for (const PartRange& there : known.ranges)
          range.repeated |= there.begin == range.begin && there.end == range.end;
      }
    }
    whole.cut.parts.push_back(std::move(part));
  }

  void finish(const std::string& name, Whole& whole) {
    if (!covers_once(whole.cut)) throw Error::input("the ranks do not hold all of it").in(in_).tensor(name);
    const auto shard = std::find_if(plan_.shards.begin(), plan_.shards.end(),
                                    [&](const OutputShard& s) { return s.name == whole.shard; });
    shard->tensors.push_back({name, whole.type, whole.shape, OutputTensor::Source::gathered,
                              static_cast<std::uint32_t>(plan_.gathered.size())});
    plan_.gathered.push_back(std::move(whole.cut));
  }

  const fs::path& in_;
  const ConvertOptions& options_;
  ConversionPlan plan_;
  std::map<std::string, Whole> tensors_;
};

}  // namespace

ConversionPlan make_merge_plan(const fs::path& in, const ConvertOptions& options) {
  return Merger(in, options).run();
}

}  // namespace assay
