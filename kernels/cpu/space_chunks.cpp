// With Gᵢ = Δ₁ + … + Δᵢ within a chunk that begins at H₀ [state, head_dim], and X = Δ x:
//
//   Y = (C exp(-a G)) H₀ + tril(C Bᵀ exp(-a (Gᵢ - G_j))) X + D x
//   H = exp(-a G_n) H₀ + (B exp(-a (G_n - G)))ᵀ X
//
// Exponents are differences of sums in double, and never above 0.
#include "kernels/cpu/space_chunks.h"

#include <algorithm>
#include <span>

#include "kernels/cpu/gemm_f32.h"
#include "kernels/cpu/scan.h"
#include "kernels/cpu/state_space.h"
#include "kernels/cpu/team.h"

namespace assay::cpu {
namespace {

class SpaceChunks {
 public:
  SpaceChunks(const SpaceHead32& head, const ChunkProducts& products)
      : of_(head),
        call_(head.call),
        products_(products),
        columns_(call_.state),
        group_(head.head / (call_.heads / call_.groups)),
        state_(columns_, call_.head_dim),
        width_(state_.width),
        across_(products.across),
        in_(kSpaceChunk * width_),
        out_(kSpaceChunk * width_),
        x_(kSpaceChunk * columns_),
        turned_(columns_ * kSpaceChunk),
        weights_(kSpaceChunk * across_),
        factors_(kSpaceChunk),
        sums_(kSpaceChunk) {
    state_.load_transposed(head.sequence, head.head * call_.head_dim);
  }

  void run(const Matrix& out) {
    const SequenceState& sequence = of_.sequence;
    for (std::size_t t = 0; t < sequence.tokens; t += count_) {
      begin_ = t;
      count_ = chunk_at(sequence, t, kSpaceChunk);
      read_inputs();
      weigh();
      through_state();
      among_themselves();
      keep_state();
      write(out);
      const std::size_t first_asked = sequence.tokens - sequence.after.size(), last = t + count_ - 1;
      if (last >= first_asked)
        state_.store_transposed(sequence.after[last - first_asked], of_.head * call_.head_dim);
    }
  }

 private:
  std::size_t token(std::size_t i) const { return of_.sequence.first + begin_ + i; }
  const float* b(std::size_t i) const { return call_.b.row<float>(token(i)) + group_ * columns_; }
  const float* c(std::size_t i) const { return call_.c.row<float>(token(i)) + group_ * columns_; }
  const float* x(std::size_t i) const { return call_.x.row<float>(token(i)) + of_.head * call_.head_dim; }
  // exp(-a · times) of the first `count` factors, which are times.
  void exponentials(std::size_t count) {
    for (std::size_t j = 0; j < count; ++j) factors_[j] *= -of_.rate;
    exponentials_of(std::span(factors_).first(count));
  }

