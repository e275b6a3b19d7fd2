// What `verify --fix-plan` prints is run as it stands, and the files are right again.
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <vector>

#include "core/formats/stream_digest.h"
#include "tests/support/git.h"
#include "tests/support/range_server.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;

// The name of a file as its enemy would choose it.
const std::string kOdd = "a'b $(touch owned) `id`; ~, [x]*?#%25\xc3\xa9.bin";
// And one that no manifest may have.
const std::string kHostile = "a'b $(touch owned) `id`;\n\x1b[31m, [x]*?\\.bin";

std::string some_bytes(std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(i * 37 + i / 251);
  return bytes;
}

// From its heading to the empty line: comments and commands.
std::string plan_of(const ProcessResult& result) {
  const auto begin = result.out.find("# To mend it:");
  return begin == std::string::npos ? "" : result.out.substr(begin, result.out.find("\n\n", begin) - begin);
}

class FixPlan : public ::testing::Test {
 protected:
  ProcessResult verify(const fs::path& path, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"verify", path, "--fix-plan"};
    words.insert(words.end(), more.begin(), more.end());
    return assay(words);
  }
  // Runs the plan in a folder of its own; nothing may appear there.
  ProcessResult mend(const ProcessResult& found, const std::vector<std::string>& environment = {}) const {
    fs::create_directories(dir_ / "elsewhere");
    ProcessResult result = run({"bash", "-e", "-o", "pipefail", "-c", plan_of(found)},
                               {.directory = dir_ / "elsewhere", .environment = environment});
    EXPECT_TRUE(fs::is_empty(dir_ / "elsewhere"));
    return result;
  }
  void expect_mended(const fs::path& path, const std::vector<std::string>& more,
                     const std::vector<std::string>& environment = {}) const {
    const ProcessResult found = verify(path, more);
    EXPECT_EQ(found.exit_code, 1) << found.out << found.err;
    const ProcessResult mended = mend(found, environment);
    EXPECT_EQ(mended.exit_code, 0) << plan_of(found) << mended.out << mended.err;
    const ProcessResult after = verify(path, more);
    EXPECT_EQ(after.exit_code, 0) << plan_of(found) << after.out << after.err;
    EXPECT_EQ(plan_of(after), "");
  }
  // A program of this name that a plan finds before any other.
  std::vector<std::string> with_program(const std::string& name, const std::string& script) const {
    write_file(dir_ / "bin" / name, "#!/bin/bash\n" + script);
    fs::permissions(dir_ / "bin" / name, fs::perms::owner_all);
    return {"PATH=" + (dir_ / "bin").string() + ":" + std::getenv("PATH")};
  }

  TempDir dir_;
};

class FixPlanByCurl : public FixPlan {
 protected:
  void SetUp() override {
    ASSAY_PROGRAM_OR_SKIP("curl");
    write_file(dir_ / "good" / kOdd, content_);
    ASSERT_EQ(assay({"manifest", dir_ / "good", "--hash", "-o", dir_ / "sums"}).exit_code, 0);
    ASSERT_EQ(assay({"manifest", dir_ / "good", "--chunks", "4KiB", "-o", dir_ / "chunks"}).exit_code, 0);
    const json entry = {{"type", "file"},
                        {"path", kOdd},
                        {"oid", std::string(40, 'a')},
                        {"size", content_.size()},
                        {"lfs", {{"oid", sha256sum(content_)}, {"size", content_.size()}}}};
    write_file(dir_ / "listing", json::array({entry}).dump());
    server_.emplace(dir_ / "good" / kOdd);
  }
  void try_with(const std::string& manifest, const std::string& damaged) {
    write_file(dir_ / "bad" / kOdd, damaged);
    expect_mended(dir_ / "bad",
                  {"--manifest", dir_ / manifest, "--fix-from", server_->url(), "--keep-going"});
    EXPECT_EQ(read_file(dir_ / "bad" / kOdd), content_);
  }
  ProcessResult planned(const std::string& manifest, const std::string& damaged) {
    write_file(dir_ / "bad" / kOdd, damaged);
    return verify(dir_ / "bad",
                  {"--manifest", dir_ / manifest, "--fix-from", server_->url(), "--keep-going"});
  }
  const std::string content_ = some_bytes(50000);
  std::optional<RangeServer> server_;
};

