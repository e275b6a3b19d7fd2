#include "convert/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "core/formats/stream_digest.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/report.h"

namespace assay {
namespace {

constexpr std::uint64_t kLargestJournal = 1ull << 30;

Json to_line(const std::string& shard, const FinishedShard& result) {
  Json errors = Json::array();
  for (const WorkError& error : result.errors)
    errors.push_back({{"work", error.work}, {"error", to_json(error.sums)}});
  Json files = Json::array();
  for (const FinishedFile& file : result.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256.hex()}});
  return {{"shard", shard}, {"files", std::move(files)}, {"errors", std::move(errors)}};
}

constexpr std::string_view kRankPrefix = ".assay-convert.rank-";

std::vector<fs::path> of_ranks(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    if (it->path().filename().string().starts_with(kRankPrefix)) files.push_back(it->path());
  }
  return files;
}

template <class Contents>
std::string sha256_hex(const Contents& contents) {
  return digest_of(DigestKind::sha256, std::as_bytes(std::span(contents))).hex();
}

FinishedShard from_line(const Json& line) {
  FinishedShard result;
  for (const Json& file : line.at("files")) {
    result.files.push_back({file.at("name").get<std::string>(), file.at("bytes").get<std::uint64_t>(),
                            Digest::parse(DigestKind::sha256, file.at("sha256").get<std::string>()).value()});
  }
  for (const Json& error : line.at("errors"))
    result.errors.push_back({error.at("work").get<std::uint32_t>(), error_sums_from_json(error.at("error"))});
  return result;
}

}  // namespace

std::string Journal::key(const ConversionPlan& plan, const ConvertOptions& options) {
  std::string text =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{} {} {}\n", plan.spec.text, static_cast<int>(options.int8_range),
                  options.include, options.exclude, options.scales_from, plan.roles_from, options.grid.tp,
                  options.grid.ep, options.merge);
  for (const OutputShard& shard : plan.shards) text += fmt::format("{} {}\n", shard.name, shard.bytes);
  if (plan.gguf) {
    text += fmt::format("{}\n", options.allow_large);
    for (const OutputShard& shard : plan.shards) text += sha256_hex(shard.header) + "\n";
    for (const DerivedOutput& output : plan.derived) text += sha256_hex(output.importance) + "\n";
  }
  for (const CheckpointFile& file : plan.checkpoint.files) {
    const FileIdentity identity = file.identity ? *file.identity : File::open(file.path).identity();
    text += fmt::format("{} {} {} {}\n", file.name, identity.size, identity.inode, identity.mtime_ns);
  }
  return sha256_hex(text);
}

Journal::Journal(const fs::path& folder, const std::string& key, const std::string& name)
    : path_(folder / name), finished_(read(path_, key)) {
  // Written anew, without whatever half a line a crash left at its end.
  AtomicFile fresh(path_);
  fresh.write(dump_json({{"schema", "assay.convert-journal/1"}, {"key", key}}, -1) + "\n");
  for (const auto& [shard, result] : finished_) fresh.write(dump_json(to_line(shard, result), -1) + "\n");
  fresh.commit();
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor_ < 0) throw Error::from_errno("open", errno).in(path_);
}

Journal::~Journal() {
  ::close(descriptor_);
}

std::map<std::string, FinishedShard> Journal::read(const fs::path& file, const std::string& key) {
  std::map<std::string, FinishedShard> finished;
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return finished;
  const std::string text = read_small_file(file, kLargestJournal);
  bool first = true;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const Json line = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                  text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (first && (line.is_discarded() || line.value("key", "") != key)) {
      throw Error::refused("the unfinished folder is of another conversion, or its source has changed")
          .in(file.filename() == kName ? file.parent_path() : file)
          .remedy("remove it to start afresh");
    }
    if (!first) {
      try {
        finished[line.at("shard").get<std::string>()] = from_line(line);
      } catch (const Json::exception&) {
        return finished;  // torn: this shard, and what would follow, is made again
      } catch (const std::bad_optional_access&) {
        return finished;
      }
    }
    first = false;
  }
  return finished;
}

void Journal::add(const std::string& shard, FinishedShard result) {
  append(dump_json(to_line(shard, result), -1) + "\n");
  finished_[shard] = std::move(result);
}

std::string Journal::rank_name(std::uint32_t rank) {
  return fmt::format("{}{:05}", kRankPrefix, rank);
}

std::string Journal::rank_lock(std::uint32_t rank) {
  return fmt::format("{}{:05}.lock", kRankPrefix, rank);
}

std::map<std::string, FinishedShard> Journal::read_all(const fs::path& folder, const std::string& key) {
  std::map<std::string, FinishedShard> all = read(folder / kName, key);
  for (const fs::path& file : of_ranks(folder)) {
    if (file.extension() != ".lock") all.merge(read(file, key));
  }
  return all;
}

void Journal::absorb_ranks(const std::string& key) {
  const std::vector<fs::path> files = of_ranks(path_.parent_path());
  if (files.empty()) return;
  for (auto& [shard, result] : read_all(path_.parent_path(), key)) {
    if (!finished_.contains(shard)) add(shard, std::move(result));
  }
  for (const fs::path& file : files) fs::remove(file);
}

void Journal::append(const std::string& line) {
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = ::write(descriptor_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Error::from_errno("write", errno).in(path_);
    done += static_cast<std::size_t>(n);
  }
  if (::fdatasync(descriptor_) != 0) throw Error::from_errno("flush to disk", errno).in(path_);
}

}  // namespace assay
