// Where the bytes of one output shard go: into a file, or cut over the files of several ranks.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "convert/output_digests.h"
#include "convert/plan.h"
#include "convert/ranks.h"
#include "core/system/file.h"

namespace assay {

struct FinishedFile {
  std::string name;
  std::uint64_t bytes = 0;
  Digest sha256;
};

class ShardSink {
 public:
  // Opens the shard's files as temporaries in `folder` and writes their headers; a section is written into its
  // file, which is there. `digests` hears of all that is written, and outlives this; so does `whole`, the file that a
  // section is of, where that is hashed as well.
  ShardSink(const ConversionPlan& plan, const OutputShard& shard, const fs::path& folder,
            OutputDigests& digests, GrowingFile* whole = nullptr);
  ~ShardSink();

  // Bytes `at`, `at` + 1 … of the whole tensor, which is one of shard.tensors. Safe from several threads.
  void write(const OutputTensor& tensor, std::uint64_t at, std::span<const std::byte> bytes);
  // The same of the first `bytes` of `memory`, which may be exchanged for other.
  void write(const OutputTensor& tensor, std::uint64_t at, std::uint64_t bytes, Scratch<std::byte>& memory);
  // The shard is one file: what is only copied need not pass through memory then.
  bool whole() const { return !cut_ && !section_of_; }
  void copy(const File& from, std::uint64_t from_offset, std::uint64_t to_offset, std::uint64_t bytes);

  const GrowingFile& file() const { return *growing_.front(); }  // of a shard that is one
  bool owns(const GrowingFile& file) const;
  std::size_t digests() const { return growing_.size(); }  // to be made
  void all_written();  // there is no more to come: what was not written reads as zeros
  // Each file, or each tensor of a section; once OutputDigests has done with them.
  std::vector<FinishedFile> finished() const;
  void sync() const;  // brings to disk what is there
  void commit();      // every file durable under its name

 private:
  void open(const fs::path& folder, const std::string& name, const std::string& header, std::uint64_t bytes);
  void open_section(const fs::path& path);
  std::size_t place_of(const OutputTensor& tensor) const;  // in the shard

  const OutputShard& shard_;
  OutputDigests& digests_;
  GrowingFile* whole_;
  std::optional<CutShard> cut_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<AtomicFile>> files_;
  std::unique_ptr<ResumableFile> section_of_;  // and what is noted down are tensors
  std::vector<std::unique_ptr<GrowingFile>> growing_;
};

}  // namespace assay
