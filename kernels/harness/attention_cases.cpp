// attention: out = Σ p v,  p = softmax(cap(scale · q·k))
//
// In units of u, the roundoff of accumulators, with λ(n) = 4·√n:
//   δs = λ(d)·scale·(|q|·|k|) + 2 |s|       a dot product over d = qk_dim, the scale
//   δs ← δs·(1 - tanh²) + 4·cap             under a cap, tanh being good to 4 u of 1
//   δout = Σ p |v| (softmax_error.h's relative error of p + λ(n))
//
// Under bf16 (act=bf16) come the roundings that the arithmetic itself makes between its stages, of relative
// size u = 2^-9 each: product and scale, 2 u |s|; of a cap's quotient, tanh and product, (3 |s| (1 - tanh²) +
// 2 cap |tanh|) u in all; the sink; the weights, u p.
#include <algorithm>
#include <cmath>

#include "core/system/error.h"
#include "kernels/harness/made_cache.h"
#include "kernels/harness/made_weight.h"
#include "kernels/harness/softmax_error.h"

namespace assay {
namespace {

struct MadeSequence {
  std::size_t first = 0, queries = 0, keys = 0;
  MadeCache key_rows, value_rows;
};

class AttentionOperands final : public Operands<AttentionCall> {
 public:
  explicit AttentionOperands(const CaseId& id)
      : heads_(id.number("heads", 1)),
        kv_heads_(id.number("kv", heads_)),
        qk_dim_(id.number("dim", 64)),
        v_dim_(id.number("v", qk_dim_)),
        window_(id.number("window")),
        cap_(static_cast<double>(id.number("cap"))),
        scale_(1 / std::sqrt(static_cast<double>(std::max<std::size_t>(1, qk_dim_)))) {
    const std::size_t keys = id.number("keys", 1), queries = id.number("queries", 1),
                      page = id.number("page");
    if (kv_heads_ == 0 || heads_ == 0 || heads_ % kv_heads_ != 0 || queries > keys || qk_dim_ == 0)
      throw Error::usage("heads, kv, keys or queries do not fit each other");
    arithmetic = narrow_arithmetic(id);
    fine_ = keys > 8 && window_ != 1 && id.input() == InputKind::zero_mean && !arithmetic.bfloat16();
    std::uint64_t seed = id.seed() * 1000;
    const auto fill = [&](std::size_t rows, std::size_t columns) {
      return filled(arithmetic, id.input(), {.rows = rows, .columns = columns, .seed = ++seed});
    };
    std::size_t tokens = 0;
    for (std::size_t s = 0; s < id.number("seqs", 1); ++s) {
      MadeSequence sequence = {.first = tokens,
                               .queries = queries,
                               .keys = std::max(queries, keys - std::min(keys, s * kShorter))};
      sequence.key_rows = MadeCache(fill(sequence.keys, kv_heads_ * qk_dim_), page, seed);
      sequence.value_rows = MadeCache(fill(sequence.keys, kv_heads_ * v_dim_), page, seed + 500);
      tokens += queries;
      sequences_.push_back(std::move(sequence));
    }
    q_ = fill(tokens, heads_ * qk_dim_);
    if (id.number("sinks") != 0)
      sinks_ = std::make_shared<MadeWeight>(weight_form("F32"), InputKind::zero_mean,
                                            FillOptions{.rows = 1, .columns = heads_, .seed = ++seed});
  }

  AttentionCall call(Ops& ops) const override {
    AttentionCall call = {.q = upload(ops, q_),
                          .sequences = {},
                          .heads = heads_,
                          .kv_heads = kv_heads_,
                          .qk_dim = qk_dim_,
                          .v_dim = v_dim_,
                          .scale = scale_,
                          .window = window_,
                          .soft_cap = cap_};
    for (const MadeSequence& s : sequences_)
      call.sequences.push_back(
          {s.first, s.queries, s.keys, s.key_rows.upload_to(ops), s.value_rows.upload_to(ops)});
    if (sinks_) call.sinks = sinks_->view();
    return call;
  }

  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    TruthPart y = {
        .type = output_type(arithmetic), .rows = q_.rows, .columns = heads_ * v_dim_, .fine_digits = fine_};
    y.values = wide.download(run_reference(wide, call(wide)));
    y.per_roundoff.resize(y.values.size());
    if (arithmetic.bfloat16()) y.absolute.resize(y.values.size());
    const std::vector<float> sinks = sinks_ ? sinks_->values() : std::vector<float>{};
    for (const MadeSequence& s : sequences_) {
      for (std::size_t i = 0; i < s.queries; ++i) {
        for (std::size_t h = 0; h < heads_; ++h) {
          const std::size_t at = (s.first + i) * y.columns + h * v_dim_;
          query_error(s, i, h, sinks, &y.per_roundoff[at], y.absolute.empty() ? nullptr : &y.absolute[at]);
        }
      }
    }
    return {std::move(y)};
  }

