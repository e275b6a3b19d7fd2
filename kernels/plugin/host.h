// Plugins' kernels among ours: examined by the same harness, each run in a process that may die of it.
//
//   Registry registry = builtin_kernels();
//   for (const Plugin& plugin : add_plugins(registry, {"./libmine.so"}, {})) …
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/plugin/process.h"
#include "kernels/registry/registry.h"

namespace assay {

struct Plugin {
  std::filesystem::path file;
  std::string name, version;
  std::string remark;     // what loading did that it ought not to
  std::string no_device;  // why its kernels for CUDA cannot run here; empty: they can, or there are none
  std::size_t kernels = 0;
};

// Throws Error::input naming the file for what is no plugin, crashes or hangs while it is loaded, or brings a
// plugin's name that was there before.
std::vector<Plugin> add_plugins(Registry& registry, const std::vector<std::filesystem::path>& files,
                                const PluginLimits& limits);

// "^(mine|other)\." : their kernels' names.
std::string kernels_of(const std::vector<Plugin>& plugins);

// The plugin a kernel is of; null: ours.
const Plugin* plugin_of(const std::vector<Plugin>& plugins, std::string_view kernel_name);

}  // namespace assay
