// moe_gate and moe_mix.
//
//   moe_gate  with ρ the relative error of a score in units of u (σ: 8; softmax: |x - max| + λ(experts) + 8),
//             and φ = 2^-126, below which exponentials in float32 may be flushed or held fast:
//             what the choice compares   δc = u (ρ s + |c|) + φ; of two experts of a group, added up
//             weights                    δw = u |w| (2 ρ + λ(top_k) + 4) + scale φ (1 + top_k w / scale) / Σ
//             Experts are whole numbers: equality, but where a choice hangs on no more than the δc of the
//             two: such a token is left open.
//   moe_mix   an expert's gate and up are sums over the hidden size, down over its width; act' ≤ 1.1:
//             δh = 1.1·|u|·λ(hidden)(|W_g||x|) + |act(g)|·λ(hidden)(|W_u||x|) + 10 |act(g) u|
//             δy = Σ w (|W_d|(δh + λ(width) |h|) + (2 + λ(top_k)) |W_d h|)
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <span>

#include "core/system/error.h"
#include "kernels/harness/cases.h"
#include "kernels/harness/made_weight.h"

namespace assay {
namespace {

// --- moe_gate

constexpr double kRoundoff = 0x1p-24;
constexpr double kFlushed = 0x1p-126;

// A number that the choice compares, and by how much rounding may move it.
struct Compared {
  double value = 0, error = 0;
};

// Whether rounding may exchange one of the `count` largest with a smaller one: of the others, or (where their
// order matters) of themselves. Equal ones are no close call: the earlier is due.
bool has_close_call(std::vector<Compared> all, std::size_t count, bool ordered) {
  std::sort(all.begin(), all.end(), [](const Compared& a, const Compared& b) { return a.value > b.value; });
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = ordered ? i + 1 : count; j < all.size(); ++j) {
      const double gap = all[i].value - all[j].value;
      if (gap > 0 && gap <= all[i].error + all[j].error) return true;
    }
  }
  return false;
}

double decimal(const CaseId& id, std::string_view key, double missing) {
  const std::string word = id.word(key);
  if (word.empty()) return missing;
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (end == word.c_str() || *end != '\0' || !std::isfinite(value))
    throw Error::usage(std::string(key) + "=" + word + ": not a number");
  return value;
}

class MoeGateOperands final : public Operands<MoeGateCall> {
 public:
  explicit MoeGateOperands(const CaseId& id) : tokens_(id.number("m", 1)), experts_(id.number("experts", 8)) {
    const std::string score = id.word("score", "softmax");
    if (score != "softmax" && score != "sigmoid")
      throw Error::usage("score=" + score + ": softmax or sigmoid");
    rule_.score = score == "softmax" ? GateRule::Score::softmax : GateRule::Score::sigmoid;
    rule_.top_k_first = id.number("first") != 0;
    rule_.top_k = id.number("top", 2);
    rule_.renormalize = id.number("renorm") != 0;
    rule_.epsilon = rule_.renormalize ? 1e-20 : 0;
    rule_.scale = decimal(id, "scale", 1);
    rule_.groups = id.number("groups", 1);
    rule_.chosen_groups = id.number("chosen", rule_.groups);
    rule_.group_score =
        id.number("pairs") != 0 ? GateRule::GroupScore::sum_of_two : GateRule::GroupScore::largest;
    rule_.masked_is_zero = id.number("zeroed") != 0;
    if (experts_ == 0 || rule_.top_k == 0 || rule_.groups == 0 || experts_ % rule_.groups != 0 ||
        rule_.chosen_groups == 0 || rule_.chosen_groups > rule_.groups ||
        rule_.top_k > experts_ / rule_.groups * rule_.chosen_groups)
      throw Error::usage("the numbers of a gate do not fit each other");
    logits_ = filled(arithmetic, id.input(), {.rows = tokens_, .columns = experts_, .seed = id.seed()});
    const double shift = decimal(id, "shift", 0), bias = decimal(id, "bias", 0);
    for (double& x : logits_.values) x = arithmetic.round(x + shift);
    if (id.number("ties") != 0) {
      for (double& x : logits_.values) x = std::round(x);
    }
    if (bias == 0) return;
    std::vector<float> correction(experts_);
    fill_inputs(InputKind::zero_mean, {.rows = 1, .columns = experts_, .seed = id.seed() + 7}, correction);
    const float offset = static_cast<float>(decimal(id, "offset", 0));
    for (float& b : correction) b = b * static_cast<float>(bias) + offset;
    correction_ = std::make_shared<MadeWeight>(std::move(correction), 1, experts_);
  }

