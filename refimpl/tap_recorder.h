// Keeps the intermediates whose names match, and writes them as safetensors: [tokens, width] each, F32 (F64
// under f64); the tokens of all steps on end. Beside them "input_ids", I64 [tokens]: whose rows they are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/system/file.h"
#include "core/system/name_filter.h"
#include "refimpl/ops/interface.h"
#include "refimpl/step/taps.h"

namespace assay {

class TapRecorder : public TapListener {
 public:
  // Keeps at most `limit` bytes: beyond, Error::input.
  TapRecorder(Ops& ops, const std::string& pattern, std::uint64_t limit)
      : ops_(ops), filter_(pattern, ""), limit_(limit) {}

  void see(const std::string& name, const Matrix& value) override;
  void step(std::span<const std::uint32_t> tokens) override;
  void write(const fs::path& path, const std::vector<std::pair<std::string, std::string>>& metadata) const;
  // Throws Error::usage where the pattern matched no name, with some that there are.
  void require_some(const std::string& pattern) const;
  std::size_t size() const { return taken_.size(); }

 private:
  struct Taken {
    std::size_t width = 0;
    std::vector<double> values;
  };
  Ops& ops_;
  NameFilter filter_;
  std::uint64_t limit_, bytes_ = 0;
  std::map<std::string, Taken> taken_;
  std::vector<std::int64_t> ids_;    // of all steps
  std::vector<std::string> passed_;  // the first names that were not asked for
};

}  // namespace assay
