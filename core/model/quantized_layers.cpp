#include "core/model/quantized_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "core/formats/json_apart.h"
#include "core/formats/json_events.h"
#include "core/formats/mistral_params.h"
#include "core/model/numbered_names.h"
#include "core/system/error.h"
#include "core/system/file_text.h"

namespace assay {
namespace {

using Group = QuantizationConfig::Group;

// Depth 1: the object itself, 2: what is said of a module.
class LayerEvents final : public ApartReader {
 public:
  explicit LayerEvents(const std::filesystem::path& source) : source_(source) {}

  void null() override {}
  void boolean(bool) override { no_size("a boolean"); }
  void whole_number(std::uint64_t value) override {
    if (says_size()) latest_.size = value;
  }
  // GPTQ's -1 for the whole row: no group at all.
  void other_number(double value, std::string_view) override {
    if (value != -1) no_size("a negative or fractional number");
  }
  void string(std::string_view value) override {
    no_size("a string");
    if (depth_ == 2 && key_ == Key::algorithm) latest_.algorithm = value;
  }
  void start_object() override {
    no_size("an object");
    if (++depth_ == 2) latest_.algorithm.clear(), latest_.size.reset();
  }
  void end_object() override {
    if (depth_-- == 2) modules_.add(module_, number_of_latest());
  }
  void start_array() override {
    no_size("an array");
    depth_ += kArray;
  }
  void end_array() override { depth_ -= kArray; }
  void key(std::string_view name) override {
    if (depth_ == 1) module_ = name;
    key_ = name == "quant_algo" ? Key::algorithm : name == "group_size" ? Key::size : Key::other;
  }
  void repeat(std::string_view key) override { modules_.add(key, static_cast<std::uint32_t>(last_)); }
  [[noreturn]] void fail(const std::string& message) const { throw Error::input(message).in(source_); }

  std::vector<Group> groups();
  std::string taken() override;

 private:
  enum class Key { algorithm, size, other };
  static constexpr int kArray = 1000;  // no object within a list is one of ours
  static constexpr std::size_t kMostWays = 1000;
  struct Way {
    std::string algorithm;
    std::optional<std::uint64_t> size;
    auto operator<=>(const Way&) const = default;
  };

  bool says_size() const { return depth_ == 2 && key_ == Key::size; }
  void no_size(std::string_view what) const {
    if (says_size())
      fail(fmt::format("quantization_config.quantized_layers: group_size is {}, not a whole number", what));
  }
  std::uint32_t number_of_latest() {
    if (ways_.empty() || ways_[last_] != latest_)
      last_ = static_cast<std::size_t>(std::find(ways_.begin(), ways_.end(), latest_) - ways_.begin());
    if (last_ == kMostWays)
      fail("quantization_config.quantized_layers has more than 1,000 ways of quantizing");
    if (last_ == ways_.size()) ways_.push_back(latest_);
    return static_cast<std::uint32_t>(last_);
  }

  const std::filesystem::path& source_;
  int depth_ = 0;
  Key key_ = Key::other;
  std::string module_;
  Way latest_;
  std::vector<Way> ways_;
  std::size_t last_ = 0;  // the way that was met last: mostly the next one, too
  NumberedNames modules_;
};

// A name alone is looked for; an expression, or the name of a class ("Linear"), is a target.
bool is_target(std::string_view name) {
  return name.starts_with("re:") || name.find('*') != std::string_view::npos ||
         name.find('.') == std::string_view::npos;
}

std::vector<Group> LayerEvents::groups() {
  modules_.settle();
  std::map<Way, Group> by_way;
  modules_.for_each([&](const std::string& name, std::uint32_t way) {
    Group& group = by_way[ways_[way]];
    if (is_target(name))
      group.targets.push_back(name);
    else
      group.modules.add(name);
  });
  std::vector<Group> groups;
  for (auto& [way, group] : by_way) {
    group.name = group.format = way.algorithm;
    group.group_size = way.size;
    group.modules.settle();
    std::sort(group.targets.begin(), group.targets.end());
    groups.push_back(std::move(group));
  }
  return groups;
}

// Nearly all names are their own JSON; the others nobody writes quickly.
void append_quoted(std::string& text, std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
  });
  if (plain)
    ((text += '"') += name) += '"';
  else
    text += ParsedJson(name).dump();
}

// The same object with a member for each run of modules.
std::string LayerEvents::taken() {
  modules_.settle();
  std::vector<std::string> said;
  for (const Way& way : ways_) {
    std::string& text = said.emplace_back(":{\"quant_algo\":");
    append_quoted(text, way.algorithm);
    if (way.size) text += fmt::format(",\"group_size\":{}", *way.size);
    text += '}';
  }
  std::string runs = "{";
  modules_.for_each([&](const std::string& name, std::uint32_t number) {
    if (runs.size() > 1) runs += ',';
    append_quoted(runs, name);
    runs += said[number];
  });
  modules_ = {};
  ways_.clear();
  return runs += '}';
}

// Mamba's authors name neither a class nor a type: mamba_ssm, which reads their configs, has one class.
bool is_of_mamba_ssm(const ParsedJson& document) {
  const auto has = [&](const char* key) { return document.contains(key); };
  return document.is_object() && has("ssm_cfg") && has("d_model") && has("n_layer") &&
         !has("architectures") && !has("model_type");
}

}  // namespace

ParsedJson read_config_json(const std::filesystem::path& path) {
  LayerEvents layers(path);
  ParsedJson document = parse_json_apart("quantized_layers", layers,
                                         FileText(path, kPythonJson.max_bytes).view(), path, kPythonJson);
  if (auto mistral = config_of_mistral_params(document)) return std::move(*mistral);
  if (is_of_mamba_ssm(document)) document["architectures"] = ParsedJson::array({"MambaLMHeadModel"});
  return document;
}

std::vector<Group> parse_quantized_layers(const ParsedJson& object, const std::filesystem::path& source) {
  if (object.is_object()) return parse_quantized_layers(ParsedJson(object.dump()), source);
  LayerEvents events(source);
  JsonEventReader<LayerEvents>(object.get_ref<const std::string&>(), kPythonJson.max_depth, events).read();
  return events.groups();
}

bool mixed_over_blocks(const QuantizationConfig& config) {
  return config.method == "fp8" && config.block_rows && config.block_columns && !config.layers.empty();
}

}  // namespace assay
