#include "kernels/cpu/linear_work.h"

#include <algorithm>

#include "kernels/cpu/gemm_f32.h"
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

std::vector<float> packed_tokens(const Matrix& x, int jobs) {
  std::vector<float> packed(x.rows() * x.columns());
  constexpr std::size_t kTokens = 2 * kMostTileRows;  // a multiple of every tile's
  team_for(jobs, (x.rows() + kTokens - 1) / kTokens, [&](std::size_t i) {
    const std::size_t first = i * kTokens, count = std::min(kTokens, x.rows() - first);
    pack_tokens(x.row<float>(first), x.stride(), count, x.columns(), packed.data() + first * x.columns());
  });
  return packed;
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

LinearWork::LinearWork(LinearWay way, const Matrix& x, const WeightView& weight, const Matrix& y, int jobs)
    : way_(way), weight_(weight), x_(x), y_(y) {
  if (x.rows() == 0 || weight.rows == 0) return;
  const bool by_panels = way >= LinearWay::gemm;
  const std::size_t panels = way == LinearWay::gemm ? 1 : kPanelsAPiece;
  step_ = by_panels ? panels * panel_width() : rows_a_piece(weight, x.rows());
  pieces_ = (weight.rows + step_ - 1) / step_;
  if (way == LinearWay::gemm) packed_ = packed_tokens(x, jobs);
  if (way == LinearWay::gemm_int16) tiles_.emplace(x, weight.type, int16_input_bits(weight), jobs);
  if (way == LinearWay::gemm_bf16) pairs_of_terms_.emplace(x, jobs);
  if (way == LinearWay::gemm_int8) tiles_.emplace(x, weight.type, kInt8BlockBits, jobs);
  if (!by_panels) read_tokens(jobs);
}

std::optional<WeightInPieces> LinearWork::stored_pieces() const {
  if (way_ >= LinearWay::gemm || weight_.codes == nullptr || pieces_ == 0) return std::nullopt;
  return WeightInPieces{.at = weight_.codes, .piece_bytes = step_ * weight_.row_bytes, .pieces = pieces_};
}

void LinearWork::read_tokens(int jobs) {
  if (way_ == LinearWay::gemv_bf16 && multiplies_pairs()) return static_cast<void>(bf16_.emplace(x_));
  const bool bytes = way_ == LinearWay::gemv_int8;
  const bool floats =
      !bytes && (way_ == LinearWay::gemv || way_ == LinearWay::gemv_bf16 || !has_integer_rows(weight_));
  if (bytes) bytes_.resize(x_.rows());
  if (floats) floats_.resize(x_.rows());
  if (!bytes && !floats) ints_.resize(x_.rows());
  team_for(jobs, x_.rows(), [&](std::size_t t) {
    const std::span<const float> row(x_.row<float>(t), x_.columns());
    if (bytes)
      bytes_[t] = int8_input(row, weight_.type);
    else if (floats)
      floats_[t] = DotInput(row, weight_, way_ == LinearWay::gemv_int16);
    else
      ints_[t] = IntInput(row, way_ == LinearWay::gemv_int24);
  });
}

void LinearWork::run(std::size_t piece) const {
  const std::size_t first = piece * step_, count = std::min(step_, weight_.rows - first);
  if (tiles_)
    integer_panel(*tiles_, weight_, first, count, y_);
  else if (pairs_of_terms_)
    bf16_panel(*pairs_of_terms_, weight_, first, count, y_);
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
  multiply_panel({.x = packed_.data(),
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
  if (bf16_)
    bf16_rows(*bf16_, weight_, first, count, y_);
  else if (!floats_.empty())
    row_dots(weight_, first, count, floats_, y_);
  else if (!bytes_.empty())
    int8_row_dots(weight_, first, count, bytes_, y_);
  else
    integer_row_dots(weight_, first, count, ints_, y_);
}

void run_all(const std::vector<LinearWork>& products, int jobs) {
  std::vector<std::size_t> ends;  // of each product's pieces in the common loop
  ends.reserve(products.size());
  std::size_t pieces = 0;
  for (const LinearWork& product : products) ends.push_back(pieces += product.pieces());
  team_for(jobs, pieces, [&](std::size_t i) {
    const auto at = std::upper_bound(ends.begin(), ends.end(), i);
    const auto which = static_cast<std::size_t>(at - ends.begin());
    products[which].run(which == 0 ? i : i - ends[which - 1]);
  });
}

}  // namespace assay::cpu
