// index: which keys are attended to.
//
// With λ(n) = 4 √n and u = 2^-24, a product q·k is off by e = λ(head_dim) u |q|·|k|, and a score by
//
//   δ = Σ_h |w| e (of heads whose product is above -e: those below are 0) + λ(heads + 2) u Σ_h |w| relu(q·k)
//
// Keys are whole numbers: equality, but where a choice hangs on no more than the δ of two keys: such a row is left
// open. Whatever is chosen, its scores in float64, the best first, are the truth's within twice the row's largest δ: each
// key that is taken in place of another is as good but for rounding.
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "core/system/error.h"
#include "core/system/threads.h"
#include "kernels/harness/cases.h"
#include "kernels/harness/made_cache.h"

namespace assay {
namespace {

constexpr double kUnit = 0x1p-24;
constexpr double kLargestExact = 2;

// A choice as two matrices of as many columns as are chosen: -1 and 0 behind the last.
struct ChosenKeys {
  std::size_t columns = 0;
  std::vector<double> keys, scores;
};

ChosenKeys chosen_keys(Ops& ops, const IndexCall& call, const KeyChoice& choice) {
  ChosenKeys all = {.columns = call.top_k, .keys = {}, .scores = {}};
  for (const std::vector<std::int32_t>& keys : choice.keys) all.columns = std::max(all.columns, keys.size());
  const std::size_t rows = call.q.rows();
  all.keys.assign(rows * all.columns, -1);
  all.scores.assign(rows * all.columns, 0);
  visit_key_scores(ops, call, [&](std::size_t row, std::span<const double> scores) {
    if (row >= choice.keys.size()) return;
    const std::vector<std::int32_t>& keys = choice.keys[row];
    double* of = &all.scores[row * all.columns];
    for (std::size_t i = 0; i < keys.size(); ++i) {
      all.keys[row * all.columns + i] = keys[i];
      const bool is_one = keys[i] >= 0 && static_cast<std::size_t>(keys[i]) < scores.size() &&
                          (i == 0 || keys[i] > keys[i - 1]);
      of[i] = is_one ? scores[static_cast<std::size_t>(keys[i])] : std::numeric_limits<double>::quiet_NaN();
    }
    std::sort(of, of + keys.size(),
              [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a > b; });
  });
  return all;
}

struct IndexedSequence {
  std::size_t first = 0, queries = 0, position = 0;
  MadeCache keys;
};

class IndexOperands final : public Operands<IndexCall> {
 public:
  explicit IndexOperands(const CaseId& id)
      : heads_(id.number("heads", 4)),
        dim_(id.number("dim", 32)),
        top_(id.number("top", 8)),
        each_(id.number("each", 1)),
        exact_(id.input() == InputKind::exact) {
    const std::size_t tokens = id.number("tokens", 1), queries = id.number("queries", 1),
                      page = id.number("page");
    if (heads_ == 0 || dim_ == 0 || top_ == 0 || each_ == 0 || queries == 0 || queries > tokens)
      throw Error::usage("heads, dim, top, each, queries or tokens do not fit each other");
    arithmetic = narrow_arithmetic(id);
    std::uint64_t seed = id.seed() * 1000;
    const auto fill = [&](std::size_t rows, std::size_t columns) {
      return numbers(exact_ ? InputKind::zero_mean : id.input(), rows, columns, ++seed);
    };
    std::size_t rows = 0;
    for (std::size_t s = 0; s < id.number("seqs", 1); ++s) {
      const std::size_t all = std::max(queries, tokens - std::min(tokens, s * kShorter));
      Filled keys = fill(all / each_, dim_);
      if (id.number("nan") != 0)
        for (std::size_t k = 1; k < keys.rows; k += 3)
          keys.values[k * dim_] = std::numeric_limits<double>::quiet_NaN();
      sequences_.push_back({rows, queries, all - queries, MadeCache(std::move(keys), page, seed)});
      rows += queries;
    }
    q_ = fill(rows, heads_ * dim_);
    weights_ = fill(rows, heads_);
  }