  std::optional<AttentionCall> first_token(const AttentionCall& call) const override {
    if (call.sequences.size() < 2) return std::nullopt;
    AttentionCall first = call;
    first.sequences.resize(1);
    first.q = call.q.row_range(0, first.sequences[0].queries);
    return first;
  }
  std::optional<AttentionCall> first_chunk(const AttentionCall& call) const override {
    if (call.sequences.empty() || call.sequences[0].queries < 2) return std::nullopt;
    AttentionCall first = call;
    first.q = call.q.row_range(0, 1);
    first.sequences.resize(1);
    first.sequences[0].keys -= first.sequences[0].queries - 1;
    first.sequences[0].queries = 1;
    return first;
  }
  bool spoil_last_token(AttentionCall& call) const override {
    if (q_.rows < 2) return false;
    fill_row_with_nan(call.q, q_.rows - 1);
    return true;
  }
  double flops() const override {
    double pairs = 0;
    for (const MadeSequence& s : sequences_)
      pairs += static_cast<double>(s.queries) * static_cast<double>(s.keys);
    return 2 * pairs * static_cast<double>(heads_ * (qk_dim_ + v_dim_));
  }
  double bytes() const override {
    double rows = 0;
    for (const MadeSequence& s : sequences_) rows += static_cast<double>(s.keys);
    return 4 * (rows * static_cast<double>(kv_heads_ * (qk_dim_ + v_dim_)) +
                static_cast<double>(q_.rows * heads_ * (qk_dim_ + v_dim_)));
  }

 private:
  // `staged`: what the arithmetic's own roundings come to, if it has any.
  void query_error(const MadeSequence& s, std::size_t query, std::size_t head,
                   const std::vector<float>& sinks, double* error, double* staged) const {
    const std::size_t position = s.keys - s.queries + query, kv = head / (heads_ / kv_heads_);
    const std::size_t first = window_ != 0 && position + 1 > window_ ? position + 1 - window_ : 0;
    const double* q = &q_.values[(s.first + query) * q_.columns + head * qk_dim_];
    const double u = unit_roundoff(ElementType::BF16);
    std::vector<double> scores, errors, roundings;
    for (std::size_t k = first; k <= position; ++k) {
      const double* key = s.key_rows.row(k) + kv * qk_dim_;
      double score = 0, size = 0;
      for (std::size_t i = 0; i < qk_dim_; ++i) {
        score += q[i] * key[i];
        size += std::fabs(q[i] * key[i]);
      }
      score *= scale_;
      double off = accumulation_factor(qk_dim_) * scale_ * size + 2 * std::fabs(score);
      double rounded = 2 * std::fabs(score);
      if (cap_ != 0) {
        const double tanh = std::tanh(score / cap_);
        off = off * (1 - tanh * tanh) + 4 * cap_;
        rounded = 3 * std::fabs(score) * (1 - tanh * tanh) + 2 * cap_ * std::fabs(tanh);
        score = cap_ * tanh;
      }
      scores.push_back(score);
      errors.push_back(off);
      roundings.push_back(u * rounded);
    }
    if (!sinks.empty()) {
      scores.push_back(sinks[head]);
      errors.push_back(0);
      roundings.push_back(u * std::fabs(scores.back()));
    }
    const SoftmaxWeights w = softmax_weights(scores, errors);
    const std::vector<double> moved =
        staged == nullptr ? std::vector<double>{} : moved_weights(w.p, roundings);
    const double lambda = accumulation_factor(scores.size());
    for (std::size_t k = first; k <= position; ++k) {
      const double* value = s.value_rows.row(k) + kv * v_dim_;
      const double p = w.p[k - first], factor = p * (w.relative[k - first] + lambda);
      for (std::size_t i = 0; i < v_dim_; ++i) error[i] += factor * std::fabs(value[i]);
      for (std::size_t i = 0; staged != nullptr && i < v_dim_; ++i)
        staged[i] += p * (moved[k - first] + u * (1 + moved[k - first])) * std::fabs(value[i]);
    }
  }

