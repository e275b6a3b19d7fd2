// What ways back out of a GGUF share (gguf_back.h).
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/model/gguf_said.h"

namespace assay::families::back {

inline void rename(ParsedJson& config, const char* from, const char* to) {
  const auto found = config.find(from);
  if (found == config.end()) return;
  config[to] = *found;
  config.erase(from);
}

inline std::string in_layer(std::uint64_t layer, std::string_view name) {
  return "blk." + std::to_string(layer) + "." + std::string(name);
}

inline bool is_sparse(const GgufSaid& said, std::uint64_t layer) {
  return said.has_tensor(in_layer(layer, "ffn_gate_inp.weight"));
}

// One text for each layer, by whether `is` holds of it.
template <class Is>
ParsedJson by_layer(const GgufSaid& said, const Is& is, const char* where_it_holds, const char* elsewhere) {
  ParsedJson list = ParsedJson::array();
  for (std::uint64_t i = 0; i < said.layers(); ++i) list.push_back(is(i) ? where_it_holds : elsewhere);
  return list;
}

// The list that a key is, whose values hold where they are not 0.
inline auto holds_in(std::vector<double> list) {
  return [list = std::move(list)](std::uint64_t i) { return i < list.size() && list[i] != 0; };
}

// One number of all layers, as the first has it.
inline void limit(const GgufSaid& said, ParsedJson& config, const char* key, const char* name) {
  const std::vector<double> limits = said.list(key);
  if (!limits.empty()) config[name] = shortest_decimal(limits.front());
}

}  // namespace assay::families::back
