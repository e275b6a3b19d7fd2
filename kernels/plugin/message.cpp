#include "kernels/plugin/message.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/system/error.h"
#include "kernels/plugin/library.h"

namespace assay::message {
namespace {

constexpr std::size_t kMostText = 4096, kMostKernels = 1024, kMostParts = 4;
constexpr int kMostJobs = 4096;
constexpr std::uint64_t kMostPadding = 4096;

// The names results' parts may have.
constexpr std::array<std::string_view, 5> kParts = {"y", "experts", "weights", "scales", "values"};

Error malformed(std::string_view what) {
  return Error::input("its answer is malformed: " + std::string(what));
}

class Writer {
 public:
  template <class T>
  Writer& put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return raw(&value, sizeof value);
  }
  Writer& text(std::string_view value) {
    value = value.substr(0, kMostText);
    put(static_cast<std::uint64_t>(value.size()));
    return raw(value.data(), value.size());
  }
  Writer& raw(const void* from, std::size_t size) {
    const auto* begin = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), begin, begin + size);
    return *this;
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>);
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  bool flag() {
    const auto value = get<std::uint8_t>();
    if (value > 1) throw malformed("a flag that is neither yes nor no");
    return value == 1;
  }
  std::uint64_t count(std::uint64_t most, std::string_view of_what) {
    const auto value = get<std::uint64_t>();
    if (value > most) throw malformed(of_what);
    return value;
  }
  std::string text() {
    const std::span<const std::byte> bytes = take(count(kMostText, "a text too long"));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::span<const std::byte> take(std::size_t size) {
    if (size > rest_.size()) throw malformed("it ends early");
    const std::span<const std::byte> part = rest_.first(size);
    rest_ = rest_.subspan(size);
    return part;
  }
  void end() const {
    if (!rest_.empty()) throw malformed("it does not end where it ought to");
  }

 private:
  std::span<const std::byte> rest_;
};

void put_kernel(Writer& w, const PluginKernel& k) {
  w.text(k.op).text(k.name).text(k.about);
  w.put(static_cast<std::uint8_t>(k.device == Device::cuda ? 1 : 0));
  for (const bool promise : {k.invariants.batch_invariant, k.invariants.chunk_invariant,
                             k.invariants.thread_invariant, k.invariants.layout_invariant})
    w.put(static_cast<std::uint8_t>(promise ? 1 : 0));
  w.put(k.accumulator_roundoff);
}

PluginKernel get_kernel(Reader& r, const std::string& plugin) {
  PluginKernel k;
  k.op = r.text();
  k.name = r.text();
  k.about = r.text();
  k.device = r.flag() ? Device::cuda : Device::cpu;
  k.invariants.batch_invariant = r.flag();
  k.invariants.chunk_invariant = r.flag();
  k.invariants.thread_invariant = r.flag();
  k.invariants.layout_invariant = r.flag();
  k.accumulator_roundoff = r.get<double>();
  bool known = false;
  Registry().for_each_op([&]<class Call>(const std::vector<Kernel<Call>>&) {
    known |= !kIsListed<Call, CallsOfOurOwn> && Call::kOp == k.op;
  });
  if (!known) throw malformed("a kernel of no operation");
  if (!k.name.starts_with(plugin + ".") || !good_kernel_name(k.name.substr(plugin.size() + 1)))
    throw malformed("a kernel's name");
  if (!(k.accumulator_roundoff > 0 && k.accumulator_roundoff <= 0x1p-8)) throw malformed("a roundoff");
  return k;
}

}  // namespace

std::vector<std::byte> frame(Kind kind, std::span<const std::byte> body) {
  Writer w;
  w.put(kMagic).put(static_cast<std::uint32_t>(kind)).put(static_cast<std::uint64_t>(body.size()));
  return w.raw(body.data(), body.size()).take();
}

Header parse_header(std::span<const std::byte> bytes) {
  Reader r(bytes);
  if (r.get<std::uint32_t>() != kMagic) throw malformed("it does not begin as one");
  const auto kind = r.get<std::uint32_t>();
  if (kind < static_cast<std::uint32_t>(Kind::load) || kind > static_cast<std::uint32_t>(Kind::ran_last))
    throw malformed("of no kind");
  return {static_cast<Kind>(kind), r.count(kMostBytes, "too long")};
}

