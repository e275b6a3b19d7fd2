// A rank of a run under mpirun is killed at a random moment of its life: an error, or the right text.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <iostream>
#include <map>
#include <random>
#include <sstream>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

// $1: which rank, $2: seconds after all ranks were started, $3: of how many; the rest: the launcher and its arguments.
// Says on its last line what it did, and how long the run lived on.
constexpr const char* kKill = R"(
which=$1 moment=$2 ranks=$3; shift 3
"$@" >out 2>err & launcher=$!
for i in $(seq 600); do
  set -- $(cat /proc/$launcher/task/*/children 2>/dev/null)
  [ $# -ge $ranks ] && break
  kill -0 $launcher 2>/dev/null || break
  sleep 0.05
done
sleep $moment
shift $which 2>/dev/null
kill -9 $1 2>/dev/null && what=killed || what=late
begin=$(date +%s%N)
for i in $(seq 600); do kill -0 $launcher 2>/dev/null || break; sleep 0.05; done
kill -0 $launcher 2>/dev/null && { what=hangs; kill -9 $launcher $*; }
wait $launcher
code=$?
echo "$what $(( ($(date +%s%N) - begin) / 1000000 )) $code"
)";

constexpr int kNoHang = 10'000;  // ms

struct Killed {
  std::string what;  // "killed", "late": it had ended, "hangs"
  int lived_on = 0;  // ms
  int exit_code = 0;
  std::string out, err;
};

Killed kill_one(const fs::path& dir, std::size_t rank, double moment,
                const std::vector<std::string>& run_it) {
  fs::create_directories(dir / "tmp");
  std::vector<std::string> words = {"bash", "-c", kKill, "kill", std::to_string(rank), std::to_string(moment),
                                    "4"};
  words.insert(words.end(), run_it.begin(), run_it.end());
  const ProcessResult script =
      run(words, {.directory = dir, .environment = {"TMPDIR=" + (dir / "tmp").string()}, .input = {}});
  Killed killed;
  std::istringstream(script.out) >> killed.what >> killed.lived_on >> killed.exit_code;
  killed.out = read_file(dir / "out");
  killed.err = read_file(dir / "err");
  return killed;
}

// Where Open MPI's launcher itself ends by a fault (PMIx 4.2 does while it tidies up, of 100 runs twice) the files of its
// session stay, which are none of ours.
std::vector<std::string> files_left(const fs::path& folder, const Killed& killed) {
  const bool launcher_fell =
      killed.exit_code == 128 + SIGSEGV && killed.err.find("libpmix") != std::string::npos;
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    if (entry.is_regular_file() && !(launcher_fell && name.starts_with("ompi."))) files.push_back(name);
  }
  return files;
}

std::size_t kills() {
  const char* said = std::getenv("ASSAY_KILLS");
  return said == nullptr ? 2 : std::stoul(said);
}

std::vector<std::string> launched(const std::vector<std::string>& grid) {
  std::vector<std::string> all = {"mpirun",
                                  "--allow-run-as-root",
                                  "--oversubscribe",
                                  "--mca",
                                  "btl",
                                  "self,tcp",
                                  "-n",
                                  "4",
                                  assay_binary(),
                                  "run",
                                  (source_dir() / "data/models/deepseek-v3").string(),
                                  "--tokens",
                                  "5,16,27,38,49",
                                  "--tokens",
                                  "7,9,11",
                                  "-n",
                                  "8"};
  all.insert(all.end(), grid.begin(), grid.end());
  return all;
}

TEST(KilledRanks, EndInAnErrorOrTheRightText) {
  ASSAY_PROGRAM_OR_SKIP("mpirun");
  ASSAY_PROGRAM_OR_SKIP("bash");
  const std::vector<std::vector<std::string>> grids = {
      {"--tp", "4"}, {"--tp", "2", "--pp", "2"}, {"--tp", "2", "--ep", "4", "--dp", "2"}};
  const auto begin = std::chrono::steady_clock::now();
  const ProcessResult whole = run(launched(grids[0]));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (whole.err.find("built without MPI") != std::string::npos) GTEST_SKIP() << "SKIPPED: built without MPI";
  if (whole.exit_code != 0 && whole.err.find("assay:") == std::string::npos)
    GTEST_SKIP() << "SKIPPED: mpirun starts nothing here: " << whole.err;
  std::mt19937_64 random(17);
  std::map<std::string, int> seen;
  int longest = 0;
  for (std::size_t i = 0; i < kills(); ++i) {
    const TempDir dir;
    const std::size_t rank = random() % 4;
    const double moment = seconds * static_cast<double>(random() % 1000) / 1000;
    const Killed killed = kill_one(dir.path(), rank, moment, launched(grids[i % grids.size()]));
    SCOPED_TRACE(std::to_string(i) + ": rank " + std::to_string(rank) + " after " + std::to_string(moment) +
                 " s");
    ++seen[killed.what + (killed.exit_code == 0 ? ", text" : ", error")];
    longest = std::max(longest, killed.lived_on);
    EXPECT_TRUE(killed.what == "killed" || killed.what == "late") << killed.what << killed.err;
    EXPECT_LT(killed.lived_on, kNoHang);
    // A rank may die when the text is told already.
    EXPECT_TRUE(killed.out == whole.out || (killed.out.empty() && killed.exit_code != 0))
        << killed.out << killed.err;
    EXPECT_TRUE(killed.what != "late" || killed.exit_code == 0) << killed.err;
    EXPECT_EQ(files_left(dir / "tmp", killed), std::vector<std::string>());
  }
  for (const auto& [what, count] : seen) std::cout << count << " " << what << '\n';
  std::cout << "the longest lived on for " << longest << " ms\n";
}

}  // namespace
}  // namespace assay::test
