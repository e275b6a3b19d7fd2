// With Gᵢ = g₁ + … + gᵢ within a chunk that begins at S₀, and a(x, i, j) = Σ_c xᵢ k_j exp(Gᵢ - G_j):
//
//   U = β (V - (K exp G)ᵀ S₀) - tril(β a(k), -1) U      a triangle, solved from the first token on
//   O = (Q exp G)ᵀ S₀ + tril(a(q)) U
//   S = diag(exp G_n) S₀ + (K exp(G_n - G))ᵀ U
//
// Exponents are differences of sums in double, and never above 0: nothing overflows, however fast a channel forgets.
// Where channels forget at different speeds, a(x, i, j) of different blocks of tokens is a product of two factors, one
// up to the first token of i's block and one from there on; within a block it is computed as it stands.
#include "kernels/cpu/delta_chunks.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/decayed_dots.h"
#include "kernels/cpu/delta_rule.h"
#include "kernels/cpu/gemm_f32.h"

namespace assay::cpu {
namespace {

class DeltaChunks {
 public:
  DeltaChunks(const DeltaRuleCall& call, const DeltaInputs& in, const SequenceState& sequence,
              std::size_t head)
      : call_(call),
        in_(in),
        sequence_(sequence),
        head_(head),
        keys_(call.key_dim),
        key_at_(head / (call.value_heads / call.key_heads) * keys_),
        state_(keys_, call.value_dim),
        width_(state_.width),
        across_(padded_width(kDeltaChunk)),
        u_(kDeltaChunk * width_),
        o_(kDeltaChunk * width_),
        x_(kDeltaChunk * keys_),
        factors_(std::max(keys_, kDeltaChunk)),
        turned_(keys_ * across_),
        of_k_(kDeltaChunk * across_),
        of_q_(kDeltaChunk * across_),
        sums_(kDeltaChunk * in.channels) {
    state_.load(sequence, head * keys_);
  }

  void run(const Matrix& out) {
    for (std::size_t t = 0; t < sequence_.tokens; t += count_) {
      first_ = sequence_.first + t;
      count_ = chunk_at(sequence_, t, kDeltaChunk);
      add_up_decays();
      by_channel() ? weights_by_channel() : weights_of_head();
      through_state();
      among_themselves();
      keep_state();
      for (std::size_t i = 0; i < count_; ++i)
        std::copy_n(&o_[i * width_], call_.value_dim, out.row<float>(first_ + i) + head_ * call_.value_dim);
      const std::size_t first_asked = sequence_.tokens - sequence_.after.size(), last = t + count_ - 1;
      if (last >= first_asked) state_.store(sequence_.after[last - first_asked], head_ * keys_);
    }
  }

 private:
  bool by_channel() const { return in_.channels != 1; }
  const float* q(std::size_t i) const { return &in_.q[(first_ + i) * in_.keys + key_at_]; }
  const float* k(std::size_t i) const { return &in_.k[(first_ + i) * in_.keys + key_at_]; }
  float beta(std::size_t i) const { return in_.beta[(first_ + i) * in_.heads + head_]; }
  const double* sum(std::size_t i) const { return &sums_[i * in_.channels]; }  // G

  void add_up_decays() {
    for (std::size_t i = 0; i < count_; ++i) {
      const float* g = &in_.decay[(first_ + i) * in_.decays + head_ * in_.channels];
      for (std::size_t c = 0; c < in_.channels; ++c) {
        const double before = i == 0 ? 0 : sum(i - 1)[c];
        sums_[i * in_.channels + c] = before + static_cast<double>(g[c]);
      }
    }
  }
  // exp(to - from) of each channel: one, or keys_ of them; from: null for where the chunk begins.
  const float* decayed(const double* to, const double* from) {
    for (std::size_t c = 0; c < in_.channels; ++c)
      factors_[c] = static_cast<float>(to[c] - (from == nullptr ? 0 : from[c]));
    exponentials_of(std::span(factors_).first(in_.channels));
    return factors_.data();
  }
  // y = x · exp(to - from) · factor
  void scale(const float* x, const double* to, const double* from, float factor, float* y) {
    const float* kept = decayed(to, from);
    for (std::size_t c = 0; c < keys_; ++c) y[c] = x[c] * kept[by_channel() ? c : 0] * factor;
  }

  // of_k: -β a(k), of_q: a(q), below the diagonal and on it.
  void weights_of_head() {
    const std::size_t panel = panel_width();
    std::vector<const float*> rows;
    for (std::size_t j = 0; j < count_; ++j) rows.push_back(k(j));
    for (std::size_t j = 0; j < count_; j += panel) {
      const std::size_t some = std::min(panel, count_ - j);
      pack_panel(&rows[j], some, keys_, turned_.data());
      // Rows before j look at none of these.
      multiply_rows(k(j), count_ - j, {.outputs = some, .y = &of_k_[j * across_ + j]});
      multiply_rows(q(j), count_ - j, {.outputs = some, .y = &of_q_[j * across_ + j]});
    }
    for (std::size_t i = 0; i < count_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) factors_[j] = static_cast<float>(*sum(i) - *sum(j));
      exponentials_of(std::span(factors_).first(i + 1));
      for (std::size_t j = 0; j <= i; ++j) {
        of_k_[i * across_ + j] *= -beta(i) * factors_[j];
        of_q_[i * across_ + j] *= factors_[j];
      }
    }
  }
  struct Columns {
    std::size_t outputs;
    float* y;
    std::size_t x_stride = 0;
  };
  void multiply_rows(const float* x, std::size_t rows, const Columns& to) {
    multiply_panel({.x = x,
                    .tokens = rows,
                    .x_stride = to.x_stride != 0 ? to.x_stride : in_.keys,
                    .panel = turned_.data(),
                    .terms = keys_,
                    .y = to.y,
                    .y_stride = across_,
                    .outputs = to.outputs});
  }

