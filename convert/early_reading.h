// What a conversion only copies is proved while the rest is still being converted: each shard is read again from the disk as
// soon as the disk has it, and held against the source, which the page cache may still have.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "convert/plan.h"
#include "convert/same_bytes.h"
#include "core/model/stored_reader.h"

namespace assay {

// Of one tensor: where it was read, and what was found.
struct EarlyRead {
  std::string file;
  std::uint64_t offset = 0;
  ReadTwice read;
};
using EarlyReads = std::map<std::uint32_t, EarlyRead>;  // by place in Checkpoint::tensors of the source

class EarlyReading {
 public:
  // All outlive this.
  EarlyReading(const ConversionPlan& plan, const CheckpointReader& source, int jobs)
      : plan_(plan), source_(source), reading_(jobs) {}

  // Whether the plan's output can be read so: whole files, whose tensors are the source's.
  static bool suits(const ConversionPlan& plan);
  // The shard's file has been written and flushed. Safe from several threads.
  void add(const OutputShard& shard, std::shared_ptr<const File> file);
  // Waits for what was begun.
  EarlyReads finish();

 private:
  const ConversionPlan& plan_;
  const CheckpointReader& source_;
  std::mutex mutex_;
  EarlyReads reads_;
  ReadingTwice reading_;  // the last member: it uses the others
};

// Beside its sign, a code of a byte is a number below this; nullopt: not told so easily.
std::optional<std::uint8_t> first_non_finite(ElementType codes);

}  // namespace assay