TEST_F(FixPlanByCurl, OfDamagedRangesFetchesThese) {
  std::string damaged = content_;
  damaged[5000] ^= 1;
  damaged.replace(20000, 9000, std::string(9000, '\0'));
  EXPECT_NE(plan_of(planned("chunks", damaged)).find("curl -fL -r 4096-8191 --max-filesize 4096"),
            std::string::npos);
  try_with("chunks", damaged);
  try_with("chunks", content_.substr(0, 30000));
  try_with("chunks", content_ + "more");
}

TEST_F(FixPlanByCurl, GoesOnWhereAFileEndsAndFetchesTheRestWhole) {
  const ProcessResult cut = planned("listing", content_.substr(0, 30000));
  EXPECT_NE(plan_of(cut).find("curl -fL -C - -o "), std::string::npos) << cut.out;
  try_with("listing", content_.substr(0, 30000));
  std::string damaged = content_;
  damaged[5000] ^= 1;
  EXPECT_NE(plan_of(planned("sums", damaged)).find("# or: aria2c "), std::string::npos);
  try_with("sums", damaged);
  try_with("sums", content_ + "more");
  try_with("listing", content_ + "more");
  fs::remove_all(dir_ / "bad");
  fs::create_directories(dir_ / "bad");
  expect_mended(dir_ / "bad", {"--manifest", dir_ / "sums", "--fix-from", server_->url()});
}

// A server that knows no ranges must not have its whole file written over a part.
TEST_F(FixPlanByCurl, NeverWritesMoreThanARange) {
  std::string damaged = content_;
  damaged[5000] ^= 1;
  const ProcessResult found = planned("chunks", damaged);
  std::string plan = plan_of(found);
  const auto range = plan.find("-r 4096-8191");
  ASSERT_NE(range, std::string::npos) << plan;
  plan.replace(range, 12, "-r 4096-20000");  // what it sends is longer than what is asked for
  run({"bash", "-c", plan});
  EXPECT_EQ(read_file(dir_ / "bad" / kOdd), damaged);
}

TEST_F(FixPlan, OfACloneIsGitsAndGitLfs) {
  ASSAY_PROGRAM_OR_SKIP("git-lfs");
  const GitRepository origin(dir_ / "origin");
  origin.git({"lfs", "install", "--local"});
  origin.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
  const std::vector<std::string> weights = {"w1.bin", "w2.bin", "sub/w, 3 [x].bin", "w4.bin", "w5.bin"};
  for (const std::string& name : weights) origin.write(name, name + some_bytes(5000));
  origin.write("config.json", "{\"a\": 1}\n");
  origin.write("sub/*.txt", "star");
  origin.write("sub/b.txt", "b");
  origin.commit();
  const ProcessOptions plain{.environment = {"GIT_LFS_SKIP_SMUDGE=1"}};
  ASSERT_EQ(
      run({"git", "clone", "-q", "file://" + (dir_ / "origin").string(), dir_ / "clone"}, plain).exit_code,
      0);
  const fs::path clone = dir_ / "clone";
  ASSERT_EQ(run({"git", "-C", clone, "lfs", "install", "--local"}).exit_code, 0);
  ASSERT_EQ(run({"git", "-C", clone, "lfs", "pull"}).exit_code, 0);
  ASSERT_EQ(assay({"verify", clone}).exit_code, 0);

  const auto damage = [&](const fs::path& file) {
    const fs::file_time_type time = fs::last_write_time(file);
    std::string bytes = read_file(file);
    bytes[3] ^= 1;
    fs::remove(file);  // git-lfs copies objects from a local remote by links
    write_file(file, bytes);
    fs::last_write_time(file, time);
  };
  damage(clone / weights[0]);
  fs::remove(clone / weights[1]);
  damage(clone / weights[2]);
  write_file(clone / weights[3], lfs_pointer(sha256sum(weights[3] + some_bytes(5000)), 5006));
  damage(clone / weights[4]);
  const std::string hex = sha256sum(weights[4] + some_bytes(5000));
  damage(clone / ".git/lfs/objects" / hex.substr(0, 2) / hex.substr(2, 2) / hex);
  damage(clone / "config.json");
  damage(clone / "sub/*.txt");
  write_file(clone / "untouched.txt", "mine");
  expect_mended(clone, {"--keep-going"});
  EXPECT_EQ(read_file(clone / "untouched.txt"), "mine");
}

