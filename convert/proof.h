// The certificate of a lossless conversion, from the output as it lies on disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convert/early_reading.h"
#include "convert/plan.h"
#include "core/formats/digest.h"
#include "core/model/stored_reader.h"
#include "core/system/progress.h"

namespace assay {

struct Proof {
  std::uint64_t tensors = 0, code_bytes = 0, scales = 0, values = 0;
  // sha256 over the sha256 of every tensor's stored bytes (scales of re-blocked weights apart), in the order
  // of the source: of the source, and of the output.
  Digest before, after;
  std::vector<std::string> faults;  // "model.…weight: …"
  bool holds() const { return faults.empty() && before == after; }
};

// Every stored byte but the new scales unchanged; every new scale the one that stood over its block; every
// re-blocked weight decoding to the same numbers. What is cut over ranks is put together again for it. Tensors of `early`
// that lie where they were read are not read again.
Proof prove(const ConversionPlan& plan, const ConvertOptions& options, const CheckpointReader& source,
            const fs::path& output, Progress& progress, const EarlyReads& early = {});

}  // namespace assay
