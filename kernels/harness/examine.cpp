#include "kernels/harness/examine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "core/numeric/codec.h"
#include "core/system/error.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/harness/device_time.h"
#include "kernels/harness/every_call.h"
#include "kernels/harness/survey.h"

namespace assay {
namespace {

constexpr int kRepeats = 3;          // of a run that differed from another, to tell chance from cause
constexpr std::size_t kPadding = 5;  // odd, so that rows lie at all alignments
constexpr double kSmallestNormal = 0x1p-126;
constexpr double kQuickness = 4;  // a device's calls follow each other: so much shorter a time says as much
constexpr double kRoundsOperands = 0x1p-11;     // a roundoff so coarse is that of operands, not of sums
constexpr std::size_t kAlignedPadding = 16;     // for kernels that refuse those
constexpr std::uint64_t kTellingElements = 64;  // from so many on, agreement in all digits is no accident

// A case's runs, wherever they take place.
using Runner = std::function<CaseRun(const Variation&)>;

constexpr std::size_t kAllRows = static_cast<std::size_t>(1) << 40;

// The first element whose bits differ among the first `rows` rows of both, of parts that have a row for each token;
// or anywhere. Any two NaNs are equal.
std::optional<std::string> first_difference(const std::vector<OutputPart>& a,
                                            const std::vector<OutputPart>& b, std::size_t rows) {
  for (std::size_t p = 0; p < std::min(a.size(), b.size()); ++p) {
    if (rows != kAllRows && !a[p].of_tokens) continue;
    const std::size_t count = std::min({rows * a[p].columns, a[p].values.size(), b[p].values.size()});
    if (count != 0 && std::memcmp(a[p].values.data(), b[p].values.data(), count * sizeof(float)) == 0)
      continue;
    for (std::size_t i = 0; i < count; ++i) {
      const float x = a[p].values[i], y = b[p].values[i];
      if (std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) ||
          (std::isnan(x) && std::isnan(y)))
        continue;
      return fmt::format("{}[{}, {}]: {} and {}", a[p].name, i / a[p].columns, i % a[p].columns, x, y);
    }
  }
  return std::nullopt;
}

std::size_t tokens_of(const std::vector<OutputPart>& parts) {
  std::size_t rows = 0;
  for (const OutputPart& part : parts) rows = part.of_tokens ? part.rows : rows;
  return rows;
}

struct Judge {
  CaseResult& result;
  void no(std::string_view check, std::string detail) const {
    if (result.status == CaseStatus::failed) return;
    result.status = CaseStatus::failed;
    result.check = check;
    result.detail = std::move(detail);
  }
};

// Another number of threads and other strides in one run; only where that differs is asked which of them, or
// none, it was.
void check_bits(const Runner& run, const Invariants& invariants, const CaseRun& first, int jobs,
                const Judge& judge) {
  const int other_jobs = jobs == 1 ? 2 : 1;
  Properties& properties = judge.result.properties;
  std::size_t padding = kPadding;
  CaseRun other = run({.jobs = other_jobs, .padding = padding});
  if (!other.taken) other = run({.jobs = other_jobs, .padding = padding = kAlignedPadding});
  const bool padded = other.taken;
  if (!padded) other = run({.jobs = other_jobs});
  if (!other.check.empty()) return judge.no(other.check, other.detail);
  properties.repeatable = Kept::yes;
  if (jobs == 1 ? other.shared : first.shared) properties.thread_invariant = Kept::yes;
  if (padded) properties.layout_invariant = Kept::yes;
  if (!first_difference(first.parts, other.parts, kAllRows)) return;

  const auto differs = [&](int threads, std::size_t apart) {
    const CaseRun again = run({.jobs = threads, .padding = apart});
    return again.check.empty() ? first_difference(first.parts, again.parts, kAllRows) : again.detail;
  };
  for (int i = 0; i < kRepeats; ++i) {
    if (const auto difference = differs(jobs, 0)) {
      properties.repeatable = Kept::no;
      return judge.no("repeat", "run again: " + *difference);
    }
  }
  if (const auto difference = padded ? differs(jobs, padding) : std::nullopt) {
    properties.layout_invariant = Kept::no;
    if (invariants.layout_invariant) judge.no("layout", "with padded rows: " + *difference);
  }
  if (const auto difference = differs(other_jobs, 0)) {
    properties.thread_invariant = Kept::no;
    if (invariants.thread_invariant)
      judge.no("threads", fmt::format("{} and {} threads: {}", jobs, other_jobs, *difference));
  }
}

// What a part of the tokens gets by itself, against what it got among the others.
void check_part(const Runner& run, const CaseRun& first, const Variation& part, const Judge& judge,
                std::string_view check, Kept& kept, bool promised) {
  const CaseRun alone = run(part);
  if (!alone.taken) return;
  if (!alone.check.empty()) return judge.no(alone.check, "a part by itself: " + alone.detail);
  const auto difference = first_difference(first.parts, alone.parts, tokens_of(alone.parts));
  kept = difference ? Kept::no : Kept::yes;
  if (difference && promised) judge.no(check, "among others and by itself: " + *difference);
}

void check_isolation(const Runner& run, const CaseRun& first, int jobs, const Judge& judge) {
  const CaseRun spoilt = run({.jobs = jobs, .spoilt = true});
  if (!spoilt.taken) return;
  if (!spoilt.check.empty()) return judge.no(spoilt.check, "with a NaN in the last token: " + spoilt.detail);
  const std::size_t rows = tokens_of(first.parts);
  const auto difference = rows < 2 ? std::nullopt : first_difference(first.parts, spoilt.parts, rows - 1);
  judge.result.properties.isolated = difference ? Kept::no : Kept::yes;
  if (difference) judge.no("isolation", "with a NaN in the last token: " + *difference);
}

// The same bits where the same addresses held other numbers before.
void check_reuse(const Runner& run, const CaseRun& first, int jobs, const Judge& judge) {
  const CaseRun again = run({.jobs = jobs, .reused = true});
  if (!again.taken) return;
  if (!again.check.empty()) return judge.no(again.check, "run again: " + again.detail);
  if (const auto difference = first_difference(first.parts, again.parts, kAllRows))
    judge.no("stale", "after other numbers at the same addresses: " + *difference);
}

// Why an agreement proves nothing, if so.
std::optional<std::string> vacuous(const TruthPart& truth, const ErrorMeasure& m) {
  if (m.elements == 0) return std::nullopt;
  if (m.zeros == m.elements) return "all of it is zero: nothing is proven";
  const auto finite =
      std::any_of(truth.values.begin(), truth.values.end(), [](double x) { return std::isfinite(x); });
  if (!finite) return "nothing of it is finite: nothing is proven";
  if (truth.fine_digits && m.max_abs == 0 && m.elements - m.zeros >= kTellingElements)
    return "it agrees with float64 in every digit: truth was made from the output";
  return std::nullopt;
}

// What the whole error is too large for, if so.
std::optional<std::string> beyond_operands(const TruthPart& truth, const std::vector<float>& out,
                                           const std::vector<double>& budget) {
  if (!truth.unrounded) return std::nullopt;
  std::vector<double> allowed = truth.unrounded->allowed;
  for (std::size_t i = 0; i < budget.size(); ++i) allowed[i] += budget[i];
  const ErrorMeasure m = measure(out, truth.unrounded->values, allowed, truth.type);
  if (judge(m) != CaseStatus::failed) return std::nullopt;
  return "of operands that were not quantized: " + describe_worst(m, out, truth.unrounded->values, allowed);
}

// The first number that a result stored as this type cannot hold.
std::optional<std::string> not_of_type(const TruthPart& truth, const std::vector<float>& out) {
  const FloatFormat* format = float_format(truth.type);
  for (std::size_t i = 0; format != nullptr && i < out.size(); ++i) {
    if (std::isfinite(out[i]) && decode(*format, encode(*format, out[i], Overflow::special)) != out[i])
      return fmt::format("{}, element {}: {} is no number of {}", truth.name, i, out[i],
                         info(truth.type).name);
  }
  return std::nullopt;
}

// Elements that may be anything take what is there for truth.
std::vector<double> with_open_ones(const TruthPart& truth, const std::vector<float>& out) {
  std::vector<double> values = truth.values;
  for (std::size_t i = 0; i < truth.open.size(); ++i) {
    if (truth.open[i]) values[i] = out[i];
  }
  return values;
}

}  // namespace

