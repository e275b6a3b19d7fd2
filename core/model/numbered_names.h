// A set of names of which thousands differ in numbers alone ("model.layers.3.mlp.experts.17.up_proj"): what stands
// around a layer's and an expert's number is held once, and numbers that follow each other as their first and last.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/system/string_hash.h"

namespace assay {

class NumberedNames {
 public:
  // Numbers are whole parts between dots; of a name's last one "[0-127]" stands for those from 0 to 127. `value` is what
  // is said of the name: of one said twice, one by one, the last counts.
  void add(std::string_view name, std::uint32_t value = 0);
  // Behind the last name, before any question.
  void settle();

  bool contains(std::string_view name) const;
  // False: none of the names has so many dots.
  bool may_have(std::size_t dots) const { return (depths_ & depth_bit(dots)) != 0; }
  std::uint64_t size() const;  // names
  bool empty() const { return stems_.empty(); }
  // As `add` takes them: those that follow each other, with one value, as one.
  void for_each(const std::function<void(const std::string& name, std::uint32_t value)>& visit) const;

 private:
  // The last number from `begin` to `end` (included), under one that stands before it, `above`.
  struct Run {
    std::uint32_t above = 0, begin = 0, end = 0, value = 0;
    bool is_next_of(const Run& other) const {
      return above == other.above && value == other.value && begin == other.end + std::uint64_t{1};
    }
    bool before(const Run& other) const {
      return above != other.above ? above < other.above : begin < other.begin;
    }
  };
  // A name without its last two numbers, and those.
  struct Parts {
    std::string stem;
    Run run;
  };
  static std::uint64_t depth_bit(std::size_t dots) {
    return std::uint64_t{1} << std::min<std::size_t>(dots, 63);
  }
  static void split(std::string_view name, Parts& parts);
  static std::vector<Run> in_order(std::vector<Run> runs);
  static void settle(std::vector<Run>& runs);

  // Lists of names go round: of a layer's experts each has the same few modules.
  struct Stem {
    explicit Stem(std::string stem);
    std::string text;
    std::size_t numbers[2] = {};  // where they stand in it, of which there are
    std::size_t count = 0;
    std::vector<Run> runs;
    bool joins = true;           // so far each name stands for one: those that follow each other are one run
    std::uint32_t follower = 0;  // the stem of the name that came behind this one's last time
  };
  static void append(Stem& stem, const Run& run);
  static std::vector<Run> apart(const std::vector<Run>& runs);  // number by number
  // Whether `name` is of this stem, as split() would find, with numbers and no "[0-127]" in it; its numbers, then.
  static bool is_of(const Stem& stem, std::string_view name, Run& run);
  std::uint32_t stem_of(std::string_view name);  // of the name that is added, whose numbers latest_ has then

  std::vector<Stem> stems_;
  std::unordered_map<std::string, std::uint32_t, StringHash, std::equal_to<>> places_;  // in stems_
  std::uint64_t depths_ = 0;
  std::uint32_t before_ = 0;  // the stem of the name that was added last
  Parts latest_;
};

}  // namespace assay
