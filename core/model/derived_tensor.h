// A tensor put together from rows of others: how one naming of a model's weights is made of another.
//
//   blk.7.ffn_up_exps    256 experts' up_proj, one under the other
//   blk.7.attn_k_b       for every head its first rows of kv_b_proj, transposed
//   blk.7.attn_q         the rows of q_proj, each head's two halves interleaved
//
// and the same backwards. Rows are read in pieces of any size; nothing is ever whole in memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model/stored_form.h"
#include "core/model/stored_reader.h"

namespace assay {

// The two orders of a rotary head's rows. transformers rotates row i with row i + half; ggml's Llama rotates
// row 2i with row 2i + 1. So row 2i + j of `pairs` is row j·half + i of `halves`.
// Of a bias they are its values.
enum class HeadRows : std::uint8_t { kept, pairs_from_halves, halves_from_pairs };

struct DerivedTensor {
  struct Piece {
    std::uint32_t source;  // place in StoredTensors::tensors
    std::uint64_t first_row, rows;
    bool transposed = false;  // these rows become columns
    // Of these rows every column_step-th of the columns from first_column on, `columns` of them; 0: all there
    // are. Gate and up of a stack lie side by side, or alternate.
    std::uint64_t columns = 0, first_column = 0, column_step = 1;
    // Every value times the first, then times the second, each product rounded: a multiplier of the config that a
    // GGUF has no key for.
    std::array<float, 2> factors = {1, 1};
    bool is_scaled() const { return factors[0] != 1 || factors[1] != 1; }
  };

  std::string name;
  std::vector<std::uint64_t> shape;  // outermost first
  std::vector<Piece> pieces;         // one under the other
  // So many pieces at a time stand side by side, and are the same rows; woven: their columns take turns.
  std::uint64_t abreast = 1;
  bool woven = false;
  HeadRows order = HeadRows::kept;
  std::uint64_t head_rows = 0;     // of one head, where the order is not kept
  std::uint64_t turning_rows = 0;  // … of which so many of the first are in the other order; 0: all
  // The columns, as groups × members blocks of `width`, in the order members × groups; 0: as they are.
  struct Regrouped {
    std::uint64_t groups = 0, members = 0, width = 0;
  } regrouped;
  float times_exp =
      0;  // times exp(value); 0: the value itself. State spaces store the logarithm of their decay
  // The logarithm of value / log_of; 0: the value itself. What times_exp has made is taken back by it: of all numbers
  // of which that is made the one of the fewest bits, which is what a checkpoint of bfloat16 had.
  float log_of = 0;
  float offset = 0;  // added to every value: Gemma's norms are stored less 1 by transformers
  // A tensor of one row, by whose values those of this one's row are multiplied: Kimi K3's residuals are scored by a norm
  // and a matrix of one row, one behind the other.
  std::optional<std::uint32_t> times;
  std::uint64_t zero_rows = 0;  // behind the pieces: of tokens that have no embedding
  bool centred = false;  // less the mean of its row, computed in the source's type: Sarvam's bias of experts
  std::vector<float> computed;  // values of no source; then there are no pieces

  struct Row {
    std::uint32_t source;
    std::uint64_t row;  // of that tensor
  };

  std::uint64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  std::uint64_t rows() const;
  // Throws Error::internal where the pieces do not make up the shape: a plan that could not be carried out.
  void check(const StoredTensors& stored) const;
  // Where a row of it lies, of a matrix whose pieces are not transposed.
  Row source_of(std::uint64_t row) const;
  // The place of the one tensor that this is, unchanged; nullopt where values or their order differ.
  std::optional<std::uint32_t> same_as(const StoredTensors& stored) const;
};

// One tensor as it is, under another name and perhaps another shape of as many rows.
DerivedTensor whole(std::string name, const StoredTensors& stored, std::uint32_t source);

DerivedTensor transposed(std::string name, const StoredTensors& stored, std::uint32_t source);

class DerivedReader {
 public:
  // Both outlive this.
  DerivedReader(const CheckpointReader& source, const StoredTensors& stored)
      : source_(source), stored_(stored) {}

  // Rows `first`, `first + 1` …; `out` has room for count × columns.
  void read(const DerivedTensor& tensor, std::uint64_t first, std::uint64_t count,
            std::span<float> out) const;

 private:
  void read_in_order(const DerivedTensor& tensor, std::uint64_t first, std::uint64_t count,
                     std::span<float> out) const;
  void read_abreast(const DerivedTensor& tensor, std::size_t begin, std::uint64_t first, std::uint64_t count,
                    std::span<float> out) const;
  void read_piece(const DerivedTensor::Piece& piece, std::uint64_t first, std::uint64_t count,
                  std::span<float> out) const;
  void read_values(const DerivedTensor::Piece& piece, std::uint64_t first, std::uint64_t count,
                   std::span<float> out) const;
  void read_columns(const DerivedTensor::Piece& piece, std::uint64_t first, std::uint64_t count,
                    std::span<float> out) const;

  const CheckpointReader& source_;
  const StoredTensors& stored_;
};

}  // namespace assay