std::string_view name(Kept kept) {
  switch (kept) {
    case Kept::yes: return "yes";
    case Kept::no: return "no";
    case Kept::untested: break;
  }
  return "untested";
}

Comparison compare_parts(const Truth& truth, const std::vector<OutputPart>& parts,
                         const Roundoffs& roundoffs) {
  Comparison result;
  const auto no = [&](std::string_view check, std::string detail) {
    result.status = CaseStatus::failed;
    result.check = check;
    result.detail = std::move(detail);
    return result;
  };
  if (parts.size() != truth.size())
    return no("shape", fmt::format("{} parts where {} were due", parts.size(), truth.size()));
  for (std::size_t p = 0; p < truth.size(); ++p) {
    const TruthPart& due = truth[p];
    if (parts[p].rows != due.rows || parts[p].columns != due.columns ||
        parts[p].values.size() != due.values.size())
      return no("shape", fmt::format("{} is {} × {} where {} × {} was due", due.name, parts[p].rows,
                                     parts[p].columns, due.rows, due.columns));
  }
  std::optional<std::string> proves_nothing;
  for (std::size_t p = 0; p < truth.size(); ++p) {
    const std::vector<double> values = with_open_ones(truth[p], parts[p].values);
    std::vector<double> budget = truth[p].budget(roundoffs);
    // A copy is exact only for who multiplies what it was given: tf32 keeps 10 bits of each operand.
    const double of_sums = roundoffs.accumulator >= kRoundsOperands ? 2 * roundoffs.accumulator : 0;
    const double copied = std::max(of_sums, roundoffs.operands);
    const double flushed = roundoffs.flushes_subnormals ? kSmallestNormal : 0;
    if (budget.empty() && copied + flushed > 0) {
      const std::vector<double>& sizes = truth[p].products.empty() ? values : truth[p].products;
      for (const double size : sizes) budget.push_back(copied * std::fabs(size) + flushed);
    }
    const ErrorMeasure m = measure(parts[p].values, values, budget, truth[p].type);
    const bool worse = m.ratio > result.measured.ratio || m.pattern_faults > 0 || p == 0;
    if (worse) result.measured = m;
    if (judge(m) == CaseStatus::failed) {
      result.measured = m;
      const std::string where = describe_worst(m, parts[p].values, values, budget);
      return no(m.pattern_faults > 0 ? "pattern"
                : budget.empty()     ? "exact"
                                     : "budget",
                fmt::format("{}, {}", truth[p].name, where));
    }
    if (const auto why = beyond_operands(truth[p], parts[p].values, budget)) return no("operands", *why);
    if (const auto why = not_of_type(truth[p], parts[p].values)) return no("type", *why);
    if (const auto why = vacuous(truth[p], m); why && !proves_nothing) proves_nothing = *why;
  }
  if (proves_nothing) {
    result.status = CaseStatus::mistrusted;
    result.check = "vacuous";
    result.detail = *proves_nothing;
  }
  return result;
}

