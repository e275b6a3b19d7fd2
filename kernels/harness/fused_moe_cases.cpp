// fused_moe: y = Σ w_e W_d (act(W_g x) ⊙ W_u x) over a token's experts e.
//
// An expert's gate and up are sums over the hidden size, down over its width; act' ≤ 1.1:
//   δh = 1.1·|u|·λ(hidden)(|W_g||x|) + |act(g)|·λ(hidden)(|W_u||x|) + 10 |act(g) u|
//   δy = Σ w (√Σ_r (W_d δh)_r² + λ(width) |W_d||h| + (2 + λ(top_k)) |W_d h|)
// each δh being by itself.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/system/error.h"
#include "kernels/harness/cases.h"
#include "kernels/harness/kept_weights.h"
#include "kernels/harness/made_weight.h"

namespace assay {
namespace {

struct Expert {
  MadeWeightPtr gate, up, down;
};

class FusedMoeOperands final : public Operands<FusedMoeCall> {
 public:
  explicit FusedMoeOperands(const CaseId& id)
      : tokens_(id.number("m", 1)),
        hidden_(id.number("hidden", 64)),
        width_(id.number("width", 32)),
        top_k_(id.number("top", 2)),
        fused_(id.word("fused", "no")) {
    const std::size_t experts = id.number("experts", 4);
    if (top_k_ == 0 || top_k_ > experts || hidden_ == 0 || width_ == 0)
      throw Error::usage("the numbers of a mixture do not fit each other");
    if (fused_ != "no" && fused_ != "halves" && fused_ != "rows")
      throw Error::usage("fused=" + fused_ + ": no, halves or rows");
    const std::string way = id.word("way", "sparse");
    if (way != "sparse" && way != "dense") throw Error::usage("way=" + way + ": sparse or dense");
    form_ = way == "dense" ? MoeForm::dense : MoeForm::sparse;
    std::uint64_t seed = id.seed() * 1000;
    x_ = filled(arithmetic, id.input(), {.rows = tokens_, .columns = hidden_, .seed = ++seed});
    const auto weight = [&](std::size_t rows, std::size_t columns) {
      return kept_weight(id.form(), InputKind::zero_mean, {.rows = rows, .columns = columns, .seed = ++seed});
    };
    for (std::size_t e = 0; e < experts; ++e)
      experts_.push_back({weight(width_, hidden_), weight(width_, hidden_), weight(hidden_, width_)});
    route(++seed);
    if (fused_ != "no") fuse();
  }

  FusedMoeCall call(Ops& ops) const override {
    FusedMoeCall call = {.x = upload(ops, x_),
                         .routing = {top_k_, chosen_, upload(ops, weights_)},
                         .experts = {},
                         .form = form_};
    for (std::size_t e = 0; e < experts_.size(); ++e) {
      call.experts.down.push_back(experts_[e].down->view());
      if (!fused_weights_.empty()) {
        call.experts.gate_up.push_back(fused_weights_[e]->view());
      } else {
        call.experts.gate.push_back(experts_[e].gate->view());
        call.experts.up.push_back(experts_[e].up->view());
      }
    }
    call.experts.interleaved = fused_ == "rows";
    return call;
  }
  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    TruthPart y = {.rows = tokens_, .columns = hidden_, .fine_digits = true};
    y.values = wide.download(run_reference(wide, call(wide)));
    y.per_roundoff.resize(y.values.size());
    for (std::size_t e = 0; e < experts_.size(); ++e) {
      const std::vector<float> gate = experts_[e].gate->values(), up = experts_[e].up->values(),
                               down = experts_[e].down->values();
      for (std::size_t i = 0; i < chosen_.size(); ++i) {
        if (static_cast<std::size_t>(chosen_[i]) != e) continue;
        const std::size_t token = i / top_k_;
        expert_error(&x_.values[token * hidden_], gate, up, down, weights_.values[i],
                     &y.per_roundoff[token * hidden_]);
      }
    }
    return {std::move(y)};
  }
  std::optional<FusedMoeCall> first_token(const FusedMoeCall& call) const override {
    if (tokens_ < 2) return std::nullopt;
    FusedMoeCall first = call;
    first.x = call.x.row_range(0, 1);
    first.routing.experts.resize(top_k_);
    first.routing.weights = call.routing.weights.row_range(0, 1);
    return first;
  }
  bool spoil_last_token(FusedMoeCall& call) const override {
    if (tokens_ < 2) return false;
    fill_row_with_nan(call.x, tokens_ - 1);
    return true;
  }
  double flops() const override {
    const double visits =
        static_cast<double>(form_ == MoeForm::dense ? tokens_ * experts_.size() : chosen_.size());
    return 6 * visits * static_cast<double>(hidden_ * width_);
  }
  double bytes() const override {
    double bytes = 8 * static_cast<double>(x_.values.size());
    for (const Expert& e : experts_)
      bytes += 3 * static_cast<double>(e.gate->view().rows * e.gate->view().row_bytes);
    return bytes;
  }