constexpr std::string_view kRevision = "cccccccccccccccccccccccccccccccccccccccc";

TEST_F(FixPlan, OfAHubsCacheIsADownload) {
  const std::string content = some_bytes(3000);
  const fs::path repository = dir_ / "cache" / "datasets--org--na-me";
  const fs::path snapshot = repository / "snapshots" / kRevision;
  fs::create_directories(snapshot / "sub");
  for (const std::string& name : {kHostile, "sub/" + kHostile}) {
    const std::string mine = name + content;
    write_file(dir_ / "good" / name, mine);
    write_file(repository / "blobs" / sha256sum(mine), mine.substr(0, 100) + "X" + mine.substr(101));
    fs::create_symlink(
        fs::path(name.starts_with("sub/") ? "../../../blobs" : "../../blobs") / sha256sum(mine),
        snapshot / name);
  }
  // What hf does with these words, as far as it matters.
  const std::string words = "download --repo-type dataset --revision " + std::string(kRevision) +
                            " --cache-dir --force-download -- org/na-me";
  const auto environment = with_program(
      "hf", "[ \"$1 $2 $3 $4 $5 $6 $8 $9 ${10}\" = '" + words + "' ] || exit 3\ncat < '" +
                (dir_ / "good").string() + "'/\"${11}\" > \"$7/datasets--org--na-me/snapshots/$5/${11}\"\n");
  for (const fs::path& path : {snapshot, repository, dir_ / "cache"}) {
    const std::string good = read_file(dir_ / "good" / kHostile);
    write_file(repository / "blobs" / sha256sum(good), "X" + good.substr(1));
    expect_mended(path, {}, environment);
  }
  // Of a blob, by a link that leads to it.
  const std::string good = read_file(dir_ / "good" / kHostile);
  write_file(repository / "blobs" / sha256sum(good), "X" + good.substr(1));
  expect_mended(repository / "blobs", {}, environment);
}

