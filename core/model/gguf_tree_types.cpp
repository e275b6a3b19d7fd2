#include "core/model/gguf_tree_types.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/gguf_names.h"
#include "core/model/gguf_rules.h"

namespace assay {
namespace {

std::uint32_t narrow(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, UINT32_MAX));
}

MixModel mix_model(const ModuleTree& tree) {
  MixModel model;
  const GgufFamily* family = gguf_family_of(tree);
  model.architecture = family == nullptr ? tree.family : std::string(family->architecture);
  model.layers = narrow(tree.layers);
  model.experts = narrow(tree.experts);
  if (!tree.attention.empty()) {
    const AttentionGeometry& first = tree.attention.front();
    const bool latent = first.kind == AttentionGeometry::Kind::latent;
    model.heads = narrow(first.heads);
    model.heads_kv = latent ? 1 : narrow(first.kv_heads);  // llama.cpp keeps one latent for all heads
  }
  return model;
}

const AttentionGeometry* latent_of(const ModuleTree& tree, std::uint64_t layer) {
  for (const AttentionGeometry& geometry : tree.attention) {
    const bool here =
        std::find(geometry.layers.begin(), geometry.layers.end(), layer) != geometry.layers.end();
    if (here && geometry.kind == AttentionGeometry::Kind::latent) return &geometry;
  }
  return nullptr;
}

std::uint64_t stored_bytes(ElementType type, std::uint64_t elements) {
  const ElementInfo& of = info(type);
  return (elements / of.block_elements + (elements % of.block_elements != 0 ? 1 : 0)) * of.block_bytes;
}

}  // namespace

GgufTreeTypes::GgufTreeTypes(const ModuleTree& tree, GgufFileType file) : tree_(tree), file_(file) {
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (!where.main() || spec.storage != Storage::own) return;
    std::vector<std::uint64_t> layers = {0};
    for (const Module* module : where.path) {
      if (module->repeat.over == Repeat::Over::layers) layers = module->repeat.indices;
    }
    for (const std::uint64_t layer : layers) {
      const std::size_t first = tensors_.size();
      take(spec, layer);
      ranges_[{&spec, layer}] = {first, tensors_.size() - first};
    }
  });
  types_ = gguf_mix(file, mix_model(tree), tensors_);
}

// The converter writes norms, biases and routers as floats, and leaves them so.
void GgufTreeTypes::add(std::string name, std::vector<std::uint64_t> dimensions) {
  tensors_.push_back({std::move(name), std::move(dimensions), ElementType::F32});
}

void GgufTreeTypes::take(const TensorSpec& spec, std::uint64_t layer) {
  const std::vector<std::string> names = gguf_names(spec, layer, gguf_family_of(tree_));
  const std::string name = names.empty() ? fmt::format("blk.{}.{}", layer, spec.name) : names.front();
  std::vector<std::uint64_t> dimensions(spec.shape.rbegin(), spec.shape.rend());
  if (dimensions.size() < 2 || spec.bias) return add(name, std::move(dimensions));
  if (spec.input_major) std::swap(dimensions[0], dimensions[1]);
  const AttentionGeometry* latent = spec.role == Role::kv_b ? latent_of(tree_, layer) : nullptr;
  if (latent != nullptr && !latent->kv_b_whole && latent->qk_head_dim > latent->rope_head_dim) {
    const std::uint64_t nope = latent->qk_head_dim - latent->rope_head_dim;
    add(fmt::format("blk.{}.attn_k_b.weight", layer), {nope, latent->kv_lora_rank, latent->heads});
    return add(fmt::format("blk.{}.attn_v_b.weight", layer),
               {latent->kv_lora_rank, latent->v_head_dim, latent->heads});
  }
  if (spec.part == Part::routed_expert && spec.role == Role::mlp_gate_up && spec.stacked != 0) {
    dimensions[1] /= 2;
    add(fmt::format("blk.{}.ffn_gate_exps.weight", layer), dimensions);
    return add(fmt::format("blk.{}.ffn_up_exps.weight", layer), std::move(dimensions));
  }
  if (spec.part == Part::routed_expert && spec.stacked == 0) dimensions.push_back(tree_.experts);
  add(name, std::move(dimensions));
}

std::string GgufTreeTypes::types_of(const TensorSpec& spec, std::uint64_t layer) const {
  const auto found = ranges_.find({&spec, layer});
  if (found == ranges_.end()) return std::string(name(gguf_default_type(file_)));
  std::string types;
  for (std::size_t i = 0; i < found->second.count; ++i) {
    const std::string_view type = name(types_[found->second.first + i]);
    if (types.find(type) == std::string::npos) types += (types.empty() ? "" : " ") + std::string(type);
  }
  return types;
}

std::uint64_t GgufTreeTypes::bytes(const TensorSpec& spec, std::uint64_t layer,
                                   std::uint64_t elements) const {
  const auto found = ranges_.find({&spec, layer});
  if (found == ranges_.end()) return stored_bytes(gguf_default_type(file_), elements);
  const Range& range = found->second;
  const auto size = [&](std::size_t i) {
    std::uint64_t product = 1;
    for (const std::uint64_t n : tensors_[i].dimensions) product *= n;
    return product;
  };
  std::uint64_t whole = 0, bytes = 0, left = elements;
  for (std::size_t i = range.first; i < range.first + range.count; ++i) whole += size(i);
  for (std::size_t i = range.first; i < range.first + range.count; ++i) {
    const bool last = i + 1 == range.first + range.count;
    // A share of every part, the last taking what is left.
    const std::uint64_t share = last
                                    ? left
                                    : static_cast<std::uint64_t>(static_cast<long double>(elements) *
                                                                 size(i) / std::max<std::uint64_t>(1, whole));
    bytes += stored_bytes(types_[i], share);
    left -= share;
  }
  return bytes;
}

}  // namespace assay
