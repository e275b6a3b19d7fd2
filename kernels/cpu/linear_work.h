// A product in pieces that any thread may take: some outputs each, for all tokens. Several products can so
// share one loop over threads (the matrices of all experts, gate and up).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cpu/linear_input.h"
#include "refimpl/ops/arithmetic.h"
#include "refimpl/ops/matrix.h"
#include "refimpl/ops/weight_view.h"

namespace assay::cpu {

// From how many tokens on packing pays: with AVX2 from some 12 to 16 on, with AVX-512 from some 24; pairs of BF16, of which
// eight tokens at once take little from a row's reading, from some 64 to 96 (docs/benchmarks.md).
inline constexpr std::size_t kPackFrom = 17, kPackPairsFrom = 64;
// Rows of a piece of work: enough that starting it costs nothing beside it, few enough to share out evenly.
inline constexpr std::size_t kBytesAPiece = 32 << 10, kMostRowsAPiece = 1024;
inline constexpr std::size_t kTermsInCache = 64 << 10, kRowsByManyTokens = 36, kRowsOfTiles = 12;
// The order in which a sum's terms are added. fastest: as suits the number of tokens. steady: the same however many
// tokens come together, the way of a single one: a token's bits depend on nothing but the token (and its past).
enum class SumOrder : std::uint8_t { fastest, steady };
// Of a float32 arithmetic, or one of integers where the weight is for them, or one that takes_bf16().
LinearWay way_for(std::size_t tokens, const WeightView& weight, const Arithmetic& arithmetic,
                  SumOrder order = SumOrder::fastest);

class LinearWork {
 public:
  // x and y stay where they are until the last piece is done. `weight` is not input_major. x is brought into
  // the form its way reads, on `jobs` threads, unless `beside`, of the same x, has it so.
  LinearWork(LinearWay way, const Matrix& x, const WeightView& weight, const Matrix& y, int jobs,
             const LinearWork* beside = nullptr);

  std::size_t pieces() const { return pieces_; }
  // From the piece on, where rows are read as they are stored; else nothing.
  std::span<const std::byte> stored_from(std::size_t piece) const;
  void run(std::size_t piece) const;

 private:
  void run_panel(std::size_t first, std::size_t count) const;
  void run_rows(std::size_t first, std::size_t count) const;

  LinearWay way_;
  WeightView weight_;
  Matrix x_, y_;
  std::size_t step_ = 1, pieces_ = 0;  // outputs of a piece
  std::shared_ptr<const LinearInput> input_;
};

// All pieces of all products. `in_order`: the same ones will probably come again, and the same behind them.
void run_all(std::span<const LinearWork> products, int jobs, bool in_order = false);

}  // namespace assay::cpu
