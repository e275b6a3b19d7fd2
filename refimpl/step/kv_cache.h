// What one sequence keeps of its past: for each layer a row of keys and a row of values a token (after rope),
// or, for latent attention, one row [latent | rotary key part]; and of recurrent layers a state of fixed size,
// as it was behind the last few tokens, so that these can be taken back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "refimpl/ops/interface.h"
#include "refimpl/step/cache_policy.h"

namespace assay {

// A matrix that a recurrent layer carries from token to token: the last inputs of a convolution, a sum of what
// was seen.
struct StateShape {
  std::size_t rows = 0, columns = 0;
};
// Elements a token keeps in one layer, and what the layer carries. Latent attention: value_width 0.
struct CacheWidth {
  std::size_t key_width = 0, value_width = 0;
  std::vector<StateShape> states = {};
  std::size_t window = 0;  // a token needs the rows of so many before it, itself included; 0: all
  // How a CacheMethod may cut a row: into keys and values of so many heads, or behind the latent, which comes first.
  // Both 0: not at all.
  std::size_t kv_heads = 0, latent = 0;
  bool drafts = false;  // of a layer for multi-token prediction
};

class BlockStorage;

class SequenceCache {
 public:
  // Layers take memory as they fill, for up to `limit` tokens, which the model's context sets.
  SequenceCache(Ops& ops, const std::vector<CacheWidth>& layers, std::size_t limit);
  // Rows lie in blocks of `storage`, those that `tables` names: one table a group of layers, grown and cut by whoever
  // owns it, always as long as what is put. Both outlive the cache.
  // `page_rows` 1: the tables name every token's row, wherever it lies; 0: the storage's blocks.
  SequenceCache(Ops& ops, const BlockStorage& storage, const std::vector<std::vector<std::int32_t>>& tables,
                std::size_t limit, std::size_t page_rows = 0);

  // From now on, with nothing in it yet, layers are kept as the method says; `prompt`: tokens read before the first
  // is made. Of a cache with rows on end alone.
  void keep_by(std::shared_ptr<const CacheMethod> method, std::size_t prompt);
  bool renumbers() const { return method_ != nullptr && method_->renumbers(); }
  std::size_t next_place() const;                // of the next token: where its angles are taken from
  std::size_t rows(std::size_t layer) const;     // held: all tokens', where no policy threw some away
  LayerPolicy* policy(std::size_t layer) const;  // none: as ever

  std::size_t length() const { return length_; }  // tokens that all layers have
  // Of tokens. Where rows are renumbered the context bounds what is held, not what was read.
  std::size_t limit() const { return renumbers() ? std::numeric_limits<std::size_t>::max() : limit_; }
  std::size_t layers() const { return layers_.size(); }

  // Throws Error::input when `count` tokens more exceed the limit.
  void require_room(std::size_t count) const;
  // Puts the rows of a step's tokens after the first rows() ones.
  void put(std::size_t layer, const Matrix& keys, const Matrix& values);
  void put(std::size_t layer, const Matrix& latents);
  // State `part` of a layer around a step of `count` tokens, which are rows `first` … of the batch: what it was, and
  // matrices for what it becomes, behind every one of the tokens where they are at most kTakenBack, else behind
  // the last. A step that is not advance()d has changed nothing.
  SequenceState state(std::size_t layer, std::size_t part, std::size_t first, std::size_t count);

  // The step is over: its tokens count; states only for all of them, or one of the first kTakenBack. Or they never
  // were: forget all beyond `length` (speculation). A state can be taken back within the last step, if that was one
  // of at most kTakenBack tokens, and to 0; else throws Error::input.
  static constexpr std::size_t kTakenBack = 8;
  void advance(std::size_t count);
  void truncate(std::size_t length);

  // The states of all recurrent layers behind length() tokens: handles, whose numbers nobody changes any more.
  using States = std::vector<Matrix>;
  States states() const;
  // As if `length` tokens had been read: their rows are in the tables' blocks, their states these.
  void resume(std::size_t length, const States& states);

  PagedKvView keys(std::size_t layer) const { return view(layer, layers_.at(layer).keys); }
  PagedKvView values(std::size_t layer) const { return view(layer, layers_.at(layer).values); }

 private:
  // Behind each of `length` - kept.size() + 1 … `length` tokens; an empty matrix: behind none.
  struct State {
    StateShape shape;
    std::vector<Matrix> kept = {Matrix()};
    std::size_t length = 0;
    SequenceState step = {};  // under way; of no tokens: none
    std::size_t first_kept() const { return length + 1 - kept.size(); }
  };
  struct Layer {
    Matrix keys, values;  // [capacity, width]
    std::vector<State> states;
    std::shared_ptr<LayerPolicy> policy = {};
    bool written = false;  // in the step under way
  };
  void make_policies();
  PagedKvView view(std::size_t layer, const Matrix& rows) const;
  void put_rows(std::size_t layer, Matrix& kept, const Matrix& rows);

  Ops& ops_;
  std::vector<Layer> layers_;
  std::vector<CacheWidth> widths_;
  std::shared_ptr<const CacheMethod> method_;
  std::size_t prompt_ = 0;
  std::size_t length_ = 0, limit_ = 0, page_rows_ = 0;
  const BlockStorage* storage_ = nullptr;  // none: rows on end
  const std::vector<std::vector<std::int32_t>>* tables_ = nullptr;
};

// Where rows `first` … lie, as a table of pages of one row each: for whoever picks some of them.
std::vector<std::int32_t> row_table(const PagedKvView& rows, std::size_t first, std::size_t count);

}  // namespace assay
