#include "verify/inspect.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "core/formats/checkpoint.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/message.h"
#include "core/system/name_filter.h"
#include "core/system/report.h"
#include "core/system/text.h"
#include "verify/inspect_report.h"

namespace assay {
namespace {

struct InspectSettings {
  std::string path, include, exclude;
  bool files = false, metadata = false;
  CommonOptions common;
};

void print_text(const Inspection& inspection, const InspectSettings& settings) {
  const Checkpoint& checkpoint = inspection.checkpoint;
  const bool gguf = checkpoint.container == Checkpoint::Container::gguf;
  write_output(fmt::format("{}: {}, {} {}{}\n\n", escape_for_terminal(settings.path),
                           gguf ? "GGUF" : "safetensors", checkpoint.files.size(),
                           checkpoint.files.size() == 1 ? "file" : "files",
                           checkpoint.index ? " with an index" : ""));
  if (settings.metadata) write_output(metadata_table(checkpoint) + "\n");
  if (settings.files) write_output(file_table(inspection) + "\n");
  if (!settings.metadata && !settings.files) {
    write_tensor_table(inspection, [](std::string_view text) { write_output(text); });
    write_output("\n");
  }
  write_output(totals_table(inspection));
}

int run(const InspectSettings& settings) {
  const NameFilter filter(settings.include, settings.exclude);
  const Checkpoint checkpoint = open_checkpoint(settings.path, settings.common.jobs);
  const Inspection inspection = inspect(checkpoint, filter);
  const Output output(settings.common.json);
  if (output.text_wanted()) print_text(inspection, settings);
  if (output.json_wanted()) write_json(inspection, settings.common.json);
  flush_output();
  for (const Finding& finding : checkpoint.findings) write_message(to_line(finding));
  return has_errors(checkpoint.findings) ? kExitCheckFailed : kExitOk;
}

}  // namespace

void add_inspect(CLI::App& program, Action& action) {
  auto settings = std::make_shared<InspectSettings>();
  CLI::App& command =
      *program.add_subcommand("inspect", "List tensors: name, type, shape, bytes, offset, file; metadata");
  command.add_option("path", settings->path, "A .safetensors, a .gguf, an index, or a folder of them")
      ->required()
      ->type_name("FILE|DIR");
  command.add_option("--include", settings->include, "Only tensors whose name matches")->type_name("REGEX");
  command.add_option("--exclude", settings->exclude, "Not tensors whose name matches")->type_name("REGEX");
  command.add_flag("--files", settings->files, "A line for each file instead of each tensor");
  command.add_flag("--metadata", settings->metadata, "Keys and values instead of tensors");
  add_common_options(command, settings->common);
  set_examples(command,
               "  assay inspect model.safetensors\n"
               "  assay inspect DeepSeek-R1 --files\n"
               "  assay inspect model.gguf --metadata\n"
               "  assay inspect . --include 'layers\\.0\\.' --json -\n");
  command.callback([settings, &action] { action = [settings] { return run(*settings); }; });
}

}  // namespace assay