  MoeGateCall call(Ops& ops) const override {
    return {upload(ops, logits_), correction_ ? correction_->view() : WeightView(), rule_};
  }
  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    const Routing routing = run_reference(wide, call(wide));
    TruthPart experts = {.name = "experts",
                         .rows = tokens_,
                         .columns = rule_.top_k,
                         .values = {routing.experts.begin(), routing.experts.end()}};
    TruthPart weights = {
        .name = "weights", .rows = tokens_, .columns = rule_.top_k, .values = wide.download(routing.weights)};
    for (std::size_t t = 0; t < tokens_; ++t) {
      const bool open = is_open(t);
      const std::span chosen = std::span(routing.experts).subspan(t * rule_.top_k, rule_.top_k);
      const double sum = rule_.renormalize ? sum_of_scores(t, chosen) + rule_.epsilon : 1;
      for (std::size_t i = 0; i < rule_.top_k; ++i) {
        experts.open.push_back(open);
        weights.open.push_back(open);
        const double w = std::fabs(weights.values[t * rule_.top_k + i]);
        const double score_error = relative_error(t, static_cast<std::size_t>(chosen[i]));
        weights.per_roundoff.push_back((2 * score_error + accumulation_factor(rule_.top_k) + 4) * w);
        const double in_sum = rule_.renormalize ? static_cast<double>(rule_.top_k) * w : 0;
        weights.absolute.push_back(kFlushed * (rule_.scale + in_sum) / sum);
      }
    }
    return {std::move(experts), std::move(weights)};
  }
  std::optional<MoeGateCall> first_token(const MoeGateCall& call) const override {
    if (tokens_ < 2) return std::nullopt;
    MoeGateCall first = call;
    first.logits = call.logits.row_range(0, 1);
    return first;
  }
  bool spoil_last_token(MoeGateCall& call) const override {
    if (tokens_ < 2) return false;
    fill_row_with_nan(call.logits, tokens_ - 1);
    return true;
  }
  double flops() const override { return 12.0 * static_cast<double>(logits_.values.size()); }
  double bytes() const override { return 4.0 * static_cast<double>(logits_.values.size()); }

 private:
  double largest_logit(std::size_t token) const {
    const auto row = logits_.values.begin() + static_cast<std::ptrdiff_t>(token * experts_);
    return *std::max_element(row, row + static_cast<std::ptrdiff_t>(experts_));
  }
  double relative_error(std::size_t token, std::size_t expert) const {
    if (rule_.score == GateRule::Score::sigmoid) return 8;
    return largest_logit(token) - logits_.values[token * experts_ + expert] + accumulation_factor(experts_) +
           8;
  }
  std::vector<double> scores(std::size_t token) const {
    const double largest = largest_logit(token);
    std::vector<double> s(logits_.values.begin() + static_cast<std::ptrdiff_t>(token * experts_),
                          logits_.values.begin() + static_cast<std::ptrdiff_t>((token + 1) * experts_));
    if (rule_.score == GateRule::Score::sigmoid) {
      for (double& x : s) x = 1 / (1 + std::exp(-x));
      return s;
    }
    double sum = 0;
    for (double& x : s) sum += x = std::exp(x - largest);
    for (double& x : s) x /= sum;
    return s;
  }
  double sum_of_scores(std::size_t token, std::span<const std::int32_t> chosen) const {
    if (rule_.top_k_first && rule_.score == GateRule::Score::softmax) return 1;  // of the chosen alone
    const std::vector<double> all = scores(token);
    return std::accumulate(chosen.begin(), chosen.end(), 0.0, [&](double sum, std::int32_t e) {
      return sum + all[static_cast<std::size_t>(e)];
    });
  }
  std::vector<Compared> choices(std::size_t token) const {
    const std::vector<double> all = scores(token);
    const std::vector<float> correction = correction_ ? correction_->values() : std::vector<float>(experts_);
    std::vector<Compared> choices(experts_);
    for (std::size_t e = 0; e < experts_; ++e) {
      const double x = rule_.top_k_first ? logits_.values[token * experts_ + e] : all[e];
      Compared& c = choices[e];
      c.value = x + static_cast<double>(correction[e]);
      if (correction_) c.error = kRoundoff * std::fabs(c.value);
      if (!rule_.top_k_first) c.error += kRoundoff * relative_error(token, e) * x + kFlushed;
    }
    return choices;
  }
  Compared group_score(std::vector<Compared> members) const {
    std::sort(members.begin(), members.end(),
              [](const Compared& a, const Compared& b) { return a.value > b.value; });
    if (rule_.group_score == GateRule::GroupScore::largest || members.size() < 2) return members[0];
    const double sum = members[0].value + members[1].value;
    return {sum, members[0].error + members[1].error + kRoundoff * std::fabs(sum)};
  }
  // Whether the choice of groups, the choice of experts or their order hangs on less than rounding may move.
  bool is_open(std::size_t token) const {
    std::vector<Compared> all = choices(token);
    if (rule_.groups > 1) {
      const std::size_t size = experts_ / rule_.groups;
      std::vector<Compared> groups;
      for (std::size_t first = 0; first < experts_; first += size)
        groups.push_back(group_score({all.begin() + static_cast<std::ptrdiff_t>(first),
                                      all.begin() + static_cast<std::ptrdiff_t>(first + size)}));
      std::vector<std::size_t> order(rule_.groups);
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return groups[a].value > groups[b].value; });
      const std::size_t kept = rule_.chosen_groups;
      if (has_close_call(groups, kept, false)) return true;
      const double masked = rule_.masked_is_zero ? 0 : -std::numeric_limits<double>::infinity();
      for (std::size_t g = kept; g < rule_.groups; ++g)
        std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(order[g] * size), size, Compared{masked, 0});
    }
    return has_close_call(std::move(all), rule_.top_k, true);
  }

  std::size_t tokens_, experts_;
  GateRule rule_;
  Filled logits_;
  MadeWeightPtr correction_;
};

