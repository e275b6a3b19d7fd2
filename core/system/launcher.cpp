#include "core/system/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

constexpr std::size_t kLongestName = 255;

using Names = std::vector<const char*>;  // the first that is set is meant

struct Dialect {
  const char* option;  // what --launcher calls it
  const char* launcher;
  Names rank, ranks, local;
};

const std::vector<Dialect>& dialects() {
  static const std::vector<Dialect> all = {
      {"slurm",
       "SLURM",
       {"SLURM_PROCID"},
       {"SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "SLURM_NPROCS"},
       {"SLURM_LOCALID"}},
      {"openmpi",
       "Open MPI",
       {"OMPI_COMM_WORLD_RANK"},
       {"OMPI_COMM_WORLD_SIZE"},
       {"OMPI_COMM_WORLD_LOCAL_RANK"}},
      {"pmi", "PMI", {"PMI_RANK"}, {"PMI_SIZE"}, {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"}},
      {"torchrun", "torchrun", {"RANK"}, {"WORLD_SIZE"}, {"LOCAL_RANK"}}};
  return all;
}

struct Variable {
  std::string_view name, value;
};

std::optional<Variable> first_of(const Names& names, const Environment& environment) {
  for (const char* name : names) {
    const char* value = environment(name);
    if (value != nullptr && *value != '\0') return Variable{name, value};
  }
  return std::nullopt;
}

std::uint32_t number(std::string_view name, std::string_view text) {
  const auto value = parse_u64(text);
  if (!value || *value > kMostRanks)
    throw Error::usage(
        fmt::format("{} is '{}', which is not a number of processes", name, escape_for_terminal(text)))
        .remedy("say which this one is: --rank 0/8");
  return static_cast<std::uint32_t>(*value);
}

void check(const LaunchedRank& told) {
  if (told.ranks == 0) throw Error::usage(fmt::format("{} says that there are 0 ranks", told.launcher));
  if (told.rank >= told.ranks)
    throw Error::usage(
        fmt::format("{} says rank {} of {}: they are counted from 0", told.launcher, told.rank, told.ranks));
  if (told.local && *told.local >= told.ranks)
    throw Error::usage(
        fmt::format("{} says process {} of its node, of {} in all", told.launcher, *told.local, told.ranks));
}

// nullopt where this launcher did not start us.
std::optional<LaunchedRank> told_by(const Dialect& dialect, const Environment& environment) {
  const auto rank = first_of(dialect.rank, environment);
  if (!rank) return std::nullopt;
  const auto ranks = first_of(dialect.ranks, environment);
  if (!ranks)
    throw Error::usage(fmt::format("{} is set and {} is not", rank->name, dialect.ranks[0]))
        .remedy("say both: --rank 0/8");
  LaunchedRank told{.launcher = dialect.launcher,
                    .rank = number(rank->name, rank->value),
                    .ranks = number(ranks->name, ranks->value),
                    .local = {},
                    .node = {},
                    .run = {}};
  if (const auto local = first_of(dialect.local, environment)) told.local = number(local->name, local->value);
  check(told);
  return told;
}

LaunchedRank told_outright(std::string_view text, const Environment& environment) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos)
    throw Error::usage(fmt::format("--rank is '{}'", escape_for_terminal(text))).remedy("write it as 0/8");
  std::string_view rank = text.substr(0, slash);
  if (rank.empty()) {
    const auto index = first_of({"JOB_COMPLETION_INDEX"}, environment);
    if (!index)
      throw Error::usage("--rank names no rank, and JOB_COMPLETION_INDEX is not set")
          .remedy("write it as 0/8");
    rank = index->value;
  }
  LaunchedRank told{.launcher = "--rank",
                    .rank = number("--rank", rank),
                    .ranks = number("--rank", text.substr(slash + 1)),
                    .local = {},
                    .node = {},
                    .run = {}};
  check(told);
  return told;
}

void refuse_contradiction(const LaunchedRank& a, const LaunchedRank& b) {
  const bool local = !a.local || !b.local || a.local == b.local;
  if (a.rank == b.rank && a.ranks == b.ranks && local) return;
  const auto words = [](const LaunchedRank& told) {
    return fmt::format("{} says rank {} of {}{}", told.launcher, told.rank, told.ranks,
                       told.local ? fmt::format(" (process {} of its node)", *told.local) : "");
  };
  throw Error::usage(fmt::format("{}, and {}", words(a), words(b)))
      .remedy("say whom to believe, --launcher slurm|openmpi|pmi|torchrun, or the rank: --rank 0/8");
}

LaunchedRank told_by_environment(const std::string& only, const Environment& environment) {
  std::optional<LaunchedRank> told;
  std::optional<Error> half;
  bool known = only.empty();
  for (const Dialect& dialect : dialects()) {
    if (!only.empty() && only != dialect.option) continue;
    known = true;
    std::optional<LaunchedRank> other;
    try {
      other = told_by(dialect, environment);
    } catch (const Error& error) {
      // RANK is anybody's name: without WORLD_SIZE it counts only where nobody else speaks.
      const bool anybodys =
          std::string_view(dialect.option) == "torchrun" && environment("WORLD_SIZE") == nullptr;
      if (!anybodys) throw;
      half = error;
      continue;
    }
    if (told && other) refuse_contradiction(*told, *other);
    if (other && told && !told->local) told->local = other->local;
    if (!told) told = std::move(other);
  }
  if (!known)
    throw Error::usage(fmt::format("--launcher is '{}'", escape_for_terminal(only)))
        .remedy("it is one of slurm, openmpi, pmi, torchrun");
  if (told) return *told;
  if (half) throw *half;
  throw Error::usage("nobody says which of how many processes this is")
      .remedy("start it by srun, mpirun or torchrun, or say --rank 0/8");
}

std::string name_of_node(const Environment& environment) {
  if (const auto name = first_of({"SLURMD_NODENAME", "SLURM_NODENAME"}, environment))
    return std::string(name->value);
  std::array<char, kLongestName + 1> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) return "unknown";
  return host.data();
}

