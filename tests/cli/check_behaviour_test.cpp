// The stage `behaviour` of `assay check`, on kernels that are wrong.
#include <gtest/gtest.h>

#include <cmath>

#include "cli/check/behaviour.h"
#include "refimpl/ops/reference.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

// The logits of a right computation, one of them changed.
class OneWrongLogit : public ReferenceOps {
 public:
  OneWrongLogit(const Arithmetic& arithmetic, int jobs, float wrong)
      : ReferenceOps(arithmetic, jobs), wrong_(wrong) {}
  using ReferenceOps::run;
  Matrix run(const LinearCall& call) override {
    Matrix y = ReferenceOps::run(call);
    if (y.columns() == kVocabulary) y.row<float>(y.rows() - 1)[3] += wrong_;
    return y;
  }

 private:
  static constexpr std::size_t kVocabulary = 448;  // data/tinylm
  float wrong_;
};

StageStatus behaviour_with(float wrong) {
  CheckSettings settings;
  settings.common.jobs = 1;
  settings.path = (test::source_dir() / "data/tinylm").string();
  settings.kernels = "wrong";
  settings.select = [wrong](const std::string& selection) {
    if (selection == "reference") return reference_kernels();
    return KernelSet{selection, false, [wrong](const Arithmetic& arithmetic, int jobs) {
                       return std::make_unique<OneWrongLogit>(arithmetic, jobs, wrong);
                     }};
  };
  return examine_behaviour(settings, std::nullopt).stage.status;
}

TEST(CheckBehaviour, OneWrongLogitFails) {
  EXPECT_EQ(behaviour_with(0), StageStatus::passed);
  EXPECT_EQ(behaviour_with(1e-3F), StageStatus::failed);
  EXPECT_EQ(behaviour_with(std::nanf("")), StageStatus::failed);
}

}  // namespace
}  // namespace assay
