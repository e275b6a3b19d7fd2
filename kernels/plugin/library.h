// A plugin's shared library, loaded and its descriptions checked. Loading runs the library's code: only in a
// process that may die of it, or where the user asked for just that.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernels/plugin/adapt.h"

namespace assay {

struct PluginLibrary {
  std::string name, version;
  std::vector<PluginKernel> kernels;
  std::string remark;  // of what loading did that it ought not to; empty: nothing
};

// Never unloaded. Throws Error::input naming the file for what is no plugin, or one that contradicts
// kernels/plugin.h.
PluginLibrary load_plugin(const std::filesystem::path& file);

// What load_plugin() asks of names, also asked of descriptions that came from another process.
bool good_plugin_name(std::string_view name);
bool good_kernel_name(std::string_view name);  // without the plugin's

// Throws Error::input where two kernels of an operation have one name.
void refuse_duplicates(const std::vector<PluginKernel>& kernels);

}  // namespace assay
