// Figures of suites: which moves are deviations, and that baselines keep them.
#include "core/system/json.h"
#include "kernels/gate/figures.h"

#include <gtest/gtest.h>

#include "kernels/gate/baseline.h"
#include "tests/support/support.h"

namespace assay {
namespace {

constexpr const char* kToday = "2026-06-15";

GateFigure ratio(double value, bool holds = true) {
  return {
      .name = "llama: ratio", .value = value, .word = {}, .holds = holds, .detail = "first divergence at q"};
}
GateFigure noise(double decibels) {
  return {.name = "int8: SQNR", .drift = Drift::decibels, .value = decibels, .word = {}};
}
GateFigure word(const std::string& text) {
  return {.name = "reblock: proof", .drift = Drift::exact, .word = text};
}

const FigureRecords kBefore =
    records_of({{"models", {ratio(0.5)}}, {"conversions", {noise(43.9), word("abc")}}});

std::vector<std::string> kinds(const SuiteResults& now, const std::vector<KnownFailure>& ledger = {}) {
  std::vector<std::string> kinds;
  for (const Deviation& d : figure_deviations(kBefore, now, ledger, kToday))
    kinds.push_back((d.tolerated ? "known " : "") + d.kind);
  return kinds;
}
using Kinds = std::vector<std::string>;

TEST(GateFigures, NothingMovedIsNothingSaid) {
  EXPECT_EQ(kinds({{"models", {ratio(0.5)}}, {"conversions", {noise(43.9), word("abc")}}}), Kinds{});
}

TEST(GateFigures, RatiosDriftAsThoseOfKernelsDo) {
  EXPECT_EQ(kinds({{"models", {ratio(0.99)}}}), Kinds{});
  EXPECT_EQ(kinds({{"models", {ratio(1.01)}}}), Kinds{"worse"});
  EXPECT_EQ(kinds({{"models", {ratio(0.26)}}}), Kinds{});
  EXPECT_EQ(kinds({{"models", {ratio(0.24)}}}), Kinds{"better"});
  EXPECT_EQ(kinds({{"models", {ratio(std::nan(""))}}}), Kinds{"worse"});
}

TEST(GateFigures, OneRunMovesTwiceAsFarAsTheLargestOfMany) {
  const auto claim = [](double value) {
    return GateFigure{.name = "llama: ratio", .drift = Drift::one_case, .value = value, .word = {}};
  };
  EXPECT_EQ(kinds({{"models", {claim(1.99)}}}), Kinds{});
  EXPECT_EQ(kinds({{"models", {claim(2.01)}}}), Kinds{"worse"});
  EXPECT_EQ(kinds({{"models", {claim(0.13)}}}), Kinds{});
  EXPECT_EQ(kinds({{"models", {claim(0.12)}}}), Kinds{"better"});
}

TEST(GateFigures, ConversionsAreTheSameToTheBit) {
  EXPECT_EQ(kinds({{"conversions", {noise(43.88), word("abc")}}}), Kinds{"worse"});
  EXPECT_EQ(kinds({{"conversions", {noise(43.92), word("abc")}}}), Kinds{"better"});
  EXPECT_EQ(kinds({{"conversions", {noise(43.9), word("abd")}}}), Kinds{"changed"});
}

TEST(GateFigures, WhatIsMeasuredNoMoreHasVanished) {
  EXPECT_EQ(kinds({{"conversions", {noise(43.9)}}}), Kinds{"vanished"});
  EXPECT_EQ(kinds({{"models", {}}}), Kinds{"vanished"});
}

TEST(GateFigures, WhatDoesNotHoldFailsWhateverWasRemembered) {
  EXPECT_EQ(kinds({{"models", {ratio(0.5, false)}}}), Kinds{"failed"});
  EXPECT_EQ(kinds({{"models", {ratio(5, false)}}}), Kinds{"failed"});  // and not "worse" besides
  const std::vector<KnownFailure> known = {{"models", "llama: ratio", "issue 12", "2026-12-31"}};
  const std::vector<KnownFailure> past = {{"models", "llama: ratio", "issue 12", "2026-06-14"}};
  EXPECT_EQ(kinds({{"models", {ratio(0.5, false)}}}, known), Kinds{"known failed"});
  const std::vector<KnownFailure> last_day = {{"models", "llama: ratio", "issue 12", kToday}};
  EXPECT_EQ(kinds({{"models", {ratio(0.5, false)}}}, last_day), Kinds{"known failed"});
  EXPECT_EQ(kinds({{"models", {ratio(0.5, false)}}}, past), Kinds{"expired"});
  EXPECT_EQ(kinds({{"models", {ratio(0.5)}}}, known), Kinds{"unexpected_pass"});
  const std::vector<KnownFailure> other = {{"models", "gemma: ratio", "issue 12", "2026-12-31"}};
  EXPECT_EQ(kinds({{"models", {ratio(0.5)}}}, other), Kinds{"vanished"});
}

TEST(GateFigures, FourDecimalsAreKept) {
  EXPECT_EQ(records_of({{"models", {ratio(0.12346789)}}}).at("models").at("llama: ratio"), Json(0.1235));
}

TEST(GateFigures, ABaselineKeepsThem) {
  Baseline baseline;
  baseline.figures = kBefore;
  const test::TempDir dir;
  test::write_file(dir / "b.json", dump_json(to_json(baseline)));
  EXPECT_EQ(read_baseline(dir / "b.json").figures, kBefore);
}

}  // namespace
}  // namespace assay