namespace {

struct KernelFacts {
  const std::string& name;
  Device device;
  const Invariants& invariants;
  const Roundoffs& roundoffs;
  const std::function<std::string()>& unavailable;
  bool foreign;  // somebody else's, who may keep what was lent to it

  template <class Call>
  static KernelFacts of(const Kernel<Call>& k) {
    return {k.name, k.device, k.invariants, k.roundoffs, k.unavailable, k.remote != nullptr};
  }
};

CaseResult examine_runs(const Runner& run, const KernelFacts& kernel, double flops, const Truth& truth,
                        const ExamineSettings& settings) {
  CaseResult result;
  result.kernel = kernel.name;
  result.device = kernel.device;
  result.roundoffs = kernel.roundoffs;
  const int jobs = settings.jobs;
  const CaseRun first = run({.jobs = jobs});
  if (!first.taken) {
    const std::string why = kernel.unavailable ? kernel.unavailable() : std::string();
    result.detail = !why.empty()            ? why
                    : !first.detail.empty() ? "the kernel does not take this: " + first.detail
                                            : "the kernel does not take this";
    if (!why.empty()) result.check = kUnavailable;
    if (!first.check.empty()) {
      result.check = first.check;
      result.detail = first.detail;
    }
    return result;
  }
  const Judge judge{result};
  if (!first.check.empty()) {
    judge.no(first.check, first.detail);
    return result;
  }
  Comparison comparison = compare_parts(truth, first.parts, kernel.roundoffs);
  result.status = comparison.status;
  result.check = std::move(comparison.check);
  result.detail = std::move(comparison.detail);
  result.measured = comparison.measured;
  if (flops > settings.flops_for_properties) return result;
  check_bits(run, kernel.invariants, first, jobs, judge);
  Properties& p = result.properties;
  check_part(run, first, {.jobs = jobs, .part = CallPart::first_token}, judge, "batch", p.batch_invariant,
             kernel.invariants.batch_invariant);
  check_part(run, first, {.jobs = jobs, .part = CallPart::first_chunk}, judge, "chunk", p.chunk_invariant,
             kernel.invariants.chunk_invariant);
  check_isolation(run, first, jobs, judge);
  if (kernel.foreign) check_reuse(run, first, jobs, judge);
  return result;
}

}  // namespace

