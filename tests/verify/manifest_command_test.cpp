#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/system/file.h"
#include "tests/support/git.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::GitRepository;

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

// `git lfs ls-files -l` prints "OID MARK NAME"; the people's awk makes "OID  NAME" of it.
std::vector<std::string> lines_of_git_lfs(const GitRepository& repository) {
  std::string text = repository.git({"lfs", "ls-files", "-l"});
  std::vector<std::string> lines;
  for (const std::string& line : sorted_lines(text))
    lines.push_back(line.substr(0, 64) + "  " + line.substr(67));
  return lines;
}

TEST(Manifest, EqualsWhatGitLfsLists) {
  ASSAY_PROGRAM_OR_SKIP("git-lfs");
  ASSAY_CASE_OR_SKIP(model, "lfs/DeepSeek-R1");
  const test::TempDir dir;
  const GitRepository repository(dir / "clone");
  fs::copy(model, repository.path(), fs::copy_options::recursive);
  repository.commit();
  const auto manifest = test::assay({"manifest", repository.path().string()});
  EXPECT_EQ(manifest.exit_code, 0) << manifest.err;
  const auto lines = sorted_lines(manifest.out);
  EXPECT_EQ(lines.size(), 163u);
  EXPECT_EQ(lines, lines_of_git_lfs(repository));
  EXPECT_NE(manifest.err.find("config.json"), std::string::npos) << manifest.err;  // omitted, and named
}

TEST(Manifest, IsRightForOddNames) {
  ASSAY_PROGRAM_OR_SKIP("git-lfs");
  const test::TempDir dir;
  const GitRepository repository(dir / "clone");
  repository.git({"lfs", "install", "--local"});
  repository.git({"lfs", "track", "*.safetensors"});
  const std::vector<std::string> odd = {"a b.safetensors", "sub/c  d.safetensors", "new\nline.safetensors",
                                        "\xC3\xA9.safetensors"};
  for (const std::string& name : odd) repository.write(name, "contents of " + name);
  repository.commit();
  const fs::path sums = dir / "SHA256SUMS";
  const auto made = test::assay({"manifest", repository.path().string(), "-o", sums.string()});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.out, "");
  const auto check =
      test::run({"sha256sum", "-c", "--strict", sums.string()}, {.directory = repository.path()});
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
  EXPECT_EQ(sorted_lines(check.out).size(), odd.size());
  repository.write("a b.safetensors", "Contents of a b.safetensors");
  EXPECT_EQ(test::run({"sha256sum", "-c", sums.string()}, {.directory = repository.path()}).exit_code, 1);
}

