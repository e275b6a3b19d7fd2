// What the gate notices: each kind of deviation from a small baseline, and nothing where nothing changed.
#include <gtest/gtest.h>

#include "core/system/error.h"
#include "core/system/json.h"
#include "kernels/gate/baseline.h"
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
  return {passed("cpu.gemv", "linear:F32:m=1", 0.2), passed("cpu.gemv", "linear:F32:m=2", 0.1),
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

TEST(Gate, ANewKernelIsToldApartFromDeviations) {
  auto now = results();
  now.push_back(passed("cpu.fast", "linear:F32:m=1", 0.3));
  EXPECT_EQ(kinds(now), Kinds{});
}

// What is measured and not remembered: "where: message", "(tolerated)" where it is.
std::vector<std::string> unknown(const Baseline& before, const Baseline& now) {
  std::vector<std::string> said;
  for (const Deviation& d : unrecorded(before, now)) {
    EXPECT_EQ(d.kind, "unrecorded");
    said.push_back(d.kernel + ": " + d.message.substr(0, d.message.find(" not in the baseline")) +
                   (d.tolerated ? " (tolerated)" : ""));
  }
  return said;
}

TEST(Gate, TellsWhatTheBaselineDoesNotKnow) {
  const Baseline before = baseline_of(results(), mutants());
  EXPECT_EQ(unknown(before, before), Kinds{});

  auto more = results();
  more.push_back(passed("cpu.fast", "linear:F32:m=1", 0.3));
  EXPECT_EQ(unknown(before, baseline_of(more, mutants())), Kinds{"linear cpu.fast: the kernel is"});
  more = results();
  more.push_back(passed("cpu.gemv", "linear:F32:m=3", 0.3));
  EXPECT_EQ(unknown(before, baseline_of(more, mutants())), Kinds{"linear cpu.gemv: 1 case is"});

  auto planted = mutants();
  planted.push_back(planted.front());
  planted.back().name = "two NaNs";
  EXPECT_EQ(unknown(before, baseline_of(results(), planted)), Kinds{"mutants: 1 planted fault is"});

  Baseline now = before;
  now.figures["models"] = {{"a", Json(1.0)}, {"b", Json("none")}};
  EXPECT_EQ(unknown(before, now), Kinds{"models: 2 figures are"});
}

TEST(Gate, AnEmptyBaselineKnowsNothingOfAnything) {
  EXPECT_TRUE(Baseline{}.empty());
  EXPECT_FALSE(baseline_of(results(), {}).empty());
  EXPECT_FALSE(baseline_of({}, mutants()).empty());
  EXPECT_EQ(unknown({}, baseline_of(results(), mutants())),
            (Kinds{"linear cpu.gemv: the kernel is", "rope cpu.simd: the kernel is",
                   "mutants: 1 planted fault is"}));
}

// A baseline made without a GPU says nothing of its kernels: that is told, and no deviation. One that knows
// some of them knows of them all.
TEST(Gate, KernelsOfAGpuAreTheBusinessOfABaselineMadeWithOne) {
  auto now = results();
  now.push_back(passed("cuda.gemv", "linear:F32:m=1", 0.3));
  now.push_back(passed("cuda.mma", "linear:F32:m=1", 0.3));
  EXPECT_EQ(
      unknown(baseline_of(results(), {}), baseline_of(now, {})),
      (Kinds{"linear cuda.gemv: the kernel is (tolerated)", "linear cuda.mma: the kernel is (tolerated)"}));
  auto before = now;
  before.pop_back();
  EXPECT_EQ(unknown(baseline_of(before, {}), baseline_of(now, {})), Kinds{"linear cuda.mma: the kernel is"});
}

TEST(Gate, NoticesADeclaredRoundoffThatGrows) {
  auto now = results();
  for (CaseResult& r : now) r.roundoffs.accumulator = 0x1p-12;
  EXPECT_EQ(kinds(now), (Kinds{"changed", "changed"}));  // of each kernel
  now = results();
  now[2].roundoffs.operands = 0x1p-9;
  EXPECT_EQ(kinds(now), Kinds{"changed"});
  now = results();
  now[2].roundoffs.promoted = 128;
  EXPECT_EQ(kinds(now), Kinds{"changed"});
}

TEST(Gate, ACaseThatCannotBeExaminedIsAnErrorAndNoKernel) {
  auto now = results();
  CaseResult broken = passed("harness", "linear:F32:m=9", 0);
  broken.status = CaseStatus::failed;
  broken.check = kHarnessFault;
  now.push_back(broken);
  EXPECT_EQ(kinds(now), Kinds{"error"});
  EXPECT_FALSE(baseline_of(now, {}).kernels.contains("linear harness"));
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
  const KnownFailure known = {"cpu.gemv", "linear:F32:m=2", "an issue", "2026-06-15"};
  EXPECT_EQ(kinds(now, mutants(), {known}), Kinds{"known failed"});
  EXPECT_EQ(kinds(now, mutants(), {{"linear cpu.gemv", known.id, known.reason, known.expires}}),
            Kinds{"known failed"});  // as the report writes the kernel
  EXPECT_EQ(kinds(now, mutants(), {{known.kernel, known.id, known.reason, "2026-06-14"}}), Kinds{"expired"});
  EXPECT_EQ(kinds(results(), mutants(), {known}), Kinds{"unexpected_pass"});
  EXPECT_EQ(kinds(results(), mutants(), {{"cpu.gemv", "linear:F32:m=9", "an issue", "2026-12-31"}}),
            Kinds{"vanished"});
}

TEST(Gate, ABaselineReadsBackAsItWasWritten) {
  const test::TempDir folder;
  const Baseline written = baseline_of(results(), mutants());
  test::write_file(folder / "b.json", dump_json(to_json(written)));
  const Baseline read = read_baseline(folder / "b.json");
  EXPECT_EQ(to_json(read), to_json(written));
  EXPECT_EQ(read.kernels.at("linear cpu.gemv").ratios.at("linear:F32:m=1"), 0.2);
}

TEST(Gate, RefusesFilesThatAreNone) {
  const test::TempDir folder;
  for (
      const char* text :
      {"[]", "{}", R"({"schema": "assay.verify/1"})",
       R"({"schema": "assay.baseline/1", "kernels": {"a": {"ratios": {"b": "c"}, "properties": {}}}, "mutants": []})",
       R"({"schema": "assay.baseline/1", "kernels": {"a": {"ratios": {"b": -0.5}, "properties": {}}}, "mutants": []})",
       R"({"schema": "assay.baseline/1", "kernels": {"a": {"ratios": {"b": 1.5}, "properties": {}}}, "mutants": []})",
       R"({"schema": "assay.baseline/1", "kernels": {"a": {"ratios": {}, "properties": {"isolated": "perhaps"}}}, "mutants": []})",
       R"({"schema": "assay.baseline/1", "kernels": {"a": {"ratios": {}, "properties": {}, "accumulator_roundoff": 2}}, "mutants": []})"}) {
    test::write_file(folder / "b.json", text);
    EXPECT_THROW(read_baseline(folder / "b.json"), Error) << text;
  }
}

// What reading a ledger of this text says; nothing where it is taken.
std::string refusal_of(const std::string& text, std::vector<KnownFailure>* ledger = nullptr) {
  const test::TempDir folder;
  test::write_file(folder / "l.json", text);
  try {
    const std::vector<KnownFailure> read = read_ledger(folder / "l.json");
    if (ledger != nullptr) *ledger = read;
    return "";
  } catch (const Error& error) {
    return error.message();
  }
}

TEST(Gate, ReadsALedger) {
  std::vector<KnownFailure> ledger;
  ASSERT_EQ(refusal_of(R"({"known_failures": [
    {"kernel": "cpu.gemv", "case": "linear:F32:m=2", "reason": "issue 12", "expires": "2026-12-31"},
    {"kernel": "models", "case": "llama: cpu", "reason": "issue 13", "expires": "2027-01-01", "by": "me"}]})",
                       &ledger),
            "");
  ASSERT_EQ(ledger.size(), 2u);
  EXPECT_EQ(ledger[0].kernel, "cpu.gemv");
  EXPECT_EQ(ledger[0].id, "linear:F32:m=2");
  EXPECT_EQ(ledger[0].reason, "issue 12");
  EXPECT_EQ(ledger[0].expires, "2026-12-31");
  EXPECT_EQ(ledger[1].kernel, "models");
}

