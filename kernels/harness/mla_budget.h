// How far rounding may move one head of a latent attention, whichever order its matrices are multiplied in.
//
// In units of u, with λ(n) = 4·√n (measure.h), for the query's parts q and q_r, latents c and their rotated
// parts r, keys k = W_k c, values v = W_v c, latent queries t = W_kᵀ q. Each number of a product rounds by
// itself, so that what is made of them is off by the root of the squares:
//
//   absorbed  δs/scale = λ(nope)·√Σ_r (|W_k|ᵀ|q|)_r² c_r² + λ(rank + rope)·(|t|·|c| + |q_r|·|r|)
//   naive     δs/scale = λ(rank)·√Σ_n q_n² (|W_k||c|)_n² + λ(nope + rope)·(|q|·|k| + |q_r|·|r|)
//   δs += 4 |s|
//
// the larger of the two. A score that is off by δs moves the result by p δs (v - out); the exponential
// carries on |s - max|, and is good to 8 with what rescales it; their sum is off by λ(n). Then, with m = Σ p
// c,
//
//   absorbed  √Σ_r (W_v λ(n) Σ p |c|)_r² + λ(rank)·|W_v||m|
//   naive     √Σ_k (p_k λ(rank) |W_v||c_k|)² + λ(n)·Σ p |v|
//
// Under bfloat16 come the arithmetic's own roundings, of relative size u = 2^-9 each, in either order: of t
// or of k, 4u·√Σ of their products' squares (of uniform errors nearly 7σ); of product and scale, 2u |s|; of
// the weights, u p |v|; of m or of v, 4u·√Σ again.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace assay {

struct MlaHeadShape {
  std::size_t rank, nope, rope, v;
  double scale;
};

class MlaBudget {
 public:
  // `w`: W_k [nope, rank], then W_v [v, rank]; `row(k)`: the cached c and r.
  MlaBudget(const MlaHeadShape& shape, std::span<const float> w, std::size_t keys,
            const std::function<const double*(std::size_t)>& row);

  // For a query that sees the first `count` keys: adds to v numbers each. `staged`: for the arithmetic's own
  // roundings, or null.
  void add(const double* q, std::size_t count, double* per_roundoff, double* staged) const;

 private:
  struct Scores {
    std::vector<double> values, errors, roundings;
  };
  Scores scores(const double* q, std::size_t count) const;
  void add_result(std::span<const double> p, std::span<const double> moved, double* error) const;
  void add_staged(std::span<const double> p, std::span<const double> roundings, double* error) const;
  std::vector<double> result(std::span<const double> p) const;
  // Σ p c and Σ p |c|.
  struct Mixed {
    std::vector<double> latent, size;
  };
  Mixed mixed(std::span<const double> p) const;

  MlaHeadShape shape_;
  std::span<const float> w_k_, w_v_;
  std::vector<const double*> rows_;
  // For each key: k and |W_k||c| [nope], v and |W_v||c| [v].
  std::vector<double> keys_, key_sizes_, values_, value_sizes_;
};

}  // namespace assay
