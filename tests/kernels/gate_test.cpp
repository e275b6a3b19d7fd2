// What the gate notices: each kind of deviation from a small baseline, and nothing where nothing changed.
#include <gtest/gtest.h>

#include "core/system/error.h"
#include "kernels/gate_baseline.h"
#include "tests/support/support.h"

namespace assay {
namespace {

CaseResult passed(const std::string& kernel, const std::string& id, double ratio) {
  CaseResult r;
  r.id = id;
  r.kernel = kernel;
  r.status = CaseStatus::passed;
  r.measured.ratio = ratio;
  r.properties.repeatable = r.properties.batch_invariant = Kept::yes;
  return r;
}

std::vector<CaseResult> results() {
  return {passed("cpu.rows", "linear:F32:m=1", 0.2), passed("cpu.rows", "linear:F32:m=2", 0.1),
          passed("cpu.simd", "rope:F32:m=1", 0.4)};
}
std::vector<MutantResult> mutants() {
  MutantResult m;
  m.name = "one NaN";
  m.op = "linear";
  m.caught = true;
  return {m};
}

constexpr const char* kToday = "2026-06-15";

std::vector<std::string> kinds(const std::vector<CaseResult>& now,
                               const std::vector<MutantResult>& planted = mutants(),
                               const std::vector<KnownFailure>& ledger = {}) {
  std::vector<std::string> kinds;
  for (const Deviation& d : deviations(baseline_of(results(), mutants()), now, planted, ledger, kToday))
    kinds.push_back((d.tolerated ? "known " : "") + d.kind);
  return kinds;
}
using Kinds = std::vector<std::string>;

TEST(Gate, FindsNothingWhereNothingChanged) {
  EXPECT_EQ(kinds(results()), Kinds{});
}

TEST(Gate, ANewKernelIsNoDeviation) {
  auto now = results();
  now.push_back(passed("cpu.fast", "linear:F32:m=1", 0.3));
  EXPECT_EQ(kinds(now), Kinds{});
}

TEST(Gate, NoticesDriftBothWays) {
  auto now = results();
  now[0].measured.ratio = 0.41;
  EXPECT_EQ(kinds(now), Kinds{"worse"});
  now[0].measured.ratio = 0.09;
  now[1].measured.ratio = 0.09;
  EXPECT_EQ(kinds(now), Kinds{"better"});
}

TEST(Gate, NoticesACaseThatDriftsBelowTheLargest) {
  auto now = results();
  now[1].measured.ratio = 0.41;
  now[0].measured.ratio = 0.41;
  EXPECT_EQ(kinds(now), (Kinds{"worse", "worse"}));  // the kernel, and the second case
}

TEST(Gate, NoticesALostProperty) {
  auto now = results();
  now[1].properties.batch_invariant = Kept::no;
  EXPECT_EQ(kinds(now), Kinds{"property"});
  for (CaseResult& r : now) r.properties.batch_invariant = Kept::untested;  // not measured is not kept
  EXPECT_EQ(kinds(now), (Kinds{"property", "property"}));
}

TEST(Gate, NoticesWhatVanished) {
  auto now = results();
  now.pop_back();
  EXPECT_EQ(kinds(now), Kinds{"vanished"});
  now = results();
  now.erase(now.begin());
  EXPECT_EQ(kinds(now), Kinds{"vanished"});
  EXPECT_EQ(kinds(results(), {}), Kinds{"vanished"});
}

TEST(Gate, NoticesAMissedMutant) {
  auto planted = mutants();
  planted[0].caught = false;
  EXPECT_EQ(kinds(results(), planted), Kinds{"missed_mutant"});
}

TEST(Gate, HoldsTheLedgerToItsDayAndItsWord) {
  auto now = results();
  now[0].status = CaseStatus::failed;
  EXPECT_EQ(kinds(now), Kinds{"failed"});  // and not "better", the largest being gone
  now = results();
  now[1].status = CaseStatus::mistrusted;
  EXPECT_EQ(kinds(now), Kinds{"failed"});
  const KnownFailure known = {"cpu.rows", "linear:F32:m=2", "an issue", "2026-06-15"};
  EXPECT_EQ(kinds(now, mutants(), {known}), Kinds{"known failed"});
  EXPECT_EQ(kinds(now, mutants(), {{known.kernel, known.id, known.reason, "2026-06-14"}}), Kinds{"expired"});
  EXPECT_EQ(kinds(results(), mutants(), {known}), Kinds{"unexpected_pass"});
  EXPECT_EQ(kinds(results(), mutants(), {{"cpu.rows", "linear:F32:m=9", "an issue", "2026-12-31"}}),
            Kinds{"vanished"});
}

TEST(Gate, ABaselineReadsBackAsItWasWritten) {
  const test::TempDir folder;
  const Baseline written = baseline_of(results(), mutants());
  test::write_file(folder / "b.json", dump_json(to_json(written)));
  const Baseline read = read_baseline(folder / "b.json");
  EXPECT_EQ(to_json(read), to_json(written));
  EXPECT_EQ(read.kernels.at("linear cpu.rows").ratios.at("linear:F32:m=1"), 0.2);
}

TEST(Gate, RefusesFilesThatAreNone) {
  const test::TempDir folder;
  for (
      const char* text :
      {"[]", "{}", R"({"schema": "assay.verify/1"})",
       R"({"schema": "assay.baseline/1", "kernels": {"a": {"ratios": {"b": "c"}, "properties": {}}}, "mutants": []})"}) {
    test::write_file(folder / "b.json", text);
    EXPECT_THROW(read_baseline(folder / "b.json"), Error) << text;
  }
  for (const char* text :
       {"{}", R"({"known_failures": [{}]})",
        R"({"known_failures": [{"kernel": "k", "case": "c", "reason": "", "expires": "2026-12-31"}]})",
        R"({"known_failures": [{"kernel": "k", "case": "c", "reason": "r", "expires": "never"}]})"}) {
    test::write_file(folder / "l.json", text);
    EXPECT_THROW(read_ledger(folder / "l.json"), Error) << text;
  }
}

TEST(Gate, MarkupAndAnnotationsEscapeWhatTheyCarry) {
  const Deviation d = {"failed", "linear cpu.rows", "linear:F32:m=1", "a < b & \"c\"\n100%", false};
  const std::string xml = to_junit(results(), {}, {d});
  EXPECT_NE(xml.find("tests=\"3\" failures=\"1\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("a &lt; b &amp; &quot;c&quot;"), std::string::npos) << xml;
  EXPECT_EQ(to_annotation(d),
            "::error title=assay gate: failed::linear cpu.rows linear:F32:m=1: a < b & \"c\"%0A100%25");
  EXPECT_EQ(to_html({}, baseline_of(results(), mutants()), {d}, "no").find("a < b"), std::string::npos);
}

}  // namespace
}  // namespace assay
