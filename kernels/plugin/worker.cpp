#include "kernels/plugin/worker.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include "core/system/error.h"
#include "core/system/sanitizer.h"
#include "core/system/text.h"
#include "kernels/harness/case_run.h"
#include "kernels/plugin/fault_note.h"
#include "kernels/plugin/leftovers.h"
#include "kernels/plugin/library.h"
#include "kernels/plugin/message.h"
#include "kernels/plugin/socket.h"

namespace assay {
namespace {

using message::Kind;

// How many runs' memory is watched for writes after the kernel has returned.
constexpr std::size_t kWatched = 8;

// Sanitizers keep their shadow in private memory, more than any limit.
constexpr bool kLimits = !kSanitized;

void limit(int resource, std::uint64_t most) {
  const rlimit value = {most, most};
  setrlimit(static_cast<__rlimit_resource>(resource), &value);
}

// Private writable memory of this process as it is now: what libraries have set aside before any work.
std::uint64_t data_bytes() {
  std::ifstream file("/proc/self/statm");  // proc(5): size resident shared text lib data, in pages
  std::uint64_t pages = 0;
  for (int i = 0; i < 6; ++i) file >> pages;
  return file ? pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

// RLIMIT_DATA counts private writable memory; address space alone (CUDA reserves much of it) is free.
void set_limits() {
  limit(RLIMIT_CORE, 0);
  const char* text = std::getenv(kWorkerMemory);
  const auto bytes = text == nullptr ? std::nullopt : parse_u64(text);
  if (kLimits && bytes && *bytes != 0) limit(RLIMIT_DATA, data_bytes() + *bytes);
}

// Memory of runs that are over: whoever writes there does so after returning.
class Aftermath {
 public:
  void watch(std::unique_ptr<GuardedOps> ops) {
    if (!ops) return;
    ops->seal();
    runs_.push_back(std::move(ops));
    if (runs_.size() > kWatched) runs_.pop_front();
  }
  std::optional<std::string> found() const {
    for (const auto& ops : runs_) {
      if (ops->damage() || ops->changed_input())
        return "memory of an earlier call was written after the kernel had returned";
    }
    return std::nullopt;
  }
  void clear() { runs_.clear(); }

 private:
  std::deque<std::unique_ptr<GuardedOps>> runs_;
};

class OpWorker {
 public:
  virtual ~OpWorker() = default;
  virtual CaseRun run(const CaseId& id, const Variation& variation) = 0;
  virtual std::optional<double> time(const CaseId& id, int jobs, double least) = 0;
};

template <class Call>
class TypedWorker final : public OpWorker {
 public:
  explicit TypedWorker(const PluginKernel& kernel) : plugin_(kernel) {
    Registry registry;
    add_adapted(registry, kernel, weights_);
    kernel_ = registry.of<Call>().front();
  }
  CaseRun run(const CaseId& id, const Variation& variation) override {
    prepare(id);
    if (const auto late = aftermath_.found()) {
      aftermath_.clear();
      return {.check = "canaries", .detail = *late};
    }
    std::unique_ptr<GuardedOps> memory;
    CaseRun result = run_case(kernel_, *operands_, variation, &memory,
                              [this](bool others) { weights_->marshal_others(others); });
    if (!result.check.empty()) return result;
    aftermath_.watch(std::move(memory));
    most_jobs_ = std::max(most_jobs_, variation.jobs);
    if (const auto left = leftovers_.found(most_jobs_); left && plugin_.device == Device::cpu)
      return {.check = "leftovers", .detail = *left};
    return result;
  }
  std::optional<double> time(const CaseId& id, int jobs, double least) override {
    prepare(id);
    ReferenceOps ops(operands_->arithmetic, jobs);
    return time_plugin(plugin_, *weights_, ops, operands_->call(ops), least);
  }

 private:
  void prepare(const CaseId& id) {
    if (operands_ && made_of_ == id.text()) return;
    weights_->clear();
    operands_.reset();
    operands_ = cases_of<Call>().make(id);
    made_of_ = id.text();
  }
  PluginKernel plugin_;
  std::shared_ptr<MarshalledWeights> weights_ = std::make_shared<MarshalledWeights>();
  Kernel<Call> kernel_;
  std::string made_of_;
  std::unique_ptr<Operands<Call>> operands_;
  Aftermath aftermath_;
  Leftovers leftovers_;
  int most_jobs_ = 1;  // that a call was offered: so many threads may wait for the next one
};

std::unique_ptr<OpWorker> worker_for(const PluginKernel& kernel) {
  std::unique_ptr<OpWorker> worker;
  Registry().for_each_op([&]<class Call>(const std::vector<Kernel<Call>>&) {
    if constexpr (!kIsListed<Call, CallsOfOurOwn>) {
      if (Call::kOp == kernel.op) worker = std::make_unique<TypedWorker<Call>>(kernel);
    }
  });
  return worker;
}

class Worker {
 public:
  explicit Worker(const std::filesystem::path& file) : file_(file) {}

  std::vector<std::byte> answer(Kind kind, std::span<const std::byte> body) {
    if (kind == Kind::load) return load();
    const message::RunRequest request = message::parse_request(body);
    if (request.kernel >= kernels_.size()) throw Error::internal("a plugin has no such kernel");
    if (!kernels_[request.kernel]) kernels_[request.kernel] = worker_for(plugin_.kernels[request.kernel]);
    OpWorker& kernel = *kernels_[request.kernel];
    const CaseId id = CaseId::parse(request.id);
    if (kind == Kind::run) {
      const CaseRun result = run(kernel, id, request.variation);
      return message::frame(cuda_broken() ? Kind::ran_last : Kind::ran, message::pack(result));
    }
    const double seconds = time(kernel, id, request);
    return message::frame(cuda_broken() ? Kind::ran_last : Kind::timed, message::pack(seconds));
  }

 private:
  std::vector<std::byte> load() {
    try {
      plugin_ = load_plugin(file_);
    } catch (const Error& error) {
      std::string line = error.message();
      if (!error.remedy().empty()) line += "; " + error.remedy();
      return message::frame(Kind::refused, message::pack(line));
    }
    kernels_.resize(plugin_.kernels.size());
    const message::PluginDescription description = {plugin_.name, plugin_.version, plugin_.remark,
                                                    no_device(), plugin_.kernels};
    return message::frame(Kind::loaded, message::pack(description));
  }
  std::string no_device() const {
    const bool wanted = std::any_of(plugin_.kernels.begin(), plugin_.kernels.end(),
                                    [](const PluginKernel& k) { return k.device == Device::cuda; });
    try {
      if (wanted) cuda_memory();
      return "";
    } catch (const std::exception& error) {
      return error.what();
    }
  }
  static CaseRun run(OpWorker& kernel, const CaseId& id, const Variation& variation) {
    try {
      return kernel.run(id, variation);
    } catch (const std::exception& error) {
      return {.check = "exception", .detail = error.what()};
    }
  }
  static double time(OpWorker& kernel, const CaseId& id, const message::RunRequest& request) {
    try {
      return kernel.time(id, request.variation.jobs, request.least).value_or(-1);
    } catch (const std::exception&) {
      return -1;  // what it does wrong is not asked here
    }
  }
  std::filesystem::path file_;
  PluginLibrary plugin_;
  std::vector<std::unique_ptr<OpWorker>> kernels_;
};

void require_socket() {
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(kWorkerSocket, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
    throw Error::usage(fmt::format("'{}' is started by assay itself", kWorkerCommand))
        .remedy("use 'assay compare kernels --plugin FILE'");
}

// Whoever asks may be killed while a kernel hangs: then nobody is left to end this process and what the
// kernel has started in its group.
void die_with_the_other_side() {
  std::thread([] {
    pollfd other_side = {kWorkerSocket, POLLRDHUP, 0};
    while (poll(&other_side, 1, -1) <= 0) {
    }
    kill(0, SIGKILL);
  }).detach();
}

}  // namespace

int serve_plugin(const std::filesystem::path& library) {
  require_socket();
  set_limits();
  install_fault_notes(kWorkerSocket);
  die_with_the_other_side();
  Worker worker(library);
  for (;;) {
    std::vector<std::byte> head(message::kHeaderBytes);
    if (!receive_all(kWorkerSocket, head)) return kExitOk;
    const message::Header header = message::parse_header(head);
    std::vector<std::byte> body(header.length);
    if (!receive_all(kWorkerSocket, body)) return kExitOk;
    if (!send_all(kWorkerSocket, worker.answer(header.kind, body))) return kExitOk;
  }
}

}  // namespace assay
