// A dump as taps in the order of a forward pass: names mapped, steps on end, ranks joined.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/dumps/dump_files.h"
#include "kernels/dumps/layout.h"
#include "kernels/dumps/name_map.h"

namespace assay::dumps {

struct Tap {
  std::string name;
  ForwardKey key;
  TapLayout layout;
  ElementType type = ElementType::F32;
  std::vector<std::vector<std::size_t>> steps;  // of each, pieces of DumpFiles by rank
  bool is_float() const;
  std::size_t ranks() const { return steps.front().size(); }
};

// One tap, a token a row.
struct Activations {
  std::size_t rows = 0, width = 0;
  std::vector<double> values;
  ElementType type = ElementType::F32;
  const double* row(std::size_t i) const { return values.data() + i * width; }
};

// A way to put the ranks' parts together, and the shapes that come of it.
struct JoinPlan {
  Join::Kind kind = Join::Kind::same;
  std::size_t axis = 0;
  std::vector<Shape> steps;
};
std::string describe(const JoinPlan& plan, std::size_t ranks);

class Dump {
 public:
  Dump(const fs::path& path, const std::vector<MapRule>& rules);

  const DumpFiles& files() const { return files_; }
  const std::vector<Tap>& taps() const { return taps_; }  // in forward order
  const Tap* find(std::string_view name) const;
  std::size_t dropped() const { return dropped_; }  // by the map

  // All ways, most likely first; the one that the map asks for.
  std::vector<JoinPlan> joins(const Tap& tap) const;
  // Throws Error::input where ranks that ought to hold the same do not.
  Activations load(const Tap& tap, const JoinPlan& join, const AxisPlan& axes) const;
  std::uint64_t bytes(const Tap& tap) const;  // once loaded

 private:
  // Pieces of one name, by place; of one place in the order they were written.
  struct Named {
    TapLayout layout;
    std::map<Place, std::vector<std::size_t>> at;
  };
  void add_taps(const std::string& name, Named& entry);
  Shape shape_of(const Tap& tap, std::size_t piece) const;  // after the map's transpose
  std::vector<double> read(const Tap& tap, std::size_t piece) const;
  std::vector<double> joined(const Tap& tap, const JoinPlan& join, std::size_t step) const;

  DumpFiles files_;
  std::vector<Tap> taps_;
  std::size_t dropped_ = 0;
};

// Heads of `head` elements re-ordered in place: pairs side by side to two halves, or back.
void pairs_to_halves(double* row, std::size_t width, std::size_t head);
void halves_to_pairs(double* row, std::size_t width, std::size_t head);

}  // namespace assay::dumps