TEST_F(FixPlan, AsksWhereAFileComesFromThatNobodyTellsOf) {
  write_file(dir_ / "model/w.bin", some_bytes(100));
  write_file(dir_ / "sums", sha256sum("other") + "  w.bin\n" + sha256sum("more") + "  -more.bin\n");
  const ProcessResult unknown = verify(dir_ / "model", {"--manifest", dir_ / "sums", "--keep-going"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(plan_of(unknown).find("give --fix-from"), std::string::npos) << unknown.out;
  const auto with = [&](const std::string& source) {
    return plan_of(
        verify(dir_ / "model", {"--manifest", dir_ / "sums", "--keep-going", "--fix-from", source}));
  };
  const std::string folder = (dir_ / "model").string();
  EXPECT_NE(
      with("org/name").find("hf download --local-dir " + folder + " --force-download -- org/name w.bin"),
      std::string::npos);
  EXPECT_NE(with("org/name").find("hf download --local-dir " + folder + " -- org/name -more.bin"),
            std::string::npos);
  EXPECT_NE(with("hf://buckets/org/b").find("hf buckets cp -- hf://buckets/org/b/w.bin " + folder + "/w.bin"),
            std::string::npos);
  EXPECT_EQ(verify(dir_ / "model", {"--fix-from", "a b"}).exit_code, 2);
  EXPECT_EQ(verify(dir_ / "model", {"--fix-from", "-x/y"}).exit_code, 2);
  EXPECT_EQ(verify(dir_ / "model", {"--fix-from", "gopher://x"}).exit_code, 2);

  const json report = json::parse(verify(dir_ / "model", {"--manifest", dir_ / "sums", "--keep-going",
                                                          "--json", "-", "--fix-from", "datasets/org/name"})
                                      .out);
  ASSERT_EQ(report["fix_plan"].size(), 2u);
  EXPECT_EQ(report["fix_plan"][1]["file"], "w.bin");
  EXPECT_EQ(report["fix_plan"][1]["commands"][0]["words"],
            (json{"hf", "download", "--repo-type", "dataset", "--local-dir", folder, "--force-download", "--",
                  "org/name", "w.bin"}));
}

TEST_F(FixPlan, OfOllamaRemovesTheBlobThatItWouldTakeForGood) {
  const std::string weights = some_bytes(3000), config = "{}";
  const auto blob = [&](const std::string& bytes) {
    return dir_ / "models/blobs" / ("sha256-" + sha256sum(bytes));
  };
  const auto layer = [&](const std::string& kind, const std::string& bytes) {
    write_file(blob(bytes), bytes);
    return json{{"mediaType", "application/vnd.ollama.image." + kind},
                {"digest", "sha256:" + sha256sum(bytes)},
                {"size", bytes.size()}};
  };
  const json manifest = {{"schemaVersion", 2},
                         {"config", layer("config", config)},
                         {"layers", json::array({layer("license", weights)})}};
  write_file(dir_ / "models/manifests/registry.ollama.ai/library/llama3/8b", manifest.dump());
  write_file(dir_ / "good", weights);
  write_file(blob(weights), std::string(3000, '\0'));
  const auto environment = with_program("ollama", R"([ "$*" = "pull -- llama3:8b" ] || exit 3
f=')" + blob(weights).string() + R"('; [ -e "$f" ] || cp ')" +
                                                      (dir_ / "good").string() + R"(' "$f")");
  expect_mended(dir_ / "models", {}, environment);
  write_file(dir_ / "models/manifests/example.org/me/mine/latest", "{");
  EXPECT_NE(plan_of(verify(dir_ / "models")).find("ollama pull -- example.org/me/mine:latest"),
            std::string::npos);
}

// Of a commit that is not checked out, git-lfs is asked through git.
TEST_F(FixPlan, OfAnotherCommitIsThatCommits) {
  ASSAY_PROGRAM_OR_SKIP("git-lfs");
  const GitRepository clone(dir_ / "clone");
  clone.git({"lfs", "install", "--local"});
  clone.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
  clone.write("w.bin", some_bytes(3000));
  clone.write("config.json", "{}");
  const std::string first = clone.commit();
  clone.write("w.bin", "new" + some_bytes(3000));
  clone.write("config.json", "{\"new\": 1}");
  clone.commit();
  expect_mended(dir_ / "clone", {"--rev", first, "--keep-going"});
}

TEST_F(FixPlan, SaysWhatItHasNoCommandFor) {
  const fs::path repository = dir_ / "cache" / "models--org--name";
  const std::string content = some_bytes(100);
  write_file(repository / "blobs" / sha256sum(content), content);
  write_file(repository / "blobs" / (std::string(64, 'b') + ".incomplete"), "begun");
  fs::create_directories(repository / "snapshots" / kRevision);
  fs::create_symlink("../../blobs/" + sha256sum(content), repository / "snapshots" / kRevision / "w.bin");
  const ProcessResult found = verify(repository);
  EXPECT_EQ(found.exit_code, 1) << found.out;
  EXPECT_NE(plan_of(found).find("# run the download again"), std::string::npos) << found.out;
}

// Nothing that a download mends.
TEST_F(FixPlan, DoesNotFetchAgainWhatIsAsPublished) {
  const std::string broken = std::string(200, 'b');
  write_file(dir_ / "model/w.safetensors", broken);
  write_file(dir_ / "sums", sha256sum(broken) + "  w.safetensors\n");
  const ProcessResult found =
      verify(dir_ / "model", {"--manifest", dir_ / "sums", "--fix-from", "https://example.org/m"});
  EXPECT_EQ(found.exit_code, 1) << found.out;
  EXPECT_NE(plan_of(found).find("what they should be"), std::string::npos) << found.out;
  EXPECT_EQ(plan_of(found).find("\ncurl"), std::string::npos) << found.out;
}

}  // namespace
}  // namespace assay::test
