// mla: attention over latents c that W_k and W_v expand, in either order of multiplication.
//
// Truth is the naive form in float64, whatever the form asked for: that they agree is part of the claim. The
// budget is mla_budget.h's.
#include <algorithm>
#include <cmath>

#include "core/system/error.h"
#include "kernels/harness/made_cache.h"
#include "kernels/harness/made_weight.h"
#include "kernels/harness/mla_budget.h"

namespace assay {
namespace {

struct MadeLatents {
  std::size_t first = 0, keys = 0;
  MadeCache cache;
};

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
    arithmetic = narrow_arithmetic(id);
    const std::uint64_t seed = id.seed() * 1000;
    for (std::size_t i = 0; i < id.number("seqs", 1); ++i) {
      const std::size_t keys = std::max(queries_, keys_ - std::min(keys_, i * kShorter));
      const FillOptions rows = {.rows = keys, .columns = rank_ + rope_, .seed = seed + 2 + 10 * i};
      sequences_.push_back(
          {i * queries_, keys, MadeCache(filled(arithmetic, id.input(), rows), id.number("page"), seed + i)});
    }
    q_ =
        filled(arithmetic, id.input(),
               {.rows = sequences_.size() * queries_, .columns = heads_ * (nope_ + rope_), .seed = seed + 1});
    // Expansions of unit gain, so that scores are of the size they have in models.
    std::vector<float> w(heads_ * (nope_ + v_) * rank_);
    fill_inputs(InputKind::zero_mean, {.rows = heads_ * (nope_ + v_), .columns = rank_, .seed = seed + 3}, w);
    for (float& x : w) x = static_cast<float>(arithmetic.round(x / std::sqrt(static_cast<float>(rank_))));
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
    for (const MadeLatents& s : sequences_)
      call.sequences.push_back({s.first, queries_, s.keys, s.cache.upload_to(ops), {}});
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
    TruthPart y = {.type = output_type(arithmetic),
                   .rows = q_.rows,
                   .columns = heads_ * v_,
                   .fine_digits = keys_ > 8 && !arithmetic.bfloat16()};
    y.values = wide.download(run_reference(wide, naive));
    y.per_roundoff.resize(y.values.size());
    if (arithmetic.bfloat16()) y.absolute.resize(y.values.size());
    const std::vector<float> w = kv_b_->values();
    for (const MadeLatents& s : sequences_) {
      for (std::size_t h = 0; h < heads_; ++h) {
        const MlaBudget budget({rank_, nope_, rope_, v_, scale_},
                               std::span(w).subspan(h * (nope_ + v_) * rank_), s.keys,
                               [&](std::size_t k) { return s.cache.row(k); });
        for (std::size_t i = 0; i < queries_; ++i) {
          const double* q = &q_.values[(s.first + i) * q_.columns + h * (nope_ + rope_)];
          const std::size_t at = (s.first + i) * y.columns + h * v_;
          budget.add(q, s.keys - queries_ + i + 1, &y.per_roundoff[at],
                     y.absolute.empty() ? nullptr : &y.absolute[at]);
        }
      }
    }
    return {std::move(y)};
  }

  std::optional<MlaCall> first_token(const MlaCall& call) const override {
    if (sequences_.size() < 2) return std::nullopt;
    MlaCall first = call;
    first.sequences.resize(1);
    first.q = call.q.row_range(0, queries_);
    return first;
  }
  std::optional<MlaCall> first_chunk(const MlaCall& call) const override {
    if (queries_ < 2) return std::nullopt;
    MlaCall first = call;
    first.q = call.q.row_range(0, 1);
    first.sequences.resize(1);
    first.sequences[0].keys -= queries_ - 1;
    first.sequences[0].queries = 1;
    return first;
  }
  bool spoil_last_token(MlaCall& call) const override {
    if (q_.rows < 2) return false;
    fill_row_with_nan(call.q, q_.rows - 1);
    return true;
  }
  double flops() const override {
    const double pairs =
        static_cast<double>(q_.rows) * static_cast<double>(keys_) * static_cast<double>(heads_);
    if (form_ == MlaForm::absorbed) return 2 * pairs * static_cast<double>(2 * rank_ + rope_);
    return 2 * pairs * static_cast<double>(nope_ + rope_ + v_) +
           2 * static_cast<double>(sequences_.size() * keys_ * heads_ * (nope_ + v_) * rank_);
  }
  double bytes() const override {
    return 4 *
           static_cast<double>(sequences_.size() * keys_ * (rank_ + rope_) + heads_ * (nope_ + v_) * rank_);
  }

