// `assay run --kv-cache METHOD`: caches of the texts that are made, kept smaller than they are computed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/system/report.h"
#include "refimpl/caches/cache_bytes.h"
#include "refimpl/caches/cache_method.h"
#include "refimpl/engine/engine.h"
#include "refimpl/run_model.h"

namespace CLI {
class App;
}

namespace assay {

void add_cache_options(CLI::App& command, RunSettings& settings);
// Throws Error::usage where --kv-cache is beside what it does not go with.
void check_cache_options(const RunSettings& settings);

class RunCache {
 public:
  // Throws Error::usage, Error::input: no such method, or none for this model.
  RunCache(const OpenModel& model, const RunSettings& settings);
  void keep(TextEngine& engine);

  // Behind the last step: "h2o:budget=64: 96.0 bytes a token, 384 in full; 2 of 3 layers"
  std::string line() const;
  Json to_json() const;

 private:
  std::shared_ptr<const CacheMethod> method_;
  CutLayers layers_;
  std::vector<CacheWidth> widths_;
  double ungrouped_ = 0;  // bytes a token of the model whose layers are grouped; 0: they are as ever
  struct Text {
    std::size_t tokens = 0;
    CacheBytes bytes;
  };
  std::map<std::size_t, Text> texts_;
};

}  // namespace assay
