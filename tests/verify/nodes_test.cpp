// Many ranks, here processes with the variables of each launcher: one verdict that names exactly what is wrong.
#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "core/system/sanitizer.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"
#include "tests/verify/nodes.h"

namespace assay::test {
namespace {

struct Launcher {
  std::string name;
  std::function<Words(int rank, int ranks)> environment;
  Words options;
};

std::vector<Launcher> launchers() {
  const auto pair = [](const char* rank, const char* ranks, const char* local, Words more) {
    return [=](int r, int n) {
      Words words = {fmt::format("{}={}", rank, r), fmt::format("{}={}", ranks, n),
                     fmt::format("{}=0", local)};
      words.insert(words.end(), more.begin(), more.end());
      return words;
    };
  };
  return {{"slurm", pair("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", {"SLURM_JOB_ID=77"}), {}},
          {"openmpi",
           pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                {"PMIX_NAMESPACE=77"}),
           {}},
          {"pmi", pair("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", {}), {"--run-id", "77"}},
          {"torchrun", pair("RANK", "WORLD_SIZE", "LOCAL_RANK", {"TORCHELASTIC_RUN_ID=77"}), {}},
          {"kubernetes",
           [](int r, int) { return Words{fmt::format("JOB_COMPLETION_INDEX={}", r)}; },
           {"--rank", fmt::format("/{}", kRanks), "--run-id", "77"}}};
}

ProcessOptions killed_after_it_began(Words environment) {
  const fs::path library = plugin_dir().parent_path() / "preload/killing_steps.so";
  environment.push_back("LD_PRELOAD=" + library.string());
  environment.emplace_back("ASSAY_KILL_BEFORE=4");  // what tells of the begin takes three steps
  return {.directory = {}, .environment = environment, .input = {}};
}

// Of 64 nodes with copies of their own: 5 has a flipped byte, 9 is killed, 13's receipt is of another run, 21 never began.
TEST_F(Nodes, OfSixtyFourCopiesExactlyTheBadAreNamed) {
  if (kSanitized) GTEST_SKIP() << "SKIPPED: the sanitizer's own library has to come first";
  const std::size_t kShard = 20'000;
  for (int rank = 0; rank < kRanks; ++rank) write_model(dir_ / fmt::format("node{}", rank), {kShard, kShard});
  const std::string list = manifest(dir_ / "node0", {"--chunks", "4KiB"});
  flip_byte(dir_ / "node5/model-00002-of-00002.safetensors", 10'000);
  for (const Launcher& launcher : launchers()) {
    SCOPED_TRACE(launcher.name);
    fs::remove_all(folder());
    const auto words = [&](int rank) {
      return join({"verify", (dir_ / fmt::format("node{}", rank)).string(), "--every-node", "--manifest",
                   list, "--gather", folder(), "-j", "1", "--gather-timeout", "0s"},
                  launcher.options);
    };
    const auto one = [&](int rank) {
      const Words environment = launcher.environment(rank, kRanks);
      return assay(words(rank),
                   rank == 9 ? killed_after_it_began(environment)
                             : ProcessOptions{.directory = {}, .environment = environment, .input = {}});
    };
    const Words stale = join(launcher.environment(13, kRanks),
                             {"SLURM_JOB_ID=76", "PMIX_NAMESPACE=76", "TORCHELASTIC_RUN_ID=76"});
    Words before = words(13);
    std::replace(before.begin(), before.end(), std::string("77"), std::string("76"));
    ASSERT_EQ(assay(before, {.directory = {}, .environment = stale, .input = {}}).exit_code, 0);
    const auto results = launch(all_but({13, 21}), one);
    for (const auto& [rank, result] : results)
      EXPECT_EQ(result.exit_code, rank == 9 ? 137 : 0) << rank << result.err;
    const ProcessResult verdict =
        assay(join(words(0), {"--json", "-"}),
              {.directory = {}, .environment = launcher.environment(0, kRanks), .input = {}});
    EXPECT_EQ(verdict.exit_code, 1) << verdict.err;
    EXPECT_EQ(faults(verdict), (std::set<std::string>{"file@5:model-00002-of-00002.safetensors 8192-12287",
                                                      "killed@9:", "stale@13:", "missing@21:"}));
  }
}

TEST_F(Nodes, ShareOneCopyAndMissNothing) {
  write_model(dir_ / "m", {5'000, 60'000, 20'000, 20'000, 1'000, 300'000});
  for (const Words& how : {Words{"--hash"}, Words{"--chunks", "4KiB"}}) {
    SCOPED_TRACE(how[0]);
    const std::string list = manifest(dir_ / "m", how);
    const auto verdict = [&](std::set<int> left_out, int ranks) {
      fs::remove_all(folder());
      const auto one = [&](int rank) {
        return assay({"verify", (dir_ / "m").string(), "--share", "--manifest", list, "--gather", folder(),
                      "--run-id", "a", "--rank", fmt::format("{}/{}", rank, ranks), "--json", "-", "-j", "2",
                      "--gather-timeout", "0s"});
      };
      launch(all_but(left_out, ranks), one);
      return one(0);
    };
    for (const int ranks : {1, 2, 7, 20}) {
      const ProcessResult good = verdict({}, ranks);
      EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
      const json document = json::parse(good.out);
      EXPECT_EQ(document.at("verdict"), "ok");
      EXPECT_EQ(document.at("summary").at("files"), 8) << "six shards, an index, a config";
    }
    EXPECT_EQ(faults(verdict({1}, 3)), std::set<std::string>{"missing@1:"});
    for (const std::uint64_t at : {200ull, 150'000ull, 299'999ull}) {
      const fs::path file = dir_ / "m/model-00006-of-00006.safetensors";
      flip_byte(file, at);
      const ProcessResult bad = verdict({}, 5);
      EXPECT_EQ(bad.exit_code, 1);
      const auto found = faults(bad);
      ASSERT_EQ(found.size(), 1u) << bad.out;
      EXPECT_NE(found.begin()->find("model-00006-of-00006.safetensors"), std::string::npos);
      const auto chunk = at / 4096 * 4096;
      if (how[0] == "--chunks") {
        EXPECT_NE(found.begin()->find(fmt::format(" {}-", chunk)), std::string::npos) << *found.begin();
      }
      flip_byte(file, at);
    }
    const fs::path moved = dir_ / "away";
    fs::rename(dir_ / "m/model-00003-of-00006.safetensors", moved);
    EXPECT_EQ(verdict({}, 4).exit_code, 1);
    fs::rename(moved, dir_ / "m/model-00003-of-00006.safetensors");
    write_file(dir_ / "m/more.py", "x");
    const ProcessResult more = verdict({}, 4);
    EXPECT_EQ(more.exit_code, assay({"verify", (dir_ / "m").string(), "--manifest", list}).exit_code);
    fs::remove(dir_ / "m/more.py");
  }
}

// By what the kernel is asked for: of weights each byte once, and besides only the headers, which rank 0 looks at.
TEST_F(Nodes, ShareReadsEachByteOnce) {
  ASSAY_PROGRAM_OR_SKIP("strace");
  if (kSanitized) GTEST_SKIP() << "SKIPPED: a sanitizer takes address space of its own";
  write_model(dir_ / "m", {70'000, 300'000, 20'001, 2'000'000});
  for (const Words& how : {Words{"--hash"}, Words{"--chunks", "16KiB"}}) {
    const std::string list = manifest(dir_ / "m", how);
    const fs::path traces = dir_ / ("traces" + how[0]);
    fs::create_directory(traces);
    for (int rank = 0; rank < 3; ++rank) {
      const ProcessResult result =
          run({"strace", "-y", "-ff", "-e", "trace=read,pread64,preadv,preadv2,readv", "-o",
               (traces / fmt::format("{}", rank)).string(), assay_binary(), "verify", (dir_ / "m").string(),
               "--share", "--rank", fmt::format("{}/3", rank), "--manifest", list});
      if (result.err.find("Operation not permitted") != std::string::npos)
        GTEST_SKIP() << "SKIPPED: no process may be traced here";
      ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
    }
    std::map<std::string, std::uint64_t> read;
    const std::regex line("\\d+<.*/m/(model-[^/>]*safetensors)>.* = (\\d+)");
    for (const auto& trace : fs::directory_iterator(traces)) {
      std::ifstream file(trace.path());
      for (std::string text; std::getline(file, text);) {
        std::smatch match;
        if (std::regex_search(text, match, line)) read[match[1]] += std::stoull(match[2]);
      }
    }
    ASSERT_EQ(read.size(), 4u);
    for (const auto& [name, bytes] : read) {
      const std::string contents = read_file(dir_ / "m" / name);
      const std::uint64_t header = 8 + static_cast<unsigned char>(contents[0]);
      EXPECT_GE(bytes, contents.size());
      EXPECT_LE(bytes, contents.size() + header + 8) << name << " " << how[0];
    }
  }
}

TEST_F(Nodes, WhatCannotBeCutIsSaid) {
  write_model(dir_ / "m", {1'000, 900'000});
  const auto said = [&](const Words& how) {
    return assay({"verify", (dir_ / "m").string(), "--share", "--rank", "0/4", "--manifest",
                  manifest(dir_ / "m", how)})
        .out;
  };
  EXPECT_NE(said({"--hash"}).find("one rank reads all of it"), std::string::npos);
  EXPECT_EQ(said({"--chunks", "16KiB"}).find("one rank reads all of it"), std::string::npos);
}

// Without anybody's digests, copies are compared with each other.
TEST_F(Nodes, CopiesThatDifferAreNamedWithoutAManifest) {
  const auto path = [&](int rank) { return dir_ / fmt::format("node{}", rank); };
  for (int rank = 0; rank < 5; ++rank) write_model(path(rank), {20'000, 30'000});
  const auto verdict = [&](int ranks) {
    fs::remove_all(folder());
    const auto one = [&](int rank) {
      return assay({"verify", path(rank).string(), "--every-node", "--gather", folder(), "--run-id", "a",
                    "--rank", fmt::format("{}/{}", rank, ranks), "--json", "-", "--gather-timeout", "0s"});
    };
    launch(all_but({}, ranks), one);
    return one(0);
  };
  const ProcessResult alike = verdict(5);
  EXPECT_EQ(alike.exit_code, 0) << alike.out;
  EXPECT_EQ(json::parse(alike.out).at("roots").size(), 1u);
  flip_byte(path(3) / "model-00001-of-00002.safetensors", 5'000);
  const ProcessResult odd = verdict(5);
  EXPECT_EQ(odd.exit_code, 1);
  EXPECT_EQ(faults(odd).size(), 1u) << odd.out;
  EXPECT_TRUE(faults(odd).begin()->starts_with("differs@3:model-00001-of-00002.safetensors 0-")) << odd.out;
  EXPECT_EQ(json::parse(odd.out).at("roots").at(0).at("who").size(), 4u);
  flip_byte(path(1) / "model-00001-of-00002.safetensors", 5'001);
  const ProcessResult two = verdict(2);
  EXPECT_EQ(two.exit_code, 1);
  EXPECT_EQ(json::parse(two.out).at("majority"), false);
}

TEST_F(Nodes, OfANodeOneRankWorks) {
  write_model(dir_ / "m", {20'000});
  const std::string list = manifest(dir_ / "m");
  const auto one = [&](int rank) {
    return assay({"verify", (dir_ / "m").string(), "--every-node", "--gather", folder(), "--manifest", list,
                  "--gather-timeout", "0s"},
                 {.directory = {},
                  .environment = {fmt::format("SLURM_PROCID={}", rank), "SLURM_NTASKS=4",
                                  fmt::format("SLURM_LOCALID={}", rank % 2), "SLURM_JOB_ID=5",
                                  fmt::format("SLURMD_NODENAME=n{}", rank / 2)},
                  .input = {}});
  };
  const auto results = launch({1, 2, 3}, one);
  EXPECT_NE(results.at(1).out.find("nothing to do"), std::string::npos) << results.at(1).out;
  EXPECT_NE(results.at(2).out.find("OK"), std::string::npos) << results.at(2).out;
  const ProcessResult verdict = one(0);
  EXPECT_EQ(verdict.exit_code, 0) << verdict.out;
  EXPECT_NE(verdict.out.find("2 copies from 4 ranks"), std::string::npos) << verdict.out;
}

TEST_F(Receivers, MergeSaysWhatGatherSays) {
  ASSERT_EQ(one(0).exit_code, 0);
  const ProcessResult good = merged();
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  fs::remove(receipt(2));
  const ProcessResult missing = merged();
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.out.find("rank 2"), std::string::npos) << missing.out;
  const ProcessResult two = assay({"verify", "--merge", receipt(0).string(), receipt(1).string()});
  EXPECT_EQ(two.exit_code, 1) << two.out;
}

TEST_F(Receivers, HostileReceiptsAreNamedAndHarmless) {
  const std::string good = read_file(receipt(2));
  const auto verdict = [&] { return one(0, {"--json", "-"}); };
  const auto expect = [&](const std::string& kind) {
    const ProcessResult result = verdict();
    EXPECT_EQ(result.exit_code, 1) << kind;
    EXPECT_EQ(faults(result), std::set<std::string>{kind + "@2:"}) << result.out;
  };
  const auto edited = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << text;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  };
  write_file(receipt(2), good.substr(0, good.size() / 2));
  expect("damaged");
  write_file(receipt(2), std::string(1 << 20, '['));
  expect("damaged");
  EXPECT_NE(one(0).out.find("its receipt is no receipt, or a damaged one: JSON text is nested"),
            std::string::npos)
      << one(0).out;
  write_file(receipt(2), "");
  expect("damaged");
  write_file(receipt(2), edited("\"run\": \"a\"", "\"run\": \"b\""));
  expect("stale");
  write_file(receipt(2), edited("\"rank\": 2", "\"rank\": 1"));
  expect("foreign");
  write_file(receipt(2), edited("\"list\": \"sha256:", "\"list\": \"sha256:00"));
  expect("foreign");
  write_file(receipt(2), edited("\"name\": \"", "\"name\": \"../"));
  expect("damaged");
  const std::string name = json::parse(good).at("files").at(0).at("name");
  write_file(receipt(2), edited("\"status\": \"ok\"", "\"status\": \"unchecked\""));
  EXPECT_EQ(verdict().exit_code, 1) << "a file that was left out";
  json less = json::parse(good);
  less["files"] = json::array();
  write_file(receipt(2), less.dump());
  EXPECT_EQ(verdict().exit_code, 1) << "a receipt that leaves out a file";
  write_file(dir_ / "elsewhere", good);
  fs::remove(receipt(2));
  fs::create_symlink(dir_ / "elsewhere", receipt(2));
  expect("damaged");
  fs::remove(receipt(2));
  fs::create_directory(receipt(2));
  expect("damaged");
  fs::remove(receipt(2));
  ASSERT_EQ(::mkfifo(receipt(2).c_str(), 0600), 0);
  expect("damaged");
  fs::remove(receipt(2));
  write_file(receipt(2), good);
  EXPECT_EQ(verdict().exit_code, 0) << "the receipt was good all along";
}

TEST_F(Receivers, AReceiptDoesNotFollowALink) {
  write_file(dir_ / "precious", "mine");
  fs::remove(receipt(2));
  fs::create_symlink(dir_ / "precious", receipt(2));
  EXPECT_EQ(one(2).exit_code, 0);
  EXPECT_EQ(read_file(dir_ / "precious"), "mine");
  EXPECT_FALSE(fs::is_symlink(receipt(2)));
}

TEST_F(Receivers, AKeyTellsForgeries) {
  write_file(dir_ / "key", "0123456789abcdef0123456789abcdef");
  const Words key = {"--receipt-key", (dir_ / "key").string()};
  for (int rank = 1; rank < 4; ++rank) one(rank, key);
  EXPECT_EQ(one(0, key).exit_code, 0);
  EXPECT_EQ(merged(key).exit_code, 0);
  std::string text = read_file(receipt(3));
  text.replace(text.find("\"verified_unix\""), 1, " \"");
  write_file(receipt(3), text);
  const ProcessResult forged = one(0, key);
  EXPECT_EQ(forged.exit_code, 1);
  EXPECT_NE(forged.out.find("rank 3"), std::string::npos) << forged.out;
  one(3);
  EXPECT_EQ(one(0, key).exit_code, 1) << "one without a code";
}

TEST_F(Receivers, OneOfAPartIsNoneOfTheWhole) {
  ASSERT_EQ(one(0).exit_code, 0);
  const ProcessResult check =
      assay({"verify", (dir_ / "m").string(), "--check-receipt", receipt(0).string()});
  EXPECT_EQ(check.exit_code, 1) << check.out;
  EXPECT_NE(check.out.find("one of many ranks"), std::string::npos) << check.out;
}

TEST_F(Nodes, NonsenseIsRefusedInOneLine) {
  write_model(dir_ / "m", {1'000});
  const auto refused = [&](const Words& more, const Words& environment = {}) {
    const ProcessResult result = assay(join({"verify", (dir_ / "m").string()}, more),
                                       {.directory = {}, .environment = environment, .input = {}});
    EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  refused({"--share"});
  refused({"--share"},
          {"SLURM_PROCID=1", "SLURM_NTASKS=4", "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4"});
  refused({"--share", "--rank", "4/4"});
  refused({"--share", "--every-node", "--rank", "0/4"});
  refused({"--share", "--rank", "0/4", "--gather", folder()});
  refused({"--share", "--rank", "0/4", "--run-id", "a", "--gather", (dir_ / "m/sub").string()});
  refused({"--share", "--rank", "0/4", "--state", (dir_ / "state").string()});
  refused({"--share", "--rank", "0/4", "--quick"});
  refused({"--gather", folder()});
  write_file(dir_ / "file", "");
  refused({"--share", "--rank", "0/4", "--run-id", "a", "--gather", (dir_ / "file/sub").string()});
  refused({"--share", "--rank", "0/4", "--run-id", "a", "--gather", folder(), "--gather-timeout", "soon"});
}

}  // namespace
}  // namespace assay::test
