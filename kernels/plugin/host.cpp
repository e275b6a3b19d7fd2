#include "kernels/plugin/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "core/system/error.h"
#include "core/system/text.h"

namespace assay {
namespace {

using message::Kind;

// A kernel that has hung so often is not run any more: a grid of timeouts helps nobody.
constexpr int kMostTimeouts = 3;

// The processes one library lives in: as many as are asked at the same time, a fresh one for each that died.
class Processes {
 public:
  Processes(std::filesystem::path file, PluginLimits limits)
      : file_(std::move(file)), limits_(std::move(limits)) {}

  // The first process: what the library is. Throws Error::input where it is nothing we can use.
  message::PluginDescription load() {
    auto process = std::make_unique<PluginProcess>(file_, limits_);
    const PluginProcess::Reply reply = process->ask(Kind::load, {}, Kind::loaded, Kind::refused);
    if (const auto* ending = std::get_if<Ending>(&reply.answer))
      throw Error::input("it fails while it is loaded: " + ending->detail).in(file_);
    const auto& body = std::get<std::vector<std::byte>>(reply.answer);
    if (reply.kind == Kind::refused) throw Error::input(message::parse_line(body)).in(file_);
    message::PluginDescription description = described(body);
    give_back(std::move(process));
    return description;
  }

  Answer ask(Kind kind, const message::RunRequest& request, Kind expected) {
    std::unique_ptr<PluginProcess> process = take();
    if (!process) {
      process = std::make_unique<PluginProcess>(file_, limits_);
      PluginProcess::Reply loaded = process->ask(Kind::load, {}, Kind::loaded);
      if (auto* ending = std::get_if<Ending>(&loaded.answer))
        return Ending{ending->check, "while it was loaded once more: " + ending->detail};
    }
    PluginProcess::Reply reply = process->ask(kind, message::pack(request), expected, Kind::ran_last);
    if (reply.kind == expected) give_back(std::move(process));
    return std::move(reply.answer);
  }

 private:
  message::PluginDescription described(const std::vector<std::byte>& body) const {
    try {
      return message::parse_description(body);
    } catch (Error& error) {
      throw error.in(file_);
    }
  }
  std::unique_ptr<PluginProcess> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return nullptr;
    std::unique_ptr<PluginProcess> process = std::move(idle_.back());
    idle_.pop_back();
    return process;
  }
  void give_back(std::unique_ptr<PluginProcess> process) {
    if (!process->alive()) return;
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(process));
  }
  std::filesystem::path file_;
  PluginLimits limits_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<PluginProcess>> idle_;
};

class PluginRemote final : public RemoteKernel {
 public:
  PluginRemote(std::shared_ptr<Processes> processes, std::uint32_t kernel)
      : processes_(std::move(processes)), kernel_(kernel) {}

  CaseRun run(const CaseId& id, const Variation& variation) override {
    if (timeouts_ >= kMostTimeouts)  // which is no verdict on this case: it might have been refused
      return {.taken = false,
              .check = "timeout",
              .detail = fmt::format("not run: the kernel gave no answer {} times before", kMostTimeouts)};
    Answer answer = processes_->ask(Kind::run, {kernel_, id.text(), variation, 0}, Kind::ran);
    if (auto* ending = std::get_if<Ending>(&answer)) return failed(std::move(*ending));
    try {
      return message::parse_run(std::get<std::vector<std::byte>>(answer));
    } catch (const Error& error) {
      return {.check = "answer", .detail = error.message()};
    }
  }

  std::optional<double> time(const CaseId& id, int jobs, double least) override {
    const Answer answer =
        processes_->ask(Kind::time, {kernel_, id.text(), {.jobs = jobs}, least}, Kind::timed);
    const auto* body = std::get_if<std::vector<std::byte>>(&answer);
    if (body == nullptr) return std::nullopt;
    const double seconds = message::parse_seconds(*body);
    return seconds > 0 ? std::optional(seconds) : std::nullopt;
  }

 private:
  CaseRun failed(Ending&& ending) {
    if (ending.check == "timeout") ++timeouts_;
    return {.check = std::move(ending.check), .detail = std::move(ending.detail)};
  }
  std::shared_ptr<Processes> processes_;
  std::uint32_t kernel_;
  std::atomic<int> timeouts_{0};
};

}  // namespace

std::vector<Plugin> add_plugins(Registry& registry, const std::vector<std::filesystem::path>& files,
                                const PluginLimits& limits) {
  std::vector<Plugin> plugins;
  for (const std::filesystem::path& file : files) {
    if (!is_regular_file(file))
      throw Error::input(exists(file) ? "not a file" : "no such file")
          .in(file)
          .remedy("name the plugin's shared library");
    auto processes = std::make_shared<Processes>(file, limits);
    const message::PluginDescription d = processes->load();
    if (const Plugin* before = plugin_of(plugins, d.name + "."))
      throw Error::input(fmt::format("its name is '{}', as is that of {}", d.name,
                                     escape_for_terminal(before->file.string())))
          .in(file);
    for (std::size_t i = 0; i < d.kernels.size(); ++i)
      add_remote(registry, d.kernels[i],
                 std::make_shared<PluginRemote>(processes, static_cast<std::uint32_t>(i)));
    plugins.push_back({file, d.name, d.version, d.remark, d.no_device, d.kernels.size()});
  }
  return plugins;
}

std::string kernels_of(const std::vector<Plugin>& plugins) {
  std::string names;
  for (const Plugin& plugin : plugins) names += (names.empty() ? "" : "|") + plugin.name;
  return "^(" + names + ")\\.";
}

const Plugin* plugin_of(const std::vector<Plugin>& plugins, std::string_view kernel_name) {
  const auto it = std::find_if(plugins.begin(), plugins.end(),
                               [&](const Plugin& p) { return p.name == kernel_group(kernel_name); });
  return it == plugins.end() ? nullptr : &*it;
}

}  // namespace assay
