// Sources: transformers 5.24's generic classes for sequence and token classification, and its base classes, whose names were
// held against those of each causal class on the meta device; vLLM 0.33's qwen2_rm.py, internlm2.py, llama.py, jina.py,
// jina_vl.py, voyage.py.
#include "core/model/families/other_heads.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/model/blocks.h"

namespace assay::families {
namespace {

using namespace blocks;
using HeadKind = OtherHead::Kind;

struct Named {
  std::string_view architecture;
  HeadKind kind;
  std::string_view base;
  std::uint64_t labels = 0, silent = 2;
};
constexpr Named kNamed[] = {
    {"Qwen2ForRewardModel", HeadKind::score_mlp, "Qwen2ForCausalLM", 1},
    {"Qwen2ForProcessRewardModel", HeadKind::score_mlp, "Qwen2ForCausalLM", 2},
    {"Qwen3ForRewardModel", HeadKind::score_mlp, "Qwen3ForCausalLM", 1},
    {"InternLM2ForRewardModel", HeadKind::value, "InternLM2ForCausalLM", 1},
    {"LlamaBidirectionalModel", HeadKind::none, "LlamaForCausalLM"},
    {"LlamaBidirectionalForSequenceClassification", HeadKind::score, "LlamaForCausalLM"},
    {"GritLM", HeadKind::same, "MistralForCausalLM"},
    {"JinaForRanking", HeadKind::projector, "Qwen3ForCausalLM", 512},
    {"JinaEmbeddingsV5Model", HeadKind::none, "Qwen3ForCausalLM"},
    {"VoyageQwen3BidirectionalEmbedModel", HeadKind::linear, "Qwen3ForCausalLM"},
    {"Lfm2BidirectionalModel", HeadKind::none, "Lfm2ForCausalLM"},
    {"OpenAIPrivacyFilterModel", HeadKind::none, "GptOssForCausalLM"},
    {"OpenAIPrivacyFilterForTokenClassification", HeadKind::biased_score, "GptOssForCausalLM", 0, 33},
};

// Classes of that name which are made of something else, or named otherwise inside.
constexpr std::string_view kUnlike[] = {"BailingHybridModel",
                                        "HYV4Model",
                                        "Inkling2TextModel",
                                        "Llama4TextModel",
                                        "MllamaTextModel",
                                        "ModernBertDecoderModel",
                                        "ModernBertDecoderForSequenceClassification",
                                        "CTRLForSequenceClassification",
                                        "Phi4MultimodalModel"};

// Likewise of models that see or hear.
constexpr std::string_view kUnlikeLarger[] = {"BlipModel",
                                              "Cosmos3EdgeModel",
                                              "Cosmos3OmniModel",
                                              "FuyuModel",
                                              "HunYuanVLModel",
                                              "HYV4VLModel",
                                              "HyperCLOVAXVisionV2Model",
                                              "InklingModel",
                                              "InstructBlipModel",
                                              "InstructBlipVideoModel",
                                              "Kimi_K25Model",
                                              "MiniMaxM3VLModel",
                                              "MistralLarge4Model",
                                              "PaddleOCRVLModel",
                                              "QianfanOCRModel",
                                              "Qwen2_5OmniThinkerModel",
                                              "Qwen3OmniMoeThinkerModel",
                                              "Step3p7Model",
                                              "T5GemmaModel",
                                              "T5Gemma2Model"};

// Whose decoders stand alone as "…ForCausalLM", under which no class puts another head.
constexpr std::string_view kHalves[] = {
    "Bart",   "BigBirdPegasus", "Blenderbot", "BlenderbotSmall", "MBart",
    "Marian", "Moshi",          "Musicgen",   "MusicgenMelody",  "Mvp",
    "PLBart", "Pegasus",        "ProphetNet", "TrOCR",           "Whisper"};

struct Ending {
  std::string_view text;
  HeadKind kind;
};
constexpr Ending kEndings[] = {{"ForSequenceClassification", HeadKind::score},
                               {"ForTokenClassification", HeadKind::biased_score},
                               {"ForQuestionAnswering", HeadKind::answers},
                               {"TextModel", HeadKind::none},
                               {"Model", HeadKind::none}};

constexpr std::string_view kPrefix = "model.";

// Whose class that finds answers keeps the body under an earlier name.
constexpr std::string_view kAnswersUnderTransformer[] = {
    "ArceeForQuestionAnswering",     "DiffLlamaForQuestionAnswering", "Exaone4ForQuestionAnswering",
    "LlamaForQuestionAnswering",     "MinistralForQuestionAnswering", "NemotronForQuestionAnswering",
    "Qwen2ForQuestionAnswering",     "Qwen3ForQuestionAnswering",     "Qwen3MoeForQuestionAnswering",
    "Qwen3NextForQuestionAnswering", "SeedOssForQuestionAnswering",   "SmolLM3ForQuestionAnswering"};

// What the names of a decoder's body begin with: "model.", and of those before Llama "transformer.", "gpt_neox.".
std::string body_prefix(const ModuleTree& tree) {
  for (const Module& module : tree.modules) {
    if (module.tensors.empty()) continue;
    const std::string& name = module.tensors.front().name;
    return name.substr(0, name.find('.') + 1);
  }
  return std::string(kPrefix);
}

// id2label names each label; num_labels is what early configs say; where neither is there, the class has a number.
Quantity read_labels(ConfigReader& config, const OtherHead& head) {
  if (head.labels > 0) return Quantity("num_labels", head.labels);
  const ParsedJson& keys = config.config().text();
  const auto names = keys.find("id2label");
  if (names != keys.end() && names->is_object() && !names->empty())
    return Quantity("id2label", names->size());
  return config.size("num_labels", head.silent);
}

Module head_of(const OtherHead& head, ConfigReader& config, const Quantity& hidden) {
  Module module{"", "head", {}, {}, {}};
  const auto add = [&](std::string name, const Quantity& out, bool bias) {
    add_linear(module, {.name = std::move(name),
                        .in = hidden,
                        .out = out,
                        .role = Role::other,
                        .part = Part::output,
                        .bias = bias,
                        .quantizable = false});
  };
  switch (head.kind) {
    case HeadKind::score: add("score", read_labels(config, head), false); break;
    case HeadKind::biased_score: add(head.tokens, read_labels(config, head), true); break;
    case HeadKind::answers: add("qa_outputs", 2, true); break;
    case HeadKind::value: add("v_head", 1, false); break;
    case HeadKind::linear: add("linear", read_labels(config, head), false); break;
    case HeadKind::projector: {
      const Quantity half = config.quotient(hidden, 2, "hidden_size / 2");
      add("projector.0", half, false);
      add_linear(module, {.name = "projector.2",
                          .in = half,
                          .out = read_labels(config, head),
                          .role = Role::other,
                          .part = Part::output,
                          .quantizable = false});
      break;
    }
    case HeadKind::score_mlp:
      add("score.0", hidden, true);
      add("score.2", read_labels(config, head), true);
      break;
    case HeadKind::none:
    case HeadKind::same: break;
  }
  return module;
}

void require_prefix(const Module& module, ConfigReader& config, const std::string& prefix) {
  for (const TensorSpec& spec : module.tensors)
    config.require(spec.name.starts_with(prefix), "names of this family do not all begin with \"" + prefix +
                                                      "\": what is without its head is not described");
  for (const Module& child : module.children) require_prefix(child, config, prefix);
}

void change_prefix(Module& module, const std::string& from, std::string_view to) {
  for (TensorSpec& spec : module.tensors) {
    spec.name.replace(0, from.size(), to);
    if (spec.same_as.starts_with(from)) spec.same_as.replace(0, from.size(), to);
  }
  for (Module& child : module.children) change_prefix(child, from, to);
}

bool is_head(const Module& module) {
  return !module.tensors.empty() && module.tensors.front().part == Part::output &&
         module.tensors.front().role == Role::output_head;
}

// Prediction of further tokens goes with the head. Returns how wide what it read is.
Quantity take_head_off(ModuleTree& tree) {
  Quantity width("hidden_size", tree.hidden_size);
  std::erase_if(tree.modules, [&](const Module& module) {
    if (!is_head(module)) return false;
    const TensorSpec& matrix = module.tensors.front();
    if (matrix.shape.size() == 2) width = Quantity("hidden_size", matrix.shape.back());
    return true;
  });
  tree.tied_embeddings = false;
  if (tree.mtp.empty()) return width;
  tree.mtp.clear(), tree.mtp_attention.clear();
  tree.not_counted.push_back(
      {"multi-token prediction, which what has no head is saved without", std::nullopt});
  return width;
}

// Names of tensors, and of modules as far as they begin one.
void change_names(Module& module, const std::function<void(std::string&)>& change, bool outermost = true) {
  if (outermost) change(module.path);
  for (TensorSpec& spec : module.tensors) change(spec.name), change(spec.same_as);
  for (Module& child : module.children) change_names(child, change, outermost && module.path.empty());
}
void change_names(std::vector<Module>& modules, const std::function<void(std::string&)>& change) {
  for (Module& module : modules) change_names(module, change);
}

void change_start(std::string& name, std::string_view from, std::string_view to) {
  if (name.starts_with(from)) name.replace(0, from.size(), to);
}

// The class without a head. Where releases of the whole have "model.layers" and transformers now "model.language_model.layers",
// it has "language_model.layers"; of others "model." goes, wherever it stands.
void name_as_body(ModuleTree& tree) {
  const bool renamed = std::any_of(tree.aliases.begin(), tree.aliases.end(), [](const PrefixAlias& alias) {
    return alias.canonical == kPrefix && alias.alternative == "model.language_model.";
  });
  change_names(tree.modules,
               [&](std::string& name) { change_start(name, kPrefix, renamed ? "language_model." : ""); });
  change_names(tree.towers, [](std::string& name) { change_start(name, kPrefix, ""); });
  tree.aliases = {{"", std::string(kPrefix)}};
}

}  // namespace

std::vector<OtherHead> other_heads(std::string_view architecture) {
  for (const Named& named : kNamed) {
    if (named.architecture == architecture)
      return {{named.kind, std::string(named.base), named.labels, named.silent}};
  }
  std::vector<OtherHead> heads;
  for (const std::string_view unlike : kUnlike) {
    if (unlike == architecture) return heads;
  }
  for (const Ending& ending : kEndings) {
    if (!architecture.ends_with(ending.text)) continue;
    const std::string stem(architecture.substr(0, architecture.size() - ending.text.size()));
    if (stem.empty() || std::find(std::begin(kHalves), std::end(kHalves), stem) != std::end(kHalves))
      continue;
    for (const char* whole : {"ForCausalLM", "LMHeadModel"}) heads.push_back({ending.kind, stem + whole, 0});
  }
  return heads;
}

void change_head(const OtherHead& head, ConfigReader& config, ModuleTree& tree) {
  if (head.kind == HeadKind::same) return;
  config.require(config.config().architecture() != "JinaEmbeddingsV5Model" || config.flag("is_decoder", true),
                 "is_decoder is false: Jina embeddings v5 over EuroBERT is not described");
  config.require(tree.towers.empty(),
                 "the family sees or hears: what of it has another head is not described");
  const std::string prefix = body_prefix(tree);
  const Quantity width = take_head_off(tree);
  for (const Module& module : tree.modules) require_prefix(module, config, prefix);
  std::erase_if(tree.aliases, [&](const PrefixAlias& alias) { return alias.canonical == prefix; });
  const auto put_under = [&](std::string_view to) {
    for (Module& module : tree.modules) change_prefix(module, prefix, to);
  };
  if (head.kind == HeadKind::none) {
    put_under("");
    tree.aliases.push_back({"", prefix});
    return;
  }
  const auto* const early = std::find(std::begin(kAnswersUnderTransformer),
                                      std::end(kAnswersUnderTransformer), config.config().architecture());
  if (early != std::end(kAnswersUnderTransformer)) put_under("transformer.");
  OtherHead named = head;
  if (prefix != kPrefix) named.tokens = "classifier";
  tree.modules.push_back(head_of(named, config, width));
}

std::optional<OtherHead> other_head_of_larger(std::string_view architecture) {
  if (architecture == "JinaVLForRanking")  // Jina's reranker m0
    return OtherHead{HeadKind::score_mlp, "Qwen2VLForConditionalGeneration", 1};
  for (const std::string_view unlike : kUnlikeLarger) {
    if (unlike == architecture) return std::nullopt;
  }
  for (const Ending& ending : kEndings) {
    if (!architecture.ends_with(ending.text)) continue;
    const std::string stem(architecture.substr(0, architecture.size() - ending.text.size()));
    // What aligns words with sound scores them without a bias.
    const bool aligns = architecture == "Qwen3ASRForTokenClassification";
    return OtherHead{aligns ? HeadKind::score : ending.kind, stem + "ForConditionalGeneration", 0};
  }
  return std::nullopt;
}

void change_head_of_larger(const OtherHead& head, ConfigReader& document, ModuleTree& tree) {
  take_head_off(tree);
  if (head.kind != HeadKind::none) {
    tree.modules.push_back(head_of(head, document, Quantity("hidden_size", tree.hidden_size)));
    return;
  }
  name_as_body(tree);
}

namespace {

// Of the authors' own classes, which add a matrix to a model that sees, under its names.
struct OwnRetriever {
  std::string_view architecture, whole;
  bool as_body = false;              // named as the class without a head
  std::string_view width_keys = {};  // "": they are always 128
};
constexpr OwnRetriever kOwnRetrievers[] = {
    {"ColPali", "PaliGemmaForConditionalGeneration"},
    {"ColQwen2", "Qwen2VLForConditionalGeneration"},
    {"ColQwen2_5", "Qwen2_5_VLForConditionalGeneration"},
    // vLLM 0.33's colqwen3_5.py
    {"ColQwen3_5", "Qwen3_5ForConditionalGeneration", true, "embed_dim|dims|dim|projection_dim|colbert_dim"}};
constexpr std::uint64_t kRetrieverWidth = 128;

// transformers' classes have the model within under vlm_config.
std::string_view whole_of(std::string_view model_type) {
  if (model_type == "paligemma") return "PaliGemmaForConditionalGeneration";
  if (model_type == "qwen2_vl") return "Qwen2VLForConditionalGeneration";
  return "";
}

}  // namespace

std::optional<Retriever> retriever_of(const ModelConfig& config) {
  const std::string& architecture = config.architecture();
  const ModelConfig outer = config.document_only();
  ConfigReader reader(outer, "retriever");
  for (const OwnRetriever& own : kOwnRetrievers) {
    if (own.architecture != architecture) continue;
    const std::uint64_t width =
        own.width_keys.empty() ? kRetrieverWidth : reader.size(own.width_keys, kRetrieverWidth).value();
    return Retriever{config.with_architecture(std::string(own.whole)),
                     architecture == "ColPali" ? "model." : "", "custom_text_proj", width, own.as_body};
  }
  if (architecture != "ColPaliForRetrieval" && architecture != "ColQwen2ForRetrieval") return std::nullopt;
  const ParsedJson& document = config.document();
  const auto within = document.find("vlm_config");
  if (within == document.end() || !within->is_object()) return std::nullopt;
  const auto type = within->find("model_type");
  const std::string_view whole =
      type != within->end() && type->is_string() ? whole_of(type->get<std::string>()) : "";
  if (whole.empty()) return std::nullopt;
  ParsedJson inner = *within;
  inner["architectures"] = {std::string(whole)};
  return Retriever{ModelConfig::from_json(std::move(inner), config.source()), "vlm.", "embedding_proj_layer",
                   reader.size("embedding_dim", kRetrieverWidth).value(), true};
}

void make_retriever(const Retriever& retriever, ModuleTree& tree) {
  take_head_off(tree);
  if (retriever.as_body) {
    name_as_body(tree);
    tree.aliases = {{retriever.prefix, retriever.prefix + std::string(kPrefix)}};
  }
  for (auto* part : {&tree.modules, &tree.towers})
    change_names(*part, [&](std::string& name) {
      if (!name.empty()) name.insert(0, retriever.prefix);
    });
  Module head{"", "what makes vectors", {}, {}, {}};
  add_linear(head, {.name = retriever.matrix,
                    .in = Quantity("hidden_size", tree.hidden_size),
                    .out = Quantity("embedding_dim", retriever.width),
                    .role = Role::other,
                    .part = Part::output,
                    .bias = true,
                    .quantizable = false});
  tree.modules.push_back(std::move(head));
}

}  // namespace assay::families
