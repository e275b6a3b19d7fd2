// `assay verify` as a user meets it: the program is run, its lines and exit code are read.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/git.h"
#include "tests/support/paths.h"
#include "tests/support/small_model.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  const auto begin = text.find_last_of('\n', end);
  return text.substr(begin + 1, end - begin);
}

void flip_byte(const fs::path& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ 1));
}

class VerifyClone : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSAY_PROGRAM_OR_SKIP("git");
    ASSAY_PROGRAM_OR_SKIP("openssl");
    model_ = write_small_model(dir_ / "clone");
    commit_with_pointers(model_.folder);
  }
  ProcessResult verify(std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"verify", model_.folder.string()});
    return assay(options);
  }
  json verify_json(std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--json", "-"});
    return json::parse(verify(options).out);
  }
  static json entry(const json& report, const std::string& name) {
    for (const json& file : report.at("files")) {
      if (file.at("name") == name) return file;
    }
    return {};
  }
  fs::path shard(int i) const { return model_.folder / model_.shards[static_cast<std::size_t>(i)]; }

  TempDir dir_;
  SmallModel model_;
};

TEST_F(VerifyClone, GoodFilesAreOkAgainstTheCommitsPointers) {
  const ProcessResult result = verify();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  for (const std::string& name : model_.shards)
    EXPECT_TRUE(contains(result.out, name + ": OK\n")) << result.out;
  EXPECT_TRUE(contains(result.out, "config.json: OK\n"));
  EXPECT_TRUE(last_line(result.out).starts_with("OK: 5 files")) << result.out;
  EXPECT_EQ(result.err, "");

  const json report = verify_json();
  EXPECT_EQ(report.at("schema"), "assay.verify/1");
  EXPECT_EQ(report.at("verdict"), "ok");
  EXPECT_EQ(report.at("summary").at("ok"), 5);
  const json first = entry(report, model_.shards[0]);
  EXPECT_EQ(first.at("trust"), "lfs_pointer");
  EXPECT_EQ(first.at("actual"), sha256_by_openssl(shard(0)));
  EXPECT_EQ(entry(report, "config.json").at("trust"), "git_blob");
}

TEST_F(VerifyClone, AFlippedByteIsFound) {
  flip_byte(shard(1), fs::file_size(shard(1)) - 100);
  const ProcessResult result = verify();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.out, model_.shards[1] + ": FAILED\n")) << result.out;
  EXPECT_TRUE(contains(result.out, model_.shards[0] + ": OK\n"));
  EXPECT_TRUE(contains(result.out, "right size but wrong bytes"));
  EXPECT_TRUE(last_line(result.out).starts_with("FAILED: 1 damaged, of 5 files")) << result.out;
  EXPECT_EQ(verify({"--quick"}).exit_code, 0) << "a cheap check cannot see it, and must not claim to";
}

TEST_F(VerifyClone, SmallFilesAreCheckedByTheirGitId) {
  flip_byte(model_.folder / "config.json", 3);
  const ProcessResult result = verify();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.out, "config.json: FAILED\n")) << result.out;
}

TEST_F(VerifyClone, EachDamageIsNamed) {
  const std::uint64_t size = fs::file_size(shard(0));
  fs::resize_file(shard(0), size - 1000);
  write_file(shard(1), "<!DOCTYPE html>\n<html><body>Too many requests</body></html>\n");
  const std::string pointer =
      run({"git", "-C", model_.folder.string(), "show", "HEAD:" + model_.shards[2]}).out;
  write_file(shard(2), pointer);
  const json report = verify_json();
  EXPECT_TRUE(contains(entry(report, model_.shards[0]).at("diagnosis"), "truncated by 1,000 bytes"));
  EXPECT_TRUE(contains(entry(report, model_.shards[1]).at("diagnosis"), "HTML page"));
  EXPECT_TRUE(contains(entry(report, model_.shards[2]).at("diagnosis"), "still a git-lfs pointer"));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(entry(report, model_.shards[static_cast<std::size_t>(i)]).at("status"), "failed");
  EXPECT_EQ(report.at("summary").at("failed"), 3);
  EXPECT_EQ(verify({"--quick"}).exit_code, 1) << "all of these are cheap to see";
}