  std::size_t heads_, kv_heads_, qk_dim_, v_dim_, window_;
  double cap_, scale_;
  bool fine_ = false;
  std::vector<MadeSequence> sequences_;
  Filled q_;
  MadeWeightPtr sinks_;
};

struct AttentionForm {
  std::uint64_t heads, kv, dim, v, keys, queries;
};
CaseId attention_case(const AttentionForm& f) {
  return CaseId("attention", "F32")
      .with("heads", f.heads)
      .with("kv", f.kv)
      .with("dim", f.dim)
      .with("v", f.v)
      .with("keys", f.keys)
      .with("queries", f.queries);
}

constexpr std::array kAttentionInputs = {InputKind::zero_mean, InputKind::positive_mean,
                                         InputKind::heavy_tailed, InputKind::large};

// One query each, with all that may go with it, and heads that no vector fills.
void add_decoding(std::vector<CaseId>& cases) {
  for (const InputKind kind : kAttentionInputs) {
    for (const std::string_view act : {"f32", "bf16"}) {
      for (const AttentionForm& f :
           {AttentionForm{6, 2, 32, 32, 102, 1}, {6, 3, 40, 24, 77, 1}, {5, 5, 7, 3, 30, 1}})
        cases.push_back(attention_case(f).with("act", act).with("seqs", 5).with("page", 7).with(kind));
      cases.push_back(attention_case({6, 2, 32, 32, 101, 1})
                          .with("act", act)
                          .with("seqs", 3)
                          .with("page", 16)
                          .with("window", 22)
                          .with("cap", 30)
                          .with("sinks", 1)
                          .with(kind));
    }
  }
}

class AttentionCases final : public OpCases<AttentionCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    // One key; ragged prefill and decoding; MHA, GQA, MQA; DeepSeek's 192/128 and absorbed 576/512.
    for (const AttentionForm& f : {AttentionForm{1, 1, 1, 1, 1, 1},
                                   {2, 2, 16, 16, 3, 3},
                                   {4, 2, 64, 64, 77, 1},
                                   {8, 2, 128, 128, 65, 17},
                                   {3, 1, 40, 24, 131, 9},
                                   {4, 4, 192, 128, 50, 5},
                                   {4, 1, 576, 512, 70, 2}}) {
      for (const InputKind kind : kAttentionInputs) cases.push_back(attention_case(f).with(kind));
    }
    // What may go with it, each alone and all together.
    const AttentionForm base = {6, 2, 32, 32, 100, 11};
    for (const InputKind kind : kAttentionInputs) {
      for (const std::uint64_t window : {1, 2, 33, 89, 90, 100})
        cases.push_back(attention_case(base).with("window", window).with(kind));
      cases.push_back(attention_case(base).with("cap", 50).with(kind));
      cases.push_back(attention_case(base).with("cap", 1).with(kind));
      cases.push_back(attention_case(base).with("sinks", 1).with(kind));
      for (const std::uint64_t page : {1, 16, 7})
        cases.push_back(attention_case(base).with("page", page).with(kind));
      cases.push_back(attention_case(base).with("seqs", 3).with(kind));
      cases.push_back(attention_case({6, 2, 32, 32, 700, 1}).with("seqs", 3).with("page", 16).with(kind));
      cases.push_back(attention_case(base)
                          .with("seqs", 3)
                          .with("page", 16)
                          .with("window", 21)
                          .with("cap", 30)
                          .with("sinks", 1)
                          .with(kind));
    }
    add_decoding(cases);
    // Longer than any block of keys: gpt-oss, Gemma 2, Llama 3 decoding and prefill.
    cases.push_back(attention_case({8, 1, 64, 64, 2048, 1})
                        .with("window", 128)
                        .with("sinks", 1)
                        .with(InputKind::heavy_tailed));
    cases.push_back(attention_case({8, 4, 256, 256, 600, 3}).with("cap", 50).with(InputKind::zero_mean));
    cases.push_back(
        attention_case({8, 2, 128, 128, 4099, 1}).with("page", 16).with(InputKind::positive_mean));
    cases.push_back(attention_case({4, 1, 128, 128, 300, 300}).with(InputKind::heavy_tailed));
    // Long enough to be cut into pieces, with odd ends: a sink that is to be counted once, sequences of
    // several lengths, a window that begins within a piece, the last page partly filled.
    const AttentionForm cut = {4, 2, 64, 64, 4099, 3};
    for (const InputKind kind : {InputKind::zero_mean, InputKind::positive_mean, InputKind::large}) {
      cases.push_back(attention_case(cut).with("sinks", 1).with("page", 64).with(kind));
      cases.push_back(attention_case(cut).with("seqs", 3).with("page", 48).with("window", 1500).with(kind));
    }
    // In bfloat16.
    for (const InputKind kind : {InputKind::zero_mean, InputKind::positive_mean}) {
      for (const AttentionForm& f : {AttentionForm{1, 1, 1, 1, 1, 1},
                                     {8, 2, 80, 80, 65, 17},
                                     {4, 4, 192, 128, 150, 5},
                                     {2, 1, 576, 512, 70, 2},
                                     {8, 2, 256, 256, 600, 1}})
        cases.push_back(attention_case(f).with("act", "bf16").with(kind));
      cases.push_back(attention_case(base)
                          .with("act", "bf16")
                          .with("seqs", 3)
                          .with("page", 16)
                          .with("window", 21)
                          .with("cap", 30)
                          .with("sinks", 1)
                          .with(kind));
      cases.push_back(attention_case(cut).with("act", "bf16").with("sinks", 1).with("page", 64).with(kind));
    }
    return cases;
  }
  std::vector<CaseId> always() const override {
    std::vector<CaseId> cases;
    const auto add = [&](const AttentionForm& f, std::string_view act = "") {
      CaseId id = attention_case(f);
      if (!act.empty()) id.with("act", act);
      cases.push_back(id.with(InputKind::zero_mean));
    };
    // Query heads a key head, of prompts and of long pasts: Llama's 4 and 8, Qwen2's 5, 6 and 7, GLM's 12 and
    // 16, …; with one key head StarCoder's 48, Falcon's 71, latent attention's 128.
    for (std::uint64_t group = 1; group <= 16; ++group) {
      add({2 * group, 2, 16, 16, 9, 2});
      add({2 * group, 2, 16, 16, 530, 1});
    }
    for (const std::uint64_t group : {20, 24, 32, 48, 63, 64, 65, 71, 96, 128}) {
      add({group, 1, 16, 16, 9, 2});
      add({group, 1, 16, 16, 530, 1});
    }
    for (const std::uint64_t group : {5, 7, 71}) add({group, 1, 16, 16, 9, 2}, "bf16");
    // Head dimensions: from small test models and MobileLLM to Gemma's 256 and its vision towers' 72.
    for (const std::uint64_t dim : {8, 32, 48, 56, 72, 80, 96, 100, 104, 112, 120, 160, 168, 224, 256}) {
      add({4, 2, dim, dim, 35, 1});
      add({4, 2, dim, dim, 35, 3});
    }
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    std::vector<CaseId> cases;
    const auto add = [&](const AttentionForm& f) {
      cases.push_back(attention_case(f).with(InputKind::zero_mean));
    };
    if (size == "rows") {  // of a tile: queries, or heads that share a key head
      add({1, 1, 16, 16, value + 5, value});
      add({2 * value, 2, 16, 16, 9, 1});
    }
    for (const std::uint64_t queries : {1, 3}) {
      if (size == "keys") add({4, 2, 16, 16, value, queries});
      if (size == "dim") add({2, 1, value, 16, 9, queries});
      if (size == "v") add({2, 1, 16, value, 9, queries});
    }
    return cases;
  }
  std::vector<CaseId> perf_grid() const override {
    return {attention_case({32, 8, 128, 128, 4096, 1}).with(InputKind::zero_mean),
            attention_case({8, 2, 128, 128, 1024, 512}).with(InputKind::zero_mean)};
  }
  std::unique_ptr<Operands<AttentionCall>> make(const CaseId& id) const override {
    return std::make_unique<AttentionOperands>(id);
  }
};

}  // namespace

template <>
const OpCases<AttentionCall>& cases_of<AttentionCall>() {
  static const AttentionCases cases;
  return cases;
}

}  // namespace assay
