// Which families are kept as GGUFs, under which rules, and which of them a file's metadata tell.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/model/families/families.h"
#include "core/model/families/gguf.h"
#include "core/model/gguf_rules.h"
#include "core/system/error.h"

namespace assay {
namespace {

using namespace families;

constexpr GgufGroup (*kGgufGroups[])() = {
    gguf_dense,         gguf_phi,          gguf_mixtures,    gguf_recurrent,    gguf_hybrid,
    gguf_vision,        gguf_2023,         gguf_latent,      gguf_latent_own,   gguf_2026,
    gguf_hybrid_2026,   gguf_qkv,          gguf_deepseek_v4, gguf_kimi_k3,      gguf_lightning,
    gguf_mixtures_2026, gguf_windows_2026, gguf_latent_2026, gguf_nemotron_nas, gguf_own_code};

// Of the families with GgufRules those that are described by the names of gguf_keys.h alone.
constexpr std::string_view kByKeys[] = {
    "olmo",      "olmo2",   "granite",    "smollm3",  "seed_oss", "exaone4", "hunyuan_v1_dense",
    "cohere",    "cohere2", "glm4",       "gemma",    "gemma2",   "gemma3",  "mpt",
    "qwen2_moe", "dots1",   "minimax_m2", "glm4_moe", "olmoe",    "mellum"};

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether a family itself names it (Family::gguf_architectures).
bool is_architecture_of_any(std::string_view architecture) {
  const auto families = all_families();
  return std::any_of(families.begin(), families.end(), [&](const Family* family) {
    return is_among(family->gguf_architectures, architecture);
  });
}

}  // namespace

// Several may share an architecture: the one is it that the metadata tell.
const Family* family_of_metadata(const ModelConfig& config) {
  const Family* found = nullptr;
  for (const Family* family : all_families()) {
    const GgufFamily* in_gguf = gguf_family(family->name);
    const bool named_there = in_gguf != nullptr && gguf_rules(*in_gguf).keys_of != GgufRules::Keys::table &&
                             is_among(kByKeys, family->name) &&
                             in_gguf->told_by != GgufFamily::ToldBy::nothing &&
                             in_gguf->architecture == config.model_type();
    if (!is_among(family->gguf_architectures, config.model_type()) && !named_there) continue;
    const bool of_experts = in_gguf != nullptr && in_gguf->told_by == GgufFamily::ToldBy::experts;
    if (of_experts && !config.text().contains("num_local_experts")) continue;
    if (found == nullptr || of_experts) found = family;
  }
  return found;
}

std::vector<const GgufFamily*> gguf_families() {
  std::vector<const GgufFamily*> written;
  for (const Family* family : all_families()) {
    if (family->gguf != nullptr) written.push_back(family->gguf);
  }
  for (const auto& group : kGgufGroups) {
    for (const GgufRules* rules : group()) written.push_back(&rules->base);
  }
  return written;
}

const GgufFamily* gguf_family(std::string_view name) {
  for (const Family* family : all_families()) {
    if (family->name == name && family->gguf != nullptr) return family->gguf;
  }
  for (const auto& group : kGgufGroups) {
    for (const GgufRules* rules : group()) {
      if (rules->base.family == name) return &rules->base;
    }
  }
  return nullptr;
}

const GgufRules& gguf_rules(const GgufFamily& family) {
  static constexpr GgufRules kNone;
  for (const auto& group : kGgufGroups) {
    for (const GgufRules* rules : group()) {
      if (&rules->base == &family) return *rules;
    }
  }
  return kNone;
}

bool is_mirrored(const GgufFamily& family) {
  const GgufRules& rules = gguf_rules(family);
  return rules.keys_of != GgufRules::Keys::table && rules.lost.empty();
}

bool is_told_by_keys(const GgufFamily& in_gguf) {
  return is_among(kByKeys, in_gguf.family) || is_architecture_of_any(in_gguf.architecture);
}

const GgufFamily* written_as_gguf(std::string_view architecture) {
  for (const GgufFamily* family : gguf_families()) {
    if (family->architecture == architecture) return family;
  }
  return nullptr;
}

bool is_written_as_gguf(std::string_view architecture) {
  return written_as_gguf(architecture) != nullptr;
}

bool is_told_by_keys(std::string_view architecture) {
  const std::vector<const GgufFamily*> written = gguf_families();
  const auto is_told = [&](const GgufFamily* in_gguf) {
    return in_gguf->architecture == architecture && is_told_by_keys(*in_gguf);
  };
  return is_architecture_of_any(architecture) || std::any_of(written.begin(), written.end(), is_told);
}

bool can_be_read_back(const GgufFamily& family) {
  return gguf_rules(family).keys_of == GgufRules::Keys::table || is_mirrored(family);
}

const GgufFamily* gguf_family_of(const ModuleTree& tree) {
  const GgufFamily* found = gguf_family(tree);
  for (const auto& group : kGgufGroups) {
    for (const GgufRules* rules : group()) {
      if (rules->base.family == tree.family && rules->is_of != nullptr && rules->is_of(tree))
        return &rules->base;
    }
  }
  if (found == nullptr || tree.experts == 0) return found;
  for (const auto& group : kGgufGroups) {
    for (const GgufRules* rules : group()) {
      if (rules->base.family == tree.family && rules->base.told_by == GgufFamily::ToldBy::experts)
        return &rules->base;
    }
  }
  return found;
}

Error not_read_back(const GgufFamily& family) {
  const std::string_view why = gguf_rules(family).lost;
  return Error::input(
             fmt::format("GGUFs of the architecture \"{}\" ({}) are written here, and not read back{}{}",
                         family.architecture, family.hf_class, why.empty() ? "" : ": ", why))
      .remedy("take the checkpoint that the file was made of; assay inspect lists what the file holds");
}

}  // namespace assay
