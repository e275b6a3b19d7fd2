#include "core/model/quantized_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "core/formats/json_events.h"
#include "core/formats/json_kept_text.h"
#include "core/formats/mistral_params.h"
#include "core/system/error.h"
#include "core/system/file.h"

namespace assay {
namespace {

using Group = QuantizationConfig::Group;

struct QuantizedLayer {
  std::string module;
  std::size_t group = 0;
};

// Depth 1: the object itself, 2: what is said of a module.
class LayerEvents {
 public:
  LayerEvents(std::string_view text, const std::filesystem::path& source)
      : reader_(text, kPythonJson.max_depth, *this), source_(source) {}

  void read() { reader_.read(); }
  std::vector<QuantizedLayer> layers;
  std::vector<Group> groups;

  void null() {}
  void boolean(bool) { no_size("a boolean"); }
  void whole_number(std::uint64_t value) {
    if (says_size()) size_ = value;
  }
  // GPTQ's -1 for the whole row: no group at all.
  void other_number(double value, std::string_view) {
    if (value != -1) no_size("a negative or fractional number");
  }
  void string(std::string_view value) {
    no_size("a string");
    if (depth_ == 2 && key_ == Key::algorithm) algorithm_ = value;
  }
  void start_object() {
    no_size("an object");
    if (++depth_ == 2) algorithm_.clear(), size_.reset();
  }
  void end_object() {
    if (depth_-- == 2) layers.push_back({module_, group_of_layer()});
  }
  void start_array() {
    no_size("an array");
    depth_ += kArray;
  }
  void end_array() { depth_ -= kArray; }
  void key(std::string_view name) {
    if (depth_ == 1) module_ = name;
    key_ = name == "quant_algo" ? Key::algorithm : name == "group_size" ? Key::size : Key::other;
  }
  [[noreturn]] void fail(const std::string& message) const { throw Error::input(message).in(source_); }

 private:
  enum class Key { algorithm, size, other };
  static constexpr int kArray = 1000;  // no object within a list is one of ours

  bool says_size() const { return depth_ == 2 && key_ == Key::size; }
  void no_size(std::string_view what) const {
    if (says_size())
      fail(fmt::format("quantization_config.quantized_layers: group_size is {}, not a whole number", what));
  }
  std::size_t group_of_layer() {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.format == algorithm_ && group.group_size == size_;
    });
    if (same != groups.end()) return static_cast<std::size_t>(same - groups.begin());
    if (groups.size() >= kMostGroups)
      fail("quantization_config.quantized_layers has more than 1,000 ways of quantizing");
    Group& group = groups.emplace_back();
    group.name = group.format = algorithm_;
    group.group_size = size_;
    return groups.size() - 1;
  }
  static constexpr std::size_t kMostGroups = 1000;

  JsonEventReader<LayerEvents> reader_;
  const std::filesystem::path& source_;
  int depth_ = 0;
  Key key_ = Key::other;
  std::string module_, algorithm_;
  std::optional<std::uint64_t> size_;
};

// Of a module said twice the last counts.
void sort_once_each(std::vector<QuantizedLayer>& layers) {
  const auto before = [](const QuantizedLayer& a, const QuantizedLayer& b) { return a.module < b.module; };
  std::stable_sort(layers.begin(), layers.end(), before);
  std::vector<QuantizedLayer> once;
  once.reserve(layers.size());
  for (QuantizedLayer& layer : layers) {
    if (!once.empty() && once.back().module == layer.module)
      once.back() = std::move(layer);
    else
      once.push_back(std::move(layer));
  }
  layers = std::move(once);
}

}  // namespace

ParsedJson read_config_json(const std::filesystem::path& path) {
  ParsedJson document =
      parse_json_keeping("quantized_layers", read_small_file(path, kPythonJson.max_bytes), path, kPythonJson);
  if (auto mistral = config_of_mistral_params(document)) return std::move(*mistral);
  return document;
}

std::vector<Group> parse_quantized_layers(const ParsedJson& object, const std::filesystem::path& source) {
  if (object.is_object()) return parse_quantized_layers(ParsedJson(object.dump()), source);
  LayerEvents events(object.get_ref<const std::string&>(), source);
  events.read();
  const auto not_ascending = [](const QuantizedLayer& a, const QuantizedLayer& b) {
    return a.module >= b.module;
  };
  if (std::adjacent_find(events.layers.begin(), events.layers.end(), not_ascending) != events.layers.end())
    sort_once_each(events.layers);
  std::vector<std::size_t> count(events.groups.size()), place(events.groups.size(), events.groups.size());
  for (const QuantizedLayer& layer : events.layers) ++count[layer.group];
  std::vector<Group> groups;
  for (QuantizedLayer& layer : events.layers) {
    std::size_t& at = place[layer.group];
    if (at == events.groups.size()) {
      at = groups.size();
      groups.push_back(std::move(events.groups[layer.group]));
      groups.back().targets.reserve(count[layer.group]);
    }
    groups[at].targets.push_back(std::move(layer.module));
  }
  return groups;
}

bool mixed_over_blocks(const QuantizationConfig& config) {
  return config.method == "fp8" && config.block_rows && config.block_columns && !config.layers.empty();
}

}  // namespace assay
