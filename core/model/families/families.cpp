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
#include "core/model/families/all_hub.h"
#include "core/model/families/all_mixtures.h"
#include "core/model/families/all_more.h"
#include "core/model/families/gguf.h"
#include "core/model/families/sighted.h"
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

constexpr const Family* kFamilies[] = {
    &kLlama,
    &kYi,
    &kMistral,
    &kMixtral,
    &kQwen,
    &kQwen2,
    &kQwen2Moe,
    &kQwen3,
    &kQwen3Moe,
    &kGemma,
    &kGemma2,
    &kGemma3,
    &kPhi3,
    &kPhimoe,
    &kDeepseekV2,
    &kDeepseekV3,
    &kDeepseekV32,
    &kMinicpm3,
    &kChatglm,
    &kGlm,
    &kGlm4,
    &kGlm4Moe,
    &kGlm4vText,
    &kGlm4vMoeText,
    &kQwen25OmniText,
    &kQwen3OmniText,
    &kGptOss,
    &kMinimaxM2,
    &kLlama4,
    &kOlmo2,
    &kOlmo3,
    &kCohere,
    &kCohere2,
    &kStarcoder2,
    &kFalcon,
    &kGpt2,
    &kInternlm2,
    &kBaichuan,
    &kDeepseekV1,
    &kExaone3,
    &kInternlm3,
    &kOrion,
    &kPanguEmbedded,
    &kSolarPro,
    &kTelechat2,
    &kTelechat3,
    &kTeleflm,
    &kIquestcoder,
    &kRnj1,
    &kStep1,
    &kNanbeige,
    &kIquestloopcoder,
    &kQwen3Next,
    &kQwen35,
    &kQwen35Moe,
    &kQwen2Vl,
    &kQwen25Vl,
    &kQwen3Vl,
    &kQwen3VlMoe,
    &kGlmMoeDsa,
    &kKimiK25,
    &kKimiLinear,
    &kKimiK3,
    &kMinimaxM3,
    &kMinimax,
    &kLaguna,
    &kGraniteSwa,
    &kDiffllama,
    &kNemotronH,
    &kNemotronNas,
    &kMimo,
    &kMimoV2,
    &kNaiveN05,
    &kStep3p5,
    &kGemma4,
    &kDeepseekV4,
    &kDeepseekV41,
    &kMistral3,
    &kSmollm3,
    &kSeedOss,
    &kExaone4,
    &kErnie45,
    &kHunyuanDense,
    &kGranite,
    &kArcee,
    &kNemotron,
    &kHelium,
    &kMinicpm,
    &kCwm,
    &kApertus,
    &kVaultgemma,
    &kBitnet,
    &kHyperclovax,
    &kJais2,
    &kOlmo,
    &kNanochat,
    &kStablelm,
    &kMinistral,
    &kYoutu,
    &kOlmoe,
    &kFlexOlmo,
    &kErnie45Moe,
    &kExaoneMoe,
    &kSolarOpen,
    &kDots1,
    &kHunyuanMoe,
    &kHy3,
    &kMellum,
    &kAfmoe,
    &kGlm4MoeLite,
    &kAxk1,
    &kMistral4,
    &kCohere2Moe,
    &kGraniteMoe,
    &kGraniteMoeShared,
    &kGraniteMoeHybrid,
    &kBamba,
    &kFalconH1,
    &kLfm2,
    &kLfm2Moe,
    &kMamba,
    &kMamba2,
    &kJamba,
    &kGptNeo,
    &kGptj,
    &kCodegen,
    &kGptNeox,
    &kBloom,
    &kGptBigcode,
    &kMpt,
    &kPhi,
    &kPersimmon,
    &kOpt,
    &kLongcatFlash,
    &kBailing,
    &kBailing2,
    &kBailing3,
    &kBailingHybrid,
    &kDbrx,
    &kOlmoHybrid,
    &kZamba,
    &kZamba2,
    &kLfm3,
    &kKolibri1,
    &kFlint,
    &kGraniteMoeSwa,
    &kAxk2,
    &kHyV4,
    &kOpenaiGpt,
    &kCtrl,
    &kXglm,
    &kBiogpt,
    &kNeoxJapanese,
    &kRecurrentGemma,
    &kRwkv,
    &kXlstm,
    &kEmu3,
    &kCohereCompass,
    &kDoge,
    &kModernbertDecoder,
    &kHrmText,
    &kAriaText,
    &kJetmoe,
    &kZaya,
    &kDots3Note,
    &kQwen4Exp,
    &kInkling,
    &kInkling2,
    &kMistralLarge4,
    &kGemma3n,
    &kGemma4Unified,
    &kPhi4Multimodal,
    &kApertus1p5,
    &kBeam,
    &kMllama,
    &kPaddleocrVl,
    &kGlmOcr,
    &kErnie45Vl,
    &kHunyuanVl,
    &kGlm5Next,
    &kMuseSpark,
    &kMuseGlimmer,
    &kMolmo2,
    &kBailing25,
    &kRingLinear,
    &kBailing3Vl,
    &kParam2Moe,
    &kSarvamMoe,
    &kSarvamMla,
    &kK2Horizon,
    &kPlamo3,
    &kPanguUltraMoe,
    &kPanguProMoe2,
    &kMistralLarge3,
    &kVoxtralText,
    &kOcrText,
    &kPhi3V,
    &kPhi4Mm,
    &kPhi4Siglip,
    &kMolmo,
    &kKimiAudio,
    &kWhisper,
    &kBert,
    &kRoberta,
    &kModernBert,
    &kT5,
    &kMt5,
    &kUmt5,
    &kBart,
    &kMbart,
    &kLlada,
    &kLladaMoe,
    &kLlada2,
    &kDream,
    &kSdar,
    &kSdarMoe,
    &kInternlm,
    &kAquila,
    &kXverse,
    &kSkywork,
    &kKormo,
    &kMotif,
    &kPhi3Small,
    &kJais,
    &kOpenelm,
    &kSpark25,
    &kDomynEdge,
    &kStep3Text,
    &kGrok,
    &kXverseMoe,
    &kArctic,
    &kSmallThinker,
    &kOuro,
    &kDory,
    &kLongcatNgram,
    &kMinicpmSala,
    &kJetNemotron,
    &kPlamo2,
    &kPhi4Flash,
    &kGigachat35,
    &kEagle3,
    &kRwkv6,
    &kRwkv7,
    &kRaven,
    &kMegrezMoe,
    &kInternS2Mobius,
    &kT5Gemma,
    &kT5Gemma2,
    &kKosmos2,
    &kKosmos25,
    &kCohereAsr,
    &kDoclingText,
    &kEagle,
    &kEagleQwen2,
    &kDflash,
    &kDspark,
    &kMoondream,
    &kHymba,
    &kBagel,
    &kNemotronParse,
    &kCosmos3,
    &kCosmos3Edge,
    &kM2m,
    &kIquestQ1,
    &kAliceAi,
    &kMinimind,
    &kYuan2,
};

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
  for (const Family* family : kFamilies)
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
  for (const Family* family : kFamilies) {
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
    for (const Family* family : kFamilies) {
      if (contains(family->model_types, inner.model_type())) return family;
    }
    // Some name its class alone.
    for (const Family* family : kFamilies) {
      if (inner.model_type().empty() && contains(family->architectures, inner.architecture())) return family;
    }
  }
  const families::Sighted* sighted = families::find_sighted(config);
  if (sighted == nullptr || sighted->text_family == nullptr) return nullptr;
  const std::string_view name = sighted->text_family(config);
  for (const Family* family : kFamilies) {
    if (family->name == name) return family;
  }
  return nullptr;
}

