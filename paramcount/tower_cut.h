// Which matrices of a vision tower an engine cuts over the ranks of a tensor-parallel group. Engines have a class of their
// own for each kind of tower. Those that were read are in the table of tower_cut.cpp; of the others nothing is known, and a
// rank is counted with all of such a tower.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "paramcount/engine_rules.h"
#include "paramcount/plan.h"

namespace assay {

// Names as checkpoints have them, without ".weight": an end of them.
struct TowerClass {
  std::span<const std::string_view> architectures;
  std::uint64_t heads;                                // where vision_config does not say
  std::string_view attention;                         // stands in the names of what is cut by heads
  std::span<const std::string_view> outputs, inputs;  // modules cut by them
};
const TowerClass* tower_class(std::string_view architecture);

inline bool is_of_tower(const TensorSpec& spec) {
  return spec.part == Part::vision || spec.part == Part::audio || spec.part == Part::projector;
}

class TowerCut {
 public:
  // `whole`: as the engine is told to keep towers, where it can be (Rule::tower_data).
  TowerCut(const ModuleTree& tree, const Layout& layout, const EngineAt& engine, bool whole);

  const TowerClass* known() const { return class_; }
  std::uint64_t heads() const { return heads_; }
  bool heads_divide() const { return heads_ % tp_ == 0; }
  bool is_whole() const { return whole_; }
  // Whether the matrix goes with the heads of attention.
  bool of_attention(const TensorSpec& spec) const;
  // The dimension that is cut; nullopt: none.
  std::optional<std::size_t> dimension(const TensorSpec& spec) const;
  std::vector<std::uint64_t> rank_shape(const TensorSpec& spec) const;

 private:
  const TowerClass* class_ = nullptr;
  std::uint64_t tp_ = 1, heads_ = 0;
  bool whole_ = true, attention_whole_ = false;
};

}  // namespace assay
