// The SHA-256 of files that are written in sections (sections.h), which is none of their sections': each file is hashed as it
// grows, beside its tensors, and not read again when it is whole.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "convert/output_digests.h"
#include "convert/plan.h"
#include "core/system/file.h"

namespace assay {

class WholeFiles {
 public:
  // The files in `folder` that one of `sections`, which are to be written, is of. What is no part of those is there.
  WholeFiles(const ConversionPlan& plan, std::span<const OutputShard* const> sections, const fs::path& folder,
             OutputDigests& digests);
  ~WholeFiles();
  WholeFiles(const WholeFiles&) = delete;
  WholeFiles& operator=(const WholeFiles&) = delete;

  GrowingFile* of(const OutputShard& section);  // nullptr: of none
  void all_written();  // every section has been: the rest of each file is there as well
  // OutputDigests has done with `file`. False: it is none of these.
  bool take(const GrowingFile& file);
  bool all_hashed() const { return left_ == 0; }
  std::map<std::string, Digest> digests() const;  // by name, of those that were hashed to their ends

 private:
  struct Whole {
    std::unique_ptr<GrowingFile> growing;
    bool hashed = false;
  };
  OutputDigests& digests_;
  std::map<std::string, Whole, std::less<>> files_;
  std::size_t left_ = 0;
};

}  // namespace assay
