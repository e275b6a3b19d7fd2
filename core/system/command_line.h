// How a command joins the program (CLI11 underneath), and the options that several commands share.
//
// A command's folder exports one function, `void add_<command>(CLI::App& program, Action& action)`, which
// adds a subcommand and, when the user chose it, leaves in `action` what main() is to run. Its result is the
// exit code.
#pragma once

#include <functional>
#include <string>

#include "core/system/progress.h"

namespace CLI {
class App;  // who registers options includes <CLI/CLI.hpp>: it is heavy
}

namespace assay {

using Action = std::function<int()>;

struct CommonOptions {
  std::string json;  // file, "-" for stdout, empty for none
  int jobs = 0;      // resolved to available_cores() when not given
  ProgressMode progress = ProgressMode::automatic;
};

// --json, -j/--jobs, --progress; one name and one meaning everywhere (docs/cli.md).
void add_common_options(CLI::App& command, CommonOptions& options);

// Text for the end of --help: "Examples:\n  assay verify .\n ..."
void set_examples(CLI::App& command, const std::string& examples);

}  // namespace assay
