// Where the bytes of one output shard go: into a file, or cut over the files of several ranks.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "convert/plan.h"
#include "convert/ranks.h"
#include "core/system/file.h"

namespace assay {

class ShardSink {
 public:
  // Opens the shard's files as temporaries in `folder` and writes their headers.
  ShardSink(const ConversionPlan& plan, const OutputShard& shard, const fs::path& folder);

  // Bytes `at`, `at` + 1 … of the whole tensor, which is one of shard.tensors. Safe from several threads.
  void write(const OutputTensor& tensor, std::uint64_t at, std::span<const std::byte> bytes);
  // The file, where the shard is one: what is only copied need not pass through memory then.
  AtomicFile* whole() { return cut_ ? nullptr : files_.front().get(); }
  const std::vector<std::string>& names() const { return names_; }
  // The files as they are being written, in the order of their names.
  std::vector<File> reopened() const;
  void commit();  // every file durable under its name

 private:
  void open(const fs::path& folder, const std::string& name, const std::string& header, std::uint64_t bytes);

  const OutputShard& shard_;
  std::optional<CutShard> cut_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<AtomicFile>> files_;
};

}  // namespace assay
