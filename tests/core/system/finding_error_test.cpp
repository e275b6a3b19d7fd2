#include "core/system/finding_error.h"

#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace assay {
namespace {

std::string thrown(const Findings& findings, const std::filesystem::path& source) {
  try {
    throw_first_error(findings, source);
  } catch (const Error& error) {
    return error.line();
  }
  return "nothing";
}

// As the user would type it: below the folder that was examined, beside the file that was.
TEST(FindingError, NamesThePathOfTheFile) {
  const test::TempDir dir;
  test::write_file(dir / "model.safetensors", "x");
  const std::string folder = dir.path().string();
  const Findings of_a_file = {{.severity = Severity::warning, .message = "odd", .file = "other"},
                              {.message = "is cut short", .file = "part-2.safetensors", .tensor = "w"}};
  const std::string line = folder + "/part-2.safetensors: tensor w: is cut short";
  EXPECT_EQ(thrown(of_a_file, folder), line);
  EXPECT_EQ(thrown(of_a_file, dir / "model.safetensors"), line);
  EXPECT_EQ(thrown(of_a_file, "model.safetensors"), "part-2.safetensors: tensor w: is cut short");
  EXPECT_EQ(thrown({{.message = "has no config.json"}}, folder), folder + ": has no config.json");
  EXPECT_EQ(thrown({{.severity = Severity::note, .message = "fine"}}, folder), "nothing");
}

}  // namespace
}  // namespace assay
