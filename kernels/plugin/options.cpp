#include "kernels/plugin/options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "core/system/error.h"
#include "core/system/real_range.h"
#include "core/system/text.h"

namespace assay {

void add_plugin_options(CLI::App& command, PluginOptions& options) {
  command
      .add_option("--plugin", options.files,
                  "Kernels of this shared library (docs/plugin.md); may be repeated")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      .add_option("--plugin-timeout", options.limits.seconds,
                  "Seconds a plugin's kernel may take for one run (default: 60)")
      ->type_name("SECONDS")
      ->check(real_range(0.1, 86400.0));
  command
      .add_option("--plugin-memory", options.memory, "Memory a plugin's process may allocate (default: 4GiB)")
      ->type_name("SIZE");
}

std::vector<Plugin> add_plugins(Registry& registry, const PluginOptions& options) {
  PluginLimits limits = options.limits;
  if (!options.memory.empty()) limits.memory = parse_bytes(options.memory);
  return add_plugins(registry, {options.files.begin(), options.files.end()}, limits);
}

void refuse_without_device(const std::vector<Plugin>& plugins, const std::vector<KernelLabel>& kernels) {
  for (const KernelLabel& k : kernels) {
    const Plugin* plugin = plugin_of(plugins, k.name);
    if (plugin != nullptr && k.device == Device::cuda && !plugin->no_device.empty())
      throw Error::usage(fmt::format("{} is a kernel for CUDA, and {}", k.name, plugin->no_device))
          .in(plugin->file)
          .remedy("--device cpu examines the others");
  }
}

}  // namespace assay