// Mistral Small 4 stands within Mistral 3's class, whose family does not describe its language model.
bool holds_mistral4(const ModelConfig& config) {
  return config.architecture() == families::kMistral3.architectures.front() &&
         family_of_language_model(config) == &families::kMistral4;
}

// Several may share an architecture: the one is it that the metadata tell.
const Family* family_of_metadata(const ModelConfig& config) {
  const Family* found = nullptr;
  for (const Family* family : kFamilies) {
    const GgufFamily* in_gguf = gguf_family(family->name);
    const bool named_there = in_gguf != nullptr && gguf_rules(*in_gguf).keys_of != GgufRules::Keys::table &&
                             contains(kByKeys, family->name) &&
                             in_gguf->told_by != GgufFamily::ToldBy::nothing &&
                             in_gguf->architecture == config.model_type();
    if (!contains(family->gguf_architectures, config.model_type()) && !named_there) continue;
    const bool of_experts = in_gguf != nullptr && in_gguf->told_by == GgufFamily::ToldBy::experts;
    if (of_experts && !config.text().contains("num_local_experts")) continue;
    if (found == nullptr || of_experts) found = family;
  }
  return found;
}

}  // namespace

std::vector<const GgufFamily*> gguf_families() {
  std::vector<const GgufFamily*> written;
  for (const Family* family : kFamilies) {
    if (family->gguf != nullptr) written.push_back(family->gguf);
  }
  for (const auto& group : kGgufGroups) {
    for (const GgufRules* rules : group()) written.push_back(&rules->base);
  }
  return written;
}

