#include "core/model/reconcile_layers.h"

#include <fmt/format.h>

#include "core/formats/json.h"
#include "core/model/config.h"
#include "core/model/stored_names.h"
#include "core/system/text.h"

namespace assay {

std::string ranges(const std::set<std::uint64_t>& layers) {
  std::string text;
  for (auto at = layers.begin(); at != layers.end();) {
    const std::uint64_t first = *at;
    std::uint64_t last = first;
    while (++at != layers.end() && *at == last + 1) last = *at;
    text += (text.empty() ? "" : ", ") +
            (first == last ? std::to_string(first) : fmt::format("{} to {}", first, last));
  }
  return text;
}

namespace {

// "model.layers.", 7 and ".mlp.gate.weight": the first number is the layer's.
struct Numbered {
  std::string before, behind;
  std::uint64_t layer = 0;
};
std::optional<Numbered> first_number(std::string_view name) {
  const auto stored = parse_stored_name(std::string(name));
  const std::string weight = stored && !stored->weight.empty() ? stored->weight : std::string(name);
  for (std::size_t begin = 0; begin < weight.size();) {
    const std::size_t end = std::min(weight.find('.', begin), weight.size());
    if (const auto number = parse_u64(std::string_view(weight).substr(begin, end - begin)))
      return Numbered{weight.substr(0, begin), weight.substr(end), *number};
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace

bool LayerFaults::take_beyond(std::string_view name) {
  const auto of = first_number(name);
  if (!of || of->layer < claim_.layers) return false;
  if (is_of_prediction(of->behind)) {
    predicting_.insert(of->layer);
    ++beyond_[of->layer];
    return true;
  }
  // The kinds of layers at both ends are tried.
  for (const std::uint64_t other : {claim_.layers - 1, std::uint64_t{0}}) {
    if (!is_known_(of->before + std::to_string(other) + of->behind)) continue;
    stacks_.insert(of->before);
    ++beyond_[of->layer];
    return true;
  }
  return false;
}

bool LayerFaults::take_beside(std::string_view name) {
  const auto of = first_number(name);
  if (!of || !stacks_.contains(of->before)) return false;
  const auto layer = beyond_.find(of->layer);
  if (layer == beyond_.end()) return false;
  ++layer->second;
  return true;
}

void LayerFaults::take_promised(std::uint64_t layer, std::uint64_t tensors) {
  promised_.insert(layer);
  beyond_[layer] += tensors;
}

Findings LayerFaults::findings() const {
  Findings found;
  std::set<std::uint64_t> more;
  std::uint64_t tensors = 0, of_prediction = 0;
  for (const auto& [layer, count] : beyond_) {
    if (predicting_.contains(layer)) {
      of_prediction += count;
    } else {
      more.insert(layer);
      tensors += count;
    }
  }
  // Behind a layer too many they are those that are promised.
  if (!predicting_.empty() && predicting_.size() > promised_.size())
    found.push_back(prediction_undeclared(claim_.prediction, predicting_, of_prediction));
  if (!more.empty())
    found.push_back({Severity::error,
                     "model.layers_more",
                     fmt::format("{} has {} layers, and {} tensors of layers {} are here: a model loaded by "
                                 "it lacks them",
                                 claim_.who, claim_.layers, tensors, ranges(more)),
                     {},
                     {},
                     {},
                     fmt::format("set {} to what is stored", claim_.key)});
  if (!absent_.empty())
    found.push_back({Severity::error,
                     "model.layers_missing",
                     fmt::format("{} has {} layers, and no file holds anything of layers {}: {} tensors",
                                 claim_.who, claim_.layers, ranges(absent_), absent_tensors_),
                     {},
                     {},
                     {},
                     fmt::format("take the full checkpoint, or set {} to what is stored", claim_.key)});
  return found;
}

namespace {

struct LayerCount {
  std::string key;
  std::uint64_t layers = 0;
};
std::optional<LayerCount> said_layers(const gguf::Header& gguf) {
  const std::string key = fmt::format("{}.block_count", gguf.text("general.architecture").value_or(""));
  if (const auto blocks = gguf.number(key)) return LayerCount{key, *blocks};
  return std::nullopt;
}
std::optional<LayerCount> said_layers(const ModelConfig& config) {
  for (const char* key : {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}) {
    const auto found = config.text().find(key);
    if (found != config.text().end() && found->is_number_unsigned())
      return LayerCount{key, found->get<std::uint64_t>()};
  }
  return std::nullopt;
}

std::optional<Finding> find_no_layers(const Checkpoint& checkpoint, const LayerCount& said) {
  if (said.layers > 0 || checkpoint.tensors.empty()) return std::nullopt;
  return Finding{Severity::error,
                 "model.layers_more",
                 fmt::format("{} is 0, and {} tensors are here: no model is loaded by it", said.key,
                             checkpoint.tensors.size()),
                 checkpoint.gguf ? checkpoint.files.front().name : "config.json",
                 {},
                 {},
                 fmt::format("set {} to what is stored", said.key)};
}

// Lists with a member for each layer, of which every class that reads one needs them all.
std::optional<Finding> find_short_list(const ModelConfig& config, const LayerCount& said) {
  for (const char* key :
       {"layer_types", "layers_block_type", "mlp_layer_types", "moe_layer_freq", "hybrid_layer_pattern",
        "attn_type_list", "indexer_types", "compress_ratios", "block_configs", "no_rope_layers"}) {
    const auto list = config.text().find(key);
    if (list == config.text().end() || !list->is_array() || list->size() >= said.layers) continue;
    return Finding{
        Severity::error,
        "model.layers_unlisted",
        fmt::format("{} tells of {} layers, and {} says that there are {}: no model is loaded by it", key,
                    list->size(), said.key, said.layers),
        "config.json",
        {},
        {},
        "take the publisher's config.json"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Finding> find_contradicted_layers(const Checkpoint& checkpoint) {
  if (checkpoint.gguf) {
    const auto said = said_layers(*checkpoint.gguf);
    return said ? find_no_layers(checkpoint, *said) : std::nullopt;
  }
  if (checkpoint.config.empty()) return std::nullopt;
  const ModelConfig config = ModelConfig::read(checkpoint.config);
  const auto said = said_layers(config);
  if (!said) return std::nullopt;
  return said->layers == 0 ? find_no_layers(checkpoint, *said) : find_short_list(config, *said);
}

}  // namespace assay
