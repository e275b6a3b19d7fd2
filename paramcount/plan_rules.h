// What each engine asserts about shapes, and the words it uses. Sources beside the rules.
#pragma once

#include <string>
#include <vector>

#include "paramcount/plan.h"

namespace assay {

struct Ruling {
  std::vector<Refusal> refusals;
  std::vector<std::string> notes;
};
Ruling judge(Engine engine, const ModuleTree& tree, const Layout& layout, const PlanOptions& options);

// The largest square block, a divisor of the format's, that every cut shape is a multiple of; 0: none.
std::uint64_t largest_block(const ModuleTree& tree, const Layout& layout, const WeightFormat& format);

}  // namespace assay
