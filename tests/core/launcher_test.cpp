#include "core/system/launcher.h"

#include <gtest/gtest.h>

#include <map>

#include "core/system/error.h"

namespace assay {
namespace {

using Variables = std::map<std::string, std::string>;

LaunchedRank told(const Variables& variables, const RankRequest& request = {}) {
  return launched_rank(request, [&](const char* name) {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

std::string refusal(const Variables& variables, const RankRequest& request = {}) {
  try {
    told(variables, request);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    return error.line();
  }
  return "taken";
}

TEST(Launcher, EveryOneIsUnderstood) {
  const std::vector<std::pair<std::string, Variables>> all = {
      {"SLURM",
       {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"}, {"SLURMD_NODENAME", "node3"}}},
      {"Open MPI",
       {{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}},
      {"PMI", {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}}},
      {"torchrun", {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}}}};
  for (const auto& [name, variables] : all) {
    const LaunchedRank rank = told(variables);
    EXPECT_EQ(rank.launcher, name);
    EXPECT_EQ(rank.rank, 5u);
    EXPECT_EQ(rank.ranks, 8u);
    EXPECT_EQ(rank.local, 1u);
    EXPECT_FALSE(rank.node.empty());
  }
  EXPECT_EQ(told(all[0].second).node, "node3");
  EXPECT_EQ(told({{"JOB_COMPLETION_INDEX", "5"}}, {.rank = "/8"}).rank, 5u);
  EXPECT_EQ(told({{"JOB_COMPLETION_INDEX", "5"}}, {.rank = "2/8"}).rank, 2u) << "said outright";
  EXPECT_EQ(told({{"RANK", "red"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).launcher, "PMI")
      << "RANK without WORLD_SIZE is anybody's";
}

TEST(Launcher, ContradictionsAndNonsenseAreRefused) {
  const Variables slurm = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}};
  const auto with = [&](Variables more) {
    more.insert(slurm.begin(), slurm.end());
    return more;
  };
  EXPECT_NE(refusal({}).find("nobody says"), std::string::npos);
  EXPECT_NE(refusal(with({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}})).find("SLURM says rank 0 of 4, and PMI"),
            std::string::npos);
  EXPECT_EQ(told(with({{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}})).launcher, "SLURM") << "they agree";
  EXPECT_EQ(told(with({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}), {.launcher = "pmi"}).rank, 1u);
  for (const char* rank : {"4", "-1", "x", "1.5", "99999999999999999999", " 1"})
    EXPECT_NE(refusal({{"SLURM_PROCID", rank}, {"SLURM_NTASKS", "4"}}), "taken") << rank;
  EXPECT_NE(refusal({{"SLURM_PROCID", "0"}}), "taken");
  EXPECT_NE(refusal({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "0"}}), "taken");
  EXPECT_NE(refusal({{"RANK", "0"}}), "taken");
  for (const char* rank : {"3", "4/4", "/4", "1/", "a/b", "1/4/4", "-1/4", "0/0", "1/99999999"})
    EXPECT_NE(refusal({}, {.rank = rank}), "taken") << rank;
  EXPECT_NE(refusal(slurm, {.launcher = "lsf"}), "taken");
  EXPECT_NE(refusal(slurm, {.rank = "0/4", .launcher = "slurm"}), "taken");
}

TEST(Launcher, ARunHasItsName) {
  const Variables slurm = {
      {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "2"}};
  EXPECT_EQ(told(slurm).run, "77.2");
  EXPECT_EQ(told(slurm, {.run = "mine"}).run, "mine");
  Variables again = slurm;
  again["SLURM_RESTART_COUNT"] = "1";
  EXPECT_NE(told(again).run, told(slurm).run) << "a job that was put back into the queue";
  EXPECT_EQ(told({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TORCHELASTIC_RUN_ID", "none"}}).run, "");
  EXPECT_EQ(told({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TORCHELASTIC_RUN_ID", "abc"}}).run, "abc");
  EXPECT_EQ(told({}, {.rank = "0/2"}).run, "");
}

}  // namespace
}  // namespace assay
