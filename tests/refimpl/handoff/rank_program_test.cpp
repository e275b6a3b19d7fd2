// Ranks on both sides of a hand-off, as processes under mpirun, over folders and sockets: the text of one grid; and where one of
// them is killed at any moment, an error or that text.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "tests/refimpl/handoff/beside.h"

namespace assay::test {
namespace {

const std::vector<std::string> kPrompt = {"--tokens", "5,42,79,20,57,94,35,72,13,50,87,28"};

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
std::vector<std::string> run_of_model(const std::vector<std::string>& more) {
  return joined({"run", (source_dir() / "data/models/deepseek-v3").string(), "-j", "1", "--precision", "f64",
                 "--ignore-eos"},
                more);
}
// `ranks` processes with a folder of their own for what the launcher keeps.
std::vector<std::string> launched(std::size_t ranks, const fs::path& session,
                                  const std::vector<std::string>& more) {
  fs::create_directories(session);
  return joined({"env", "TMPDIR=" + session.string(), "mpirun", "--allow-run-as-root", "--oversubscribe",
                 "--mca", "btl", "self,tcp", "-n", std::to_string(ranks), assay_binary()},
                run_of_model(more));
}

std::string uncut_ids() {
  static const std::string ids = assay(run_of_model(joined(kPrompt, {"-n", "6"}))).out;
  return ids;
}

// Why processes cannot be started here; empty: they can.
std::string look_for_ranks() {
  const TempDir dir;
  const ProcessResult result = run(launched(2, dir / "tmp", joined(kPrompt, {"-n", "1", "--tp", "2"})));
  if (result.err.find("built without MPI") != std::string::npos) return "built without MPI";
  if (result.exit_code != 0 && result.err.find("assay:") == std::string::npos)
    return "mpirun starts nothing here: " + result.err;
  return "";
}

std::string why_no_ranks() {
  static const std::string why = look_for_ranks();
  return why;
}

bool is_free(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return free;
}
// The first of so many, below those that systems give to whoever asks for any.
int free_ports(int count, std::mt19937_64& random) {
  for (;;) {
    const int first = 10'000 + static_cast<int>(random() % 20'000);
    int free = 0;
    while (free < count && is_free(first + free)) ++free;
    if (free == count) return first;
  }
}

std::string place(const TempDir& dir, bool by_socket, std::mt19937_64& random) {
  if (!by_socket) return dir / "parts";
  return "tcp://127.0.0.1:" + std::to_string(free_ports(4, random));
}

// tp 2 on one side, two stages on the other; each launcher with a folder of its own.
std::vector<std::string> prefill_of(const TempDir& dir, const std::string& where, const char* timeout) {
  return launched(2, dir / "tmp2",
                  joined(kPrompt, {"--tp", "2", "--handoff-ranks", "1x2", "--handoff-timeout", timeout,
                                   "--handoff-to", where}));
}
std::vector<std::string> decoder_of(const TempDir& dir, const std::string& where, const char* timeout) {
  return launched(2, dir / "tmp",
                  {"-n", "6", "--pp", "2", "--handoff-ranks", "2", "--handoff-timeout", timeout,
                   "--handoff-from", where});
}
struct TwoSides {
  TwoSides(const TempDir& dir, const std::string& where, const char* timeout)
      : decoder(decoder_of(dir, where, timeout), dir / "out", dir / "err"),
        prefill(prefill_of(dir, where, timeout), dir / "out2", dir / "err2") {}
  Beside decoder, prefill;
};

// Of the launcher's own session files may stay where it is killed itself, or falls while it tidies up.
std::vector<std::string> files_left(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    if (entry.is_regular_file() && !name.starts_with("ompi.")) files.push_back(name);
  }
  return files;
}
std::size_t parts_left(const fs::path& folder) {
  std::size_t parts = 0;
  if (!fs::exists(folder)) return 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) parts += entry.is_regular_file() ? 1 : 0;
  return parts;
}

// Of a text the decoder's tokenizer is opened before its rules are made: its end is a stop there as well, though no config names it.
class RankHandoffOfText : public testing::Test {
 protected:
  RankHandoffOfText() {
    for (const auto& entry : fs::directory_iterator(source_dir() / "data/tinylm"))
      if (const fs::path name = entry.path().filename();
          name != "config.json" && name != "generation_config.json")
        fs::create_symlink(entry.path(), dir_.path() / name);
    nlohmann::json config = nlohmann::json::parse(read_file(source_dir() / "data/tinylm/config.json"));
    config.erase("eos_token_id");
    write_file(dir_ / "config.json", config.dump());
  }
  ProcessResult run_model(const std::vector<std::string>& more) const {
    return assay(joined({"run", dir_.path().string(), "-j", "1", "--precision", "f64"}, more));
  }

  TempDir dir_, places_;
  const std::vector<std::string> text_ = {"-p", "Once upon a time the cat and the dog"};
  const std::string parts_ = places_ / "parts";
};

TEST_F(RankHandoffOfText, EndsWhereTheTokenizerSaysSo) {
  const std::string uncut = run_model(joined(text_, {"-n", "24", "--tp", "2", "--threads-as-ranks"})).out;
  const ProcessResult sent = run_model(joined(text_, {"--handoff-to", parts_, "--handoff-ranks", "2"}));
  ASSERT_EQ(sent.exit_code, 0) << sent.err;
  const ProcessResult taken =
      run_model({"--handoff-from", parts_, "-n", "24", "--tp", "2", "--threads-as-ranks"});
  EXPECT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_EQ(taken.out, uncut);
}

