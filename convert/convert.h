// The conversion as a whole: plan, unfinished folder, shards, the rest of the model, proof, final name.
//
// All is written into `.<OUT>.assay-partial` beside OUT, which takes its final name only when everything in
// it is whole and, for lossless conversions, proved. What is interrupted or killed is taken up by --resume.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "convert/journal.h"
#include "convert/partial_folder.h"
#include "convert/pipeline.h"
#include "convert/proof.h"

namespace assay {

PartialFolder::Begin begin_of(const ConvertOptions& options);
// Of an earlier run's journal, below the folder that it wrote into: every byte as it was.
bool is_whole(const fs::path& folder, const FinishedFile& file);
inline constexpr const char* kFoundWhole =
    "an earlier run had finished this output; every byte is as its journal has it";

struct ConvertResult {
  std::vector<WorkError> errors;  // of lossy conversions, in the order of ConversionPlan::works
  std::optional<Proof> proof;
  std::uint64_t shards_reused = 0;  // with --resume
  std::uint64_t other_files = 0;
  std::string note;  // for whoever loads the result
  bool interrupted = false;
};

// Throws Error::refused where OUT cannot be a new folder apart from IN, or an unfinished conversion lies
// beside it that was not asked for. With --overwrite what an earlier conversion wrote may be in its place.
void check_output(const fs::path& in, const fs::path& out, const ConvertOptions& options);
// Bytes still to be written against what the file system has free: Error::io where they do not fit.
struct Space {
  std::uint64_t needed = 0, free = 0;
  void require(const fs::path& out) const;
};
Space space_for(std::uint64_t bytes, const fs::path& out);
Space check_space(const ConversionPlan& plan, const fs::path& out);

// Of a dry run: throws what convert() would throw before it writes.
void rehearse(const ConversionPlan& plan, const ConvertOptions& options);

ConvertResult convert(const fs::path& in, const fs::path& out, const ConversionPlan& plan,
                      const ConvertOptions& options, ProgressMode progress);

}  // namespace assay