TEST(Gate, SaysWhatALedgerLacks) {
  const auto entry = [](const std::string& text) { return R"({"known_failures": [)" + text + "]}"; };
  EXPECT_EQ(refusal_of("{}"), "'known_failures' is missing or of another type");
  EXPECT_EQ(refusal_of(entry("{}")), "'kernel' is missing or of another type");
  EXPECT_EQ(refusal_of(entry("\"linear\"")), "'kernel' is missing or of another type");
  EXPECT_EQ(refusal_of(entry(R"({"kernel": "k", "reason": "r", "expires": "2026-12-31"})")),
            "'case' is missing or of another type");
  EXPECT_EQ(refusal_of(entry(R"({"kernel": "k", "case": "c", "reason": "r", "expires": 2026})")),
            "'expires' is missing or of another type");
  const std::string why = "a known failure needs a reason and a day on which it expires (2026-12-31)";
  EXPECT_EQ(refusal_of(entry(R"({"kernel": "k", "case": "c", "reason": "", "expires": "2026-12-31"})")), why);
  for (const char* day : {"never", "2026-13-01", "2026-1-1", "2026-12-32", "2026-12-31 "}) {
    EXPECT_EQ(refusal_of(entry(R"({"kernel": "k", "case": "c", "reason": "r", "expires": ")" +
                               std::string(day) + "\"}")),
              why)
        << day;
  }
}

TEST(Gate, MarkupAndAnnotationsEscapeWhatTheyCarry) {
  const Deviation d = {"failed", "linear cpu.gemv", "linear:F32:m=1", "a < b & \"c\"\n100%", false};
  const std::string xml = to_junit(results(), {}, {d});
  EXPECT_NE(xml.find("tests=\"3\" failures=\"1\" errors=\"0\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("a &lt; b &amp; &quot;c&quot;"), std::string::npos) << xml;
  EXPECT_EQ(to_annotation(d),
            "::error title=assay gate: failed::linear cpu.gemv linear:F32:m=1: a < b & \"c\"%0A100%25");
  EXPECT_EQ(to_html({}, baseline_of(results(), mutants()), {d}, "no").find("a < b"), std::string::npos);
}

TEST(Gate, JunitTellsErrorsFromFailures) {
  const Deviation failure = {"failed", "linear cpu.gemv", "linear:F32:m=1", "no", false};
  const Deviation error = {"error", "models", "", "could not be run: no such file", false};
  const Deviation known = {"failed", "linear cpu.gemv", "linear:F32:m=2", "known", true};
  const std::string xml = to_junit(results(), {}, {failure, error, known});
  EXPECT_NE(xml.find("tests=\"4\" failures=\"1\" errors=\"1\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("<error type=\"error\" message=\"could not be run"), std::string::npos) << xml;
}

}  // namespace
}  // namespace assay
