// How the tensors of a dump are called and how they lie: a file that the user writes, rules applied one after
// another to each name, as a stream editor would.
//
//   # names of transformers modules -> ours
//   [test]                                            the dump meant; [ref], or nothing: TEST
//   ^model\.layers\.(\d+)\.  -> layers.$1.
//   self_attn$               -> attn_out
//   rotary_emb               -> -                     dropped
//   \.(q|k)$ { axes=batch,head,token,dim join=concat:head rope=pairs-to-halves:64 }
//
// or JSON: {"test": [{"match": "self_attn$", "to": "attn_out", "axes": ["batch", "token"], "join": "sum"}]}.
// Options hold for every name that the rule's pattern is found in.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "core/system/file.h"

namespace assay::dumps {

// What the ranks of one step hold of a tensor.
struct Join {
  enum class Kind { automatic, same, sum, concat } kind = Kind::automatic;
  std::string axis;  // of concat: a name of `axes`, or a number (-1: the last)
};

struct TapLayout {
  std::vector<std::string> axes;       // "batch", "token", and names for the rest; empty: found out
  std::vector<std::size_t> transpose;  // result axis i is stored axis transpose[i]; before `axes` are named
  Join join;
  double scale = 1;
  // Heads of so many elements whose rotary part lies in the other manner; 0: left as it is.
  std::size_t pairs_to_halves = 0, halves_to_pairs = 0;
};

struct MapRule {
  std::regex pattern;
  std::string source;             // of the pattern, for messages
  std::optional<std::string> to;  // replaces what was found; "-" drops the tensor
  std::vector<std::string> axes;
  std::vector<std::size_t> transpose;
  std::optional<Join> join;
  std::optional<double> scale;
  std::size_t pairs_to_halves = 0, halves_to_pairs = 0;
};

struct NameMap {
  std::vector<MapRule> ref, test;
};

struct MappedName {
  std::string name;
  TapLayout layout;
};
// nullopt: dropped.
std::optional<MappedName> mapped_name(const std::vector<MapRule>& rules, std::string_view name);

NameMap parse_name_map(std::string_view text, const fs::path& source);
NameMap read_name_map(const fs::path& path);

}  // namespace assay::dumps
