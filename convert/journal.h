// Which shards are finished, so that a conversion killed at any moment goes on where it was.
//
// A file of JSON lines in the unfinished folder: the first says what is being made from what, each other one
// finished shard, or section of one (sections.h). A line is written after its shard is on disk; a torn last
// line counts for nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "convert/pipeline.h"
#include "core/formats/digest.h"

namespace assay {

struct FinishedShard {
  std::vector<FinishedFile> files;  // one, or one for each rank; of a section its tensors
  std::vector<WorkError> errors;
};

class Journal {
 public:
  static constexpr const char* kName = ".assay-convert.journal";

  // What must be the same for the shards already written to be of use: the spec and its options, and the
  // identity of every source file.
  static std::string key(const ConversionPlan& plan, const ConvertOptions& options);

  // What a journal tells of; nothing where there is none. Throws Error::refused when it is of another
  // conversion.
  static std::map<std::string, FinishedShard> read(const fs::path& file, const std::string& key);

  // Starts a journal in `folder`, or takes up the one there, as read() does.
  Journal(const fs::path& folder, const std::string& key, const std::string& name = kName);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  const std::map<std::string, FinishedShard>& finished() const { return finished_; }
  void add(const std::string& shard, FinishedShard result);

  // Of a conversion that ranks share, each keeps a journal of its own beside the others'. What they tell of; and what is
  // in them comes into this one, and they go.
  static std::string rank_name(std::uint32_t rank);
  static std::string rank_lock(std::uint32_t rank);  // held by a rank for as long as it writes
  static std::map<std::string, FinishedShard> read_all(const fs::path& folder, const std::string& key);
  void absorb_ranks(const std::string& key);

 private:
  void append(const std::string& line);
  fs::path path_;
  std::map<std::string, FinishedShard> finished_;
  int descriptor_ = -1;
};

}  // namespace assay
