// A conversion that many ranks share: `assay convert IN OUT --to SPEC --share`, one process a rank, OUT on a file system
// that all of them see.
//
// Every rank makes the same plan and works out by itself which output shards are its own: the largest first, each to
// whoever has least; of a GGUF, sections of its files (sections.h). It writes these into the unfinished folder beside OUT
// and notes them in a journal of its own there. Whoever finds, when it has written its last, that all ranks together have
// written everything takes the folder for itself and does what remains: index, config, digests, proof, the final name.
// So nobody waits for anybody; a rank that died is started again by the same command, and goes on where it was.
#pragma once

#include "convert/convert.h"

namespace assay {

struct ConversionShare {
  std::uint32_t rank = 0, ranks = 1;
};

struct SharedResult {
  std::size_t mine = 0, reused = 0, left = 0,
              all = 0;              // shards or sections: of this rank; not written by anybody yet
  bool finished_elsewhere = false;  // all is written, and another rank does the rest
  bool interrupted = false;
  std::optional<ConvertResult> whole;  // of the rank that did what remains
};

SharedResult convert_share(const fs::path& out, const ConversionPlan& plan, const ConvertOptions& options,
                           const ConversionShare& share, ProgressMode progress);

// Whose each is, of things so large: the largest first, to whoever has least.
std::vector<std::uint32_t> deal_by_size(std::span<const std::uint64_t> sizes, std::uint32_t ranks);

}  // namespace assay
