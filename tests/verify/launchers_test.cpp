// What docs/nodes.md shows, run as it stands there with processes as nodes; and a launcher of the real kind.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "core/system/sanitizer.h"
#include "tests/support/paths.h"
#include "tests/support/small_model.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;

// The block after the heading, as it stands in docs/nodes.md.
std::string block_of(const std::string& heading) {
  const std::string page = read_file(source_dir() / "docs/nodes.md");
  const auto at = page.find("\n## " + heading + "\n");
  const auto begin = page.find('\n', page.find("\n```", at) + 1) + 1;
  return page.substr(begin, page.find("\n```", begin) + 1 - begin);
}

// Starts the command of its arguments once for each of 8 tasks on 4 nodes, as srun does; fails as the worst of them.
constexpr const char* kSrun = R"(#!/bin/bash
step=$(($(cat "$STEPS" 2>/dev/null || echo -1) + 1)); echo $step > "$STEPS"
worst=0; children=()
for ((task = 0; task < 8; ++task)); do
  SLURM_JOB_ID=4711 SLURM_STEP_ID=$step SLURM_PROCID=$task SLURM_NTASKS=8 SLURM_LOCALID=$((task % 2)) \
    SLURMD_NODENAME=node$((task / 2)) "$@" & children+=($!)
done
for child in "${children[@]}"; do wait $child || worst=1; done
exit $worst
)";

class Launchers : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = write_small_model(dir_ / "m");
    ASSERT_EQ(assay({"manifest", model_.folder.string(), "--hash", "-o", manifest()}).exit_code, 0);
  }
  std::string manifest() const { return (dir_ / "list").string(); }
  std::string path() const {
    return fmt::format("PATH={}:{}:{}", (dir_ / "bin").string(),
                       fs::path(assay_binary()).parent_path().string(), std::getenv("PATH"));
  }
  void write_program(const std::string& name, const std::string& text) {
    write_file(dir_ / "bin" / name, text);
    fs::permissions(dir_ / "bin" / name, fs::perms::owner_all);
  }
  void damage() {
    std::string bytes = read_file(model_.folder / model_.shards[1]);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    write_file(model_.folder / model_.shards[1], bytes);
  }
  TempDir dir_;
  SmallModel model_;
};

TEST_F(Launchers, TheBatchScriptRunsAsItStands) {
  write_program("srun", kSrun);
  write_file(dir_ / "job", block_of("SLURM"));
  const auto run_job = [&] {
    return run(
        {"bash", "-e", (dir_ / "job").string()},
        {.directory = {},
         .environment = {path(), "MODEL=" + model_.folder.string(), "MANIFEST=" + manifest(),
                         "FOLDER=" + (dir_ / "receipts").string(), "STEPS=" + (dir_ / "steps").string()},
         .input = {}});
  };
  const ProcessResult good = run_job();
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  EXPECT_NE(good.out.find("OK: 8 parts of one copy from 8 ranks"), std::string::npos) << good.out;
  EXPECT_NE(good.out.find("OK: 4 copies from 8 ranks"), std::string::npos) << good.out;
  damage();
  const ProcessResult bad = run_job();
  EXPECT_NE(bad.exit_code, 0);
  EXPECT_NE(bad.out.find(model_.shards[1] + ": FAILED"), std::string::npos) << bad.out;
}

TEST_F(Launchers, TheIndexedJobRunsAsItStands) {
  const std::string yaml = block_of("Kubernetes");
  const auto begin = yaml.find("command: [") + std::string("command: ").size();
  json command = json::parse(yaml.substr(begin, yaml.find(']', begin) + 1 - begin));
  std::vector<std::string> words;
  for (std::string word : command) {
    if (word == "/models/m") word = model_.folder.string();
    if (word == "/models/m.json") word = manifest();
    if (word == "/shared/receipts") word = (dir_ / "receipts").string();
    if (word == "$(JOB_NAME)") word = "one";
    words.push_back(word);
  }
  words[0] = assay_binary();
  for (const int index : {3, 1, 2, 0}) {
    const ProcessResult pod =
        run(words,
            {.directory = {}, .environment = {fmt::format("JOB_COMPLETION_INDEX={}", index)}, .input = {}});
    EXPECT_EQ(pod.exit_code, 0) << pod.out << pod.err;
    if (index == 0) {
      EXPECT_NE(pod.out.find("OK: 4 parts of one copy from 4 ranks"), std::string::npos) << pod.out;
    }
  }
}

// 64 ranks by Open MPI's own launcher. One does not start.
TEST_F(Launchers, OpenMpiStartsSixtyFourRanks) {
  ASSAY_PROGRAM_OR_SKIP("mpirun");
  write_program("wrapped", "#!/bin/bash\n[ \"$OMPI_COMM_WORLD_RANK\" = \"$ABSENT\" ] || exec \"$@\"\n");
  const auto ranks = [&](const std::string& absent) {
    return run({"mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,tcp", "-n", "64",
                (dir_ / "bin/wrapped").string(), "assay", "verify", model_.folder.string(), "--share",
                "--manifest", manifest(), "--gather", (dir_ / "receipts").string(), "--gather-timeout",
                absent.empty() ? "60s" : "10s"},
               {.directory = {}, .environment = {path(), "ABSENT=" + absent}, .input = {}});
  };
  const ProcessResult good = ranks("");
  if (good.exit_code != 0 && good.out.empty())
    GTEST_SKIP() << "SKIPPED: mpirun starts nothing here: " << good.err;
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  EXPECT_NE(good.out.find("OK: 64 parts of one copy from 64 ranks"), std::string::npos) << good.out;
  const ProcessResult one_less = ranks("17");
  EXPECT_NE(one_less.exit_code, 0);
  EXPECT_NE(one_less.out.find("1 of them wrong: rank 17"), std::string::npos) << one_less.out;
  damage();
  const ProcessResult bad = ranks("");
  EXPECT_NE(bad.exit_code, 0);
  EXPECT_NE(bad.out.find(model_.shards[1] + ": FAILED"), std::string::npos) << bad.out;
}

}  // namespace
}  // namespace assay::test
