// Reading what every decoder's config has: sizes, experts, windows.
#include <fmt/format.h>

#include <algorithm>

#include "core/model/blocks.h"
#include "core/model/limits.h"

namespace assay::blocks {

Decoder read_decoder(ConfigReader& config, ModuleTree& tree, const DecoderDefaults& defaults,
                     HeadDim head_dim) {
  Decoder d;
  d.vocabulary = config.size("vocab_size", defaults.vocabulary);
  d.hidden = config.size("hidden_size|n_embd|d_model", defaults.hidden);
  if (defaults.intermediate != 0) d.intermediate = config.size("intermediate_size", defaults.intermediate);
  d.layers = read_layers(config, "num_hidden_layers|n_layer|n_layers|num_layers", defaults.layers);
  d.heads = config.size("num_attention_heads|n_head|n_heads", defaults.heads);
  if (head_dim == HeadDim::used) {
    d.kv_heads = defaults.kv_heads ? config.size("num_key_value_heads", *defaults.kv_heads)
                                   : config.size("num_key_value_heads", d.heads);
    config.require_divides(d.kv_heads, d.heads);
    const bool given = config.has("head_dim") || defaults.head_dim;
    d.head_dim = given ? config.size("head_dim", defaults.head_dim.value_or(0))
                       : config.quotient(d.hidden, d.heads, "head_dim");
  }
  d.tied = config.tied_embeddings(defaults.tied);
  note_sizes(tree, d);
  return d;
}

Quantity read_layers(ConfigReader& config, std::string_view keys, std::uint64_t class_default) {
  Quantity count = config.size(keys, class_default);
  config.require(count.value() <= kMostLayers,
                 fmt::format("{} is {}: no model has so many layers", count.name(), count.value()));
  return count;
}

void note_sizes(ModuleTree& tree, const Decoder& d) {
  tree.hidden_size = d.hidden.value();
  tree.layers = d.layers.value();
  tree.vocabulary = d.vocabulary.value();
  tree.tied_embeddings = d.tied;
}

std::uint64_t read_mtp_layers(ConfigReader& config, std::uint64_t class_default) {
  const std::uint64_t count =
      config.optional_number("num_nextn_predict_layers|num_mtp_layers", class_default).value_or(0);
  config.require(count <= kMostLayers,
                 fmt::format("num_nextn_predict_layers is {}: no model has so many", count));
  return count;
}

std::vector<std::uint64_t> layers_after(const Quantity& count, std::uint64_t extra) {
  std::vector<std::uint64_t> indices;
  for (std::uint64_t i = 0; i < extra; ++i) indices.push_back(count.value() + i);
  return indices;
}

Experts read_experts(ConfigReader& config, ModuleTree& tree, std::string_view count_keys, std::uint64_t count,
                     std::string_view active_keys, std::uint64_t active) {
  const Quantity total = config.size(count_keys, count), chosen = config.size(active_keys, active);
  config.require(total.value() <= kMostExperts,
                 fmt::format("{} is {}: no model has so many experts", total.name(), total.value()));
  config.require(chosen.value() <= total.value(),
                 fmt::format("{} {} exceeds {} {}: a token cannot visit more experts than there are",
                             chosen.name(), chosen.value(), total.name(), total.value()));
  tree.experts = total.value();
  tree.experts_per_token = chosen.value();
  return {total, chosen.value()};
}

namespace {

template <typename List>
std::optional<List> checked_list(ConfigReader& config, std::string_view key, std::optional<List> list,
                                 const Quantity& layers, bool whole) {
  if (!list) return list;
  while (key.find('|') != std::string_view::npos && !config.has(key.substr(0, key.find('|'))))
    key.remove_prefix(key.find('|') + 1);
  config.require(list->size() >= layers.value(),
                 fmt::format("{} lists {} layers, {} says {}", key.substr(0, key.find('|')), list->size(),
                             layers.name(), layers.value()));
  if (!whole) list->resize(layers.value());
  return list;
}

}  // namespace

std::optional<std::vector<std::string>> layer_texts(ConfigReader& config, std::string_view key,
                                                    const Quantity& layers, bool whole) {
  return checked_list(config, key, config.texts(key), layers, whole);
}
std::optional<std::vector<std::uint64_t>> layer_numbers(ConfigReader& config, std::string_view key,
                                                        const Quantity& layers, bool whole) {
  return checked_list(config, key, config.numbers(key), layers, whole);
}

std::vector<std::uint64_t> windowed_layers(ConfigReader& config, const Quantity& layers,
                                           const std::function<bool(std::uint64_t)>& otherwise) {
  const auto types = config.texts("layer_types");
  if (!types) return layers_where(layers, otherwise);
  config.require(types->size() >= layers.value(), fmt::format("layer_types lists {} layers, {} says {}",
                                                              types->size(), layers.name(), layers.value()));
  for (const std::string& type : *types) {
    config.require(type == "full_attention" || type == "sliding_attention" || type == "chunked_attention" ||
                       type == "indexed_attention",
                   fmt::format("layer_types holds \"{}\", which this family does not have", type));
  }
  return layers_where(layers, [&](std::uint64_t i) {
    return (*types)[i] == "sliding_attention" || (*types)[i] == "chunked_attention";
  });
}

std::function<bool(std::uint64_t)> all_but_every(ConfigReader& config, std::string_view key,
                                                 std::uint64_t class_default) {
  const std::uint64_t every =
      config.has("layer_types") ? class_default : config.size(key, class_default).value();
  return [every](std::uint64_t layer) { return (layer + 1) % every != 0; };
}

void add_geometry(ModuleTree& tree, const HeadAttention& a, const Quantity& layers,
                  const std::vector<std::uint64_t>& windowed, std::uint64_t window) {
  const auto sees_all = layers_where(
      layers, [&](std::uint64_t i) { return !std::binary_search(windowed.begin(), windowed.end(), i); });
  if (!sees_all.empty()) tree.attention.push_back(geometry(a, sees_all));
  if (!windowed.empty()) tree.attention.push_back(geometry(a, windowed, window));
}

}  // namespace assay::blocks
