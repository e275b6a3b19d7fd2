// mla: attention over latents c that W_k and W_v expand, in either order of multiplication.
//
// Truth is the naive form in float64, whatever the form asked for: that they agree is part of the claim. In
// units of u, with λ(n) = 4·√n, and good for both orders, the sums being over nope_dim and the cached row:
//   δs = (λ(nope) + λ(rank + rope) + 4)·scale·(|q_n|ᵀ |W_k| |c| + |q_r|·|r|)
//   δout = |W_v| Σ p |c| (softmax_error.h's relative error of p + λ(n) + λ(rank))
#include <algorithm>
#include <cmath>

#include "core/system/error.h"
#include "kernels/harness/made_cache.h"
#include "kernels/harness/made_weight.h"
#include "kernels/harness/softmax_error.h"

namespace assay {
namespace {

class MlaOperands final : public Operands<MlaCall> {
 public:
  explicit MlaOperands(const CaseId& id)
      : heads_(id.number("heads", 1)),
        rank_(id.number("rank", 64)),
        nope_(id.number("nope", 32)),
        rope_(id.number("rope", 16)),
        v_(id.number("v", 32)),
        keys_(id.number("keys", 1)),
        queries_(id.number("queries", 1)),
        scale_(1 / std::sqrt(static_cast<double>(nope_ + rope_))) {
    const std::string form = id.word("way", "absorbed");
    if (form != "absorbed" && form != "naive") throw Error::usage("way=" + form + ": absorbed or naive");
    if (queries_ > keys_ || rank_ == 0 || nope_ == 0 || v_ == 0 || heads_ == 0)
      throw Error::usage("the numbers of a latent attention do not fit each other");
    form_ = form == "naive" ? MlaForm::naive : MlaForm::absorbed;
    const std::uint64_t seed = id.seed() * 1000;
    q_ = filled(arithmetic, id.input(),
                {.rows = queries_, .columns = heads_ * (nope_ + rope_), .seed = seed + 1});
    cache_ =
        MadeCache(filled(arithmetic, id.input(), {.rows = keys_, .columns = rank_ + rope_, .seed = seed + 2}),
                  id.number("page"), seed);
    // Expansions of unit gain, so that scores are of the size they have in models.
    std::vector<float> w(heads_ * (nope_ + v_) * rank_);
    fill_inputs(InputKind::zero_mean, {.rows = heads_ * (nope_ + v_), .columns = rank_, .seed = seed + 3}, w);
    for (float& x : w) x /= std::sqrt(static_cast<float>(rank_));
    kv_b_ = std::make_shared<MadeWeight>(std::move(w), heads_ * (nope_ + v_), rank_);
    if (id.number("parts") != 0) cut_parts();
  }

  MlaCall call(Ops& ops) const override {
    MlaCall call = {.q = upload(ops, q_),
                    .heads = heads_,
                    .kv_rank = rank_,
                    .nope_dim = nope_,
                    .rope_dim = rope_,
                    .v_dim = v_,
                    .scale = scale_,
                    .form = form_};
    call.spans.push_back({0, queries_, keys_, cache_.upload_to(ops), {}});
    if (k_b_) {
      call.k_b = k_b_->view();
      call.v_b = v_b_->view();
    } else {
      call.kv_b = kv_b_->view();
    }
    return call;
  }

  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    MlaCall naive = call(wide);
    naive.form = MlaForm::naive;
    TruthPart y = {.rows = queries_, .columns = heads_ * v_, .fine_digits = keys_ > 8};
    y.values = wide.download(run_reference(wide, naive));
    y.per_roundoff.resize(y.values.size());
    const std::vector<float> w = kv_b_->values();
    for (std::size_t h = 0; h < heads_; ++h) {
      for (std::size_t i = 0; i < queries_; ++i)
        query_error(w, i, h, &y.per_roundoff[i * y.columns + h * v_]);
    }
    return {std::move(y)};
  }

  std::optional<MlaCall> first_token(const MlaCall&) const override { return std::nullopt; }
  std::optional<MlaCall> first_chunk(const MlaCall& call) const override {
    if (queries_ < 2) return std::nullopt;
    MlaCall first = call;
    first.q = call.q.row_range(0, 1);
    first.spans[0].keys -= queries_ - 1;
    first.spans[0].queries = 1;
    return first;
  }
  bool spoil_last_token(MlaCall& call) const override {
    if (queries_ < 2) return false;
    fill_row_with_nan(call.q, queries_ - 1);
    return true;
  }
  double flops() const override {
    const double pairs =
        static_cast<double>(queries_) * static_cast<double>(keys_) * static_cast<double>(heads_);
    if (form_ == MlaForm::absorbed) return 2 * pairs * static_cast<double>(2 * rank_ + rope_);
    return 2 * pairs * static_cast<double>(nope_ + rope_ + v_) +
           2 * static_cast<double>(keys_ * heads_ * (nope_ + v_) * rank_);
  }
  double bytes() const override {
    return 4 * static_cast<double>(keys_ * (rank_ + rope_) + heads_ * (nope_ + v_) * rank_);
  }