std::string text_of(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string slurm_run(const Environment& environment) {
  std::string run = text_of(environment, "SLURM_JOB_ID");
  if (run.empty()) run = text_of(environment, "SLURM_JOBID");
  if (run.empty()) return run;
  if (const std::string step = text_of(environment, "SLURM_STEP_ID"); !step.empty()) run += "." + step;
  if (const std::string again = text_of(environment, "SLURM_RESTART_COUNT"); !again.empty() && again != "0")
    run += " restarted " + again;
  return run;
}

std::string torchrun_run(const Environment& environment) {
  std::string run = text_of(environment, "TORCHELASTIC_RUN_ID");
  if (run.empty() || run == "none") return {};  // "none" is what it is called where nobody named it
  if (const std::string again = text_of(environment, "TORCHELASTIC_RESTART_COUNT");
      !again.empty() && again != "0")
    run += " restarted " + again;
  return run;
}

// What the launcher that told the rank calls this run; else what any other does.
std::string name_of_run(const std::string& launcher, const Environment& environment) {
  std::string run;
  if (launcher == "Open MPI") {
    for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid"}) {
      if (run.empty()) run = text_of(environment, name);
    }
  }
  if (launcher == "torchrun") run = torchrun_run(environment);
  if (run.empty()) run = slurm_run(environment);
  if (run.empty()) run = torchrun_run(environment);
  for (const char* name : {"PBS_JOBID", "LSB_JOBID"}) {
    if (run.empty()) run = text_of(environment, name);
  }
  return run;
}

}  // namespace

const char* process_environment(const char* name) {
  return std::getenv(name);
}

LaunchedRank launched_rank(const RankRequest& request, const Environment& environment) {
  if (!request.rank.empty() && !request.launcher.empty())
    throw Error::usage("--rank says what --launcher is to say").remedy("leave one of them out");
  LaunchedRank told = request.rank.empty() ? told_by_environment(request.launcher, environment)
                                           : told_outright(request.rank, environment);
  told.node = name_of_node(environment);
  told.run = request.run.empty() ? name_of_run(told.launcher, environment) : request.run;
  for (const std::string* name : {&told.node, &told.run}) {
    if (name->size() > kLongestName || !is_valid_utf8(*name))
      throw Error::usage("the name of this run or node is no text of at most 255 bytes")
          .remedy("say --run-id");
  }
  return told;
}

std::string describe(const LaunchedRank& rank) {
  return fmt::format("rank {} of {} on {}", rank.rank, rank.ranks, escape_for_terminal(rank.node));
}

}  // namespace assay
