// What others have of Ling: its names, its experts, and the whole of Ling 2 and 3 under other sizes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/blocks.h"

namespace assay::families {

// How wide the shared experts are: as many routed ones (Ling 2), as many of moe_shared_expert_intermediate_size (Ling 3), or
// that alone (Param2).
enum class LingShared { routed_width, own_width, own_total };
struct LingExperts {
  std::uint64_t count, width, active = 8;
  LingShared shared = LingShared::routed_width;
};
blocks::Mixture read_ling_experts(ConfigReader& config, ModuleTree& tree, const Quantity& hidden,
                                  const LingExperts& of_class);
blocks::Frame ling_frame();

// Ling 1 and 2, and those after them whose class says:
struct LingClass {
  blocks::DecoderDefaults sizes;
  LingExperts experts;
  std::uint64_t dense_first = 0;
  bool second = true;  // with norms of queries and keys, and a bias for choosing experts
};
void describe_ling(ConfigReader& config, ModuleTree& tree, const LingClass& of_class);
void describe_ling3(ConfigReader& config, ModuleTree& tree);

Module ling_latent_attention(const blocks::LatentAttention& a);
// Layers behind the last, each of these blocks between the norms and the projection of multi-token prediction.
void add_latent_prediction(ModuleTree& tree, const blocks::Decoder& d, std::vector<std::uint64_t> indices,
                           const blocks::LatentAttention& a, std::vector<Module> blocks);

}  // namespace assay::families