 private:
  // GGUF's way: keys' part of a head rotated to [rank, nope].
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

  std::size_t heads_, rank_, nope_, rope_, v_, keys_, queries_;
  double scale_;
  MlaForm form_ = MlaForm::absorbed;
  Filled q_;
  std::vector<MadeLatents> sequences_;
  MadeWeightPtr kv_b_, k_b_, v_b_;
};

struct MlaSizes {
  std::uint64_t heads, rank, nope, rope, v, keys, queries;
};

class MlaCases final : public OpCases<MlaCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    for (const std::string_view way : {"naive", "absorbed"}) {
      // Small and ragged; DeepSeek-V2-Lite's head (512, 128, 64, 128), cut to 2 and 4 heads.
      for (const MlaSizes& f : {MlaSizes{1, 8, 4, 2, 4, 1, 1},
                                {3, 40, 24, 8, 20, 37, 5},
                                {2, 512, 128, 64, 128, 65, 1},
                                {4, 512, 128, 64, 128, 33, 4}}) {
        for (const InputKind kind :
             {InputKind::zero_mean, InputKind::positive_mean, InputKind::heavy_tailed}) {
          for (const std::uint64_t parts : {0, 1})
            cases.push_back(mla_case(way, f).with("parts", parts).with("page", parts * 16).with(kind));
        }
      }
      // Several sequences; long enough to be cut into pieces, the last page partly filled; in bfloat16.
      for (const InputKind kind : {InputKind::zero_mean, InputKind::positive_mean}) {
        cases.push_back(
            mla_case(way, {3, 72, 24, 8, 20, 301, 2}).with("seqs", 3).with("page", 16).with(kind));
        cases.push_back(mla_case(way, {4, 64, 16, 8, 16, 4099, 1}).with("page", 64).with(kind));
        for (const MlaSizes& f : {MlaSizes{3, 40, 24, 8, 20, 37, 5}, {2, 512, 128, 64, 128, 300, 2}})
          cases.push_back(mla_case(way, f).with("act", "bf16").with("page", 16).with(kind));
      }
    }
    return cases;
  }
  std::vector<CaseId> always() const override {
    std::vector<CaseId> cases;
    for (const std::string_view way : {"naive", "absorbed"}) {
      // As many heads as DeepSeek-V2-Lite, V3 and in between; few and short ones, where each weight counts.
      for (const std::uint64_t heads : {16, 65, 128}) {
        cases.push_back(mla_case(way, {heads, 24, 8, 4, 8, 9, 2}).with(InputKind::zero_mean));
        cases.push_back(mla_case(way, {heads, 24, 8, 4, 8, 530, 1}).with(InputKind::zero_mean));
      }
      cases.push_back(mla_case(way, {2, 8, 4, 2, 4, 5, 2}).with(InputKind::zero_mean));
    }
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    std::vector<CaseId> cases;
    for (const std::string_view way : {"naive", "absorbed"}) {
      if (size == "queries")
        cases.push_back(mla_case(way, {3, 40, 24, 8, 20, std::max<std::uint64_t>(37, value), value}));
      if (size == "heads") cases.push_back(mla_case(way, {value, 16, 8, 8, 8, 37, 1}));
      if (size == "keys") cases.push_back(mla_case(way, {3, 40, 24, 8, 20, value, 1}));
    }
    for (CaseId& id : cases) id.with(InputKind::zero_mean);
    return cases;
  }
  std::vector<CaseId> perf_grid() const override {
    return {mla_case("absorbed", {16, 512, 128, 64, 128, 2048, 1}).with(InputKind::zero_mean)};
  }
  std::unique_ptr<Operands<MlaCall>> make(const CaseId& id) const override {
    return std::make_unique<MlaOperands>(id);
  }

 private:
  static CaseId mla_case(std::string_view way, const MlaSizes& f) {
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