TEST_F(VerifyClone, AMissingShardIsMissingOnceAndByName) {
  fs::remove(shard(1));
  const ProcessResult result = verify();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.out, model_.shards[1] + ": MISSING\n")) << result.out;
  EXPECT_TRUE(contains(last_line(result.out), "1 missing")) << result.out;
}

TEST_F(VerifyClone, ZeroFilledAndNeverWrittenTailsAreToldApart) {
  const std::uint64_t size = fs::file_size(shard(0)), keep = 4096 * 3;
  const std::string head = read_file(shard(0)).substr(0, keep);
  write_file(shard(0), head + std::string(size - keep, '\0'));  // written zeros
  fs::resize_file(shard(1), keep);
  fs::resize_file(shard(1), size);  // a hole
  const json report = verify_json();
  const std::string zeros = entry(report, model_.shards[0]).at("diagnosis");
  EXPECT_TRUE(contains(zeros, "zero-filled from byte")) << zeros;
  const std::string hole = entry(report, model_.shards[1]).at("diagnosis");
  EXPECT_TRUE(contains(hole, "never written") || contains(hole, "zero-filled"))
      << hole;  // tmpfs may lack SEEK_HOLE
}

TEST_F(VerifyClone, FirstBytesZeroIsSaidWithoutHashing) {
  std::string bytes = read_file(shard(0));
  std::fill(bytes.begin(), bytes.begin() + 64, '\0');
  write_file(shard(0), bytes);
  const ProcessResult result = verify({"--quick"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.out, "begins with zeros")) << result.out;
}

TEST_F(VerifyClone, SwappedShardsAreRecognised) {
  fs::rename(shard(0), dir_ / "x");
  fs::rename(shard(2), shard(0));
  fs::rename(dir_ / "x", shard(2));
  const json report = verify_json();
  EXPECT_EQ(report.at("verdict"), "failed");
  EXPECT_TRUE(contains(entry(report, model_.shards[0]).at("diagnosis"), "swapped with " + model_.shards[2]));
  EXPECT_TRUE(contains(entry(report, model_.shards[2]).at("diagnosis"), "swapped with " + model_.shards[0]));
}

TEST_F(VerifyClone, ARenamedFileIsFoundUnderItsOtherName) {
  fs::rename(shard(0), model_.folder / "renamed.safetensors");
  const json report = verify_json();
  EXPECT_EQ(entry(report, model_.shards[0]).at("status"), "missing");
  EXPECT_TRUE(contains(entry(report, model_.shards[0]).at("diagnosis"), "renamed.safetensors"));
  EXPECT_EQ(entry(report, "renamed.safetensors").at("status"), "extra");
}

TEST_F(VerifyClone, ExtraFilesAreNamedAndFailOnlyWhenAsked) {
  write_file(model_.folder / "notes.txt", "mine");
  const ProcessResult result = verify();
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_TRUE(contains(result.out, "notes.txt: EXTRA\n"));
  EXPECT_EQ(verify({"--fail-on-extra"}).exit_code, 1);
}

