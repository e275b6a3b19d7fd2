// A cache that is kept smaller than it is computed: rows of fewer bits, or fewer rows. One LayerPolicy a layer and
// sequence sees what is put, what is attended to, and decides what stays:
//
//   write()    the step's rows, before they are put: as they are, or as all will read them
//   seen()     what the step's queries made of the rows, where the policy wants to know (watched_from())
//   settle()   the step counts: rows are rounded, thrown away, moved together
//
// A step attends to everything that was kept before it and to all it put itself: rows are thrown away behind the
// attention of the step that makes them too many, never before it, so that the mask is the plain causal one, aligned
// at the end. (Thrown away before, the keys are no longer those that the mask was made for: VeloxQuant-MLX#370.)
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "refimpl/ops/interface.h"
#include "refimpl/step/layer_groups.h"

namespace assay {

struct CacheWidth;

// Where a layer's rows lie: the first rows() are held, those of a step behind them.
struct CacheRows {
  Ops& ops;
  PagedKvView keys, values;  // [rows, kv_heads · qk_dim], [rows, kv_heads · v_dim]
};

// Of every key head, of every row: how much attention it got, summed over queries and the query heads that share it.
using AttentionMass = std::vector<std::vector<double>>;

class LayerPolicy {
 public:
  virtual ~LayerPolicy() = default;

  virtual std::size_t rows() const = 0;  // held, without those of a step that does not count yet
  virtual void write(Matrix& /*keys*/, Matrix& /*values*/, Ops& /*ops*/) {}
  // Of a step of `count` queries the first whose attention is wanted; `count`: of none.
  virtual std::size_t watched_from(std::size_t count) const { return count; }
  // Of rows() + count rows.
  virtual void seen(AttentionMass) {}  // NOLINT(performance-unnecessary-value-param): some keep it
  virtual void settle(const CacheRows& rows, std::size_t count) = 0;

  // What an engine would need for what is held now: codes, scales, sums; numbers in full are of 2 bytes.
  virtual double bytes() const = 0;
  // Of every key head the places in the text of the rows held, ascending; empty: all tokens are.
  virtual std::vector<std::vector<std::size_t>> kept() const { return {}; }
};

// A layer among those whose caches have rows.
struct CacheLayer {
  const CacheWidth& width;
  std::size_t index = 0, layers = 1;
};

// How all layers of a sequence are kept. One for many sequences.
class CacheMethod {
 public:
  virtual ~CacheMethod() = default;
  virtual std::string name() const = 0;  // as it was asked for: "h2o:budget=64"
  // Null: this layer is kept as ever. `prompt`: the tokens that are read before the first is made.
  virtual std::unique_ptr<LayerPolicy> layer(const CacheLayer& layer, std::size_t prompt) const = 0;

  // Where a token stands of which `tokens` come before it in the text, `rows` of them held. Rotary angles are of
  // this place.
  virtual std::size_t place(std::size_t tokens, std::size_t /*rows*/) const { return tokens; }
  // Rows stand where they lie in the cache, not where they stood in the text (StreamingLLM): keys are put before they
  // are rotated, and rotated for each step.
  virtual bool renumbers() const { return false; }
  // Of methods that are the model's, not the cache's: it is made anew with its layers grouped so.
  virtual LayerGroups groups() const { return {}; }
};

}  // namespace assay