  IndexCall call(Ops& ops) const override {
    IndexCall call = {.q = upload(ops, q_),
                      .weights = upload(ops, weights_),
                      .sequences = {},
                      .heads = heads_,
                      .head_dim = dim_,
                      .top_k = top_,
                      .tokens_a_key = each_};
    for (const IndexedSequence& s : sequences_)
      call.sequences.push_back({s.first, s.queries, s.position, s.keys.upload_to(ops)});
    return call;
  }
  Truth truth(int jobs) const override {
    ReferenceOps wide = truth_ops(jobs);
    const IndexCall right = call(wide);
    const KeyChoice choice = run_reference(wide, right);
    ChosenKeys chosen = chosen_keys(wide, right, choice);
    TruthPart keys = {.name = "keys", .rows = q_.rows, .columns = top_, .values = std::move(chosen.keys)};
    TruthPart scores = {
        .name = "scores", .rows = q_.rows, .columns = top_, .values = std::move(chosen.scores)};
    if (exact_) return {std::move(keys), std::move(scores)};
    const std::vector<std::vector<double>> errors = errors_of_scores(jobs);
    std::vector<bool> open(q_.rows);
    visit_key_scores(wide, right, [&](std::size_t row, std::span<const double> all) {
      const bool is_open = hangs_on_rounding(all, errors[row], choice.keys[row]);
      const std::lock_guard lock(mutex_);
      open[row] = is_open;
    });
    for (std::size_t row = 0; row < q_.rows; ++row) {
      double largest = 0;
      for (const double error : errors[row])
        if (std::isfinite(error)) largest = std::max(largest, error);
      scores.absolute.insert(scores.absolute.end(), top_, 2 * largest);
      keys.open.insert(keys.open.end(), top_, open[row]);
    }
    return {std::move(keys), std::move(scores)};
  }

  std::optional<IndexCall> first_token(const IndexCall& call) const override {
    if (call.sequences.size() < 2) return std::nullopt;
    return first_rows(call, call.sequences[0].queries);
  }
  std::optional<IndexCall> first_chunk(const IndexCall& call) const override {
    if (call.sequences.empty() || call.sequences[0].queries < 2) return std::nullopt;
    return first_rows(call, 1);
  }
  bool spoil_last_token(IndexCall& call) const override {
    if (q_.rows < 2) return false;
    fill_row_with_nan(call.q, q_.rows - 1);
    return true;
  }
  double flops() const override {
    double pairs = 0;
    for (const IndexedSequence& s : sequences_)
      pairs += static_cast<double>(s.queries) * static_cast<double>(s.keys.keys());
    return 2 * pairs * static_cast<double>(heads_ * (dim_ + 1));
  }
  double bytes() const override {
    double keys = 0;
    for (const IndexedSequence& s : sequences_) keys += static_cast<double>(s.keys.keys());
    return 4 * (keys * static_cast<double>(dim_) +
                static_cast<double>(q_.values.size() + weights_.values.size() + q_.rows * top_));
  }

 private:
  // Exact ones are so small that all scores are whole numbers below 2^24, and many of them equal.
  Filled numbers(InputKind kind, std::size_t rows, std::size_t columns, std::uint64_t seed) const {
    Filled made = filled(arithmetic, kind, {.rows = rows, .columns = columns, .seed = seed});
    if (exact_)
      for (double& x : made.values) x = std::clamp(std::round(x), -kLargestExact, kLargestExact);
    return made;
  }

  static IndexCall first_rows(const IndexCall& call, std::size_t rows) {
    IndexCall first = call;
    first.q = call.q.row_range(0, rows);
    first.weights = call.weights.row_range(0, rows);
    first.sequences.resize(1);
    first.sequences[0].queries = rows;
    return first;
  }

  std::vector<std::vector<double>> errors_of_scores(int jobs) const {
    std::vector<std::vector<double>> errors(q_.rows);
    for (const IndexedSequence& s : sequences_) {
      parallel_for(jobs, s.queries, [&](std::size_t i) {
        std::vector<double>& row = errors[s.first + i];
        for (std::size_t k = 0; k < (s.position + i + 1) / each_; ++k)
          row.push_back(error_of_score(s.first + i, s.keys.row(k)));
      });
    }
    return errors;
  }
  double error_of_score(std::size_t row, const double* key) const {
    double error = 0, sizes = 0;
    for (std::size_t h = 0; h < heads_; ++h) {
      const double* q = &q_.values[row * q_.columns + h * dim_];
      const double weight = std::fabs(weights_.values[row * heads_ + h]);
      double product = 0, size = 0;
      for (std::size_t d = 0; d < dim_; ++d) {
        product += q[d] * key[d];
        size += std::fabs(q[d] * key[d]);
      }
      const double off = accumulation_factor(dim_) * kUnit * size;
      if (!(product > -off)) continue;
      error += weight * off;
      sizes += weight * std::max(0.0, product);
    }
    return error + accumulation_factor(heads_ + 2) * kUnit * sizes;
  }

  // The worst that is chosen may be as good as the best that is not.
  static bool hangs_on_rounding(std::span<const double> scores, const std::vector<double>& errors,
                                const std::vector<std::int32_t>& chosen) {
    double worst = std::numeric_limits<double>::infinity(), best = -worst;
    auto next = chosen.begin();
    for (std::size_t k = 0; k < scores.size(); ++k) {
      const bool taken = next != chosen.end() && static_cast<std::size_t>(*next) == k;
      if (taken) ++next;
      if (std::isnan(scores[k])) continue;
      if (taken)
        worst = std::min(worst, scores[k] - errors[k]);
      else
        best = std::max(best, scores[k] + errors[k]);
    }
    return worst < best;
  }

