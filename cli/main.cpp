// assay: the list of commands, and the one place where errors become a line on stderr and an exit code.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <thread>

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

int run(int argc, char** argv) {
  CLI::App program("Trust, or refuse, LLM weights and the code that computes with them.", "assay");
  program.set_version_flag("--version", "assay " ASSAY_VERSION);
  program.set_help_all_flag("--help-all", "Help for every command");
  program.require_subcommand(1);
  program.get_formatter()->column_width(34);
  assay::Action action;
  assay::add_check(program, action, selected_kernels);
  assay::add_verify(program, action);
  assay::add_inspect(program, action);
  assay::add_paramcount(program, action);
  assay::add_convert(program, action);
  assay::add_run(program, action, selected_kernels);
  assay::add_serve(program, action, selected_kernels);
  assay::add_replay(program, action, selected_kernels);
  assay::add_bench(program, action);
  assay::add_fingerprint(program, action);
  assay::add_tokenize(program, action);
  assay::add_compare(program, action);
  assay::add_gate(program, action, assay::gate_suites());
  assay::add_manifest(program, action);
  assay::add_repair(program, action);
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