 private:
  // GGUF's way: keys' part of a head turned to [rank, nope].
  void cut_parts() {
    const std::vector<float> w = kv_b_->values();
    std::vector<float> k(heads_ * rank_ * nope_), v(heads_ * v_ * rank_);
    for (std::size_t h = 0; h < heads_; ++h) {
      const float* head = &w[h * (nope_ + v_) * rank_];
      for (std::size_t n = 0; n < nope_; ++n) {
        for (std::size_t r = 0; r < rank_; ++r) k[(h * rank_ + r) * nope_ + n] = head[n * rank_ + r];
      }
      std::copy_n(head + nope_ * rank_, v_ * rank_, &v[h * v_ * rank_]);
    }
    k_b_ = std::make_shared<MadeWeight>(std::move(k), heads_ * rank_, nope_);
    v_b_ = std::make_shared<MadeWeight>(std::move(v), heads_ * v_, rank_);
  }

  void query_error(const std::vector<float>& w, std::size_t query, std::size_t head, double* error) const {
    const float* w_k = &w[head * (nope_ + v_) * rank_];
    const float* w_v = w_k + nope_ * rank_;
    const double* q = &q_.values[query * q_.columns + head * (nope_ + rope_)];
    // q_nᵀ W_k, and |q_n|ᵀ |W_k|.
    std::vector<double> taken(rank_), sizes(rank_);
    for (std::size_t n = 0; n < nope_; ++n) {
      for (std::size_t r = 0; r < rank_; ++r) {
        taken[r] += q[n] * static_cast<double>(w_k[n * rank_ + r]);
        sizes[r] += std::fabs(q[n] * static_cast<double>(w_k[n * rank_ + r]));
      }
    }
    const std::size_t count = keys_ - queries_ + query + 1;
    const double factor = (accumulation_factor(nope_) + accumulation_factor(rank_ + rope_) + 4) * scale_;
    std::vector<double> scores, errors;
    for (std::size_t k = 0; k < count; ++k) {
      const double* c = cache_.row(k);
      double score = 0, size = 0;
      for (std::size_t r = 0; r < rank_; ++r) {
        score += taken[r] * c[r];
        size += sizes[r] * std::fabs(c[r]);
      }
      for (std::size_t r = 0; r < rope_; ++r) {
        score += q[nope_ + r] * c[rank_ + r];
        size += std::fabs(q[nope_ + r] * c[rank_ + r]);
      }
      scores.push_back(score * scale_);
      errors.push_back(factor * size);
    }
    const SoftmaxWeights p = softmax_weights(scores, errors);
    const double lambda = accumulation_factor(count) + accumulation_factor(rank_);
    std::vector<double> mixed(rank_);
    for (std::size_t k = 0; k < count; ++k) {
      for (std::size_t r = 0; r < rank_; ++r)
        mixed[r] += p.p[k] * (p.relative[k] + lambda) * std::fabs(cache_.row(k)[r]);
    }
    for (std::size_t i = 0; i < v_; ++i) {
      for (std::size_t r = 0; r < rank_; ++r)
        error[i] += std::fabs(static_cast<double>(w_v[i * rank_ + r])) * mixed[r];
    }
  }

  std::size_t heads_, rank_, nope_, rope_, v_, keys_, queries_;
  double scale_;
  MlaForm form_ = MlaForm::absorbed;
  Filled q_;
  MadeCache cache_;
  MadeWeightPtr kv_b_, k_b_, v_b_;
};

struct Form {
  std::uint64_t heads, rank, nope, rope, v, keys, queries;
};

class MlaCases final : public OpCases<MlaCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    for (const std::string_view way : {"naive", "absorbed"}) {
      // Small and ragged; DeepSeek-V2-Lite's head (512, 128, 64, 128), cut to 2 and 4 heads.
      for (const Form& f : {Form{1, 8, 4, 2, 4, 1, 1},
                            {3, 40, 24, 8, 20, 37, 5},
                            {2, 512, 128, 64, 128, 65, 1},
                            {4, 512, 128, 64, 128, 33, 4}}) {
        for (const InputKind kind :
             {InputKind::zero_mean, InputKind::positive_mean, InputKind::heavy_tailed}) {
          for (const std::uint64_t parts : {0, 1})
            cases.push_back(mla_case(way, f).with("parts", parts).with("page", parts * 16).with(kind));
        }
      }
    }
    return cases;
  }
  std::vector<CaseId> perf_grid() const override {
    return {mla_case("absorbed", {16, 512, 128, 64, 128, 2048, 1}).with(InputKind::zero_mean)};
  }
  std::unique_ptr<Operands<MlaCall>> make(const CaseId& id) const override {
    return std::make_unique<MlaOperands>(id);
  }

 private:
  static CaseId mla_case(std::string_view way, const Form& f) {
    return CaseId("mla", "F32")
        .with("way", way)
        .with("heads", f.heads)
        .with("rank", f.rank)
        .with("nope", f.nope)
        .with("rope", f.rope)
        .with("v", f.v)
        .with("keys", f.keys)
        .with("queries", f.queries);
  }
};

}  // namespace

template <>
const OpCases<MlaCall>& cases_of<MlaCall>() {
  static const MlaCases cases;
  return cases;
}

}  // namespace assay
