#include "core/model/cut_names.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "core/model/name_numbers.h"
#include "core/system/text.h"

namespace assay {
namespace {

std::vector<std::string> between_dots(const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    parts.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// "layers" of "layers.3", "encoder_layer" of "encoder_layer_3".
bool is_layer_word(std::string_view word) {
  constexpr std::string_view kWords[] = {"layers", "layer", "blocks", "block", "blk", "h"};
  return std::any_of(std::begin(kWords), std::end(kWords), [&](std::string_view layer) {
    if (word == layer) return true;
    return layer.size() > 1 && word.ends_with(layer) && word[word.size() - layer.size() - 1] == '_';
  });
}
std::string_view without_underscore(std::string_view stem) {
  if (stem.ends_with('_')) stem.remove_suffix(1);
  return stem;
}

// A number of a name that may be its layer's.
struct LayerNumber {
  std::size_t part, begin;  // which part, and where in it
  bool layer_word;          // a word before it says so
};

// The first that stands between dots, or behind a word for layers; where there is none, the first behind any other word.
std::optional<LayerNumber> layer_number(const std::vector<std::string>& parts) {
  std::optional<LayerNumber> other;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t begin = number_begins(parts[i]);
    if (begin == std::string::npos || (begin == 0 && i == 0)) continue;
    const std::string_view stem =
        begin == 0 ? std::string_view(parts[i - 1]) : std::string_view(parts[i]).substr(0, begin);
    const LayerNumber found{i, begin, is_layer_word(begin == 0 ? stem : without_underscore(stem))};
    if (begin == 0 || found.layer_word) return found;
    if (!other) other = found;
  }
  return other;
}

// Numbers behind one prefix: layers where they repeat the same tensors, places in a list where each has its own.
struct Axis {
  std::set<std::uint64_t> values;
  std::map<std::string, std::uint64_t> tails;  // what follows, and how often
  bool repeats() const {
    const auto often = [](const auto& tail) { return tail.second > 1; };
    const auto repeated = std::count_if(tails.begin(), tails.end(), often);
    return values.size() > 1 && 2 * static_cast<std::size_t>(repeated) >= tails.size() && tails.size() > 2;
  }
  // More stands behind a number than a weight and a bias: "layer1.weight" is a matrix, "subsampling.layers.3.weight" one of a list.
  bool holds_more() const {
    return std::any_of(tails.begin(), tails.end(),
                       [](const auto& tail) { return tail.first != "weight" && tail.first != "bias"; });
  }
};

// The part ends in a number, which becomes one of its own; gives its place.
std::size_t cut_off(CutName& name, std::size_t part, std::size_t number) {
  if (number == 0) return part;
  auto& parts = name.parts;
  parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(part) + 1, parts[part].substr(number));
  parts[part].resize(number);
  name.glued.insert(part + 1);
  return part + 1;
}

void find_expert(CutName& name) {
  for (std::size_t i = *name.layer + 1; i < name.parts.size(); ++i) {
    const std::size_t begin = number_begins(name.parts[i]);
    if (begin == std::string::npos) continue;
    const std::string& word = name.parts[begin == 0 ? i - 1 : i];
    const bool counted =
        begin == 0 ? word.find("expert") != std::string::npos
                   : without_underscore(std::string_view(word).substr(0, begin)).ends_with("expert");
    if (!counted) continue;
    name.expert = cut_off(name, i, begin);
    return;
  }
}

}  // namespace

std::string CutName::joined(std::size_t begin, std::size_t end) const {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) {
    if (i > begin && !glued.contains(i)) text += '.';
    text += i == layer ? "{layer}" : i == expert ? "{expert}" : parts[i];
  }
  return text;
}

std::uint64_t CutName::number(std::size_t at) const {
  return parse_u64(parts[at]).value();
}

std::vector<CutName> cut_names(const StoredTensors& stored) {
  std::vector<CutName> names;
  std::vector<std::optional<LayerNumber>> numbers;
  std::map<std::string, Axis> axes;  // by the path that ends in a number
  for (const LogicalTensor& tensor : stored.tensors) {
    CutName& name = names.emplace_back(CutName{between_dots(tensor.name), &tensor, {}, {}, {}});
    const auto& number = numbers.emplace_back(layer_number(name.parts));
    if (!number) continue;
    name.layer = cut_off(name, number->part, number->begin);
    Axis& axis = axes[name.joined(0, *name.layer + 1)];
    axis.values.insert(name.number(*name.layer));
    ++axis.tails[name.joined(*name.layer + 1, name.parts.size())];
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    CutName& name = names[i];
    if (!name.layer) continue;
    const Axis& axis = axes[name.joined(0, *name.layer + 1)];
    if ((numbers[i]->layer_word && axis.holds_more()) || axis.repeats())
      find_expert(name);
    else
      name = CutName{between_dots(name.tensor->name), name.tensor, {}, {}, {}};
  }
  return names;
}

}  // namespace assay