  void read_inputs() {
    double sum = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const float size = of_.sizes[token(i) * call_.heads + of_.head];
      sums_[i] = sum += static_cast<double>(size);
      float* row = &in_[i * width_];
      for (std::size_t p = 0; p < call_.head_dim; ++p) row[p] = size * x(i)[p];
      std::fill_n(row + call_.head_dim, width_ - call_.head_dim, 0.0F);
    }
  }
  void weigh() {
    for (std::size_t i = 0; i < count_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) factors_[j] = static_cast<float>(sums_[i] - sums_[j]);
      exponentials(i + 1);
      const float* raw = products_.row(group_, begin_ + i);
      for (std::size_t j = 0; j <= i; ++j) weights_[i * across_ + j] = raw[j] * factors_[j];
    }
  }
  void through_state() {
    for (std::size_t i = 0; i < count_; ++i) factors_[i] = static_cast<float>(sums_[i]);
    exponentials(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      for (std::size_t n = 0; n < columns_; ++n) x_[i * columns_ + n] = c(i)[n] * factors_[i];
    }
    multiply({.x = x_.data(),
              .rows = count_,
              .x_stride = columns_,
              .terms = columns_,
              .s = state_.values.data(),
              .y = out_.data(),
              .width = width_});
  }
  void among_themselves() {
    for (std::size_t block = 0; block < count_; block += kSpaceBlock) {
      const std::size_t rows = std::min(kSpaceBlock, count_ - block);
      const float* weights = &weights_[block * across_];
      if (block > 0)
        multiply({.x = weights,
                  .rows = rows,
                  .x_stride = across_,
                  .terms = block,
                  .s = in_.data(),
                  .y = &out_[block * width_],
                  .width = width_,
                  .accumulate = true});
      multiply_lower(
          {weights + block, rows, across_, true, &in_[block * width_], &out_[block * width_], width_});
    }
  }
  void keep_state() {
    for (std::size_t i = 0; i < count_; ++i) factors_[i] = static_cast<float>(sums_[count_ - 1] - sums_[i]);
    exponentials(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      for (std::size_t n = 0; n < columns_; ++n) turned_[n * kSpaceChunk + i] = b(i)[n] * factors_[i];
    }
    factors_[0] = static_cast<float>(sums_[count_ - 1]);
    exponentials(1);
    for (float& h : state_.values) h *= factors_[0];
    multiply({.x = turned_.data(),
              .rows = columns_,
              .x_stride = kSpaceChunk,
              .terms = count_,
              .s = in_.data(),
              .y = state_.values.data(),
              .width = width_,
              .accumulate = true});
  }
  void write(const Matrix& out) const {
    for (std::size_t i = 0; i < count_; ++i) {
      float* y = out.row<float>(token(i)) + of_.head * call_.head_dim;
      for (std::size_t p = 0; p < call_.head_dim; ++p) y[p] = out_[i * width_ + p] + of_.skip * x(i)[p];
    }
  }

  const SpaceHead32& of_;
  const StateSpaceCall& call_;
  const ChunkProducts& products_;
  std::size_t columns_, group_;
  PaddedState state_;  // H
  std::size_t width_, across_;
  std::vector<float> in_, out_;        // X and Y: [chunk, width]
  std::vector<float> x_, turned_;      // [chunk, columns], [columns, chunk]
  std::vector<float> weights_;         // [chunk, across]
  std::vector<float> factors_;         // exponentials
  std::vector<double> sums_;           // G
  std::size_t begin_ = 0, count_ = 0;  // the chunk's tokens
};

}  // namespace

ChunkProducts::ChunkProducts(const StateSpaceCall& call, const SequenceState& sequence, int jobs)
    : tokens(sequence.tokens), across(padded_width(kSpaceChunk)), values(call.groups * tokens * across) {
  std::vector<std::size_t> begins;
  for (std::size_t t = 0; t < tokens; t += chunk_at(sequence, t, kSpaceChunk)) begins.push_back(t);
  const std::size_t panel = panel_width();
  team_for(jobs, begins.size() * call.groups, [&](std::size_t piece) {
    const std::size_t begin = begins[piece / call.groups], group = piece % call.groups;
    const std::size_t count = chunk_at(sequence, begin, kSpaceChunk), first = sequence.first + begin;
    const Matrix b = call.b.part(group * call.state, call.state),
                 c = call.c.part(group * call.state, call.state);
    std::vector<const float*> rows;
    for (std::size_t j = 0; j < count; ++j) rows.push_back(b.row<float>(first + j));
    std::vector<float> turned(call.state * panel);
    for (std::size_t j = 0; j < count; j += panel) {
      const std::size_t some = std::min(panel, count - j);
      pack_panel(&rows[j], some, call.state, turned.data());
      // Rows before j look at none of these.
      multiply_panel({.x = c.row<float>(first + j),
                      .tokens = count - j,
                      .x_stride = c.stride(),
                      .panel = turned.data(),
                      .terms = call.state,
                      .y = &values[(group * tokens + begin + j) * across + j],
                      .y_stride = across,
                      .outputs = some});
    }
  });
}

void run_space_chunks(const SpaceHead32& head, const ChunkProducts& products, const Matrix& out) {
  SpaceChunks(head, products).run(out);
}

}  // namespace assay::cpu
