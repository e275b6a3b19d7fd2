// The checked-in baseline is one for every machine: under narrower vectors no ratio leaves the room that the
// gate allows. Wider ones than this processor has cannot be tried here; halving the width tells what doubling
// does.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "cli/gate/suites.h"
#include "core/numeric/simd_targets.h"
#include "core/system/threads.h"
#include "kernels/gate/baseline.h"
#include "kernels/registry/registry.h"
#include "kernels/selection/select.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

class GateWidths : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_simd_target(GetParam()); }
  void TearDown() override { use_simd_target(""); }
};
INSTANTIATE_TEST_SUITE_P(EveryTarget, GateWidths, testing::ValuesIn(simd_targets()),
                         [](const auto& info) { return info.param; });

TEST_P(GateWidths, RatiosStayInTheRoomTheyHave) {
  const Baseline baseline = read_baseline(test::source_dir() / "data/baselines/cpu.json");
  SurveyRequest request = {
      .op = "", .kernel = "^cpu\\.", .device = Device::cpu, .cases = {}, .jobs = available_cores()};
  // Of each of our kernels every eighth case, the first of which are empty, and that of its largest ratio.
  Baseline sampled;
  for (const auto& [key, record] : baseline.kernels) {
    if (key.find(" cpu.") == std::string::npos) continue;
    std::size_t number = 0;
    for (const auto& [id, ratio] : record.ratios) {
      if (number++ % 8 != 0 && ratio != record.largest()) continue;
      sampled.kernels[key].ratios[id] = ratio;
      if (std::find(request.cases.begin(), request.cases.end(), id) == request.cases.end())
        request.cases.push_back(id);
    }
  }
  ASSERT_GT(request.cases.size(), 20u);
  std::vector<CaseResult> results = run_survey(builtin_kernels(), request);
  std::erase_if(results, [&](const CaseResult& r) {  // other kernels on the same case
    const auto it = sampled.kernels.find(kernel_key(r));
    return it == sampled.kernels.end() || !it->second.ratios.contains(r.id);
  });
  for (const Deviation& d : deviations(sampled, results, {}, {}, "2026-01-01"))
    ADD_FAILURE() << d.kind << " " << d.kernel << " " << d.id << ": " << d.message;
}

TEST_P(GateWidths, SoDoModelsAndClaims) {
  const std::filesystem::path data = test::source_dir() / "data";
  const Baseline baseline = read_baseline(data / "baselines/cpu.json");
  const SuiteResults now = {{"models", gate_models(data, available_cores())},
                            {"claims", gate_claims(data, available_cores())}};
  ASSERT_TRUE(baseline.figures.contains("models"));
  for (const Deviation& d : figure_deviations(baseline.figures, now, {}, "2026-01-01"))
    ADD_FAILURE() << d.kind << " " << d.kernel << " " << d.id << ": " << d.message;
}

}  // namespace
}  // namespace assay