TEST_F(VerifyClone, AnotherCommitCanBeAsked) {
  flip_byte(shard(0), fs::file_size(shard(0)) - 1);
  run({"git", "-C", model_.folder.string(), "tag", "first"});
  EXPECT_EQ(verify({"--rev", "first"}).exit_code, 1);
  const ProcessResult unknown = verify({"--rev", "nonesuch"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_EQ(std::count(unknown.err.begin(), unknown.err.end(), '\n'), 1) << unknown.err;
}

TEST_F(VerifyClone, WeightsMayLieElsewhere) {
  fs::create_directories(dir_ / "elsewhere");
  for (const auto& entry : fs::directory_iterator(model_.folder)) {
    if (entry.is_regular_file()) fs::copy(entry.path(), dir_ / "elsewhere" / entry.path().filename());
  }
  for (int i = 0; i < 3; ++i) fs::remove(shard(i));
  EXPECT_EQ(verify({"--root", (dir_ / "elsewhere").string()}).exit_code, 0);
  flip_byte(dir_ / "elsewhere" / model_.shards[0], 500);
  EXPECT_EQ(verify({"--root", (dir_ / "elsewhere").string()}).exit_code, 1);
}

TEST_F(VerifyClone, NumbersAreCountedInTheSamePass) {
  json report = verify_json({"--numbers", "--tensor-digests"});
  const json tensors = entry(report, model_.shards[0]).at("tensors");
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors[0].at("count"), 4096);
  EXPECT_EQ(tensors[0].at("nan"), 0);
  EXPECT_GE(tensors[0].at("amax").get<double>(), 0.5);
  EXPECT_LT(tensors[0].at("amax").get<double>(), 1.0);
  EXPECT_EQ(tensors[0].at("sha256").get<std::string>().size(), 64u);

  // One NaN (0x7FC0) as the last value of the last tensor, committed as right: still refused, unless allowed.
  std::string bytes = read_file(shard(0));
  bytes[bytes.size() - 2] = '\xC0', bytes[bytes.size() - 1] = '\x7F';
  write_file(shard(0), bytes);
  const std::string digest = sha256_by_openssl(shard(0));
  const std::string file = shard(0).string();
  EXPECT_EQ(assay({"verify", file, "--sha256", digest}).exit_code, 0);
  const ProcessResult bad = assay({"verify", file, "--sha256", digest, "--numbers"});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_TRUE(contains(bad.out, "tensor layers.1.w3: holds 1 NaN and 0 Inf among 4096 values")) << bad.out;
  EXPECT_EQ(assay({"verify", file, "--sha256", digest, "--numbers", "--allow-nonfinite"}).exit_code, 0);
}

TEST_F(VerifyClone, StateSkipsWhatHasNotChangedAndNothingElse) {
  const std::string state = (dir_ / "state.json").string();
  ::usleep(50'000);  // files touched this very moment are never trusted
  EXPECT_EQ(verify_json({"--state", state}).at("summary").at("bytes_reused"), 0);
  json second = verify_json({"--state", state});
  EXPECT_EQ(second.at("verdict"), "ok");
  EXPECT_EQ(second.at("summary").at("bytes"), 0) << second.dump(1);
  EXPECT_EQ(entry(second, model_.shards[0]).at("reused"), true);

  // Same size, mtime put back: only ctime tells, and it is enough.
  struct stat before {};
  ASSERT_EQ(::stat(shard(0).c_str(), &before), 0);
  flip_byte(shard(0), fs::file_size(shard(0)) - 5);
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, shard(0).c_str(), times, 0), 0);
  json third = verify_json({"--state", state});
  EXPECT_EQ(third.at("verdict"), "failed");
  EXPECT_EQ(entry(third, model_.shards[0]).at("status"), "failed");
  EXPECT_EQ(third.at("summary").at("bytes"), fs::file_size(shard(0)));

  EXPECT_GT(verify_json({"--state", state, "--full"}).at("summary").at("bytes").get<std::uint64_t>(),
            90'000u);
  // What the state does not know of is read: numbers were not asked for before.
  EXPECT_GT(verify_json({"--state", state, "--numbers"}).at("summary").at("bytes").get<std::uint64_t>(),
            50'000u);
  EXPECT_EQ(verify_json({"--state", state, "--numbers"}).at("summary").at("bytes"), 0);

  write_file(state, "{\"schema\": \"something else\"}");
  const ProcessResult damaged = verify({"--state", state});
  EXPECT_EQ(damaged.exit_code, 2);
  EXPECT_TRUE(contains(damaged.err, "delete it to start over")) << damaged.err;
}

TEST_F(VerifyClone, AReceiptHoldsUntilAFileChanges) {
  const std::string receipt = (dir_ / "r.json").string();
  ASSERT_EQ(verify({"--receipt", receipt}).exit_code, 0);
  EXPECT_EQ(verify({"--check-receipt", receipt, "--max-age", "1h"}).exit_code, 0);
  flip_byte(shard(2), 700);
  const ProcessResult after = verify({"--check-receipt", receipt});
  EXPECT_EQ(after.exit_code, 1);
  EXPECT_TRUE(contains(after.out, model_.shards[2])) << after.out;
  ASSERT_EQ(verify({"--receipt", receipt}).exit_code, 1);
  EXPECT_EQ(verify({"--check-receipt", receipt}).exit_code, 1)
      << "a receipt of a failed check proves nothing";
}

TEST_F(VerifyClone, AgreesWithSha256sum) {
  const ProcessResult manifest = assay({"manifest", model_.folder.string(), "-o", (dir_ / "SUMS").string()});
  ASSERT_EQ(manifest.exit_code, 0) << manifest.err;
  EXPECT_EQ(
      run({"sha256sum", "-c", "--quiet", (dir_ / "SUMS").string()}, {.directory = model_.folder}).exit_code,
      0);
  flip_byte(shard(1), 900);
  EXPECT_EQ(
      run({"sha256sum", "-c", "--quiet", (dir_ / "SUMS").string()}, {.directory = model_.folder}).exit_code,
      1);
  EXPECT_EQ(verify({"--manifest", (dir_ / "SUMS").string()}).exit_code, 1);
}

TEST_F(VerifyClone, DamagedRangesAreNamedForCurl) {
  const std::string chunked = (dir_ / "chunks.json").string();
  ASSERT_EQ(assay({"manifest", model_.folder.string(), "--chunks", "4KiB", "-o", chunked}).exit_code, 0);
  flip_byte(shard(0), 4096 * 5 + 17);
  const ProcessResult result = verify({"--manifest", chunked, "--ranges"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.out, "curl -r 20480-24575")) << result.out;
}

// A download that stopped: what is missing is a range like any other, from the chunk that was cut to the end.
TEST_F(VerifyClone, RangesOfATruncatedFileGoToItsEnd) {
  const std::string chunked = (dir_ / "chunks.json").string();
  ASSERT_EQ(assay({"manifest", model_.folder.string(), "--chunks", "4KiB", "-o", chunked}).exit_code, 0);
  const std::uint64_t size = fs::file_size(shard(0));
  const std::string last = std::to_string(size - 1);
  const auto ranges = [&] {
    const ProcessResult result = verify({"--manifest", chunked, "--ranges"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_TRUE(contains(result.out, "is truncated by")) << result.out;
    return result.out;
  };
  const std::string whole = read_file(shard(0));
  fs::resize_file(shard(0), 4096 * 3 + 100);
  EXPECT_TRUE(contains(ranges(), "curl -r 12288-" + last + " ")) << ranges();
  fs::resize_file(shard(0), 4096 * 3);
  EXPECT_TRUE(contains(ranges(), "curl -r 12288-" + last + " ")) << ranges();
  std::string damaged = whole.substr(0, 4096 * 3);
  damaged[10] ^= 1;
  write_file(shard(0), damaged);
  EXPECT_TRUE(contains(ranges(), "curl -r 0-4095 ")) << ranges();
  EXPECT_TRUE(contains(ranges(), "curl -r 12288-" + last + " ")) << ranges();
}

// Small texts are not looked at before they are hashed; what they are instead is said all the same.
TEST_F(VerifyClone, WhatASmallTextIsInsteadIsSaid) {
  const std::string sums = (dir_ / "SUMS").string();
  write_file(sums, run({"sh", "-c", "sha256sum *"}, {.directory = model_.folder}).out);
  write_file(model_.folder / "config.json", "<!DOCTYPE html>\n<html><body>Too many requests</body></html>\n");
  EXPECT_TRUE(contains(entry(verify_json({"--manifest", sums}), "config.json").at("diagnosis"), "HTML page"));
  write_file(model_.folder / "config.json", lfs_pointer(std::string(64, 'a'), 22));
  EXPECT_TRUE(contains(entry(verify_json({"--manifest", sums}), "config.json").at("diagnosis"),
                       "still a git-lfs pointer"));
}

TEST_F(VerifyClone, QuickAnswersNoQuestionsAboutWeights) {
  for (const char* question : {"--numbers", "--tensor-digests"}) {
    const ProcessResult result = verify({"--quick", question});
    EXPECT_EQ(result.exit_code, 2) << question;
    EXPECT_TRUE(contains(result.err, "--quick reads no weights")) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(VerifyClone, JsonOnStdoutStandsAlone) {
  const ProcessResult result = verify({"--json", "-"});
  EXPECT_TRUE(json::accept(result.out)) << result.out;
  const std::string file = (dir_ / "out.json").string();
  const ProcessResult both = verify({"--json", file});
  EXPECT_TRUE(contains(both.out, ": OK\n"));
  EXPECT_EQ(json::parse(read_file(file)).at("verdict"), "ok");
}

TEST(VerifyFolder, APlainFolderSaysThatNoBytesWereChecked) {
  const TempDir dir;
  write_small_model(dir.path());
  const ProcessResult result = assay({"verify", dir.path().string()});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(last_line(result.out).starts_with("WELL FORMED")) << result.out;
  EXPECT_TRUE(contains(last_line(result.out), "no bytes were checked"));
}

TEST(VerifyFolder, TheIndexIsHeldAgainstTheShards) {
  const TempDir dir;
  const SmallModel model = write_small_model(dir.path());
  fs::remove(dir / model.shards[1]);
  const ProcessResult result = assay({"verify", dir.path().string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.out, model.shards[1])) << result.out;
}

TEST(VerifyFolder, HeadersAreHeldAgainstTheConfig) {
  const TempDir dir;
  fs::copy(test::source_dir() / "data/tinylm-bf16", dir / "m");
  const auto codes = [&] {
    std::map<std::string, int> found;
    const ProcessResult result = assay({"verify", (dir / "m").string(), "--json", "-"});
    EXPECT_EQ(result.exit_code, 0) << "the config may be wrong, not the bytes";
    const json report = json::parse(result.out);  // iterating over a temporary's member would outlive it
    for (const json& finding : report.at("findings")) ++found[finding.at("code")];
    return found;
  };
  EXPECT_EQ(codes().size(), 0u);
  std::string config = read_file(dir / "m/config.json");
  const auto at = config.find("\"hidden_size\"");
  ASSERT_NE(at, std::string::npos);
  config.replace(config.find("160", at), 3, "168");
  write_file(dir / "m/config.json", config);
  EXPECT_GT(codes()["model.tensor_shape"], 0);
  write_file(dir / "m/config.json", R"({"architectures": ["NobodysForCausalLM"]})");
  EXPECT_EQ(codes()["model.not_compared"], 1);
}

TEST(VerifyFolder, OneFileAgainstADigest) {
  ASSAY_PROGRAM_OR_SKIP("openssl");
  const TempDir dir;
  const SmallModel model = write_small_model(dir.path());
  const std::string file = (dir / model.shards[0]).string();
  EXPECT_EQ(assay({"verify", file, "--sha256", sha256_by_openssl(file)}).exit_code, 0);
  EXPECT_EQ(assay({"verify", file, "--sha256", std::string(64, 'a')}).exit_code, 1);
  EXPECT_EQ(assay({"verify", file, "--sha256", "xyz"}).exit_code, 2);
}

TEST(VerifyFolder, UnreadableFilesAreReportedAndTheRestGoesOn) {
  if (::geteuid() == 0) GTEST_SKIP() << "SKIPPED: root can read everything";
  const TempDir dir;
  const SmallModel model = write_small_model(dir.path());
  fs::permissions(dir / model.shards[0], fs::perms::none);
  const ProcessResult result = assay({"verify", dir.path().string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(contains(result.out, model.shards[0] + ": FAILED open or read")) << result.out;
  fs::permissions(dir / model.shards[0], fs::perms::owner_all);
}

// `verify . > log` within the folder: the log is no part of it, to the verdict, a receipt or a later look.
TEST(VerifyFolder, ItsOwnOutputInTheFolderIsNoPartOfIt) {
  const TempDir dir;
  const SmallModel model = write_small_model(dir / "m");
  const auto in_shell = [&](const std::string& line) {
    return run({"sh", "-c", line, "sh", test::assay_binary()}, {.directory = model.folder});
  };
  ASSERT_EQ(in_shell("sha256sum -- * > ../SUMS").exit_code, 0);
  for (const char* source : {"", " --manifest ../SUMS --fail-on-extra"}) {
    const std::string verify = std::string("\"$1\" verify .") + source;
    EXPECT_EQ(in_shell(verify + " > log 2> messages").exit_code, 0) << read_file(model.folder / "log");
    const std::string said = read_file(model.folder / "log");
    EXPECT_FALSE(contains(said, "log: ")) << said;
    EXPECT_FALSE(contains(said, "messages: ")) << said;
    for (const char* name : {"log", "messages"}) fs::remove(model.folder / name);
    EXPECT_EQ(in_shell(verify + " --json - > report.json").exit_code, 0);
    EXPECT_FALSE(contains(read_file(model.folder / "report.json"), "report.json"));
    fs::remove(model.folder / "report.json");
  }
  ASSERT_EQ(in_shell("\"$1\" verify . --manifest ../SUMS --receipt ../r.json > log").exit_code, 0);
  EXPECT_EQ(in_shell("\"$1\" verify . --check-receipt ../r.json > log").exit_code, 0)
      << read_file(model.folder / "log");
  EXPECT_EQ(in_shell("\"$1\" verify . --check-receipt ../r.json > other 2> log").exit_code, 0)
      << read_file(model.folder / "other");
  write_file(model.folder / "later", "x");
  EXPECT_EQ(in_shell("\"$1\" verify . --check-receipt ../r.json > log").exit_code, 1);
}

TEST(VerifyFolder, FilesThatCanRunCodeAreNamed) {
  const TempDir dir;
  write_small_model(dir.path());
  write_file(dir / "pytorch_model.bin", std::string("\x80\x02}q\x00.", 6));
  write_file(dir / "weights.ckpt", "anything");
  write_file(dir / "disguised.bin", std::string("PK\x03\x04") + std::string(26, '\0') + "archive/data.pkl");
  write_file(dir / "harmless.bin", "just bytes");
  write_file(dir / "modeling_x.py", "print('hi')");
  write_file(dir / "config.json", R"({"auto_map": {"AutoModel": "modeling_x.X"}})");
  const ProcessResult result = assay({"verify", dir.path().string(), "--json", "-"});
  const json report = json::parse(result.out);
  std::map<std::string, std::string> codes;
  for (const json& file : report.at("files")) {
    for (const json& finding : file.value("findings", json::array()))
      codes[file.at("name")] = finding.at("code");
  }
  EXPECT_EQ(codes["pytorch_model.bin"], "code.pickle");
  EXPECT_EQ(codes["weights.ckpt"], "code.pickle");
  EXPECT_EQ(codes["disguised.bin"], "code.pickle");
  EXPECT_EQ(codes["modeling_x.py"], "code.remote_python");
  EXPECT_EQ(codes.count("harmless.bin"), 0u);
}

}  // namespace
}  // namespace assay::test
