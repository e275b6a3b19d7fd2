#include "core/model/stage_parts.h"

#include <algorithm>

namespace assay {

bool feeds_first_layer(const TensorSpec& spec) {
  switch (spec.role) {
    case Role::token_embedding:
    case Role::position_embedding:
    case Role::embedding_norm:
    case Role::per_layer_embedding: return true;
    // Gemma 3n makes streams of one, and behind the last layer one of them ("altup_unembed_projections").
    case Role::residual_mix: return spec.name.find("altup_projections") != std::string::npos;
    default: return false;
  }
}

std::vector<std::uint64_t> layers_of(const Occurrence& where) {
  if (where.tower) return {0};  // its blocks are numbered by themselves
  for (const Module* module : where.path) {
    if (module->repeat.over == Repeat::Over::layers) return module->repeat.indices;
  }
  return {0};
}

std::vector<std::uint64_t> layers_in_stage(const TensorSpec& spec, const Occurrence& where,
                                           const IndexRange& stage, bool first, bool last) {
  const bool in_layers = std::any_of(where.path.begin(), where.path.end(),
                                     [](const Module* m) { return m->repeat.over == Repeat::Over::layers; });
  if (where.tower) return first ? std::vector<std::uint64_t>{0} : std::vector<std::uint64_t>{};
  if (where.mtp) return last ? layers_of(where) : std::vector<std::uint64_t>{};
  if (!in_layers) {
    const bool lookup = feeds_first_layer(spec);
    // A tied head needs its matrix on the last stage too.
    const bool tied_copy = spec.storage == Storage::tied && last && !first;
    const bool here = spec.storage == Storage::tied ? tied_copy : lookup ? first : last;
    return here ? std::vector<std::uint64_t>{0} : std::vector<std::uint64_t>{};
  }
  std::vector<std::uint64_t> inside;
  for (const std::uint64_t layer : layers_of(where)) {
    if (layer >= stage.begin && layer < stage.end) inside.push_back(layer);
  }
  // Layers that have the weights of a first one share a single copy in a stage: the first stage holds that layer.
  if (spec.storage == Storage::tied) inside.resize(first ? 0 : std::min<std::size_t>(inside.size(), 1));
  return inside;
}

}  // namespace assay
