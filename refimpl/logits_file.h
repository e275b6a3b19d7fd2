// Logits of texts on their way into a safetensors file, a row as it comes: a row is as wide as the
// vocabulary, and those of a whole text may take more room than the model.
//
//   LogitsFile file("out.safetensors", {11, 7}, vocabulary, wide, metadata);   two texts: logits.0, logits.1
//   file.put(0, position, row);
//   file.commit();
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/system/file.h"

namespace assay {

class LogitsFile {
 public:
  // `tokens` of each text. One text is called "logits", several "logits.0", "logits.1" …; [tokens,
  // vocabulary] each, F64 where `wide`, else F32.
  LogitsFile(const fs::path& path, const std::vector<std::size_t>& tokens, std::size_t vocabulary, bool wide,
             const std::vector<std::pair<std::string, std::string>>& metadata);
  // Of a position that came before: what comes last holds.
  void put(std::size_t text, std::size_t position, std::span<const double> row);
  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
  std::vector<std::uint64_t> begins_;  // of each text, in the file
  std::uint64_t end_ = 0;              // of what was written in order
  std::vector<float> narrow_;          // a row
  bool wide_;
};

}  // namespace assay
