// Which of how many processes this one is, as whoever started them says in the environment: no MPI is linked, so that one
// program serves every site.
//
//   srun -N 4 assay verify …                   SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, SLURMD_NODENAME
//   mpirun assay verify …                      OMPI_COMM_WORLD_RANK, …_SIZE, …_LOCAL_RANK; PMI_RANK, PMI_SIZE
//   torchrun --no-python assay verify …        RANK, WORLD_SIZE, LOCAL_RANK
//   assay verify … --rank 3/8                  said outright
//   assay verify … --rank /8                   the rank is JOB_COMPLETION_INDEX (an indexed Kubernetes job)
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace assay {

inline constexpr std::uint32_t kMostRanks = 1'000'000;

struct LaunchedRank {
  std::string launcher;  // "SLURM", "Open MPI", …; "--rank"
  std::uint32_t rank = 0, ranks = 1;
  std::optional<std::uint32_t> local;  // which of the processes on its node; unknown: the only one
  std::string node;                    // its name, as the launcher or the system has it
  std::string run;                     // what this run is called, and no other; empty: nobody says
};

// What the user adds to the environment; empty: nothing.
struct RankRequest {
  std::string rank;      // --rank
  std::string launcher;  // --launcher: whom to believe where several speak
  std::string run;       // --run-id
};

using Environment = std::function<const char*(const char*)>;
const char* process_environment(const char* name);

// Throws Error::usage where nobody says, where two launchers contradict each other, and for numbers that are none.
LaunchedRank launched_rank(const RankRequest& request, const Environment& environment = process_environment);

// "rank 3 of 8 on node17"
std::string describe(const LaunchedRank& rank);

}  // namespace assay