class MoeGateCases final : public OpCases<MoeGateCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    for (const std::uint64_t m : {0, 1, 23}) {
      for (const InputKind kind : {InputKind::zero_mean, InputKind::positive_mean, InputKind::large}) {
        const auto gate = [&](std::uint64_t experts, std::uint64_t top) {
          return CaseId("moe_gate", "F32").with("m", m).with("experts", experts).with("top", top);
        };
        const auto add = [&](CaseId id) { cases.push_back(id.with(kind)); };
        add(gate(8, 2).with("renorm", 1));                                          // Mixtral
        add(gate(128, 8).with("renorm", 1));                                        // Qwen3-MoE
        add(gate(32, 4).with("first", 1));                                          // gpt-oss
        add(gate(64, 6).with("scale", 1));                                          // DeepSeek-V2-Lite
        add(gate(160, 6).with("groups", 8).with("chosen", 3).with("scale", "16"));  // DeepSeek-V2
        const auto v3 = [&] {
          return gate(256, 8)
              .with("score", "sigmoid")
              .with("groups", 8)
              .with("chosen", 4)
              .with("pairs", 1)
              .with("renorm", 1)
              .with("scale", "2.5");
        };
        add(v3().with("bias", "0.1"));                       // DeepSeek-V3
        add(v3().with("bias", "0.1").with("offset", "-2"));  // all choices negative
        add(v3().with("bias", "0.1").with("offset", "-2").with("zeroed", 1));
        add(v3().with("bias", "3"));                              // a correction larger than the scores
        add(gate(64, 6).with("shift", "-40").with("renorm", 1));  // all logits negative
        add(gate(7, 7));
        add(gate(64, 6).with("ties", 1));
        add(gate(64, 8).with("ties", 1).with("score", "sigmoid").with("groups", 4).with("chosen", 2));
      }
    }
    return cases;
  }
  std::vector<CaseId> perf_grid() const override {
    return {CaseId("moe_gate", "F32")  // DeepSeek-V3's
                .with("m", 512)
                .with("experts", 256)
                .with("top", 8)
                .with("score", "sigmoid")
                .with("groups", 8)
                .with("chosen", 4)
                .with("pairs", 1)
                .with("renorm", 1)
                .with("bias", "0.1")
                .with(InputKind::zero_mean)};
  }
  std::unique_ptr<Operands<MoeGateCall>> make(const CaseId& id) const override {
    return std::make_unique<MoeGateOperands>(id);
  }
};

