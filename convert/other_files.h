// What lies beside the weights of a checkpoint and comes along with them: tokenizer, texts, code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convert/plan.h"

namespace assay {

struct OtherFile {
  std::string name;  // below the checkpoint's root
  std::uint64_t bytes;
};

// None where IN is a single file, or a GGUF is read or written. Weights in whatever container are left behind,
// and so is what the output has of its own or what would no longer be true of it.
std::vector<OtherFile> other_files(const ConversionPlan& plan);

}  // namespace assay
