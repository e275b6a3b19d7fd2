// moe_gate: which experts, and by how much.
//
// With ρ the relative error of a score in units of u (σ: 8; softmax: |x - max| + λ(experts) + 8), and φ =
// 2^-126, below which exponentials in float32 may be flushed or held fast:
//   what the choice compares   δc = u (ρ s + |c|) + φ; of two experts of a group, added up
//   weights                    δw = u |w| (2 ρ + λ(top_k) + 4) + scale φ (1 + top_k w / scale) / Σ
// Experts are whole numbers: equality, but where a choice hangs on no more than the δc of the two: such a
// token is left open.
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

constexpr double kRoundoff = 0x1p-24;

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
    TruthPart weights = {.name = "weights", .rows = tokens_, .columns = rule_.top_k};
    for (std::size_t t = 0; t < tokens_; ++t) {
      const bool open = is_open(t);
      const std::span chosen = std::span(routing.experts).subspan(t * rule_.top_k, rule_.top_k);
      const double sum = rule_.renormalize ? sum_of_scores(t, chosen) + rule_.epsilon : 1;
      const std::vector<double> due = due_weights(t, chosen);
      weights.values.insert(weights.values.end(), due.begin(), due.end());
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
  // By the formula alone: what a correction does to weights would be in the reference's own.
  std::vector<double> due_weights(std::size_t token, std::span<const std::int32_t> chosen) const {
    const bool of_chosen = rule_.top_k_first && rule_.score == GateRule::Score::softmax;
    const std::vector<double> all = scores(token);
    std::vector<double> w;
    for (const std::int32_t e : chosen) w.push_back(all[static_cast<std::size_t>(e)]);
    const double sum = std::accumulate(w.begin(), w.end(), 0.0);
    double divisor = of_chosen ? sum : 1;
    if (rule_.renormalize) divisor *= (of_chosen ? 1 : sum) + rule_.epsilon;
    for (double& x : w) x *= rule_.scale / divisor;
    return w;
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
  std::vector<CaseId> always() const override {
    std::vector<CaseId> cases;
    const auto gate = [](std::uint64_t m, std::uint64_t experts, std::uint64_t top) {
      return CaseId("moe_gate", "F32").with("m", m).with("experts", experts).with("top", top);
    };
    // As many experts, and as many of them, as the known families have: Qwen2-MoE's 60, DeepSeek's 64 to 256,
    // Kimi-K2's 384, Qwen3-Next's 10 of 512.
    for (const std::uint64_t experts : {8, 16, 32, 60, 64, 72, 128, 160, 256, 384, 512}) {
      for (std::uint64_t top = 1; top <= std::min<std::uint64_t>(10, experts); ++top)
        cases.push_back(gate(5, experts, top).with("renorm", top % 2).with(InputKind::zero_mean));
    }
    // Every way to weigh, with a correction that only the choice may see and without.
    for (const char* score : {"softmax", "sigmoid"}) {
      for (const std::uint64_t first : {0, 1}) {
        if (first != 0 && std::string_view(score) == "sigmoid") continue;  // no family has it
        for (const std::uint64_t renorm : {0, 1}) {
          for (const char* bias : {"0", "0.1", "3"})
            cases.push_back(gate(9, 16, 4)
                                .with("score", score)
                                .with("first", first)
                                .with("renorm", renorm)
                                .with("bias", bias)
                                .with("scale", "2.5")
                                .with(InputKind::zero_mean));
        }
      }
    }
    for (const std::uint64_t pairs : {0, 1})
      cases.push_back(gate(9, 32, 4)
                          .with("score", "sigmoid")
                          .with("groups", 4)
                          .with("chosen", 2)
                          .with("pairs", pairs)
                          .with("bias", "0.1")
                          .with(InputKind::zero_mean));
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    if (size != "m" && size != "experts") return {};
    return {CaseId("moe_gate", "F32")
                .with("m", size == "m" ? value : 3)
                .with("experts", size == "experts" ? value : 8)
                .with("top", 2)
                .with(InputKind::zero_mean)};
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

}  // namespace

template <>
const OpCases<MoeGateCall>& cases_of<MoeGateCall>() {
  static const MoeGateCases cases;
  return cases;
}

}  // namespace assay
