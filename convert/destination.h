// OUT: what may lie there, what an earlier run left of it, whether there is room.
#pragma once

#include "convert/journal.h"
#include "convert/partial_folder.h"
#include "convert/plan.h"
#include "core/system/progress.h"

namespace assay {

inline constexpr const char* kManifest = "SHA256SUMS";  // of every file of a folder

PartialFolder::Begin begin_of(const ConvertOptions& options);

// Throws Error::refused where OUT cannot be a new folder apart from IN, or an unfinished conversion lies
// beside it that was not asked for. With --overwrite what an earlier conversion wrote may be in its place.
void check_output(const fs::path& in, const fs::path& out, const ConvertOptions& options);
// The same of the name of a file that lies beside others.
void check_name_is_free(const ConversionPlan& plan, const OutputShard& file, const fs::path& out);

// Of an earlier run's journal, below the folder that it wrote into: every byte as it was. `shard` may be a section;
// its files are its tensors then.
bool is_whole(const OutputShard& shard, const FinishedShard& finished, std::size_t file,
              const fs::path& folder);

// The same, by its length alone: of what another process has just brought to disk.
bool is_there(const OutputShard& shard, const FinishedShard& finished, std::size_t file,
              const fs::path& folder);

// --resume of what has come to its end, down to the last trace of it: whether OUT is what the plan would make, as far as
// sizes, headers, config.json and, of a folder, the digests that it has of itself tell. False where there is no OUT, or
// a trace that says more. Throws Error::refused where something else is there.
bool is_finished(const ConversionPlan& plan, const ConvertOptions& options, const fs::path& out,
                 ProgressMode mode = ProgressMode::never);

// Bytes still to be written against what the file system has free: Error::io where they do not fit.
struct Space {
  std::uint64_t needed = 0, reserve = 0, free = 0;  // `needed`: with the reserve
  void require(const fs::path& out) const;
};
Space check_space(const ConversionPlan& plan, const fs::path& out);

}  // namespace assay
