#include "core/system/command_line.h"

#include <CLI/CLI.hpp>
#include <map>

#include "core/system/one_of.h"
#include "core/system/threads.h"

namespace assay {

void add_common_options(CLI::App& command, CommonOptions& options) {
  static const std::map<std::string, ProgressMode> kModes = {
      {"auto", ProgressMode::automatic}, {"always", ProgressMode::always}, {"never", ProgressMode::never}};
  options.jobs = available_cores();
  command.add_option("--json", options.json, "Write a JSON document to FILE, or to stdout with '-'")
      ->type_name("FILE|-");
  command.add_option("-j,--jobs", options.jobs, "Threads to use (default: the cores this process may use)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command.add_option("--progress", options.progress, "Progress bar: auto (on a terminal), always, never")
      ->type_name("WHEN")
      ->transform(one_of(kModes));
}

void set_examples(CLI::App& command, const std::string& examples) {
  command.footer("\nExamples:\n" + examples);
}

}  // namespace assay
