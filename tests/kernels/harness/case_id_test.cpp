#include "kernels/harness/case_id.h"

#include <gtest/gtest.h>

#include <set>

#include "core/system/error.h"
#include "kernels/harness/examine.h"
#include "kernels/selection/select.h"

namespace assay {
namespace {

TEST(CaseName, SaysWhatWasSaid) {
  const CaseId id = CaseId::parse("linear:BF16:m=17:k=4096:n=576:in=heavy:seed=3");
  EXPECT_EQ(id.op(), "linear");
  EXPECT_EQ(id.form(), "BF16");
  EXPECT_EQ(id.number("k"), 4096u);
  EXPECT_EQ(id.input(), InputKind::heavy_tailed);
  EXPECT_EQ(id.seed(), 3u);
  EXPECT_EQ(id.text(), "linear:BF16:m=17:k=4096:n=576:in=heavy:seed=3");
}

TEST(CaseName, RefusesWhatIsNone) {
  for (const char* text : {"", "linear", ":F32", "linear:F32:m", "linear:F32:=3"})
    EXPECT_THROW(CaseId::parse(text), Error) << text;
  EXPECT_THROW(CaseId::parse("linear:F32:m=x").number("m"), Error);
  EXPECT_THROW(CaseId::parse("linear:F32:m=99999999").number("m"), Error);
  EXPECT_THROW(CaseId::parse("linear:F32:in=spicy").input(), Error);
}

TEST(Grids, HaveEachCaseOnceAndItsNameReadsBack) {
  std::set<std::string> seen;
  std::size_t cases = 0;
  for (const auto& examiner : examiners(builtin_kernels())) {
    EXPECT_FALSE(examiner->grid().empty()) << examiner->op();
    for (const CaseId& id : examiner->grid()) {
      ++cases;
      EXPECT_EQ(id.op(), examiner->op());
      EXPECT_EQ(CaseId::parse(id.text()).text(), id.text());
      EXPECT_TRUE(seen.insert(id.text()).second) << id.text();
    }
  }
  EXPECT_GT(cases, 1000u);
}

}  // namespace
}  // namespace assay