  std::size_t heads_, dim_, top_, each_;
  bool exact_;
  std::vector<IndexedSequence> sequences_;
  Filled q_, weights_;
  mutable std::mutex mutex_;
};

class IndexCases final : public OpCases<IndexCall> {
 public:
  std::vector<CaseId> grid() const override {
    std::vector<CaseId> cases;
    for (const InputKind kind :
         {InputKind::zero_mean, InputKind::positive_mean, InputKind::heavy_tailed, InputKind::exact}) {
      const auto add = [&](CaseId id) { cases.push_back(id.with(kind)); };
      for (const char* act : {"f32", "bf16"}) {
        add(sized(4, 32, 8, 6, 3).with("act", act));       // fewer keys than are chosen
        add(sized(4, 32, 8, 8, 8).with("act", act));       // as many
        add(sized(4, 32, 8, 70, 9).with("act", act));      // more
        add(sized(10, 20, 7, 40, 40).with("act", act));    // a prompt from its beginning
        add(sized(64, 128, 64, 300, 4).with("act", act));  // DeepSeek-V3.2's heads
        add(sized(10, 12, 3, 83, 20).with("each", 4).with("act", act));
        add(sized(3, 24, 5, 90, 3).with("seqs", 3).with("page", 16).with("act", act));
      }
      add(sized(3, 7, 3, 33, 5));
      add(sized(8, 64, 16, 200, 1));  // decoding
      add(sized(8, 40, 1, 65, 4).with("seqs", 2));
      add(sized(6, 16, 4, 130, 7).with("each", 4).with("seqs", 3).with("page", 8));
    }
    return cases;
  }
  std::vector<CaseId> always() const override {
    std::vector<CaseId> cases;
    // What cannot be compared is chosen last; and equal scores, of which the earlier keys are due.
    cases.push_back(sized(4, 16, 8, 40, 6).with("nan", 1).with(InputKind::zero_mean));
    cases.push_back(sized(2, 8, 30, 40, 6).with("nan", 1).with("page", 8).with(InputKind::zero_mean));
    cases.push_back(sized(4, 2, 5, 64, 16).with(InputKind::exact));
    cases.push_back(sized(2, 3, 9, 100, 8).with("seqs", 2).with("page", 4).with(InputKind::exact));
    // DeepSeek-V3.2, GLM-5, DeepSeek-V4.
    cases.push_back(sized(64, 128, 2048, 2100, 2).with(InputKind::zero_mean));
    cases.push_back(sized(32, 128, 2048, 2060, 2).with(InputKind::zero_mean));
    cases.push_back(sized(64, 128, 512, 2400, 3).with("each", 4).with(InputKind::zero_mean));
    return cases;
  }
  std::vector<CaseId> at(std::string_view size, std::size_t value) const override {
    if (value == 0) return {};
    if (size == "heads") return {sized(value, 16, 4, 40, 3).with(InputKind::zero_mean)};
    if (size == "dim") return {sized(3, value, 4, 40, 3).with(InputKind::zero_mean)};
    if (size == "keys")
      return {sized(5, 16, 4, value, std::min<std::uint64_t>(value, 2)).with(InputKind::zero_mean)};
    if (size == "queries") return {sized(3, 16, 4, value + 9, value).with(InputKind::zero_mean)};
    return {};
  }
  std::vector<CaseId> perf_grid() const override {
    return {sized(64, 128, 2048, 4096, 64).with(InputKind::zero_mean)};  // DeepSeek-V3.2's
  }
  std::unique_ptr<Operands<IndexCall>> make(const CaseId& id) const override {
    return std::make_unique<IndexOperands>(id);
  }

 private:
  // A text of so many tokens, of which the last so many are the step's.
  static CaseId sized(std::uint64_t heads, std::uint64_t dim, std::uint64_t top, std::uint64_t tokens,
                      std::uint64_t queries) {
    return CaseId("index", "F32")
        .with("heads", heads)
        .with("dim", dim)
        .with("top", top)
        .with("tokens", tokens)
        .with("queries", queries);
  }
};

}  // namespace

std::vector<OutputPart> parts_of(Ops& ops, const KeyChoice& result) {
  const std::vector<double> positions = ops.download(result.positions);
  return {
      {"keys", result.positions.rows(), result.positions.columns(), {positions.begin(), positions.end()}}};
}

std::vector<OutputPart> parts_of_call(Ops& ops, const IndexCall& call, const KeyChoice& result) {
  const ChosenKeys chosen = chosen_keys(ops, call, result);
  const std::size_t rows = result.keys.size();
  return {{"keys", rows, chosen.columns, {chosen.keys.begin(), chosen.keys.end()}},
          {"scores", rows, chosen.columns, {chosen.scores.begin(), chosen.scores.end()}}};
}

template <>
const OpCases<IndexCall>& cases_of<IndexCall>() {
  static const IndexCases cases;
  return cases;
}

}  // namespace assay
