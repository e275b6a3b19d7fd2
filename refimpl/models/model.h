// A model that can be run: what it needs of a cache, and its forward pass.
//
// A family joins with one ModelRule, listed in models.cpp: {families it computes, how to make one}. Its
// constructor takes numbers from the tree (Hyperparameters) and views from the weights, so that everything
// missing or absurd is an Error there; forward passes only compute.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refimpl/models/config_keys.h"
#include "refimpl/models/weights.h"
#include "refimpl/ops/interface.h"
#include "refimpl/step/batch.h"
#include "refimpl/step/kv_cache.h"
#include "refimpl/step/taps.h"

namespace assay {

class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  virtual std::size_t vocabulary() const = 0;
  virtual std::size_t context() const = 0;                   // the longest sequence it is made for
  virtual std::vector<CacheWidth> cache_widths() const = 0;  // by layer; MTP layers after the main ones

  virtual bool embeds_positions() const { return false; }  // learnt ones, added to the tokens

  // Which elements of a head rotate together in the taps q and k: checkpoints of one model may keep the rows of
  // its projections in either order.
  virtual RopeLayout rope_layout() const { return RopeLayout::half_split; }

  // Do keys cached while the sequence was `length` tokens long serve when it is `other` long? Not where
  // rotary frequencies follow the length (dynamic NTK, longrope): the caller then starts the sequence anew.
  virtual bool cache_serves(std::size_t length, std::size_t other) const;

  // What logits() and draft() are given of every token: [tokens, hidden]. Puts keys and values.
  virtual Matrix hidden(const Batch& batch, Ops& ops, const Taps& taps) const = 0;
  virtual Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const = 0;  // [rows, vocabulary]

  // Multi-token prediction, where the checkpoint has it: from the embeddings of the batch's tokens, and what
  // hidden() said of the token before each of them, what stands after; its logits are draft_logits(). Where there are
  // several modules, number m is given what module m - 1 said in place of hidden(), and tokens one farther on.
  virtual std::size_t draft_layers() const { return 0; }  // modules
  virtual std::size_t streams() const {
    return 1;
  }  // rows of hidden() are so many times as wide as the model
  virtual Matrix draft(std::size_t module, const Batch& batch, const Matrix& hidden, Ops& ops,
                       const Taps& taps) const;
  virtual Matrix draft_logits(std::size_t module, const Matrix& draft, Ops& ops, const Taps& taps) const;
};

struct ModelOptions {
  std::string variant;  // where references disagree; "" is the family's default (docs/run.md)
  MlaForm mla = MlaForm::absorbed;
  MoeForm moe = MoeForm::sparse;
  ScanForm scan = ScanForm::recurrent;  // of delta rules and state spaces
};

struct ModelRule {
  std::span<const std::string_view> families;  // ModuleTree::family
  std::span<const std::string_view> variants;  // the first is the default; empty: there are none
  ConfigKeys keys;                             // of its config.json
  // `weights` outlives the model.
  std::unique_ptr<LanguageModel> (*make)(const Weights& weights, const ModelOptions& options);
};
std::span<const ModelRule* const> all_model_rules();
// Throws Error::input for a family without a forward rule.
const ModelRule& rule_for(const ModuleTree& tree, const ModelConfig& config);
// Throws Error::input for a family without a forward rule and for a config that asks for what no rule
// computes, Error::usage for an unknown variant.
std::unique_ptr<LanguageModel> make_model(const Weights& weights, const ModelOptions& options);

}  // namespace assay