std::vector<std::byte> pack(const RunRequest& request) {
  Writer w;
  w.put(request.kernel).text(request.id);
  w.put(static_cast<std::int32_t>(request.variation.jobs));
  w.put(static_cast<std::uint64_t>(request.variation.padding));
  w.put(static_cast<std::uint8_t>(request.variation.part));
  w.put(static_cast<std::uint8_t>(request.variation.spoilt ? 1 : 0));
  w.put(static_cast<std::uint8_t>(request.variation.reused ? 1 : 0));
  return w.put(request.least).take();
}

RunRequest parse_request(std::span<const std::byte> bytes) {
  Reader r(bytes);
  RunRequest request;
  request.kernel = r.get<std::uint32_t>();
  request.id = r.text();
  request.variation.jobs = r.get<std::int32_t>();
  request.variation.padding = r.count(kMostPadding, "a padding too wide");
  const auto part = r.get<std::uint8_t>();
  request.variation.spoilt = r.flag();
  request.variation.reused = r.flag();
  request.least = r.get<double>();
  r.end();
  if (request.variation.jobs < 1 || request.variation.jobs > kMostJobs)
    throw malformed("a number of threads");
  if (part > static_cast<std::uint8_t>(CallPart::first_chunk)) throw malformed("a part there is not");
  request.variation.part = static_cast<CallPart>(part);
  return request;
}

std::vector<std::byte> pack(const PluginDescription& d) {
  Writer w;
  w.text(d.name)
      .text(d.version)
      .text(d.remark)
      .text(d.no_device)
      .put(static_cast<std::uint64_t>(d.kernels.size()));
  for (const PluginKernel& k : d.kernels) put_kernel(w, k);
  return w.take();
}

PluginDescription parse_description(std::span<const std::byte> bytes) {
  Reader r(bytes);
  PluginDescription d;
  d.name = r.text();
  d.version = r.text();
  d.remark = r.text();
  d.no_device = r.text();
  if (!good_plugin_name(d.name)) throw malformed("the plugin's name");
  const std::uint64_t count = r.count(kMostKernels, "a number of kernels");
  for (std::uint64_t i = 0; i < count; ++i) d.kernels.push_back(get_kernel(r, d.name));
  r.end();
  refuse_duplicates(d.kernels);
  return d;
}

std::vector<std::byte> pack(const CaseRun& run) {
  Writer w;
  w.put(static_cast<std::uint8_t>(run.taken ? 1 : 0)).text(run.check).text(run.detail);
  w.put(static_cast<std::uint64_t>(run.parts.size()));
  for (const OutputPart& part : run.parts) {
    w.text(part.name);
    w.put(static_cast<std::uint64_t>(part.rows)).put(static_cast<std::uint64_t>(part.columns));
    w.put(static_cast<std::uint64_t>(part.values.size()));
    w.raw(part.values.data(), part.values.size() * sizeof(float));
  }
  return w.take();
}

CaseRun parse_run(std::span<const std::byte> bytes) {
  Reader r(bytes);
  CaseRun run;
  run.taken = r.flag();
  run.check = r.text();
  run.detail = r.text();
  const std::uint64_t parts = r.count(kMostParts, "a number of parts");
  for (std::uint64_t i = 0; i < parts; ++i) {
    const std::string name = r.text();
    const auto known = std::find(kParts.begin(), kParts.end(), name);
    if (known == kParts.end()) throw malformed("a part of an unknown name");
    OutputPart& part = run.parts.emplace_back();
    part.name = *known;
    part.rows = r.count(kMostBytes, "a number of rows");
    part.columns = r.count(kMostBytes, "a number of columns");
    const std::uint64_t values = r.count(kMostBytes / sizeof(float), "a number of values");
    if (values != part.rows * part.columns) throw malformed("values that do not fill their rows");
    const std::span<const std::byte> raw = r.take(values * sizeof(float));
    part.values.resize(values);
    if (values != 0) std::memcpy(part.values.data(), raw.data(), raw.size());
  }
  r.end();
  return run;
}

std::vector<std::byte> pack(double seconds) {
  return Writer().put(seconds).take();
}

double parse_seconds(std::span<const std::byte> bytes) {
  Reader r(bytes);
  const auto seconds = r.get<double>();
  r.end();
  if (!std::isfinite(seconds)) throw malformed("a time that is none");
  return seconds;
}

std::vector<std::byte> pack(const std::string& line) {
  return Writer().text(line).take();
}

std::string parse_line(std::span<const std::byte> bytes) {
  Reader r(bytes);
  std::string line = r.text();
  r.end();
  return line.substr(0, line.find('\n'));
}

}  // namespace assay::message