 private:
  // Different experts for each token, the last expert for none, so that one is idle.
  void route(std::uint64_t seed) {
    InputStream stream(seed);
    const std::size_t usable = experts_.size() > top_k_ ? experts_.size() - 1 : experts_.size();
    weights_ = {tokens_, top_k_, {}};
    for (std::size_t t = 0; t < tokens_; ++t) {
      std::vector<std::int32_t> order(usable);
      std::iota(order.begin(), order.end(), 0);
      for (std::size_t i = 0; i < top_k_; ++i) {
        std::swap(order[i], order[i + stream.next() % (usable - i)]);
        chosen_.push_back(order[i]);
        weights_.values.push_back(arithmetic.round(0.1 + stream.uniform()));
      }
    }
  }
  void fuse() {
    for (const Expert& e : experts_) {
      const std::vector<float> gate = e.gate->values(), up = e.up->values();
      std::vector<float> both(2 * gate.size());
      for (std::size_t r = 0; r < width_; ++r) {
        const std::size_t to_gate = fused_ == "rows" ? 2 * r : r,
                          to_up = fused_ == "rows" ? 2 * r + 1 : width_ + r;
        std::copy_n(&gate[r * hidden_], hidden_, &both[to_gate * hidden_]);
        std::copy_n(&up[r * hidden_], hidden_, &both[to_up * hidden_]);
      }
      fused_weights_.push_back(std::make_shared<MadeWeight>(std::move(both), 2 * width_, hidden_));
    }
  }
  void expert_error(const double* x, const std::vector<float>& gate, const std::vector<float>& up,
                    const std::vector<float>& down, double weight, double* error) const {
    const double over_hidden = accumulation_factor(hidden_), over_width = accumulation_factor(width_);
    std::vector<double> h(width_), h_error(width_);
    for (std::size_t r = 0; r < width_; ++r) {
      double g = 0, u = 0, g_size = 0, u_size = 0;
      for (std::size_t c = 0; c < hidden_; ++c) {
        const double to_g = x[c] * static_cast<double>(gate[r * hidden_ + c]),
                     to_u = x[c] * static_cast<double>(up[r * hidden_ + c]);
        g += to_g;
        u += to_u;
        g_size += std::fabs(to_g);
        u_size += std::fabs(to_u);
      }
      const double act = g / (1 + std::exp(-g));
      h[r] = act * u;
      h_error[r] =
          over_hidden * (1.1 * std::fabs(u) * g_size + std::fabs(act) * u_size) + 10 * std::fabs(h[r]);
    }
    for (std::size_t o = 0; o < hidden_; ++o) {
      double y = 0, size = 0, squares = 0;
      for (std::size_t r = 0; r < width_; ++r) {
        const double w = down[o * width_ + r];
        y += w * h[r];
        size += std::fabs(w * h[r]);
        squares += w * h_error[r] * w * h_error[r];
      }
      error[o] += weight *
                  (std::sqrt(squares) + over_width * size + (2 + accumulation_factor(top_k_)) * std::fabs(y));
    }
  }

  std::size_t tokens_, hidden_, width_, top_k_;
  std::string fused_;
  MoeForm form_ = MoeForm::sparse;
  Filled x_, weights_;
  std::vector<Expert> experts_;
  std::vector<MadeWeightPtr> fused_weights_;
  std::vector<std::int32_t> chosen_;
};

class FusedMoeCases final : public OpCases<FusedMoeCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    struct Form {
      std::uint64_t m, experts, top, hidden, width;
    };
    for (const std::string_view form : {"BF16", "FP8_128x128", "Q8_0", "Q4_K"}) {
      for (const Form& f : {Form{0, 4, 2, 256, 256}, {1, 8, 2, 256, 256}, {13, 9, 3, 256, 256}}) {
        for (const InputKind kind : {InputKind::zero_mean, InputKind::positive_mean, InputKind::heavy_tailed})
          cases.push_back(mixture(form, f.m, f.experts, f.top, f.hidden, f.width).with(kind));
      }
    }
    for (const std::string_view fused : {"halves", "rows"})
      cases.push_back(mixture("BF16", 6, 5, 2, 60, 37).with("fused", fused).with(InputKind::zero_mean));
    cases.push_back(mixture("BF16", 6, 5, 2, 60, 37).with("way", "dense").with(InputKind::zero_mean));
    cases.push_back(mixture("BF16", 3, 1, 1, 33, 7).with(InputKind::signature));
    return cases;
  }
  std::vector<CaseId> always() const override {
    std::vector<CaseId> cases;
    const auto add = [&](CaseId id) { cases.push_back(id.with(InputKind::zero_mean)); };
    // Experts a token, experts in all, and tokens of one expert: of two the first takes all.
    for (std::uint64_t top = 1; top <= 10; ++top) {
      add(mixture("BF16", 7, 12, top, 32, 16));
      add(mixture("BF16", 7, 12, top, 32, 16).with("way", "dense"));
    }
    for (const std::uint64_t experts : {16, 32, 60, 64, 128, 160, 256, 384, 512})
      add(mixture("BF16", 5, experts, 8, 16, 8));
    for (const std::uint64_t tokens : {63, 64, 65, 127, 128, 129, 255, 256, 257, 300})
      add(mixture("BF16", tokens, 2, 1, 32, 16));
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    std::vector<CaseId> cases;
    for (const std::string_view form : {"BF16", "Q8_0"}) {
      if (size == "tokens") cases.push_back(mixture(form, value, 2, 1, 32, 32).with(InputKind::zero_mean));
    }
    return cases;
  }
  std::vector<CaseId> perf_grid() const override {
    return {mixture("BF16", 1, 8, 6, 2048, 1408).with(InputKind::zero_mean),
            mixture("BF16", 128, 8, 2, 1024, 704).with(InputKind::zero_mean)};
  }
  std::unique_ptr<Operands<FusedMoeCall>> make(const CaseId& id) const override {
    return std::make_unique<FusedMoeOperands>(id);
  }

 private:
  static CaseId mixture(std::string_view form, std::uint64_t m, std::uint64_t experts, std::uint64_t top,
                        std::uint64_t hidden, std::uint64_t width) {
    return CaseId("fused_moe", std::string(form))
        .with("m", m)
        .with("experts", experts)
        .with("top", top)
        .with("hidden", hidden)
        .with("width", width);
  }
};

}  // namespace

template <>
const OpCases<FusedMoeCall>& cases_of<FusedMoeCall>() {
  static const FusedMoeCases cases;
  return cases;
}

}  // namespace assay
