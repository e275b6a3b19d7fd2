#include "kernels/plugin/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstring>
#include <set>
#include <utility>

#include "core/system/error.h"
#include "core/system/text.h"
#include "kernels/plugin/float_mode.h"

namespace assay {
namespace {

constexpr std::size_t kMostName = 64, kMostText = 200, kMostKernels = 1024;
// As they were when ABI 1 began: a smaller struct is somebody's mistake.
constexpr std::uint32_t kLeastInfo =
    offsetof(assay_plugin_info, kernel_count) + sizeof(assay_plugin_info::kernel_count);
constexpr std::uint32_t kLeastKernel = offsetof(assay_kernel, run) + sizeof(assay_kernel::run);
constexpr std::uint32_t kMostSize = 65536;
constexpr double kFinest = 0x1p-53, kCoarsest = 0x1p-8;

std::string text_of(const char* text, std::size_t most) {
  if (text == nullptr) return {};
  return {text, strnlen(text, most)};
}

// A line of the dynamic linker's without the path it begins with.
std::string linker_error(const std::filesystem::path& file) {
  const char* text = dlerror();
  std::string message = text == nullptr ? "it cannot be loaded" : text;
  const std::string prefix = file.string() + ": ";
  return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

using Entry = const assay_plugin_info* (*)(std::uint32_t);

const assay_plugin_info& info_of(const std::filesystem::path& file) {
  void* library = dlopen(std::filesystem::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Error::input("no shared library: " + linker_error(absolute(file)));
  void* symbol = dlsym(library, "assay_plugin");
  if (symbol == nullptr)
    throw Error::input("no plugin: it exports no symbol 'assay_plugin'")
        .remedy("see kernels/plugin.h; in C++ the function is extern \"C\"");
  Entry entry = nullptr;
  std::memcpy(&entry, &symbol, sizeof entry);
  const assay_plugin_info* info = entry(ASSAY_PLUGIN_ABI);
  if (info == nullptr) throw Error::input(fmt::format("the plugin has nothing for ABI {}", ASSAY_PLUGIN_ABI));
  return *info;
}

void check_size(std::string_view what, std::uint32_t size, std::uint32_t least) {
  if (size < least || size > kMostSize)
    throw Error::input(
        fmt::format("{}: its size says {} bytes, where ABI {} has {}", what, size, ASSAY_PLUGIN_ABI, least))
        .remedy("set it to sizeof the struct, and compile against this assay's kernels/plugin.h");
}

void check_info(const assay_plugin_info& info) {
  // Before anything else is read: what another ABI puts where, nobody knows.
  if (info.abi != ASSAY_PLUGIN_ABI)
    throw Error::input(
        fmt::format("the plugin is made for ABI {}, this assay for {}", info.abi, ASSAY_PLUGIN_ABI))
        .remedy("compile it against this assay's kernels/plugin.h");
  check_size("assay_plugin_info", info.size, kLeastInfo);
  const std::string name = text_of(info.name, kMostName + 1);
  if (!good_plugin_name(name))
    throw Error::input(fmt::format("the plugin's name '{}' is none", escape_for_terminal(name)))
        .remedy("letters, digits, '_' and '-', up to 64; not reference, cpu, cuda or library");
  if (info.kernel_count == 0 || info.kernels == nullptr) throw Error::input("the plugin has no kernels");
  if (info.kernel_count > kMostKernels)
    throw Error::input(fmt::format("the plugin claims {} kernels", info.kernel_count));
}

Invariants invariants_of(std::uint32_t bits) {
  return {.batch_invariant = (bits & ASSAY_BATCH_INVARIANT) != 0,
          .chunk_invariant = (bits & ASSAY_CHUNK_INVARIANT) != 0,
          .thread_invariant = (bits & ASSAY_THREAD_INVARIANT) != 0,
          .layout_invariant = (bits & ASSAY_LAYOUT_INVARIANT) != 0};
}

PluginKernel checked(const assay_kernel* entry, std::size_t index, const std::string& plugin) {
  if (entry == nullptr) throw Error::input(fmt::format("kernel {}: a null pointer", index));
  check_size(fmt::format("kernel {}", index), entry->size, kLeastKernel);
  const std::string name = text_of(entry->name, kMostName + 1);
  if (!good_kernel_name(name))
    throw Error::input(fmt::format("kernel {}: '{}' is no name", index, escape_for_terminal(name)))
        .remedy("letters, digits, '_' and '-', up to 64");
  const auto wrong = [&](const std::string& why) {
    return Error::input(fmt::format("kernel '{}': {}", name, why));
  };
  if (op_name(entry->op).empty()) throw wrong(fmt::format("there is no operation {}", entry->op));
  if (entry->device != ASSAY_CPU && entry->device != ASSAY_CUDA)
    throw wrong(fmt::format("there is no device {}", entry->device));
  if (entry->activations != ASSAY_F32 && entry->activations != ASSAY_BF16)
    throw wrong("activations are ASSAY_F32 or ASSAY_BF16");
  if (entry->takes == nullptr || entry->run == nullptr)
    throw wrong(fmt::format("its callback '{}' is null", entry->takes == nullptr ? "takes" : "run"));
  if ((entry->invariants & ~ASSAY_ALL_INVARIANT) != 0) throw wrong("it promises what there is no word for");
  if (!(entry->accumulator_roundoff >= kFinest && entry->accumulator_roundoff <= kCoarsest))
    throw wrong(
        fmt::format("accumulator_roundoff {:g} is not within 2^-53 … 2^-8", entry->accumulator_roundoff));
  assay_kernel copy = {};
  std::memcpy(&copy, entry, std::min<std::size_t>(entry->size, sizeof copy));
  return {.op = std::string(op_name(entry->op)),
          .name = plugin + "." + name,
          .about = text_of(entry->about, kMostText),
          .device = entry->device == ASSAY_CUDA ? Device::cuda : Device::cpu,
          .invariants = invariants_of(entry->invariants),
          .accumulator_roundoff = entry->accumulator_roundoff,
          .entry = copy};
}

}  // namespace

bool good_kernel_name(std::string_view name) {
  return !name.empty() && name.size() <= kMostName && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  });
}

bool good_plugin_name(std::string_view name) {
  constexpr std::array<std::string_view, 4> kOurs = {"reference", "cpu", "cuda", "library"};
  return good_kernel_name(name) && std::find(kOurs.begin(), kOurs.end(), name) == kOurs.end();
}

void refuse_duplicates(const std::vector<PluginKernel>& kernels) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const PluginKernel& k : kernels) {
    if (!seen.emplace(k.op, k.name).second)
      throw Error::input(fmt::format("two kernels for {} are called '{}'", k.op, k.name));
  }
}

PluginLibrary load_plugin(const std::filesystem::path& file) {
  try {
    const FloatMode before = FloatMode::now();
    const assay_plugin_info& info = info_of(file);
    const auto change = before.restore();
    check_info(info);
    PluginLibrary plugin = {.name = text_of(info.name, kMostName),
                            .version = text_of(info.version, kMostText)};
    for (std::size_t i = 0; i < info.kernel_count; ++i)
      plugin.kernels.push_back(checked(info.kernels[i], i, plugin.name));
    refuse_duplicates(plugin.kernels);
    if (change) plugin.remark = "loading it changed this thread's floating-point mode: " + *change;
    return plugin;
  } catch (Error& error) {
    throw error.in(file);
  }
}

}  // namespace assay
