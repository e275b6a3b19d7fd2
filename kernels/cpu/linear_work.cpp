#include "kernels/cpu/linear_work.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/gemm_f32.h"
#include "kernels/cpu/next_weight.h"
#include "kernels/cpu/row_dot_int.h"
#include "kernels/cpu/row_dot_int8.h"
#include "kernels/cpu/row_dot_tokens.h"
#include "kernels/cpu/team.h"
#include "kernels/cpu/tile_rows.h"
#include "kernels/operands/int16.h"
#include "kernels/operands/int8_block.h"

namespace assay::cpu {
namespace {

// Each piece reads all tokens: where these do not stay in a cache, it has to be tall. Whole tiles of three or four rows.
std::size_t rows_a_piece(const WeightView& weight, std::size_t tokens) {
  const std::size_t row_bytes = std::max<std::size_t>(1, weight.row_bytes);
  const std::size_t fewest = tokens * weight.columns > kTermsInCache ? kRowsByManyTokens : 4;
  const std::size_t rows = std::clamp<std::size_t>(kBytesAPiece / row_bytes, fewest, kMostRowsAPiece);
  return rows < kRowsOfTiles ? rows : rows / kRowsOfTiles * kRowsOfTiles;
}

// float32 panels are a third faster than pairs without their instruction, of numbers that need no rounding.
LinearWay way_in_bf16(std::size_t tokens, SumOrder order, const WeightView& weight) {
  if (!is_stored_bf16(weight)) return LinearWay::gemm_bf16;
  const bool pairs = multiplies_pairs();
  if (order == SumOrder::steady || tokens < (pairs ? kPackPairsFrom : kPackFrom)) return LinearWay::gemv_bf16;
  return pairs ? LinearWay::gemm_bf16 : LinearWay::gemm;
}

}  // namespace

LinearWay way_for(std::size_t tokens, const WeightView& weight, const Arithmetic& arithmetic,
                  SumOrder order) {
  if (arithmetic.bfloat16()) return way_in_bf16(tokens, order, weight);
  const bool few = tokens < kPackFrom || order == SumOrder::steady;
  if (takes_int16(weight, arithmetic)) return few ? LinearWay::gemv_int16 : LinearWay::gemm_int16;
  if (takes_int8_block(weight, arithmetic)) return few ? LinearWay::gemv_int8 : LinearWay::gemm_int8;
  if (!few) return LinearWay::gemm;
  return has_integer_rows(weight) ? LinearWay::gemv_int24 : LinearWay::gemv;
}

LinearWork::LinearWork(LinearWay way, const Matrix& x, const WeightView& weight, const Matrix& y, int jobs,
                       const LinearWork* beside)
    : way_(way), weight_(weight), x_(x), y_(y) {
  if (x.rows() == 0 || weight.rows == 0) return;
  const bool by_panels = way >= LinearWay::gemm;
  const std::size_t panels = way == LinearWay::gemm ? 1 : kPanelsAPiece;
  step_ = by_panels ? panels * panel_width() : rows_a_piece(weight, x.rows());
  pieces_ = (weight.rows + step_ - 1) / step_;
  if (beside != nullptr && beside->input_ && beside->input_->suits(way, weight))
    input_ = beside->input_;
  else
    input_ = std::make_shared<const LinearInput>(way, x, weight, jobs);
}

std::span<const std::byte> LinearWork::stored_from(std::size_t piece) const {
  if (way_ >= LinearWay::gemm || weight_.codes == nullptr || piece >= pieces_) return {};
  const std::size_t row = piece * step_;
  return {weight_.codes + row * weight_.row_bytes, (weight_.rows - row) * weight_.row_bytes};
}

void LinearWork::run(std::size_t piece) const {
  const std::size_t first = piece * step_, count = std::min(step_, weight_.rows - first);
  if (input_->tiles)
    integer_panel(*input_->tiles, weight_, first, count, y_);
  else if (input_->pairs)
    bf16_panel(*input_->pairs, weight_, first, count, y_);
  else if (way_ == LinearWay::gemm)
    run_panel(first, count);
  else
    run_rows(first, count);
}

void LinearWork::run_panel(std::size_t first, std::size_t count) const {
  thread_local std::vector<float> rows, panel;
  const std::size_t width = panel_width(), terms = weight_.columns;
  std::vector<const float*> row_of(width);
  rows.resize(width * terms);
  for (std::size_t n = 0; n < width; ++n) row_of[n] = rows.data() + n * terms;
  panel.resize(width * terms);
  decode_rows(weight_, first, count, rows.data());
  pack_panel(row_of.data(), count, terms, panel.data());
  multiply_panel({.x = input_->packed.data(),
                  .tokens = x_.rows(),
                  .x_stride = 0,
                  .panel = panel.data(),
                  .terms = terms,
                  .y = y_.row<float>(0) + first,
                  .y_stride = y_.stride(),
                  .outputs = count,
                  .x_packed = true});
}

void LinearWork::run_rows(std::size_t first, std::size_t count) const {
  if (input_->bf16)
    bf16_rows(*input_->bf16, weight_, first, count, y_);
  else if (!input_->floats.empty())
    row_dots(weight_, first, count, input_->floats, y_);
  else if (!input_->bytes.empty())
    int8_row_dots(weight_, first, count, input_->bytes, y_);
  else
    integer_row_dots(weight_, first, count, input_->ints, y_);
}

namespace {

// Several products' pieces as those of one loop.
class CommonLoop {
 public:
  explicit CommonLoop(std::span<const LinearWork> products) : products_(products) {
    ends_.reserve(products.size());
    for (const LinearWork& product : products) ends_.push_back(pieces_ += product.pieces());
  }
  std::size_t pieces() const { return pieces_; }
  void run(std::size_t i) const {
    const auto [product, piece] = at(i);
    products_[product].run(piece);
  }
  // Of each thread's share the weight's bytes from its first piece on.
  std::vector<std::span<const std::byte>> beginnings(int jobs) const {
    const auto threads = static_cast<std::size_t>(jobs);
    std::vector<std::span<const std::byte>> bytes(threads);
    for (std::size_t t = 0; t < threads && pieces_ > 0; ++t) {
      const auto [product, piece] = at(std::min(pieces_ * t / threads, pieces_ - 1));
      bytes[t] = products_[product].stored_from(piece);
    }
    return bytes;
  }

 private:
  std::pair<std::size_t, std::size_t> at(std::size_t i) const {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), i);
    const auto product = static_cast<std::size_t>(end - ends_.begin());
    return {product, product == 0 ? i : i - ends_[product - 1]};
  }
  std::span<const LinearWork> products_;
  std::vector<std::size_t> ends_;
  std::size_t pieces_ = 0;
};

}  // namespace

void run_all(std::span<const LinearWork> products, int jobs, bool in_order) {
  const CommonLoop loop(products);
  if (in_order && jobs > 1 && loop.pieces() > 1) {
    const std::span<const std::byte> first = products.front().stored_from(0);
    if (!first.empty()) fetch_next_after(first.data(), loop.beginnings(jobs));
  }
  team_for(jobs, loop.pieces(), [&](std::size_t i) { loop.run(i); });
}

}  // namespace assay::cpu
