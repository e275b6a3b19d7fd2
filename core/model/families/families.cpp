#include "core/model/families/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "core/model/families/all.h"
#include "core/model/families/all_2026.h"
#include "core/model/families/all_local.h"
#include "core/model/families/gguf.h"
#include "core/model/families/sighted.h"
#include "core/system/error.h"

namespace assay {
namespace {

using namespace families;

// Edits that turn one name into the other, letter case aside.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (lower(a[i]) != lower(b[j]))});
      diagonal = above;
    }
  }
  return row.back();
}

std::size_t distance(const Family& family, std::string_view name) {
  std::size_t least = edit_distance(family.name, name);
  for (const auto& names : {family.architectures, family.model_types}) {
    for (const std::string_view known : names) least = std::min(least, edit_distance(known, name));
  }
  return least;
}

constexpr std::size_t kLongestName = 100;  // the distance is quadratic, and names are input

std::string closest_families(std::string_view name) {
  std::vector<std::pair<std::size_t, const Family*>> ranked;
  for (const Family* family : all_families())
    ranked.emplace_back(distance(*family, name.substr(0, kLongestName)), family);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, ranked.size()); ++i) {
    if (i > 0) text += ", ";
    text += fmt::format("{} ({})", ranked[i].second->name, ranked[i].second->title);
  }
  return text;
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const Family* family_of_architecture(std::string_view architecture) {
  for (const Family* family : all_families()) {
    if (contains(family->architectures, architecture)) return family;
  }
  return nullptr;
}

// A multimodal model may hold a language model that is known: which, or nullptr. DeepSeek-V2's class without latent
// attention has the first DeepSeek's tensors.
const Family* family_of_language_model(const ModelConfig& config) {
  const auto type = config.text().find("model_type");
  if (!config.nested_in().empty() && (type == config.text().end() || type->is_string())) {
    const ModelConfig inner = config.language_model(ModelConfig::Tied::document_first);
    const auto latent = inner.text().find("use_mla");
    const bool first_deepseek =
        latent != inner.text().end() && *latent == false &&
        (inner.model_type() == "deepseek_v2" || contains(kDeepseekV2.architectures, inner.architecture()));
    if (first_deepseek) return &kDeepseekV1;
    for (const Family* family : all_families()) {
      if (contains(family->model_types, inner.model_type())) return family;
    }
    // Some name its class alone.
    for (const Family* family : all_families()) {
      if (inner.model_type().empty() && contains(family->architectures, inner.architecture())) return family;
    }
  }
  const families::Sighted* sighted = families::find_sighted(config);
  if (sighted == nullptr || sighted->text_family == nullptr) return nullptr;
  const std::string_view name = sighted->text_family(config);
  for (const Family* family : all_families()) {
    if (family->name == name) return family;
  }
  return nullptr;
}

// Mistral Small 4 stands within Mistral 3's class, whose family does not describe its language model.
bool holds_mistral4(const ModelConfig& config) {
  return config.architecture() == families::kMistral3.architectures.front() &&
         family_of_language_model(config) == &families::kMistral4;
}

}  // namespace

std::optional<OtherHead> head_of_whole(const ModelConfig& config) {
  const std::string& architecture = config.architecture();
  if (config.origin() == ModelConfig::Origin::gguf || !config.nested_in().empty() ||
      family_of_architecture(architecture) != nullptr)
    return std::nullopt;
  for (OtherHead& head : other_heads(architecture)) {
    if (family_of_architecture(head.base) != nullptr) return std::move(head);
  }
  return std::nullopt;
}

const Family* family_of_whole(const ModelConfig& config) {
  if (config.origin() == ModelConfig::Origin::gguf) return family_of_metadata(config);
  const std::string& architecture = config.architecture();
  // Its own code calls its class as transformers calls that of other names.
  if (contains(families::kPhiMsft.model_types, config.model_type())) return &families::kPhiMsft;
  if (const Family* family = family_of_architecture(architecture))
    return holds_mistral4(config) ? nullptr : family;
  if (const auto head = head_of_whole(config)) return family_of_architecture(head->base);
  // A config that names no architecture still has its model type.
  for (const Family* family : all_families()) {
    if (architecture.empty() && contains(family->model_types, config.model_type())) return family;
  }
  return nullptr;
}

const Family& find_family(const ModelConfig& config) {
  if (const Family* whole = family_of_whole(config)) return *whole;
  if (const Family* inner = family_of_language_model(config)) return *inner;
  const std::string& asked = config.architecture().empty() ? config.model_type() : config.architecture();
  const bool of_gguf = config.origin() == ModelConfig::Origin::gguf;
  if (const GgufFamily* written = of_gguf ? written_as_gguf(asked) : nullptr)
    throw not_read_back(*written).in(config.source());
  if (of_gguf)
    throw Error::input(fmt::format("GGUFs of the architecture \"{}\" are unknown here", asked))
        .in(config.source())
        .remedy("assay paramcount counts such a file by its headers; docs/gguf.md has which are read");
  throw Error::input(fmt::format("architecture \"{}\" is unknown", asked))
      .in(config.source())
      .remedy(fmt::format("closest families known: {}; docs/families.md tells how to add one",
                          closest_families(asked)));
}

}  // namespace assay
