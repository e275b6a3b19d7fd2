// Code in model folders: found in what Python and NumPy wrote (data/make_code_fixtures.py), and not in what
// merely looks like it.
#include "verify/code_files.h"

#include "tests/support/paths.h"
#include "tests/support/support.h"
#include "verify/pickle.h"

namespace assay {
namespace {

std::vector<std::string> codes(const Findings& findings) {
  std::vector<std::string> list;
  for (const Finding& finding : findings) list.push_back(finding.code);
  return list;
}

TEST(CodeFiles, PicklesOfEveryProtocolAndObjectArraysAreNamed) {
  std::size_t named = 0, plain = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(test::source_dir() / "data/fixtures/code")) {
    const std::string name = entry.path().filename().string();
    const std::vector<std::string> found = codes(find_code(name, entry.path(), false));
    const bool code = name.starts_with("code_");
    EXPECT_EQ(found, code ? std::vector<std::string>{"code.pickle"} : std::vector<std::string>{}) << name;
    ++(code ? named : plain);
  }
  EXPECT_GE(named, 12u);
  EXPECT_GE(plain, 6u);
}

TEST(Pickle, CutsAndChangesAreSound) {
  const std::string whole = test::read_file(test::source_dir() / "data/fixtures/code/code_pickle0.bin");
  const auto looks = [](const std::string& text, bool all) {
    return looks_like_pickle(std::as_bytes(std::span(text)), all);
  };
  EXPECT_TRUE(looks(whole, true));
  EXPECT_TRUE(looks(whole.substr(0, 40), false)) << "more of it follows";
  EXPECT_FALSE(looks(whole.substr(0, 40), true)) << "nothing follows";
  EXPECT_FALSE(looks("", true));
  EXPECT_FALSE(looks(".", true));
  EXPECT_FALSE(looks("R.", true)) << "calls what is not there";
  EXPECT_FALSE(looks("(.", true));
  EXPECT_TRUE(looks("cos\nsystem\n(S'id'\ntR.", true));
}

TEST(CodeFiles, EveryConfigMayAskForPython) {
  const test::TempDir dir;
  test::write_file(dir / "a.json", R"({"auto_map": {"AutoTokenizer": ["tok.Slow", null]}})");
  EXPECT_TRUE(read_remote_code("tokenizer_config.json", dir / "a.json").asked);
  EXPECT_TRUE(read_remote_code("tokenizer_config.json", dir / "a.json").findings.empty());
  test::write_file(dir / "b.json", R"({"custom_pipelines": {"x": {"impl": "pipe.X", "pt": ["AutoModel"]}}})");
  EXPECT_TRUE(read_remote_code("config.json", dir / "b.json").asked);
  test::write_file(dir / "c.json",
                   R"({"auto_map": {"AutoModel": "org/code--m.M", "AutoConfig": "org/code--c.C"}})");
  const RemoteCode elsewhere = read_remote_code("config.json", dir / "c.json");
  EXPECT_TRUE(elsewhere.asked);
  EXPECT_EQ(codes(elsewhere.findings), std::vector<std::string>{"code.remote_repository"});
  EXPECT_NE(elsewhere.findings[0].message.find("org/code"), std::string::npos);
  test::write_file(dir / "d.json", R"({"model_type": "llama"})");
  EXPECT_FALSE(read_remote_code("config.json", dir / "d.json").asked);
}

TEST(CodeFiles, AutoMapOfATokenizerIsSeenByVerify) {
  const test::TempDir dir;
  test::write_file(dir / "config.json", "{}");
  test::write_file(dir / "tokenizer_config.json", R"({"auto_map": {"AutoTokenizer": ["tok.Slow", null]}})");
  test::write_file(dir / "tok.py", "print('hi')");
  EXPECT_NE(test::assay({"verify", dir.path().string()}).out.find("tok.py: is Python"), std::string::npos);
  EXPECT_NE(test::assay({"verify", dir.path().string(), "--include", "py$"}).out.find("tok.py: is Python"),
            std::string::npos);
}

}  // namespace
}  // namespace assay
