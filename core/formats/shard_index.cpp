#include "core/formats/shard_index.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/json_events.h"
#include "core/system/error.h"
#include "core/system/file.h"

namespace assay {
namespace {

constexpr int kMaxDepth = 64;

// Fills a ShardIndex from the events of its JSON; what it does not know is passed over.
class IndexEvents {
 public:
  IndexEvents(std::string_view text, const fs::path& source)
      : reader_(text, kMaxDepth, *this), source_(source) {}

  ShardIndex read() {
    reader_.read();
    if (!has_weight_map_) throw Error::input("index has no weight_map").in(source_);
    return std::move(index_);
  }

  void null() { other("null"); }
  void boolean(bool) { other("a boolean"); }
  void whole_number(std::uint64_t value) {
    if (in_metadata() && key_ == "total_size")
      index_.total_size = value;
    else
      other("a number");
  }
  void other_number(double, std::string_view) { other("a number"); }
  void string(std::string_view shard) {
    if (in_weight_map())
      place(shard);
    else
      other("a string");
  }
  void key(std::string_view name) {
    if (depth_ > 2) return;
    key_ = name;
    if (depth_ != 1) return;
    section_ = name == "weight_map" ? Section::weight_map
               : name == "metadata" ? Section::metadata
                                    : Section::other;
    if (section_ == Section::weight_map && std::exchange(has_weight_map_, true))
      fail("index has two weight_maps");
  }
  void start_object() {
    if (in_weight_map()) other("an object");
    ++depth_;
  }
  void end_object() { --depth_; }
  void start_array() {
    if (depth_ == 0 || in_weight_map()) other("an array");
    if (depth_ == 1) other("an array");
    ++depth_;
  }
  void end_array() { --depth_; }
  [[noreturn]] void fail(std::string message) const {
    throw Error::input(std::move(message)).in(source_).at(reader_.position());
  }

 private:
  enum class Section { other, metadata, weight_map };
  bool in_weight_map() const { return depth_ == 2 && section_ == Section::weight_map; }
  bool in_metadata() const { return depth_ == 2 && section_ == Section::metadata; }

  // A value of no use to us, unless it stands where the map or one of its file names should.
  void other(std::string_view what) const {
    if (depth_ == 0) fail(fmt::format("index is {}, not an object", what));
    if (depth_ == 1 && section_ == Section::weight_map)
      fail(fmt::format("weight_map is {}, not an object", what));
    if (in_weight_map()) fail(fmt::format("the shard of tensor {:.200} is {}, not a file name", key_, what));
  }

  void place(std::string_view shard) {
    if (!is_safe_relative_path(shard) || shard.find('/') != std::string_view::npos) {
      throw Error::input(fmt::format("the shard \"{:.200}\" is not a plain file name", shard))
          .in(source_)
          .tensor(key_)
          .at(reader_.position())
          .remedy("do not load this checkpoint before you know who wrote its index");
    }
    const std::size_t before = index_.weight_map.size();
    index_.weight_map.emplace_hint(index_.weight_map.end(), key_, shard);  // many indexes are sorted
    if (index_.weight_map.size() == before) {
      throw Error::input("the index lists this tensor twice").in(source_).tensor(key_).at(reader_.position());
    }
  }

  JsonEventReader<IndexEvents> reader_;
  const fs::path& source_;
  ShardIndex index_;
  int depth_ = 0;
  Section section_ = Section::other;
  std::string key_;
  bool has_weight_map_ = false;
};

}  // namespace

std::vector<std::string> ShardIndex::shards() const {
  std::vector<std::string> names;
  for (const auto& [tensor, shard] : weight_map) {
    if (names.empty() || names.back() != shard) names.push_back(shard);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

ShardIndex parse_shard_index(std::string_view text, const fs::path& source) {
  return IndexEvents(text, source).read();
}

ShardIndex read_shard_index(const fs::path& path) {
  return parse_shard_index(read_small_file(path, kMaxIndexBytes), path);
}

}  // namespace assay
