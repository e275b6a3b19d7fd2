// A folder that ModelScope's client downloaded, as its own code wrote it, and a saved listing of the same model
// (data/make_store_fixtures.py).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/support.h"
#include "verify/expected/plain_pickle.h"

namespace assay::test {
namespace {

class ModelScope : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::copy(fixtures() / "modelscope" / "org" / "small", folder(), fs::copy_options::recursive);
  }
  static fs::path fixtures() { return source_dir() / "data" / "fixtures" / "stores"; }
  fs::path folder() const { return dir_ / "small"; }
  ProcessResult verify(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"verify", folder(), "--no-git"};
    words.insert(words.end(), more.begin(), more.end());
    return assay(words);
  }
  static bool says(const ProcessResult& result, std::string_view words) {
    return (result.out + result.err).find(words) != std::string::npos;
  }
  TempDir dir_;
};

TEST_F(ModelScope, DownloadsSayWhatIsMissingAndNothingOfBytes) {
  const auto whole = verify();
  EXPECT_EQ(whole.exit_code, 0) << whole.out << whole.err;
  EXPECT_TRUE(says(whole, "ModelScope download: org/small, Revision:master") &&
              says(whole, "keeps no digests") && says(whole, "models/org/small/repo/files") &&
              says(whole, "WELL FORMED"))
      << whole.out;
  EXPECT_EQ(verify({"--require-digests"}).exit_code, 1);
  fs::remove(folder() / "docs" / "README.md");
  const auto missing = verify();
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_TRUE(says(missing, "docs/README.md: MISSING")) << missing.out;
}

TEST_F(ModelScope, ListingsVouchForEveryFile) {
  const std::string listing = (fixtures() / "modelscope.json").string();
  EXPECT_EQ(verify({"--manifest", listing, "--require-digests"}).exit_code, 0);
  write_file(folder() / "config.json", std::string(fs::file_size(folder() / "config.json"), ' '));
  EXPECT_EQ(verify({"--manifest", listing}).exit_code, 1);
}

TEST_F(ModelScope, ListsThatWouldRunCodeAreRefused) {
  write_file(folder() / ".msc", "cos\nsystem\n(S'true'\ntR.");
  const auto result = verify();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(says(result, "nothing in it is run")) << result.err;
  write_file(folder() / ".msc", std::string("\x80\x04]\x94}\x94(\x8c\x04Path\x94\x8c\x05../up\x94us.", 26));
  EXPECT_NE(verify().exit_code, 0);
}

TEST(PlainPickle, ReadsWhatPythonWrites) {
  const std::string listed =
      read_file(source_dir() / "data" / "fixtures" / "stores" / "modelscope" / "org" / "small" / ".msc");
  const auto value = read_plain_pickle(listed);
  ASSERT_TRUE(value);
  EXPECT_EQ((*value)[0]["Path"], "config.json");
  EXPECT_EQ((*value)[2]["Revision"], std::string("f01df01df01df01df01df01df01df01df01df01d"));
  for (std::size_t n = 0; n < listed.size(); ++n)
    EXPECT_FALSE(read_plain_pickle(std::string_view(listed).substr(0, n))) << n;
  EXPECT_FALSE(read_plain_pickle(listed + "."));
}

}  // namespace
}  // namespace assay::test
