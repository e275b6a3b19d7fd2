#include "kernels/harness/mutants.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/system/error.h"
#include "core/system/name_filter.h"
#include "core/system/threads.h"
#include "kernels/harness/examine.h"
#include "kernels/harness/inputs.h"
#include "kernels/selection/select.h"

namespace assay {
namespace {

// Larger cases show nothing that smaller ones do not, but rounding.
constexpr double kMostFlops = 3e7;
constexpr std::string_view kComparator = "comparator";

template <class Call>
Kernel<Call> kernel_of(const Mutant<Call>& mutant, double size) {
  return {.name = std::string(mutant.name),
          .about = "",
          .takes = [&mutant](const Arithmetic& arithmetic,
                             const Call& call) { return !mutant.takes || mutant.takes(arithmetic, call); },
          .run = [&mutant, size](
                     Ops& ops,
                     const Call& call) { return mutant.run(dynamic_cast<ReferenceOps&>(ops), call, size); },
          .roundoffs = mutant.roundoffs};
}

// How far the sizes of one mutant have been noticed.
template <class Call>
struct Hunt {
  Mutant<Call> mutant;
  std::size_t noticed = 0;  // sizes [0, noticed)
  MutantResult result;

  // Whether there is anything left to find out.
  bool open() const { return noticed < mutant.sizes.size(); }
  void run(const CaseId& id, const Operands<Call>& operands, const Truth& truth) {
    while (open()) {
      const ExamineSettings settings = {.jobs = 1, .flops_for_properties = mutant.bits ? kMostFlops : -1};
      const CaseResult r = examine(kernel_of(mutant, mutant.sizes[noticed]), operands, truth, settings);
      if (r.status != CaseStatus::failed && r.status != CaseStatus::mistrusted) return;
      if (noticed++ != 0) continue;
      result.caught = true;
      result.by_case = id.text();
      result.by_check = r.check;
      result.detail = r.detail;
    }
  }
  MutantResult verdict() const {
    MutantResult r = result;
    if (mutant.sizes.size() > 1 && noticed > 0)
      r.smallest = fmt::format("{} {:.3g}", mutant.unit, mutant.sizes[noticed - 1]);
    r.smallest_missed = noticed < mutant.sizes.size();
    return r;
  }
};

// What our own kernels ask for, beside the grid.
std::vector<CaseId> always_of(std::string_view op) {
  for (const auto& examiner : examiners(builtin_kernels())) {
    if (examiner->op() == op) return examiner->always();
  }
  return {};
}

template <class Call>
struct MadeCase {
  std::unique_ptr<Operands<Call>> operands;  // null: too large
  Truth truth;
};

template <class Call>
MadeCase<Call> make_case(const CaseId& id) {
  {
    const ShapesOnly shapes;  // numbers cost more than what is asked here
    if (cases_of<Call>().make(id)->flops() > kMostFlops) return {};
  }
  MadeCase<Call> made = {cases_of<Call>().make(id), {}};
  made.truth = made.operands->truth(1);
  return made;
}

constexpr std::size_t kCasesAThread = 8;  // made at once: threads wait for each other after so many

// On these cases, as long as one of the hunts is open.
template <class Call>
void hunt_on(const std::vector<CaseId>& cases, std::vector<Hunt<Call>>& hunts,
             const std::function<bool(const Hunt<Call>&)>& open, int jobs) {
  std::vector<MadeCase<Call>> made(kCasesAThread * static_cast<std::size_t>(std::max(1, jobs)));
  for (std::size_t first = 0; first < cases.size(); first += made.size()) {
    if (std::none_of(hunts.begin(), hunts.end(), open) || interrupted()) return;
    const std::size_t count = std::min(made.size(), cases.size() - first);
    parallel_for(jobs, count, [&](std::size_t i) { made[i] = make_case<Call>(cases[first + i]); });
    parallel_for(jobs, hunts.size(), [&](std::size_t i) {
      for (std::size_t c = 0; c < count && open(hunts[i]); ++c) {
        if (made[c].operands) hunts[i].run(cases[first + c], *made[c].operands, made[c].truth);
      }
    });
  }
}

template <class Call>
std::vector<MutantResult> hunt_all(int jobs) {
  std::vector<Hunt<Call>> hunts;
  for (Mutant<Call>& mutant : mutants_of<Call>()) {
    Hunt<Call> hunt;
    hunt.result.name = mutant.name;
    hunt.result.op = Call::kOp;
    hunt.result.family = mutant.family;
    hunt.mutant = std::move(mutant);
    hunts.push_back(std::move(hunt));
  }
  hunt_on<Call>(
      cases_of<Call>().grid(), hunts, [](const Hunt<Call>& hunt) { return hunt.open(); }, jobs);
  // Of what the grid has not noticed at all.
  hunt_on<Call>(
      always_of(Call::kOp), hunts, [](const Hunt<Call>& hunt) { return hunt.noticed == 0; }, jobs);
  std::vector<MutantResult> results;
  for (const Hunt<Call>& hunt : hunts) results.push_back(hunt.verdict());
  return results;
}

// The comparator's own mutants are planted in the output of a right kernel.
std::vector<MutantResult> hunt_inputs() {
  const CaseId id = CaseId::parse("softmax:F32:m=5:n=33:in=zero:seed=1");
  const auto operands = cases_of<SoftmaxCall>().make(id);
  ReferenceOps ops(operands->arithmetic, 1);
  const Truth truth = operands->truth(1);
  const std::vector<OutputPart> output = parts_of(ops, run_reference(ops, operands->call(ops)));
  std::vector<MutantResult> results;
  for (const InputMutant& mutant : input_mutants()) {
    Truth sabotaged = truth;
    std::vector<OutputPart> parts = output;
    mutant.plant(sabotaged, parts);
    const Comparison verdict = compare_parts(sabotaged, parts);
    MutantResult& r = results.emplace_back();
    r.name = mutant.name;
    r.op = kComparator;
    r.family = mutant.family;
    r.caught = verdict.status != CaseStatus::passed;
    r.by_case = id.text();
    r.by_check = verdict.check;
    r.detail = verdict.detail;
  }
  return results;
}

}  // namespace

std::vector<MutantResult> run_mutants(const std::string& op, int jobs) {
  const NameFilter filter(op, "");
  std::vector<MutantResult> results;
  const auto take = [&](std::string_view name, auto hunt) {
    if (!filter.accepts(name)) return;
    std::vector<MutantResult> more = hunt();
    results.insert(results.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  Registry().for_each_op([&]<class Call>(const std::vector<Kernel<Call>>&) {
    take(Call::kOp, [&] { return hunt_all<Call>(jobs); });
  });
  take(kComparator, hunt_inputs);
  if (results.empty()) throw Error::usage("no operation with mutants is called so");
  return results;
}

}  // namespace assay