  void weights_by_channel() {
    for (std::size_t block = 0; block < count_; block += kDeltaBlock) {
      const std::size_t rows = std::min(kDeltaBlock, count_ - block);
      if (block > 0) weights_of_earlier(block, rows);
      for (std::size_t i = block; i < block + rows; ++i) {
        for (std::size_t j = block; j <= i; ++j) {
          const DotPair dots = decayed_dots({sum(i), sum(j), k(j), k(i), q(i), keys_});
          of_k_[i * across_ + j] = -beta(i) * dots.a;
          of_q_[i * across_ + j] = dots.b;
        }
      }
    }
  }
  void weights_of_earlier(std::size_t block, std::size_t rows) {
    const std::size_t panel = panel_width();
    std::vector<const float*> earlier;
    for (std::size_t j = 0; j < block; ++j) {
      scale(k(j), sum(block), sum(j), 1, &x_[j * keys_]);
      earlier.push_back(&x_[j * keys_]);
    }
    std::vector<float> mine(2 * kDeltaBlock * keys_);
    for (std::size_t i = 0; i < rows; ++i) {
      scale(k(block + i), sum(block + i), sum(block), -beta(block + i), &mine[i * keys_]);
      scale(q(block + i), sum(block + i), sum(block), 1, &mine[(kDeltaBlock + i) * keys_]);
    }
    for (std::size_t j = 0; j < block; j += panel) {
      const std::size_t some = std::min(panel, block - j);
      pack_panel(&earlier[j], some, keys_, turned_.data());
      multiply_rows(mine.data(), rows, {some, &of_k_[block * across_ + j], keys_});
      multiply_rows(&mine[kDeltaBlock * keys_], rows, {some, &of_q_[block * across_ + j], keys_});
    }
  }

  // U = β (V - (K exp G)ᵀ S₀), O = (Q exp G)ᵀ S₀
  void through_state() {
    const auto times_state = [&](std::vector<float>& y, bool accumulate) {
      multiply({.x = x_.data(),
                .rows = count_,
                .x_stride = keys_,
                .terms = keys_,
                .s = state_.values.data(),
                .y = y.data(),
                .width = width_,
                .accumulate = accumulate});
    };
    for (std::size_t i = 0; i < count_; ++i) {
      const float* v = call_.v.row<float>(first_ + i) + head_ * call_.value_dim;
      float* u = &u_[i * width_];
      std::fill_n(u + call_.value_dim, width_ - call_.value_dim, 0.0F);
      for (std::size_t c = 0; c < call_.value_dim; ++c) u[c] = beta(i) * v[c];
      scale(k(i), sum(i), nullptr, -beta(i), &x_[i * keys_]);
    }
    times_state(u_, true);
    for (std::size_t i = 0; i < count_; ++i) scale(q(i), sum(i), nullptr, 1, &x_[i * keys_]);
    times_state(o_, false);
  }

  // What a token gets of those before it: of earlier blocks a product, of its own a triangle.
  void among_themselves() {
    for (std::size_t block = 0; block < count_; block += kDeltaBlock) {
      const std::size_t rows = std::min(kDeltaBlock, count_ - block);
      const auto add = [&](const std::vector<float>& a, float* y, bool inclusive) {
        const float* from = &a[block * across_];
        if (block > 0)
          multiply({.x = from,
                    .rows = rows,
                    .x_stride = across_,
                    .terms = block,
                    .s = u_.data(),
                    .y = y,
                    .width = width_,
                    .accumulate = true});
        multiply_lower({from + block, rows, across_, inclusive, &u_[block * width_], y, width_});
      };
      add(of_k_, &u_[block * width_], false);
      add(of_q_, &o_[block * width_], true);
    }
  }

  void keep_state() {
    const double* end = sum(count_ - 1);
    for (std::size_t i = 0; i < count_; ++i) {
      scale(k(i), end, sum(i), 1, x_.data());
      for (std::size_t c = 0; c < keys_; ++c) turned_[c * across_ + i] = x_[c];
    }
    const float* kept = decayed(end, nullptr);
    for (std::size_t c = 0; c < keys_; ++c) {
      float* row = &state_.values[c * width_];
      const float factor = kept[by_channel() ? c : 0];
      for (std::size_t i = 0; i < width_; ++i) row[i] *= factor;
    }
    multiply({.x = turned_.data(),
              .rows = keys_,
              .x_stride = across_,
              .terms = count_,
              .s = u_.data(),
              .y = state_.values.data(),
              .width = width_,
              .accumulate = true});
  }

  const DeltaRuleCall& call_;
  const DeltaInputs& in_;
  const SequenceState& sequence_;
  std::size_t head_, keys_, key_at_;
  PaddedState state_;
  std::size_t width_, across_;         // of U and O; of the triangles
  std::vector<float> u_, o_, x_;       // [chunk, width] twice, [chunk, keys]
  std::vector<float> factors_;         // exponentials
  std::vector<float> turned_;          // keys, a token a column
  std::vector<float> of_k_, of_q_;     // [chunk, across]
  std::vector<double> sums_;           // [chunk, channels]
  std::size_t first_ = 0, count_ = 0;  // the chunk's tokens
};

}  // namespace

void run_delta_chunks(const DeltaRuleCall& call, const DeltaInputs& in, const SequenceState& sequence,
                      std::size_t head, const Matrix& out) {
  DeltaChunks(call, in, sequence, head).run(out);
}

}  // namespace assay::cpu
