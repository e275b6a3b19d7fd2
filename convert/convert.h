// The conversion as a whole: plan, unfinished folder, shards, the rest of the model, proof, final name.
//
// All is written into `.<OUT>.assay-partial` beside OUT, which takes its final name only when everything in
// it is whole and, for lossless conversions, proved. What is interrupted or killed is taken up by --resume.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convert/destination.h"
#include "convert/pipeline.h"
#include "convert/proof.h"
#include "core/system/progress.h"

namespace assay {

struct ConvertResult {
  std::vector<WorkError> errors;  // of lossy conversions, in the order of what they tell of
  std::optional<Proof> proof;
  std::uint64_t reused = 0;  // with --resume: shards, or derived tensors
  std::uint64_t other_files = 0;
  std::string note;  // for whoever loads the result
  bool interrupted = false;
  // From and to GGUF: by name, of tensors and of the files that they lie in.
  std::map<std::string, Digest> tensor_digests, file_digests;
};

// Of a dry run: throws what convert() would throw before it writes.
void rehearse(const ConversionPlan& plan, const ConvertOptions& options, const fs::path& out);

// What remains when ranks have written every shard into `folder`, which is this one's alone now (share.h).
ConvertResult finish_shared(const fs::path& out, PartialFolder& folder, const ConversionPlan& plan,
                            const ConvertOptions& options, ProgressMode progress);

ConvertResult convert(const fs::path& out, const ConversionPlan& plan, const ConvertOptions& options,
                      ProgressMode progress);

}  // namespace assay
