// --plugin and what goes with it, of every command that examines kernels.
#pragma once

#include "core/system/command_line.h"
#include "kernels/harness/examine.h"
#include "kernels/plugin/host.h"

namespace assay {

struct PluginOptions {
  std::vector<std::string> files;
  std::string memory;  // as typed; empty: the limits' own
  PluginLimits limits;
};
void add_plugin_options(CLI::App& command, PluginOptions& options);

std::vector<Plugin> add_plugins(Registry& registry, const PluginOptions& options);

// Throws Error::usage where one of the kernels is a plugin's for CUDA and cannot run: skipped would look like
// well.
void refuse_without_device(const std::vector<Plugin>& plugins, const std::vector<KernelLabel>& kernels);

}  // namespace assay
