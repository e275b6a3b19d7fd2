#include "core/model/fused_sets.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace assay {
namespace {

constexpr std::string_view kWeight = ".weight";

// Modules of one parent, by their own names. A name may be part of two sets: w1 is the gate beside w3, and
// Qwen's beside w2, where c_proj is the way down.
using Names = std::array<std::string_view, 3>;
struct FusedNames {
  Names names;                    // empty: fewer
  std::string_view beside = {};   // only where the parent has this module, too
  std::string_view without = {};  // only where it has not
};
constexpr std::array kFused = {
    FusedNames{{"q_proj", "k_proj", "v_proj"}},
    FusedNames{{"query", "key", "value"}},
    FusedNames{{"query_proj", "key_proj", "value_proj"}},
    FusedNames{{"query_net", "key_net", "value_net"}},    // NeMo's
    FusedNames{{"q_lin", "k_lin", "v_lin"}},              // DistilBERT's
    FusedNames{{"project_q", "project_k", "project_v"}},  // CPM-Ant's
    FusedNames{{"q_head", "k_head", "v_head"}},           // Funnel's
    FusedNames{{"w_0", "w_1"}},
    FusedNames{{"wq", "wk", "wv"}},
    FusedNames{{"q", "k", "v"}},
    FusedNames{{"Wq", "Wk", "Wv"}},
    FusedNames{{"to_q", "to_k", "to_v"}},  // of diffusers
    FusedNames{{"wq_du", "wk_dv", "wv_dv"}},
    FusedNames{{"q_a_proj", "kv_a_proj_with_mqa"}},
    FusedNames{{"wq_a", "wkv_a", "wkv"}},  // DeepSeek's own names
    FusedNames{{"in_proj_qkv", "in_proj_z"}},
    FusedNames{{"in_proj_b", "in_proj_a"}},
    FusedNames{{"gate_proj", "up_proj"}},
    FusedNames{{"linear_gate", "up_proj"}},
    FusedNames{{"proj_up_gate", "proj_up"}},
    FusedNames{{"w1", "w3"}},
    FusedNames{{"w2", "w1"}, "c_proj", "w3"},
    FusedNames{{"c_fc_0", "c_fc_1"}},
    FusedNames{{"wi_0", "wi_1"}},  // T5's
    FusedNames{{"fc12", "fc11"}},  // NomicBert's
    FusedNames{{"linear", "linear_v"}, "linear_1"},
};

// A weight's module, and the parent of that: "….self_attn.", "q_proj".
struct ModuleName {
  std::string_view parent, own;
};
ModuleName split(std::string_view weight) {
  weight.remove_suffix(kWeight.size());
  const auto dot = weight.rfind('.');
  if (dot == std::string_view::npos) return {{}, weight};
  return {weight.substr(0, dot + 1), weight.substr(dot + 1)};
}

using Places = std::map<std::string_view, std::uint32_t>;  // of one parent's weights

bool applies(const FusedNames& fused, const Places& here) {
  return (fused.beside.empty() || here.contains(fused.beside)) &&
         (fused.without.empty() || !here.contains(fused.without));
}

FusedSet members_of(const FusedNames& fused, std::string_view parent, const Places& here,
                    std::span<const LogicalTensor> tensors) {
  FusedSet set;
  std::string names;
  for (const std::string_view name : fused.names) {
    const auto found = name.empty() ? here.end() : here.find(name);
    if (found == here.end()) continue;
    const LogicalTensor& tensor = tensors[found->second];
    if (!set.members.empty() && tensor.columns != tensors[set.members.front()].columns) continue;
    set.members.push_back(found->second);
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  set.name = std::string(parent) + "{" + names + "}";
  std::sort(set.members.begin(), set.members.end());
  return set;
}

}  // namespace

std::vector<FusedSet> find_fused_sets(std::span<const LogicalTensor> tensors) {
  std::map<std::string_view, Places> parents;
  for (std::uint32_t i = 0; i < tensors.size(); ++i) {
    const LogicalTensor& tensor = tensors[i];
    if (tensor.shape.size() != 2 || !tensor.name.ends_with(kWeight)) continue;
    const ModuleName module = split(tensor.name);
    parents[module.parent].emplace(module.own, i);
  }
  std::vector<FusedSet> sets;
  for (const auto& [parent, here] : parents) {
    for (const FusedNames& fused : kFused) {
      if (!applies(fused, here)) continue;
      FusedSet set = members_of(fused, parent, here, tensors);
      if (set.members.size() >= 2) sets.push_back(std::move(set));
    }
  }
  return sets;
}

}  // namespace assay
