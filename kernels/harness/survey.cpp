#include "kernels/harness/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "core/system/error.h"
#include "core/system/name_filter.h"
#include "core/system/text.h"
#include "core/system/threads.h"

namespace assay {
namespace {

struct Filter {
  explicit Filter(const SurveyRequest& request)
      : op(request.op, ""), kernel(request.kernel, ""), device(request.device) {}
  NameFilter op, kernel;
  std::optional<Device> device;
  bool accepts(const KernelLabel& label) const {
    return op.accepts(label.op) && kernel.accepts(label.name) && (!device || label.device == *device);
  }
};

struct Job {
  const OpExaminer* examiner;
  CaseId id;
};

void add_seeds(const OpExaminer& examiner, const CaseId& id, std::uint64_t seeds, std::vector<Job>& jobs) {
  for (std::uint64_t i = 0; i < seeds; ++i) {
    CaseId seeded = id;
    if (i != 0) seeded.with("seed", id.seed() + i);
    jobs.push_back({&examiner, std::move(seeded)});
  }
}

std::vector<Job> jobs_of(const std::vector<std::unique_ptr<OpExaminer>>& all, const SurveyRequest& request,
                         const Filter& filter) {
  std::vector<Job> jobs;
  for (const std::string& text : request.cases) {
    const CaseId id = CaseId::parse(text);
    const auto it = std::find_if(all.begin(), all.end(), [&](const auto& e) { return e->op() == id.op(); });
    if (it == all.end())
      throw Error::usage(fmt::format("there is no operation '{}'", escape_for_terminal(id.op())))
          .remedy("see 'assay compare kernels --list'");
    add_seeds(**it, id, request.seeds, jobs);
  }
  if (!request.cases.empty()) return jobs;
  for (const auto& examiner : all) {
    const std::vector<KernelLabel> kernels = examiner->kernels();
    const auto runs = [&](const KernelLabel& k) { return filter.accepts(k) && k.unavailable.empty(); };
    if (std::none_of(kernels.begin(), kernels.end(), runs)) continue;
    std::set<std::string> named;
    const auto add = [&](const CaseId& id) {
      if (named.insert(id.text()).second) add_seeds(*examiner, id, request.seeds, jobs);
    };
    const std::vector<CaseId> grid = examiner->grid();
    for (std::size_t i = 0; i < grid.size(); i += std::max<std::size_t>(1, request.every)) add(grid[i]);
    for (const CaseId& id : examiner->always()) add(id);
  }
  return jobs;
}

// One result for each kernel that can run nothing here, in place of one a case.
std::vector<CaseResult> skipped_kernels(const std::vector<std::unique_ptr<OpExaminer>>& all,
                                        const Filter& filter) {
  std::vector<CaseResult> skipped;
  for (const auto& examiner : all) {
    for (const KernelLabel& label : examiner->kernels()) {
      if (!filter.accepts(label) || label.unavailable.empty()) continue;
      CaseResult& r = skipped.emplace_back();
      r.id = label.op;
      r.kernel = label.name;
      r.device = label.device;
      r.check = kUnavailable;
      r.detail = label.unavailable;
    }
  }
  return skipped;
}

// All kernels on one case; what is thrown beside them is a failure of that case. A case that the user has
// named, and that cannot be, is the user's mistake.
std::vector<CaseResult> examined(const Job& job, const std::function<bool(const KernelLabel&)>& wanted,
                                 const SurveyRequest& request) {
  try {
    return job.examiner->examine(job.id, wanted, {.jobs = request.jobs});
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    if (ours != nullptr && ours->kind() == ErrorKind::usage && !request.cases.empty()) throw;
    CaseResult broken;
    broken.id = job.id.text();
    broken.kernel = "harness";
    broken.status = CaseStatus::failed;
    broken.check = kHarnessFault;
    broken.detail = fmt::format("the case could not be examined: {}", error.what());
    return {broken};
  }
}

}  // namespace

std::vector<KernelLabel> wanted_kernels(const Registry& registry, const SurveyRequest& request) {
  const Filter filter(request);
  std::vector<KernelLabel> wanted;
  for (const auto& examiner : examiners(registry)) {
    for (KernelLabel& label : examiner->kernels()) {
      if (filter.accepts(label)) wanted.push_back(std::move(label));
    }
  }
  return wanted;
}

std::vector<std::string> unimplemented(const Registry& registry, const SurveyRequest& request,
                                       Device device) {
  const NameFilter op(request.op, "");
  std::vector<std::string> missing;
  for (const auto& examiner : examiners(registry)) {
    const std::vector<KernelLabel> kernels = examiner->kernels();
    const bool has = std::any_of(kernels.begin(), kernels.end(), [&](const KernelLabel& k) {
      return k.device == device && k.name != "reference";
    });
    if (!has && op.accepts(examiner->op())) missing.emplace_back(examiner->op());
  }
  return missing;
}

std::vector<CaseResult> run_survey(const Registry& registry, const SurveyRequest& request,
                                   const std::function<void(std::size_t, std::size_t)>& done) {
  const Filter filter(request);
  const auto all = examiners(registry);
  const std::vector<Job> jobs = jobs_of(all, request, filter);
  std::vector<CaseResult> skipped;
  if (request.cases.empty()) skipped = skipped_kernels(all, filter);
  if (jobs.empty() && skipped.empty())
    throw Error::usage("no kernel is called so").remedy("see 'assay compare kernels --list'");
  std::vector<std::vector<CaseResult>> results(jobs.size());
  std::atomic<std::size_t> finished{0};
  parallel_for(request.jobs, jobs.size(), [&](std::size_t i) {
    if (interrupted()) return;
    const auto wanted = [&](const KernelLabel& label) {
      return filter.accepts(label) && (!request.cases.empty() || label.unavailable.empty());
    };
    results[i] = examined(jobs[i], wanted, request);
    if (done) done(++finished, jobs.size());
  });
  std::vector<CaseResult> flat;
  for (std::vector<CaseResult>& of_case : results)
    flat.insert(flat.end(), std::make_move_iterator(of_case.begin()), std::make_move_iterator(of_case.end()));
  flat.insert(flat.end(), std::make_move_iterator(skipped.begin()), std::make_move_iterator(skipped.end()));
  return flat;
}

}  // namespace assay
