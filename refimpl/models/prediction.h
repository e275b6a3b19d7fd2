// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437 §2.2): what stands around the decoder layers of a module.
//
//   x = projection [norm(embedding of the next token) | norm(given)]
//   x = the module's layers of x, one or several
//   the head sees norm(x)
//
// The first module is given what the main model's head saw, after its final norm; a module behind it what the one before
// it said, after that one's. Norms are there or not, as stored. What else differs from family to family is a
// PredictionForm. Sources: vLLM 0.32 (*_mtp.py), SGLang 0.5.23 (*_nextn.py, *_mtp.py), which agree but where a family's
// file says so.
#pragma once

#include <cstddef>
#include <optional>

#include "refimpl/models/norms.h"
#include "refimpl/models/projection.h"

namespace assay {

struct PredictionForm {
  std::size_t layers = 0;  // of one module, run in their order; 0: whatever is stored, none is computed
  bool in_series =
      false;  // all modules that are stored, each with norms and projection of its own; else the first
  bool hidden_first = false;  // [norm(given) | norm(embedding)]
  bool before_norms = false;  // given and said is what stands before the final norms
  // of_first: all modules share the one that is stored beside the first
  enum class FinalNorm { own, of_first, of_model, none } final_norm = FinalNorm::own;
  bool normed_embedding = false;  // embeddings pass the norm that the main model's do
  bool own_head = false;          // else the model's
};
// DeepSeek-V3's: a layer a module, one after the other.
inline constexpr PredictionForm kLayerModules = {.layers = 1, .in_series = true};

struct PredictionFrame {
  Norm embedding_norm, hidden_norm, final_norm;  // the last may be none
  Projection projection;                         // [tokens, 2 · hidden] → [.., hidden]
  WeightView head;                               // or none
  WeightView embedding;                          // or none: of modules that have a table of their own
  bool hidden_first = false;

  // Of the module whose layers are [first, last]: the final norm stands in the last, all else in the first. Empty where
  // the checkpoint holds no such module, or not all of it.
  static std::optional<PredictionFrame> find(const Weights& weights, std::size_t first, std::size_t last,
                                             const NormRule& norm, const PredictionForm& form);
  // token: embeddings of the tokens behind those that `given` is of; both [tokens, hidden].
  Matrix enter(const Matrix& token, const Matrix& given, Ops& ops) const;
};

}  // namespace assay
