// One answer however PATH is spelled, and what a verdict may not pass over.
#include <nlohmann/json.hpp>

#include "tests/support/git.h"
#include "tests/support/small_model.h"
#include "tests/verify/hub_layouts.h"

namespace assay::test {
namespace {

using nlohmann::json;

struct Said {
  int exit_code;
  std::string verdict, root;
  friend bool operator==(const Said&, const Said&) = default;
};

std::ostream& operator<<(std::ostream& out, const Said& said) {
  return out << said.exit_code << " " << said.verdict << " in " << said.root;
}

json report_of(std::vector<std::string> arguments, const fs::path& from = {}) {
  arguments.insert(arguments.begin(), {"verify", "--json", "-"});
  return json::parse(assay(arguments, {.directory = from}).out);
}

Said say(const std::string& path, const fs::path& from) {
  const ProcessResult result = assay({"verify", path, "--json", "-"}, {.directory = from});
  const json report = json::parse(result.out);
  return {result.exit_code, report.at("verdict"), report.at("source").at("root")};
}

// Every spelling of `folder` that a shell's user comes by, from the folder above it and from within.
void expect_one_answer(const fs::path& folder, const std::string& verdict) {
  const std::string name = folder.filename().string();
  const fs::path above = folder.parent_path();
  fs::create_symlink(folder, above / "link-to-it");
  const Said first = say(name, above);
  EXPECT_EQ(first.verdict, verdict);
  EXPECT_EQ(first.root, fs::canonical(folder).string());
  for (const std::string& spelling :
       {name + "/", name + "/.", name + "//", "./" + name, name + "/../" + name, folder.string(),
        folder.string() + "/", std::string("link-to-it"), std::string("link-to-it/"),
        std::string("link-to-it/."), (above / "link-to-it").string()}) {
    EXPECT_EQ(say(spelling, above), first) << spelling;
  }
  for (const char* spelling : {".", "./", "./."}) EXPECT_EQ(say(spelling, folder), first) << spelling;
  EXPECT_EQ(say(".", above / "link-to-it"), first);
}

TEST(Spelling, OfAFolderWhoseShardIsALinkOutOfIt) {
  const TempDir dir;
  const SmallModel model = write_small_model(dir / "lo");
  fs::rename(model.folder / model.shards[0], dir / "elsewhere.safetensors");
  fs::create_symlink(dir / "elsewhere.safetensors", model.folder / model.shards[0]);
  expect_one_answer(model.folder, "failed");
}

TEST(Spelling, OfACloneAndASubfolder) {
  ASSAY_PROGRAM_OR_SKIP("git");
  ASSAY_PROGRAM_OR_SKIP("openssl");
  const TempDir dir;
  const SmallModel model = write_small_model(dir / "clone");
  commit_with_pointers(model.folder);
  expect_one_answer(model.folder, "ok");
}

TEST(Spelling, OfASnapshot) {
  ASSAY_PROGRAM_OR_SKIP("git");
  const TempDir dir;
  const SmallModel model = write_small_model(dir / "source");
  const CacheLayout cache = write_hub_cache(dir / "hub", model.folder, kNotDownloaded);
  expect_one_answer(cache.snapshot, "ok");
}

// `cp -r` of a linked work tree: a file of the copy, too, is the copy's.
TEST(CopiedWorkTree, IsTheOneThatIsReadAndHashed) {
  ASSAY_PROGRAM_OR_SKIP("git");
  ASSAY_PROGRAM_OR_SKIP("openssl");
  const TempDir dir;
  const SmallModel model = write_small_model(dir / "clone");
  commit_with_pointers(model.folder);
  const GitRepository repository(model.folder);
  repository.git({"worktree", "add", "-q", "--detach", (dir / "wt").string()});
  for (const std::string& shard : model.shards)
    fs::copy(model.folder / shard, dir / "wt", fs::copy_options::overwrite_existing);
  fs::copy(dir / "wt", dir / "copy", fs::copy_options::recursive);
  const json whole = report_of({(dir / "copy").string()});
  EXPECT_EQ(whole.at("verdict"), "ok");
  EXPECT_EQ(whole.at("source").at("root"), (dir / "copy").string());
  EXPECT_EQ(whole.at("findings").at(0).at("code"), "git.other_work_tree");

  write_file(dir / "copy" / model.shards[0], read_file(dir / "copy" / model.shards[1]));
  EXPECT_EQ(assay({"verify", (dir / "copy").string()}).exit_code, 1);
  EXPECT_EQ(assay({"verify", (dir / "copy" / model.shards[0]).string()}).exit_code, 1);
  EXPECT_EQ(assay({"verify", (dir / "wt").string()}).exit_code, 0);
  const ProcessResult manifest = assay({"manifest", (dir / "copy").string(), "--hash"});
  EXPECT_EQ(manifest.exit_code, 1) << "the damaged file is left out, with an error";
  EXPECT_EQ(manifest.out.find(model.shards[0]), std::string::npos) << manifest.out;
}

TEST(Demands, ACommitByItsWholeId) {
  ASSAY_PROGRAM_OR_SKIP("git");
  ASSAY_PROGRAM_OR_SKIP("openssl");
  const TempDir dir;
  const SmallModel model = write_small_model(dir / "clone");
  commit_with_pointers(model.folder);
  const std::string path = model.folder.string(), other(40, 'a');
  const std::string commit = GitRepository(model.folder).git({"rev-parse", "HEAD"});
  EXPECT_EQ(assay({"verify", path, "--expect-commit", commit}).exit_code, 0);
  EXPECT_EQ(assay({"verify", path, "--expect-commit", other}).exit_code, 1);
  EXPECT_EQ(assay({"verify", path, "--expect-commit", commit.substr(0, 12)}).exit_code, 2);
  EXPECT_EQ(assay({"verify", path, "--expect-commit", commit, "--quick"}).exit_code, 2);

  const CacheLayout cache = write_hub_cache(dir / "hub", model.folder, kNotDownloaded);
  EXPECT_EQ(assay({"verify", cache.snapshot.string(), "--expect-commit", kLayoutCommit}).exit_code, 0);
  const ProcessResult differs = assay({"verify", cache.snapshot.string(), "--expect-commit", commit});
  EXPECT_EQ(differs.exit_code, 1);
  EXPECT_NE(differs.out.find("not by commit " + commit), std::string::npos) << differs.out;
  const ProcessResult sums = run({"sh", "-c", "sha256sum -- *"}, {.directory = model.folder});
  write_file(dir / "SUMS", sums.out);
  EXPECT_EQ(
      assay({"verify", path, "--manifest", (dir / "SUMS").string(), "--expect-commit", commit}).exit_code, 1);
}

TEST(Demands, ExtraFilesAreInEveryFormOfTheVerdict) {
  ASSAY_PROGRAM_OR_SKIP("git");
  ASSAY_PROGRAM_OR_SKIP("openssl");
  const TempDir dir;
  const SmallModel model = write_small_model(dir / "clone");
  commit_with_pointers(model.folder);
  write_file(model.folder / "notes.txt", "mine");
  const std::string receipt = (dir / "r.json").string(), path = model.folder.string();
  const ProcessResult result = assay({"verify", path, "--fail-on-extra", "--receipt", receipt});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("\nFAILED: 1 extra"), std::string::npos) << result.out;
  EXPECT_EQ(report_of({path, "--fail-on-extra"}).at("verdict"), "failed");
  EXPECT_EQ(json::parse(read_file(receipt)).at("verdict"), "failed");
  EXPECT_EQ(report_of({path}).at("verdict"), "ok");
}

// A weight that came beside verified ones is named, whatever else is well.
TEST(Demands, AnExtraWeightIsNeverSilent) {
  ASSAY_PROGRAM_OR_SKIP("git");
  ASSAY_PROGRAM_OR_SKIP("openssl");
  const TempDir dir;
  const SmallModel model = write_small_model(dir / "clone");
  commit_with_pointers(model.folder);
  fs::copy(model.folder / model.shards[0], model.folder / "adapter.safetensors");
  const json report = report_of({model.folder.string()});
  EXPECT_EQ(report.at("verdict"), "partial");
  EXPECT_EQ(report.at("findings").back().at("code"), "verify.unvouched");
  EXPECT_EQ(report.at("findings").back().at("file"), "adapter.safetensors");
  EXPECT_EQ(report.at("summary").at("weights").at("files"), 4);
  EXPECT_EQ(report.at("summary").at("weights").at("vouched_files"), 3);
  EXPECT_NE(report.at("verdict_line").get<std::string>().find("PARTLY CHECKED"), std::string::npos);
}

TEST(Hashing, IsNotStoppedByATextFile) {
  ASSAY_PROGRAM_OR_SKIP("git");
  ASSAY_PROGRAM_OR_SKIP("openssl");
  const TempDir dir;
  const SmallModel model = write_small_model(dir / "clone");
  commit_with_pointers(model.folder);
  fs::remove(model.folder / "config.json");
  const std::string path = model.folder.string();
  const json report = report_of({path, "--fail-fast"});
  EXPECT_EQ(report.at("verdict"), "failed");
  EXPECT_EQ(report.at("summary").at("stopped_early"), false);
  EXPECT_EQ(report.at("summary").at("ok"), 4);
  fs::remove(model.folder / model.shards[0]);
  EXPECT_EQ(report_of({path, "--fail-fast"}).at("summary").at("stopped_early"), true);
}

TEST(BrokenRepository, IsLeftAsideOnRequest) {
  const TempDir dir;
  const SmallModel model = write_small_model(dir / "m");
  write_file(model.folder / ".git", "gitdir: /nowhere\n");
  const std::string path = model.folder.string();
  EXPECT_EQ(assay({"verify", path}).exit_code, 2);
  EXPECT_EQ(report_of({path, "--no-git"}).at("verdict"), "well_formed");
  EXPECT_EQ(assay({"manifest", path, "--hash"}).exit_code, 2);
  EXPECT_EQ(assay({"manifest", path, "--hash", "--no-git"}).exit_code, 0);
}

}  // namespace
}  // namespace assay::test