const GgufFamily* gguf_family(std::string_view name) {
  for (const Family* family : kFamilies) {
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
  return contains(kByKeys, in_gguf.family) ||
         std::any_of(std::begin(kFamilies), std::end(kFamilies), [&](const Family* family) {
           return contains(family->gguf_architectures, in_gguf.architecture);
         });
}

namespace {

const GgufFamily* written_as(std::string_view architecture) {
  for (const GgufFamily* family : gguf_families()) {
    if (family->architecture == architecture) return family;
  }
  return nullptr;
}

}  // namespace

bool is_written_as_gguf(std::string_view architecture) {
  return written_as(architecture) != nullptr;
}

bool is_told_by_keys(std::string_view architecture) {
  const auto in_file = [&](const GgufFamily* in_gguf) {
    return in_gguf->architecture == architecture && is_told_by_keys(*in_gguf);
  };
  const std::vector<const GgufFamily*> written = gguf_families();
  return std::any_of(written.begin(), written.end(), in_file) ||
         std::any_of(std::begin(kFamilies), std::end(kFamilies), [&](const Family* family) {
           return contains(family->gguf_architectures, architecture);
         });
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

namespace {

Error not_read_back(const GgufFamily& family) {
  const std::string_view why = gguf_rules(family).lost;
  return Error::input(
             fmt::format("GGUFs of the architecture \"{}\" ({}) are written here, and not read back{}{}",
                         family.architecture, family.hf_class, why.empty() ? "" : ": ", why))
      .remedy("take the checkpoint that the file was made of; assay inspect lists what the file holds");
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
  if (const Family* family = family_of_architecture(architecture))
    return holds_mistral4(config) ? nullptr : family;
  if (const auto head = head_of_whole(config)) return family_of_architecture(head->base);
  // A config that names no architecture still has its model type.
  for (const Family* family : kFamilies) {
    if (architecture.empty() && contains(family->model_types, config.model_type())) return family;
  }
  return nullptr;
}

const Family& find_family(const ModelConfig& config) {
  if (const Family* whole = family_of_whole(config)) return *whole;
  if (const Family* inner = family_of_language_model(config)) return *inner;
  const std::string& asked = config.architecture().empty() ? config.model_type() : config.architecture();
  const bool of_gguf = config.origin() == ModelConfig::Origin::gguf;
  if (const GgufFamily* written = of_gguf ? written_as(asked) : nullptr)
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