// --- moe_mix

struct Expert {
  MadeWeightPtr gate, up, down;
};

class MoeMixOperands final : public Operands<MoeMixCall> {
 public:
  explicit MoeMixOperands(const CaseId& id)
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
    const WeightForm form = weight_form(id.form());
    const auto weight = [&](std::size_t rows, std::size_t columns) {
      return std::make_shared<MadeWeight>(form, InputKind::zero_mean,
                                          FillOptions{.rows = rows, .columns = columns, .seed = ++seed});
    };
    for (std::size_t e = 0; e < experts; ++e)
      experts_.push_back({weight(width_, hidden_), weight(width_, hidden_), weight(hidden_, width_)});
    route(++seed);
    if (fused_ != "no") fuse();
  }

  MoeMixCall call(Ops& ops) const override {
    MoeMixCall call = {.x = upload(ops, x_),
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
  std::optional<MoeMixCall> first_token(const MoeMixCall& call) const override {
    if (tokens_ < 2) return std::nullopt;
    MoeMixCall first = call;
    first.x = call.x.row_range(0, 1);
    first.routing.experts.resize(top_k_);
    first.routing.weights = call.routing.weights.row_range(0, 1);
    return first;
  }
  bool spoil_last_token(MoeMixCall& call) const override {
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
      double y = 0, size = 0;
      for (std::size_t r = 0; r < width_; ++r) {
        const double w = down[o * width_ + r];
        y += w * h[r];
        size += std::fabs(w) * (h_error[r] + over_width * std::fabs(h[r]));
      }
      error[o] += weight * (size + (2 + accumulation_factor(top_k_)) * std::fabs(y));
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

class MoeMixCases final : public OpCases<MoeMixCall> {
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
  std::vector<CaseId> perf_grid() const override {
    return {mixture("BF16", 1, 8, 6, 2048, 1408).with(InputKind::zero_mean),
            mixture("BF16", 128, 8, 2, 1024, 704).with(InputKind::zero_mean)};
  }
  std::unique_ptr<Operands<MoeMixCall>> make(const CaseId& id) const override {
    return std::make_unique<MoeMixOperands>(id);
  }

 private:
  static CaseId mixture(std::string_view form, std::uint64_t m, std::uint64_t experts, std::uint64_t top,
                        std::uint64_t hidden, std::uint64_t width) {
    return CaseId("moe_mix", std::string(form))
        .with("m", m)
        .with("experts", experts)
        .with("top", top)
        .with("hidden", hidden)
        .with("width", width);
  }
};

}  // namespace

template <>
const OpCases<MoeGateCall>& cases_of<MoeGateCall>() {
  static const MoeGateCases cases;
  return cases;
}
template <>
const OpCases<MoeMixCall>& cases_of<MoeMixCall>() {
  static const MoeMixCases cases;
  return cases;
}

}  // namespace assay
