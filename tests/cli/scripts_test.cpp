// The shell scripts a fresh clone is driven with: present, executable, valid bash, and able to explain
// themselves.
#include <algorithm>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

const fs::path kRoot = test::source_dir();

class Scripts : public testing::TestWithParam<const char*> {};

TEST_P(Scripts, AreExecutableBash) {
  const fs::path script = kRoot / GetParam();
  ASSERT_TRUE(fs::exists(script));
  EXPECT_NE(fs::status(script).permissions() & fs::perms::owner_exec, fs::perms::none);
  EXPECT_TRUE(read_file(script).starts_with("#!/usr/bin/env bash\n"));
  const ProcessResult syntax = run({"bash", "-n", script.string()});
  EXPECT_EQ(syntax.exit_code, 0) << syntax.err;
}

INSTANTIATE_TEST_SUITE_P(, Scripts,
                         testing::Values("scripts/setup", "scripts/test", "scripts/bench", "scripts/demo",
                                         "scripts/skips", ".ci/run"));

class ScriptOptions : public testing::TestWithParam<const char*> {};

TEST_P(ScriptOptions, HelpWorksFromAnyDirectoryAndUnknownOptionsAreRefused) {
  const std::string script = (kRoot / GetParam()).string();
  const ProcessOptions elsewhere{.directory = "/"};
  const ProcessResult help = run({script, "--help"}, elsewhere);
  EXPECT_EQ(help.exit_code, 0) << help.err;
  EXPECT_NE(help.out.find(GetParam()), std::string::npos) << help.out;
  EXPECT_EQ(run({script, "--no-such-option"}, elsewhere).exit_code, 2);
}

INSTANTIATE_TEST_SUITE_P(, ScriptOptions,
                         testing::Values("scripts/setup", "scripts/test", "scripts/bench", "scripts/skips"));

TEST(Mutate, ListsWhatCouldBeChanged) {
  ASSAY_PROGRAM_OR_SKIP("python3");
  const std::string script = (kRoot / "scripts/mutate").string();
  const ProcessOptions elsewhere{.directory = "/"};
  const ProcessResult list = run({script, "--list", "refimpl/ops/norm.cpp"}, elsewhere);
  EXPECT_EQ(list.exit_code, 0) << list.err;
  for (const char* change : {"+ -> -: 1 + w", "* -> /: x * factor * w", "< -> <=: i < w.size()",
                             "dropped: check_groups(x, w.size())", "negated: b.empty()"})
    EXPECT_NE(list.out.find(change), std::string::npos) << change;
  EXPECT_EQ(list.out.find("throw Error::internal"), std::string::npos);
  const ProcessResult some =
      run({script, "--list", "--sample", "7", "--seed", "3", "refimpl/ops"}, elsewhere);
  EXPECT_EQ(std::count(some.out.begin(), some.out.end(), '\n'), 7) << some.err;
  EXPECT_EQ(run({script, "--list", "--sample", "7", "--seed", "3", "refimpl/ops"}, elsewhere).out, some.out);
  EXPECT_EQ(run({script, "--list", "nowhere"}, elsewhere).exit_code, 2);
  EXPECT_EQ(run({script, "--no-such-option"}, elsewhere).exit_code, 2);
}

}  // namespace
}  // namespace assay::test
