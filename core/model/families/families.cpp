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
#include "core/model/families/all_encoders.h"
#include "core/model/families/all_hub.h"
#include "core/model/families/all_kin.h"
#include "core/model/families/all_local.h"
#include "core/model/families/all_mixtures.h"
#include "core/model/families/all_more.h"
#include "core/model/families/all_speakers.h"
#include "core/model/families/all_watchers.h"
#include "core/model/families/gguf.h"
#include "core/model/families/sighted.h"
#include "core/system/error.h"

namespace assay {
namespace {

using namespace families;

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
    &kMistralNative,
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
    &kEagle3Qwen3,
    &kEagle3Deepseek,
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
    &kDflash2,
    &kXpress,
    &kDspark,
    &kGemma4Assistant,
    &kGemma4UnifiedAssistant,
    &kMuseGlimmerAssistant,
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
    &kPlamo,
    &kPlm,
    &kMaincoder,
    &kCodeshell,
    &kRefact,
    &kTalkie,
    &kBaichuanM1,
    &kGroveMoe,
    &kKlear,
    &kMaple,
    &kPhiMsft,
    &kStep5,
    &kNemotronParse35,
    &kOpenmoe,
    &kMarian,
    &kPegasus,
    &kBlenderbot,
    &kBlenderbotSmall,
    &kPlbart,
    &kMvp,
    &kChameleon,
    &kMoonshine,
    &kCanary,
    &kMossVl,
    &kMpnet,
    &kDistilbert,
    &kElectra,
    &kErnie,
    &kLayoutlm,
    &kMegatronBert,
    &kRobertaXl,
    &kRoformer,
    &kData2vecText,
    &kEsm,
    &kLongformer,
    &kBigBird,
    &kDeberta,
    &kDebertaV2,
    &kAlbert,
    &kNomicBert,
    &kGte,
    &kJinaV3,
    &kEurobert,
    &kClip,
    &kSiglip,
    &kSiglip2Pair,
    &kClipText,
    &kClipVision,
    &kSiglipVision,
    &kImageClasses,
    &kVit,
    &kDeit,
    &kDino2,
    &kDino2Registers,
    &kDino3,
    &kSpectrogram,
    &kWav2vec2,
    &kHubert,
    &kWavlm,
    &kUnispeech,
    &kData2vecAudio,
    &kLongT5,
    &kSwitch,
    &kNllbMoe,
    &kLed,
    &kBigbirdPegasus,
    &kPegasusX,
    &kCogvlm,
    &kModernVBert,
    &kColModernVBert,
    &kColbert,
    &kParakeetCtc,
    &kParakeetRnnt,
    &kParakeetTdt,
    &kMimi,
    &kCsm,
    &kDia,
    &kKyutaiStt,
    &kMoshi,
    &kHiggs,
    &kJinaBert,
    &kOwl,
    &kOwl2,
    &kClap,
    &kDepthAnything,
    &kDpt,
    &kViLt,
    &kVitMsn,
    &kIJepa,
    &kVivit,
    &kTimesformer,
    &kVitpose,
    &kResnet,
    &kRtDetr,
    &kRtDetr2,
    &kChineseClip,
    &kClipSeg,
    &kGit,
    &kVits,
    &kSpeecht5HifiGan,
    &kFsmt,
    &kProphetnet,
    &kPix2struct,
    &kSpeecht5,
    &kEmbeddingGemma2,
    &kSam,
    &kSeamless,
    &kNeobert,
    &kRembert,
    &kPrelayernorm,
    &kLayoutlmv3,
    &kDpr,
    &kSwin,
    &kSwin2,
    &kDonutSwin,
    &kBeit,
    &kData2vecVision,
    &kYolos,
    &kMae,
    &kVideomae,
    &kConvnext,
    &kConvnext2,
    &kSegformer,
    &kW2vBert,
    &kBlip,
    &kTrocr,
    &kLaraMini,
    &kInkling2Loop,
    &kXing4,
    &kLilt,
    &kNystromformer,
    &kMra,
    &kYoso,
    &kXmod,
    &kLuke,
    &kSplinter,
    &kConvbert,
    &kMobilebert,
    &kSqueezebert,
    &kCanine,
    &kFnet,
    &kXlnet,
    &kXlm,
    &kFlaubert,
    &kUltrabert,
    &kEsmc,
    &kGemma4Dspark,
    &kK3Dspark,
    &kGrok1Model,
    &kRugpt3xl,
    &kHfOlmo,
    &kCpmant,
    &kGla,
    &kRetnet,
    &kGsa,
    &kHgrn,
    &kHgrn2,
    &kDeltaNet,
    &kGatedDeltaNet,
    &kDeltaProduct,
    &kFlaTransformer,
    &kFlaRwkv6,
    &kStateSpaces,
    &kTapas,
    &kMarkuplm,
    &kRocBert,
    &kTimesfm,
    &kTimesfm25,
    &kDiffusionGemma,
    &kFunnel,
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

}  // namespace

std::span<const Family* const> all_families() {
  return kFamilies;
}

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
