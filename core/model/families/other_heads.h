// Decoders without their output head, or with another one in its place: what embeds (LlamaModel, Gemma3TextModel), what
// classifies (Qwen3ForSequenceClassification), what rewards (Qwen2ForRewardModel).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

struct OtherHead {
  enum class Kind {
    none,          // the body alone, whose names have no "model." in front
    score,         // "score", a matrix with a row for each label
    biased_score,  // … and a bias (token classification), of early decoders "classifier"
    answers,       // "qa_outputs", two rows and a bias: where an answer begins and ends
    score_mlp,     // "score.0" and "score.2" with biases (Qwen2's reward models)
    value,         // "v_head", one row (InternLM2's)
    projector,     // "projector.0" and "projector.2", which make vectors (Jina's reranker v3)
    linear,        // "linear", a row for each label (Voyage's embedder)
    same,          // the head it always has, with attention to both sides
  } kind = Kind::none;
  std::string base;              // the architecture whose body it has: "LlamaForCausalLM"
  std::uint64_t labels = 0;      // where the class says how many, whatever the config does
  std::uint64_t silent = 2;      // … and where the config does not say either
  std::string tokens = "score";  // what scores tokens is called
};

// What an architecture's name may mean, the likeliest first; empty: it names no such model.
std::vector<OtherHead> other_heads(std::string_view architecture);

// Takes the head off a tree with completed names and puts the other in its place. Throws Error::input for a body whose names
// do not all begin alike ("model.", "transformer."): of those nobody has told how they are saved.
void change_head(const OtherHead& head, ConfigReader& config, ModuleTree& tree);

// Likewise of models that see or hear, whose class with its usual head is "…ForConditionalGeneration". nullopt: no such name.
std::optional<OtherHead> other_head_of_larger(std::string_view architecture);
// Of a whole tree, towers and all, whose names become those that transformers saves of such a class. `document` has labels.
void change_head_of_larger(const OtherHead& head, ConfigReader& document, ModuleTree& tree);

// A retriever's class around a model that sees, without its head: each token's state becomes a vector of this width.
struct Retriever {
  ModelConfig whole;   // the model within, under the class that has a head
  std::string prefix;  // of its tensors
  std::string matrix;  // what makes the vectors
  std::uint64_t width;
  bool as_body;  // the model within is named as its class without a head is
};
// ColPali's and ColQwen's classes, of transformers and of their authors. nullopt: another.
std::optional<Retriever> retriever_of(const ModelConfig& config);
// Of the tree of `whole`.
void make_retriever(const Retriever& retriever, ModuleTree& tree);

}  // namespace assay::families
