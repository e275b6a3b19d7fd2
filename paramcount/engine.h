// An inference engine at a version: whose rules a plan is held against.
//
//   parse_engines("vllm@0.33,sglang").engines     vLLM 0.33.0 and the newest SGLang known
//
// `assay` is no engine to serve with, but how assay itself cuts a model over ranks (`run --tp`): asked for by name only.
//
// Known are the versions whose sources the tables (engine_vllm.cpp …) were read from. Another version gets the
// rules of the nearest older one known, and a remark that says so.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

enum class Engine { vllm, sglang, trtllm, assay };
std::string_view title(Engine engine);  // "vLLM"

struct EngineVersion {
  std::array<unsigned, 3> parts{};  // {0, 33, 0}
  std::string text() const;         // "0.33.0"
  friend auto operator<=>(const EngineVersion&, const EngineVersion&) = default;
};
std::span<const EngineVersion> known_versions(Engine engine);  // ascending

struct EngineAt {
  Engine engine;
  EngineVersion version;
  EngineAt(Engine which) : engine(which), version(known_versions(which).back()) {}
  EngineAt(Engine which, EngineVersion at) : engine(which), version(at) {}
  std::string text() const;  // "vLLM 0.33.0"
  friend bool operator==(const EngineAt&, const EngineAt&) = default;
};

struct EngineChoice {
  std::vector<EngineAt> engines;
  std::vector<std::string> remarks;  // where the version asked for is not one known
};
// "all" (that serve), or names with versions: "vllm@0.33,sglang". Throws Error::usage.
EngineChoice parse_engines(std::string_view text);

}  // namespace assay
