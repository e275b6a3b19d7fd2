// assay: the list of commands, and the one place where errors become a line on stderr and an exit code.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cli/check/command.h"
#include "cli/gate/suites.h"
#include "convert/command.h"
#include "core/system/command_line.h"
#include "core/system/error.h"
#include "core/system/launcher.h"
#include "core/system/message.h"
#include "core/system/report.h"
#include "core/system/text.h"
#include "core/system/threads.h"
#include "kernels/compare/command.h"
#include "kernels/gate/command.h"
#include "kernels/selection/select.h"
#include "paramcount/command.h"
#include "refimpl/bench_url/command.h"
#include "refimpl/fingerprint/command.h"
#include "refimpl/replay/command.h"
#include "refimpl/run.h"
#include "refimpl/run_tokenize.h"
#include "refimpl/serve/command.h"
#include "verify/command.h"
#include "verify/inspect.h"
#include "verify/manifest_command.h"
#include "verify/repair.h"

namespace {

// Of processes that mpirun started most fail alike: the first says so and ends, and mpirun asks the others to, which wait for
// that before they speak. Empty: asked to, and nothing is left to say.
std::optional<std::string> speaker() {
  const char* text = assay::process_environment("OMPI_COMM_WORLD_RANK");
  const auto rank = assay::parse_u64(text == nullptr ? "" : text);
  if (!rank || *rank == 0) return "";
  constexpr std::uint64_t kFirst = 1500, kEach = 100, kMost = 3000,
                          kLook = 20;  // ms; Open MPI asks after 1000
  for (std::uint64_t waited = 0; waited < std::min(kFirst + kEach * *rank, kMost); waited += kLook) {
    if (assay::interrupted()) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(kLook));
  }
  return fmt::format("rank {}: ", *rank);
}

int report(const assay::Error& error) {
  if (const auto who = speaker()) assay::write_message(fmt::format("assay: {}{}", *who, error.line()));
  return error.exit_code();
}

// What --kernels names, for the engine: "cpu", "linear=library.openblas".
assay::KernelSet selected_kernels(const std::string& selection) {
  auto fallbacks = std::make_shared<assay::Fallbacks>();
  return {selection, assay::is_invariant(assay::builtin_kernels(), selection),
          [selection, fallbacks](const assay::Arithmetic& arithmetic, int jobs) {
            return assay::select_kernels(assay::builtin_kernels(), selection, arithmetic, jobs, fallbacks);
          },
          fallbacks};
}

// "assay compare kernels --help": of the command that was being read.
std::string help_of(const CLI::App& program) {
  std::string line = program.get_name();
  for (const CLI::App* at = &program; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    line += " " + at->get_name();
  }
  return line + " --help";
}

// A command, and what tells the command line of it.
struct Command {
  std::string_view name;
  std::function<void(CLI::App&, assay::Action&)> add;
};

const std::vector<Command>& commands() {
  using assay::Action;
  static const std::vector<Command> all = {
      {"check", [](CLI::App& p, Action& a) { assay::add_check(p, a, selected_kernels); }},
      {"verify", assay::add_verify},
      {"inspect", assay::add_inspect},
      {"paramcount", assay::add_paramcount},
      {"convert", assay::add_convert},
      {"run", [](CLI::App& p, Action& a) { assay::add_run(p, a, selected_kernels); }},
      {"serve", [](CLI::App& p, Action& a) { assay::add_serve(p, a, selected_kernels); }},
      {"replay", [](CLI::App& p, Action& a) { assay::add_replay(p, a, selected_kernels); }},
      {"bench", assay::add_bench},
      {"fingerprint", assay::add_fingerprint},
      {"tokenize", assay::add_tokenize},
      {"compare", assay::add_compare},
      {"gate", [](CLI::App& p, Action& a) { assay::add_gate(p, a, assay::gate_suites()); }},
      {"manifest", assay::add_manifest},
      {"repair", assay::add_repair}};
  return all;
}

// The command that is named first is added alone: all of them have some 500 options, which take longer to make and to take
// down than many a command to run.
void add_commands(std::string_view first, CLI::App& program, assay::Action& action) {
  const auto named = std::find_if(commands().begin(), commands().end(),
                                  [&](const Command& command) { return command.name == first; });
  if (named != commands().end()) return named->add(program, action);
  for (const Command& command : commands()) command.add(program, action);
}

int run(int argc, char** argv) {
  CLI::App program("Trust, or refuse, LLM weights and the code that computes with them.", "assay");
  program.set_version_flag("--version", "assay " ASSAY_VERSION);
  program.set_help_all_flag("--help-all", "Help for every command");
  program.require_subcommand(1);
  program.get_formatter()->column_width(34);
  assay::Action action;
  add_commands(argc > 1 ? argv[1] : "", program, action);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool success = error.get_exit_code() == 0;  // --help, --version
    if (success) return program.exit(error);
    throw assay::Error::usage(error.what()).remedy("see '" + help_of(program) + "'");
  }
  assay::install_interrupt_handler();
  const int code = action();
  assay::flush_output();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  assay::occupy_closed_streams();
  try {
    return run(argc, argv);
  } catch (const assay::ReaderGone&) {
    return assay::kExitReaderGone;
  } catch (const assay::Error& error) {
    return report(error);
  } catch (const std::filesystem::filesystem_error& error) {
    return report(assay::Error::io(error.code().message()).in(error.path1()));
  } catch (const std::bad_alloc&) {
    return report(assay::Error::io("out of memory").remedy("lower --jobs or free some memory"));
  } catch (const std::exception& error) {
    return report(assay::Error::internal(fmt::format("internal fault: {}", error.what()))
                      .remedy("please report this with the command line"));
  }
}
