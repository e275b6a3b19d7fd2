#include "core/model/families/llama_kin.h"

#include <utility>

namespace assay::families {
namespace {

using namespace blocks;

HeadAttention read_heads(ConfigReader& config, const Decoder& d, const LlamaKin& kin) {
  HeadAttention a = kin.heads;
  a.hidden = d.hidden, a.heads = d.heads, a.kv_heads = d.kv_heads, a.head_dim = d.head_dim;
  a.qkv_bias = kin.bias_keys.empty() ? kin.bias : config.flag(kin.bias_keys, kin.bias);
  if (!kin.output_bias_keys)
    a.output_bias = a.qkv_bias;
  else
    a.output_bias = !kin.output_bias_keys->empty() && config.flag(*kin.output_bias_keys, false);
  return a;
}

GatedMlp read_mlp(ConfigReader& config, const Decoder& d, const LlamaKin& kin) {
  GatedMlp mlp = kin.mlp;
  mlp.hidden = d.hidden, mlp.intermediate = d.intermediate;
  if (!kin.mlp_bias_keys.empty()) mlp.bias = config.flag(kin.mlp_bias_keys, kin.mlp.bias);
  return mlp;
}

Mixture read_experts_of(ConfigReader& config, ModuleTree& tree, const Decoder& d, const ExpertKin& kin) {
  Mixture m = kin.names;
  m.hidden = d.hidden;
  m.experts = read_experts(config, tree, kin.count_keys, kin.count, kin.active_keys, kin.active);
  m.expert_width = config.size(kin.width_keys, kin.width);
  if (!kin.shared_keys.empty()) {
    const std::uint64_t shared = config.optional_number(kin.shared_keys, kin.shared).value_or(0);
    if (shared > 0) m.shared_width = Quantity(std::string(kin.shared_keys), shared) * m.expert_width;
  }
  if (!kin.shared_width_keys.empty()) {
    const std::uint64_t width = config.optional_number(kin.shared_width_keys, kin.shared_width).value_or(0);
    if (width > 0) m.shared_width = Quantity(std::string(kin.shared_width_keys), width);
  }
  return m;
}

std::function<bool(std::uint64_t)> layers_of_experts(ConfigReader& config, const Quantity& count,
                                                     const ExpertKin& kin) {
  if (const auto types = layer_texts(config, "mlp_layer_types", count))
    return [types](std::uint64_t i) { return (*types)[i] == "sparse"; };
  const std::uint64_t dense =
      kin.dense_first_keys.empty() ? kin.dense_first : config.number(kin.dense_first_keys, kin.dense_first);
  return [dense](std::uint64_t i) { return i >= dense; };
}

void add_norms(Module& layer, const Decoder& d, const LlamaKin& kin) {
  const auto add = [&](std::string_view name, Role role) {
    if (!name.empty()) add_norm(layer, std::string(name), d.hidden, role, kin.norm_bias);
  };
  add(kin.input_norm, Role::input_norm);
  add(kin.after_attention, Role::post_attention_norm);
  add(kin.mlp_norm, Role::pre_feedforward_norm);
  add(kin.after_mlp, Role::post_feedforward_norm);
}

void note_attention(ConfigReader& config, ModuleTree& tree, const HeadAttention& a, const Quantity& count,
                    const LlamaKin& kin) {
  if (!kin.windows) {
    tree.attention.push_back(geometry(a, all_layers(count)));
    return;
  }
  const auto window = kin.window == 0 ? config.optional_number("sliding_window")
                                      : config.optional_number("sliding_window", kin.window);
  const auto windowed =
      windowed_layers(config, count, [&](std::uint64_t i) { return kin.windowed && kin.windowed(i); });
  add_geometry(tree, a, count, window ? windowed : std::vector<std::uint64_t>{}, window.value_or(0));
}

}  // namespace

KinParts describe_kin(ConfigReader& config, ModuleTree& tree, const LlamaKin& kin) {
  return describe_kin(config, tree, kin,
                      read_decoder(config, tree, kin.sizes, kin.latent ? HeadDim::unused : HeadDim::used));
}

KinParts describe_kin(ConfigReader& config, ModuleTree& tree, const LlamaKin& kin, const Decoder& d,
                      std::function<bool(std::uint64_t)> has_experts) {
  KinParts parts;
  Module &attend = parts.attend, &dense = parts.dense, &sparse = parts.sparse;
  if (kin.latent) {
    const LatentAttention a = read_latent_attention(config, d, *kin.latent);
    attend = attention(a);
    tree.attention.push_back(geometry(a, all_layers(d.layers)));
  } else {
    const HeadAttention a = read_heads(config, d, kin);
    attend = attention(a);
    note_attention(config, tree, a, d.layers, kin);
  }
  dense = gated_mlp(read_mlp(config, d, kin));
  if (kin.experts) {
    sparse = mixture(read_experts_of(config, tree, d, *kin.experts));
    if (!has_experts) has_experts = layers_of_experts(config, d.layers, *kin.experts);
  } else {
    has_experts = [](std::uint64_t) { return false; };
  }
  if (kin.more != nullptr) kin.more(config, d, attend, dense);
  const auto groups = group_layers(
      std::string(kin.layer_path), d.layers,
      [&](std::uint64_t i) {
        return !kin.experts ? "layers" : has_experts(i) ? "MoE layers" : "dense layers";
      },
      [&](Module& layer, std::uint64_t i) {
        add_norms(layer, d, kin);
        layer.children = {attend, has_experts(i) ? sparse : dense};
      });
  Frame frame = kin.frame;
  frame.norm_bias = kin.norm_bias;
  add_frame(tree, d, groups, frame);
  if (kin.no_final_norm) tree.modules.erase(tree.modules.end() - 2);
  return parts;
}

void add_positions(ModuleTree& tree, std::string path, const Quantity& positions, const Quantity& width) {
  Module table{std::move(path), "position embedding", {}, {}, {}};
  table.tensors.push_back(parameter("weight", {positions, width}, Role::position_embedding, Part::embedding));
  tree.modules.insert(tree.modules.begin() + 1, std::move(table));
}

}  // namespace assay::families
