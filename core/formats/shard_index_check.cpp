// The index against the shards: does each say what the other says?
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/formats/shard_index.h"
#include "core/formats/two_models.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::size_t kToldEach = 10;  // findings of one code; the others are counted

class Check {
 public:
  Check(const ShardIndex& index, std::string_view index_name, std::span<const ShardHeader> shards)
      : index_(index), index_name_(index_name), shards_(shards) {
    for (std::size_t i = 0; i < shards.size(); ++i) {
      by_name_.emplace(shards[i].file_name, i);
      all_readable_ = all_readable_ && shards[i].header != nullptr;
    }
  }

  Findings run() {
    if (index_.weight_map.empty()) {
      tell("index.empty", "its weight_map is empty: loaders find no tensor", index_name_, {},
           "download it again, or rewrite it from the shards' headers");
      return std::move(findings_);
    }
    collect_tensors();
    check_shards();
    check_tensors();
    check_total();
    for (const auto& [code, count] : told_) {
      if (count <= kToldEach) continue;
      findings_.push_back({Severity::error,
                           code,
                           fmt::format("and {} more of these", count - kToldEach),
                           std::string(index_name_),
                           {},
                           {},
                           {}});
      findings_.back().severity = severity_of(code);
    }
    return std::move(findings_);
  }

 private:
  static Severity severity_of(std::string_view code) {
    const bool tolerable = code == "index.shard_unlisted" || code == "index.total_size";
    return tolerable ? Severity::warning : Severity::error;
  }
  void tell(const std::string& code, std::string message, std::string_view file, std::string_view tensor = {},
            std::string_view remedy = {}) {
    if (++told_[code] > kToldEach) return;
    findings_.push_back({severity_of(code),
                         code,
                         std::move(message),
                         std::string(file),
                         std::string(tensor),
                         {},
                         std::string(remedy)});
  }

  // Where each tensor lies, first by first: (name, shard), sorted.
  void collect_tensors() {
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      if (shards_[i].header == nullptr) continue;
      for (const safetensors::Tensor& tensor : shards_[i].header->tensors)
        places_.emplace_back(tensor.name, i);
    }
    std::sort(places_.begin(), places_.end());
  }
  void check_shards() {
    std::map<std::string_view, std::size_t> wanted;  // shard -> tensors that the index puts there
    for (const auto& [tensor, shard] : index_.weight_map) ++wanted[shard];
    for (const auto& [shard, tensors] : wanted) {
      if (by_name_.contains(shard)) continue;
      tell("index.shard_missing", fmt::format("file is missing; the index places {} tensors in it", tensors),
           shard, {}, "download it");
    }
    for (const ShardHeader& shard : shards_) {
      if (wanted.contains(shard.file_name)) continue;
      tell("index.shard_unlisted", fmt::format("file is not in {}", index_name_), shard.file_name);
    }
  }

  // Index and places are both sorted by tensor: one walk along the two tells what each has that the other
  // lacks.
  void check_tensors() {
    auto entry = index_.weight_map.begin();
    for (std::size_t first = 0, last = 0; first < places_.size(); first = last) {
      const std::string_view tensor = places_[first].first;
      for (last = first + 1; last < places_.size() && places_[last].first == tensor; ++last) {
        tell("index.tensor_twice",
             fmt::format("it lies in {} too", shards_[places_[last - 1].second].file_name),
             shards_[places_[last].second].file_name, tensor);
      }
      for (; entry != index_.weight_map.end() && entry->first < tensor; ++entry) check_entry(*entry, {});
      const std::span places(&places_[first], last - first);
      if (entry != index_.weight_map.end() && entry->first == tensor) {
        check_entry(*entry++, places);
      } else {
        tell("index.tensor_unlisted", fmt::format("it is not in {}", index_name_),
             shards_[places_[first].second].file_name, tensor);
      }
    }
    for (; entry != index_.weight_map.end(); ++entry) check_entry(*entry, {});
  }

  // `places`: where the tensor of this index entry really lies.
  void check_entry(const std::pair<const std::string, std::string>& entry,
                   std::span<const std::pair<std::string_view, std::size_t>> places) {
    const auto& [tensor, shard] = entry;
    const auto named = by_name_.find(shard);
    if (named == by_name_.end() || shards_[named->second].header == nullptr) return;  // told already
    const bool found = std::any_of(places.begin(), places.end(),
                                   [&](const auto& place) { return place.second == named->second; });
    if (found) return;
    if (!places.empty()) {
      tell("index.tensor_misplaced",
           fmt::format("the index places it here, but it lies in {}",
                       shards_[places.front().second].file_name),
           shard, tensor,
           "see whether the two files are swapped; else rewrite the index from the shards' headers");
    } else {
      tell("index.tensor_missing",
           all_readable_ ? "the index places it here, but no shard holds it"
                         : "the index places it here, but no shard that can be read holds it",
           shard, tensor, "download this shard again");
    }
  }

  // Only with all shards at hand is there a sum to compare.
  void check_total() {
    if (!index_.total_size || told_.contains("index.shard_missing") || !all_readable_) return;
    std::uint64_t bytes = 0, elements = 0;
    for (const ShardHeader& shard : shards_) {
      if (!listed(shard.file_name)) continue;
      for (const safetensors::Tensor& tensor : shard.header->tensors) {
        bytes += tensor.bytes();
        elements += element_count(tensor.shape).value_or(0);
      }
    }
    if (*index_.total_size == bytes) return;
    std::string message = fmt::format("total_size is {}, but the tensors hold {} bytes",
                                      with_thousands(*index_.total_size), with_thousands(bytes));
    if (elements <= UINT64_MAX / 2 && *index_.total_size == 2 * elements) {
      message +=
          fmt::format("; it is 2 x {} elements, as if all were stored as BF16", with_thousands(elements));
    }
    tell("index.total_size", message, index_name_);
  }
  bool listed(std::string_view file_name) {
    if (listed_.empty()) {
      for (const auto& [tensor, shard] : index_.weight_map) listed_.insert(shard);
    }
    return listed_.contains(file_name);
  }

  const ShardIndex& index_;
  const std::string_view index_name_;
  const std::span<const ShardHeader> shards_;
  bool all_readable_ = true;
  std::map<std::string_view, std::size_t> by_name_;
  std::vector<std::pair<std::string_view, std::size_t>> places_;
  std::set<std::string_view> listed_;
  std::map<std::string, std::size_t> told_;  // by code
  Findings findings_;
};

}  // namespace

Findings check_shard_index(const ShardIndex& index, std::string_view index_name,
                           std::span<const ShardHeader> shards) {
  return Check(index, index_name, shards).run();
}

Finding two_models(std::string_view index_name, std::size_t shards) {
  return {.severity = Severity::warning,
          .code = std::string(kTwoModels),
          .message = fmt::format("{} lies beside it and is none of its {} files: transformers loads that "
                                 "file, vLLM and SGLang load these",
                                 kWholeModel, shards),
          .file = std::string(index_name),
          .tensor = {},
          .offset = {},
          .remedy = "remove the one that is not meant"};
}

}  // namespace assay