template <class Call>
CaseResult examine(const Kernel<Call>& kernel, const Operands<Call>& operands, const Truth& truth,
                   const ExamineSettings& settings) {
  const Runner here = [&](const Variation& variation) { return run_case(kernel, operands, variation); };
  return examine_runs(here, KernelFacts::of(kernel), operands.flops(), truth, settings);
}

double fastest(const std::function<void()>& work, double least) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const Clock::time_point begin = Clock::now();
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 2 || since(begin) < least; ++i) {
    const Clock::time_point start = Clock::now();
    work();
    best = std::min(best, since(start));
  }
  return best;
}

namespace {

// Of one case, each kind made when the first kernel that it is for comes.
template <class Call>
class Truths {
 public:
  Truths(const Operands<Call>& operands, int jobs) : operands_(operands), jobs_(jobs) {}

  const Truth& of(const Kernel<Call>& kernel) {
    const std::optional<RoundedOperands> how = rounded_by(kernel);
    std::optional<Truth>& truth = how ? of_rounded_ : plain_;
    if (!truth || (how && *how != how_)) {
      truth = how ? operands_.truth_of(*how, jobs_) : operands_.truth(jobs_);
      if (how) how_ = *how;
    }
    return *truth;
  }

 private:
  std::optional<RoundedOperands> rounded_by(const Kernel<Call>& kernel) const {
    if (!kernel.operands) return std::nullopt;
    ReferenceOps ops(operands_.arithmetic, jobs_);
    return kernel.operands(operands_.arithmetic, operands_.call(ops));
  }

  const Operands<Call>& operands_;
  int jobs_;
  std::optional<Truth> plain_, of_rounded_;
  RoundedOperands how_ = {};
};

template <class Call>
class TypedExaminer final : public OpExaminer {
 public:
  explicit TypedExaminer(const std::vector<Kernel<Call>>& kernels) : kernels_(kernels) {}

  std::string_view op() const override { return Call::kOp; }
  std::vector<CaseId> grid() const override { return cases_of<Call>().grid(); }
  std::vector<CaseId> always() const override {
    const OpCases<Call>& cases = cases_of<Call>();
    std::vector<CaseId> always = cases.always();
    std::set<std::pair<std::string_view, std::size_t>, std::greater<>> sizes;
    for (const Kernel<Call>& kernel : kernels_) {
      for (const Edge& edge : kernel.edges) {
        for (const std::size_t size : sizes_around(edge)) sizes.emplace(edge.of, size);
      }
    }
    for (const auto& [of, size] : sizes) {
      for (CaseId& id : cases.at(of, size)) always.push_back(std::move(id));
    }
    return always;
  }
  std::vector<CaseId> perf_grid() const override { return cases_of<Call>().perf_grid(); }
  std::vector<KernelLabel> kernels() const override {
    std::vector<KernelLabel> labels;
    for (const Kernel<Call>& kernel : kernels_) labels.push_back(label(kernel));
    return labels;
  }

  std::vector<CaseResult> examine(const CaseId& id, const std::function<bool(const KernelLabel&)>& wanted,
                                  const ExamineSettings& settings) const override {
    const std::unique_ptr<Operands<Call>> operands = cases_of<Call>().make(id);
    Truths<Call> truths(*operands, settings.jobs);
    std::vector<CaseResult> results;
    for (const Kernel<Call>& kernel : kernels_) {
      if (!wanted(label(kernel))) continue;
      const Truth& truth = truths.of(kernel);
      if (kernel.remote) {
        const Runner there = [&](const Variation& variation) { return kernel.remote->run(id, variation); };
        results.push_back(examine_runs(there, KernelFacts::of(kernel), operands->flops(), truth, settings));
      } else {
        results.push_back(assay::examine(kernel, *operands, truth, settings));
      }
      results.back().id = id.text();
    }
    return results;
  }

