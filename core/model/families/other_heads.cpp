// Sources: transformers 5.24's generic classes for sequence and token classification, and its base classes, whose names were
// held against those of each causal class on the meta device; vLLM 0.33's qwen2_rm.py, internlm2.py, llama.py.
#include "core/model/families/other_heads.h"

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
  std::uint64_t labels = 0;
};
constexpr Named kNamed[] = {
    {"Qwen2ForRewardModel", HeadKind::score_mlp, "Qwen2ForCausalLM", 1},
    {"Qwen2ForProcessRewardModel", HeadKind::score_mlp, "Qwen2ForCausalLM", 2},
    {"Qwen3ForRewardModel", HeadKind::score_mlp, "Qwen3ForCausalLM", 1},
    {"InternLM2ForRewardModel", HeadKind::value, "InternLM2ForCausalLM", 1},
    {"LlamaBidirectionalModel", HeadKind::none, "LlamaForCausalLM"},
    {"LlamaBidirectionalForSequenceClassification", HeadKind::score, "LlamaForCausalLM"},
    {"GritLM", HeadKind::same, "MistralForCausalLM"},
};

// Classes of that name which are made of something else, or named otherwise inside.
constexpr std::string_view kUnlike[] = {"BailingHybridModel",
                                        "HYV4Model",
                                        "Inkling2TextModel",
                                        "Llama4TextModel",
                                        "MllamaTextModel",
                                        "ModernBertDecoderModel",
                                        "ModernBertDecoderForSequenceClassification",
                                        "OPTForSequenceClassification",
                                        "Phi4MultimodalModel"};

struct Ending {
  std::string_view text;
  HeadKind kind;
};
constexpr Ending kEndings[] = {{"ForSequenceClassification", HeadKind::score},
                               {"ForTokenClassification", HeadKind::biased_score},
                               {"TextModel", HeadKind::none},
                               {"Model", HeadKind::none}};

constexpr std::string_view kPrefix = "model.";

// id2label names each label; num_labels is what early configs say; transformers takes two where neither is there.
Quantity read_labels(ConfigReader& config, std::uint64_t of_class) {
  if (of_class > 0) return Quantity("num_labels", of_class);
  const ParsedJson& keys = config.config().text();
  const auto names = keys.find("id2label");
  if (names != keys.end() && names->is_object() && !names->empty())
    return Quantity("id2label", names->size());
  return config.size("num_labels", 2);
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
    case HeadKind::score: add("score", read_labels(config, head.labels), false); break;
    case HeadKind::biased_score: add("score", read_labels(config, head.labels), true); break;
    case HeadKind::value: add("v_head", 1, false); break;
    case HeadKind::score_mlp:
      add("score.0", hidden, true);
      add("score.2", read_labels(config, head.labels), true);
      break;
    case HeadKind::none:
    case HeadKind::same: break;
  }
  return module;
}

void require_prefix(const Module& module, ConfigReader& config) {
  for (const TensorSpec& spec : module.tensors)
    config.require(
        spec.name.starts_with(kPrefix),
        "names of this family do not all begin with \"model.\": what is without its head is not described");
  for (const Module& child : module.children) require_prefix(child, config);
}

void drop_prefix(Module& module) {
  for (TensorSpec& spec : module.tensors) {
    spec.name.erase(0, kPrefix.size());
    if (spec.same_as.starts_with(kPrefix)) spec.same_as.erase(0, kPrefix.size());
  }
  for (Module& child : module.children) drop_prefix(child);
}

bool is_head(const Module& module) {
  return !module.tensors.empty() && module.tensors.front().part == Part::output &&
         module.tensors.front().role == Role::output_head;
}

}  // namespace

std::vector<OtherHead> other_heads(std::string_view architecture) {
  for (const Named& named : kNamed) {
    if (named.architecture == architecture) return {{named.kind, std::string(named.base), named.labels}};
  }
  std::vector<OtherHead> heads;
  for (const std::string_view unlike : kUnlike) {
    if (unlike == architecture) return heads;
  }
  for (const Ending& ending : kEndings) {
    if (!architecture.ends_with(ending.text)) continue;
    const std::string stem(architecture.substr(0, architecture.size() - ending.text.size()));
    if (!stem.empty()) heads.push_back({ending.kind, stem + "ForCausalLM", 0});
  }
  return heads;
}

void change_head(const OtherHead& head, ConfigReader& config, ModuleTree& tree) {
  if (head.kind == HeadKind::same) return;
  config.require(tree.towers.empty(),
                 "the family sees or hears: what of it has another head is not described");
  std::erase_if(tree.modules, is_head);
  for (const Module& module : tree.modules) require_prefix(module, config);
  tree.tied_embeddings = false;
  if (!tree.mtp.empty()) {
    tree.mtp.clear(), tree.mtp_attention.clear();
    tree.not_counted.push_back(
        {"multi-token prediction, which what has no head is saved without", std::nullopt});
  }
  if (head.kind == HeadKind::none) {
    for (Module& module : tree.modules) drop_prefix(module);
    tree.aliases.push_back({"", std::string(kPrefix)});
    return;
  }
  tree.modules.push_back(head_of(head, config, Quantity("hidden_size", tree.hidden_size)));
}

}  // namespace assay::families