TEST_F(RankHandoffOfText, RanksOfBothSidesAddAlike) {
  ASSERT_EQ(run_model(joined(text_, {"--tp", "2", "--threads-as-ranks", "--handoff-to", parts_,
                                     "--handoff-ranks", "2"}))
                .exit_code,
            0);
  const ProcessResult taken =
      run_model({"--handoff-from", parts_, "-n", "4", "--tp", "2", "--threads-as-ranks", "--handoff-ranks",
                 "2", "--rank-sum", "order"});
  EXPECT_EQ(taken.exit_code, 2);
  EXPECT_NE(taken.err.find("the prefill's ranks add by --rank-sum tree, these by order"), std::string::npos)
      << taken.err;
}

TEST_F(RankHandoffOfText, WhatWouldBeIgnoredIsRefused) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--handoff-from", parts_, "--kv-cache", "int8"},
        {"--tokens", "1,2", "--rank-sum", "order"},
        {"--tokens", "1,2", "--kv-cache", ""}}) {
    const ProcessResult result = run_model(wrong);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST(RankHandoffProgram, WritesTheTextOfOneProcess) {
  ASSAY_PROGRAM_OR_SKIP("mpirun");
  if (const std::string why = why_no_ranks(); !why.empty()) GTEST_SKIP() << "SKIPPED: " << why;
  std::mt19937_64 random(std::random_device{}());
  for (const bool by_socket : {false, true}) {
    const TempDir dir;
    TwoSides sides(dir, place(dir, by_socket, random), "60");
    EXPECT_EQ(sides.prefill.wait(60), 0) << sides.prefill.err();
    EXPECT_EQ(sides.decoder.wait(60), 0) << sides.decoder.err();
    EXPECT_EQ(sides.decoder.out(), uncut_ids());
    EXPECT_EQ(parts_left(dir / "parts"), 0U);
  }
}

std::size_t rank_kills() {
  const char* said = std::getenv("ASSAY_KILLS");
  return said == nullptr ? 2 : std::stoul(said);
}

// One rank of the four, when all of them are there.
bool kill_one_of(const TwoSides& sides, std::mt19937_64& random, double moment) {
  const Beside& side = random() % 2 == 0 ? sides.decoder : sides.prefill;
  for (const auto until = BesideClock::now() + std::chrono::seconds(30); BesideClock::now() < until;) {
    if (side.children().size() >= 2) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(moment));
  const std::vector<pid_t> ranks = side.children();
  return !ranks.empty() && ::kill(ranks[random() % ranks.size()], SIGKILL) == 0;
}

TEST(RankHandoffProgram, SurvivesKills) {
  ASSAY_PROGRAM_OR_SKIP("mpirun");
  if (const std::string why = why_no_ranks(); !why.empty()) GTEST_SKIP() << "SKIPPED: " << why;
  std::mt19937_64 random(17), ports(std::random_device{}());
  std::map<std::string, int> seen;
  for (std::size_t i = 0; i < rank_kills(); ++i) {
    const TempDir dir;
    const bool by_socket = i % 2 == 1;
    SCOPED_TRACE(std::to_string(i) + (by_socket ? ", sockets" : ", folders"));
    TwoSides sides(dir, place(dir, by_socket, ports), "1.5");
    const bool killed = kill_one_of(sides, random, static_cast<double>(random() % 600) / 1000);
    const int prefill = sides.prefill.wait(kNoHang), decoder = sides.decoder.wait(kNoHang);
    // Open MPI's launcher may not end though all its ranks did (PMIx 4.2, where one dies while another begins).
    ASSERT_TRUE(prefill != -1 || sides.prefill.children().empty()) << "hangs: " << sides.prefill.err();
    ASSERT_TRUE(decoder != -1 || sides.decoder.children().empty()) << "hangs: " << sides.decoder.err();
    if (prefill == -1 || decoder == -1) ++seen["launcher that did not end by itself"];
    if (prefill == -1) sides.prefill.kill();
    if (decoder == -1) sides.decoder.kill();
    ++seen[std::string(killed ? "killed, " : "late, ") + (decoder == 0 ? "text" : "error")];
    // A rank may die when the text is told already.
    EXPECT_TRUE(sides.decoder.out() == uncut_ids() || (decoder != 0 && sides.decoder.out().empty()))
        << sides.decoder.out() << sides.decoder.err();
    for (const char* session : {"tmp", "tmp2"})
      EXPECT_EQ(files_left(dir / session), std::vector<std::string>());
    if (by_socket) continue;
    // The next ones, in the same folders.
    Beside prefill_again(prefill_of(dir, dir / "parts", "60"), dir / "out2", dir / "err2");
    EXPECT_EQ(prefill_again.wait(60), 0) << prefill_again.err();
    Beside decoder_again(decoder_of(dir, dir / "parts", "60"), dir / "out", dir / "err");
    EXPECT_EQ(decoder_again.wait(60), 0) << decoder_again.err();
    EXPECT_EQ(decoder_again.out(), uncut_ids());
    EXPECT_EQ(parts_left(dir / "parts"), 0U);
  }
  for (const auto& [what, count] : seen) std::cout << count << " " << what << '\n';
}

}  // namespace
}  // namespace assay::test