  std::vector<KernelTime> time(const CaseId& id, const std::function<bool(const KernelLabel&)>& wanted,
                               int jobs, double least) const override {
    const std::unique_ptr<Operands<Call>> operands = cases_of<Call>().make(id);
    ReferenceOps ops(operands->arithmetic, jobs);
    const Call call = operands->call(ops);
    std::unique_ptr<OnDevice> device;
    std::vector<KernelTime> times;
    for (const Kernel<Call>& kernel : kernels_) {
      if (!wanted(label(kernel))) continue;
      std::optional<double> seconds;
      if (kernel.remote) {
        seconds = kernel.remote->time(id, jobs, least);
      } else if (kernel.takes(operands->arithmetic, call)) {
        if (kernel.device == Device::cuda && !device) device = OnDevice::make(*operands, jobs);
        const bool there = kernel.device == Device::cuda && device;
        seconds = there ? device->seconds(kernel, least / kQuickness)
                        : fastest([&] { kernel.run(ops, call); }, least);
      }
      if (seconds) times.push_back({id.text(), kernel.name, *seconds, operands->flops(), operands->bytes()});
    }
    return times;
  }

  std::vector<KernelPlans> plans(const CaseId& id, const std::function<bool(const KernelLabel&)>& wanted,
                                 std::span<const cuda::DeviceLimits> devices) const override {
    const ShapesOnly no_numbers;
    const std::unique_ptr<Operands<Call>> operands = cases_of<Call>().make(id);
    ReferenceOps ops(operands->arithmetic, 1);
    const Call call = operands->call(ops);
    std::vector<KernelPlans> result;
    for (const cuda::DeviceLimits& limits : devices) {
      for (const Kernel<Call>& kernel : kernels_) {
        if (!kernel.plans || !wanted(label(kernel))) continue;
        std::vector<cuda::LaunchPlan> plans = kernel.plans(limits, operands->arithmetic, call);
        if (!plans.empty()) result.push_back({id.text(), kernel.name, limits.sm, std::move(plans)});
      }
    }
    return result;
  }

 private:
  // A case's call in the memory of the device at hand.
  struct OnDevice {
    std::unique_ptr<ModelMemory> memory;
    DeviceOps ops;
    Call call;
    OnDevice(std::unique_ptr<ModelMemory> of_device, const Operands<Call>& operands, int jobs)
        : memory(std::move(of_device)), ops(operands.arithmetic, jobs, *memory), call(operands.call(ops)) {}
    // Null where there is none: kernels under the emulator.
    static std::unique_ptr<OnDevice> make(const Operands<Call>& operands, int jobs) {
      std::unique_ptr<ModelMemory> memory = cuda_model_memory();
      return memory ? std::make_unique<OnDevice>(std::move(memory), operands, jobs) : nullptr;
    }
    double seconds(const Kernel<Call>& kernel, double least) {
      return seconds_on_device(
          *memory, [&] { kernel.run(ops, call); }, least);
    }
  };

  static KernelLabel label(const Kernel<Call>& kernel) {
    return {std::string(Call::kOp), kernel.name, kernel.about, kernel.device,
            kernel.unavailable ? kernel.unavailable() : std::string()};
  }
  const std::vector<Kernel<Call>>& kernels_;
};

}  // namespace

std::vector<std::unique_ptr<OpExaminer>> examiners(const Registry& registry) {
  std::vector<std::unique_ptr<OpExaminer>> result;
  registry.for_each_op([&]<class Call>(const std::vector<Kernel<Call>>& kernels) {
    result.push_back(std::make_unique<TypedExaminer<Call>>(kernels));
  });
  return result;
}

// Wanted elsewhere too.
#define ASSAY_INSTANTIATE(Call)                                                         \
  template CaseResult examine(const Kernel<Call>&, const Operands<Call>&, const Truth&, \
                              const ExamineSettings&)
ASSAY_FOR_EVERY_CALL(ASSAY_INSTANTIATE);
#undef ASSAY_INSTANTIATE

}  // namespace assay