// A backslash is a letter of the name, which sha256sum doubles; elsewhere it is no way out of the folder.
TEST(Manifest, ABackslashIsALetter) {
  const test::TempDir dir;
  const std::string tensor =
      test::safetensors_bytes(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234");
  test::write_file(dir / "model" / "back\\slash.safetensors", tensor);
  const std::string sums = dir / "SHA256SUMS";
  ASSERT_EQ(test::assay({"manifest", dir / "model", "--hash", "-o", sums}).exit_code, 0);
  const auto good = test::assay({"verify", dir / "model", "--manifest", sums, "--require-digests"});
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  test::write_file(dir / "model" / "back\\slash.safetensors", tensor.substr(0, tensor.size() - 1) + "5");
  EXPECT_EQ(test::assay({"verify", dir / "model", "--manifest", sums}).exit_code, 1);
  test::write_file(dir / "out.safetensors", tensor);
  std::string climbing = test::read_file(sums);
  climbing.replace(climbing.find("back"), std::string_view("back\\\\slash").size(), "..\\\\out");
  test::write_file(sums, climbing);
  const auto refused = test::assay({"verify", dir / "model", "--manifest", sums});
  EXPECT_NE((refused.out + refused.err).find("is not a name of a file below the folder"), std::string::npos)
      << refused.out << refused.err;
}

TEST(Manifest, ReadsFilesWhenAsked) {
  const test::TempDir dir;
  test::write_file(dir / "model" / "f.safetensors", "one");
  test::write_file(dir / "model" / "sub" / "g", "two");
  const fs::path sums = dir / "model" / "SHA256SUMS";
  for (int round = 0; round < 2; ++round) {  // the second time, the first one's result lies there
    const auto made = test::assay({"manifest", (dir / "model").string(), "--hash", "-o", sums.string()});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_EQ(test::read_file(sums),
              test::sha256sum("one") + "  f.safetensors\n" + test::sha256sum("two") + "  sub/g\n");
  }
  EXPECT_EQ(test::assay({"manifest", (dir / "model").string()}).exit_code, 2);  // nobody knows a digest
}

// manifest . --hash > SHA256SUMS: the shell has made the file before anything is listed.
TEST(Manifest, ListsNeitherItsOutputNorItsReport) {
  const test::TempDir dir;
  test::write_file(dir / "f.safetensors", "one");
  const auto in_shell = [&](const std::string& line) {
    return test::run({"sh", "-c", line, "sh", test::assay_binary()}, {.directory = dir.path()});
  };
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(in_shell("\"$1\" manifest . --hash --json r.json > SHA256SUMS 2> log").exit_code, 0);
    EXPECT_EQ(test::read_file(dir / "SHA256SUMS"), test::sha256sum("one") + "  f.safetensors\n");
  }
  EXPECT_EQ(test::run({"sha256sum", "-c", "SHA256SUMS"}, {.directory = dir.path()}).exit_code, 0);
  for (const char* name : {"SHA256SUMS", "log", "r.json"}) fs::remove(dir / name);
  ASSERT_EQ(in_shell("\"$1\" manifest . --chunks 4096 > m.json").exit_code, 0);
  const auto json = nlohmann::json::parse(test::read_file(dir / "m.json"));
  EXPECT_EQ(json["files"].size(), 1u);
}

TEST(Manifest, BlessesNoDamage) {
  const test::TempDir dir;
  const GitRepository repository(dir / "clone");
  repository.write("model.safetensors", test::lfs_pointer(test::sha256sum("weights"), 7));
  repository.write("config.json", "{}");
  repository.write("tokenizer.json", "[]");
  repository.commit();
  repository.write("model.safetensors", "Weights");
  repository.write("config.json", "{ }");
  const auto made = test::assay({"manifest", repository.path().string(), "--hash"});
  EXPECT_EQ(made.exit_code, 1);
  EXPECT_EQ(made.out, test::sha256sum("[]") + "  tokenizer.json\n");
  EXPECT_NE(made.err.find("model.safetensors"), std::string::npos);
  EXPECT_NE(made.err.find("config.json"), std::string::npos);
}

TEST(Manifest, WritesChunks) {
  const test::TempDir dir;
  const std::string first(65536, 'a'), second(1000, 'b');
  test::write_file(dir / "f.bin", first + second);
  const auto made = test::assay({"manifest", dir.path().string(), "--chunks", "64KiB"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const auto json = nlohmann::json::parse(made.out);
  EXPECT_EQ(json["chunk_bytes"], 65536);
  EXPECT_EQ(json["files"][0]["sha256"], test::sha256sum(first + second));
  EXPECT_EQ(json["files"][0]["chunks"],
            (std::vector<std::string>{test::sha256sum(first), test::sha256sum(second)}));
  EXPECT_EQ(test::assay({"manifest", dir.path().string(), "--chunks", "0"}).exit_code, 2);
  EXPECT_EQ(test::assay({"manifest", dir.path().string(), "--chunks", "lots"}).exit_code, 2);
}

TEST(Manifest, ReportsAsJson) {
  const test::TempDir dir;
  test::write_file(dir / "f", "one");
  const auto made = test::assay({"manifest", dir.path().string(), "--hash", "--json", "-"});
  const auto json = nlohmann::json::parse(made.out);
  EXPECT_EQ(json["schema"], "assay.manifest-report/1");
  EXPECT_EQ(json["files"][0]["sha256"], test::sha256sum("one"));
}

}  // namespace
}  // namespace assay
