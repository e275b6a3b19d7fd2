#include "convert/destination.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "convert/config_rewrite.h"
#include "convert/other_files.h"
#include "convert/ranks.h"
#include "core/formats/checksum_manifest.h"
#include "core/formats/hash/hasher.h"
#include "core/formats/stream_digest.h"
#include "core/system/text.h"
#include "core/system/threads.h"

namespace assay {
namespace {

// For the file system's own records, and for what is written beside: index, config.json, digests.
std::uint64_t reserve_for(std::uint64_t bytes) {
  constexpr std::uint64_t kLeast = 1 << 20, kMost = 64 << 20, kPart = 64;
  return std::min(kLeast + bytes / kPart, kMost);
}

constexpr std::uint64_t kLargestManifest = 64 << 20;
constexpr const char* kAnotherFolder = "name a new folder, or replace it with --overwrite";

bool is_within(const fs::path& inner, const fs::path& outer) {
  const fs::path relative = fs::weakly_canonical(inner).lexically_relative(fs::weakly_canonical(outer));
  return !relative.empty() && *relative.begin() != "..";
}

// A GGUF where one is asked for, or a folder with the list of digests that a conversion leaves in it.
bool may_be_replaced(const fs::path& out, const ConvertOptions& options) {
  std::error_code error;
  return (fs::is_regular_file(out, error) && options.to.starts_with("gguf:")) ||
         (fs::is_directory(out, error) && fs::is_regular_file(out / kManifest, error));
}

struct PlannedFile {
  std::string name;
  const std::string* header;
  std::uint64_t bytes;
};
// `each(PlannedFile)`: one for a shard, or one for each rank.
template <class Each>
void for_each_file(const ConversionPlan& plan, const Each& each) {
  for (const OutputShard& shard : plan.shards) {
    if (!plan.ranks) {
      each(PlannedFile{shard.name, &shard.header, shard.bytes});
      continue;
    }
    const CutShard cut = plan.ranks->cut(plan, shard);
    for (const RankFile& file : cut.files) each(PlannedFile{file.name, &file.header, file.bytes});
  }
}

bool begins_with(const fs::path& path, const PlannedFile& planned) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) != planned.bytes || error) return false;
  std::string header(planned.header->size(), '\0');
  File::open(path).read_exactly(0, std::as_writable_bytes(std::span(header)));
  return header == *planned.header;
}

bool is_file_of(const fs::path& folder, const std::string& name, const Digest& digest) {
  std::error_code error;
  return is_safe_relative_path(name) && fs::is_regular_file(folder / name, error) &&
         sha256_of_file(File::open(folder / name)) == digest;
}

// Every text that the plan gives the folder, and every file as the folder's own list has it.
bool is_finished_folder(const ConversionPlan& plan, const ConvertOptions& options, const fs::path& folder,
                        ProgressMode mode) {
  std::error_code error;
  if (!fs::is_regular_file(folder / kManifest, error)) return false;
  auto texts = plan.texts;
  if (!plan.gguf && !plan.checkpoint.config.empty()) {
    const std::string below = plan.ranks ? rank_folder(0, plan.ranks->grid().tp) + '/' : "";
    RewrittenConfig config = rewrite_config(plan, options);
    texts.emplace_back(below + config.name, std::move(config.text));
  }
  for (const auto& [name, text] : texts) {
    const Digest planned = digest_of(DigestKind::sha256, std::as_bytes(std::span(text)));
    if (!is_file_of(folder, name, planned)) return false;
  }
  if (options.dry_run) return true;  // which reads no weights
  const std::string list = read_small_file(folder / kManifest, kLargestManifest);
  const ChecksumManifest manifest = parse_checksum_manifest(list, folder / kManifest);
  std::set<std::string> listed;
  for (const ManifestEntry& entry : manifest.entries) listed.insert(entry.name);
  bool whole = true;
  for_each_file(plan, [&](const PlannedFile& file) {
    if (!listed.contains(file.name)) whole = false;
  });
  std::vector<HashJob> jobs;
  for (const ManifestEntry& entry : manifest.entries) {
    if (!is_safe_relative_path(entry.name)) return false;
    jobs.push_back({.path = folder / entry.name});
  }
  Progress progress(mode, "Checking what is finished", plan.file_bytes);
  hash_files(jobs, {.jobs = options.jobs, .progress = &progress}, [&](std::size_t i, HashResult&& result) {
    whole = whole && result.complete && result.digest == manifest.entries[i].digest;
  });
  if (interrupted()) throw Interrupted{};
  return whole;
}

[[noreturn]] void throw_exists(const fs::path& there, const char* remedy) {
  throw Error::refused("exists already").in(there).remedy(remedy);
}

}  // namespace

PartialFolder::Begin begin_of(const ConvertOptions& options) {
  using Begin = PartialFolder::Begin;
  return options.overwrite ? Begin::anew : options.resume ? Begin::resume : Begin::empty;
}

void check_output(const fs::path& in, const fs::path& out, const ConvertOptions& options) {
  std::error_code error;
  if (out.empty()) throw Error::usage("OUT is empty").remedy("name a new folder");
  const fs::path source = fs::is_directory(in, error) ? in : in.parent_path();
  if (is_within(out, source.empty() ? fs::path(".") : source) && fs::is_directory(in, error))
    throw Error::refused("the output would lie in the source's own folder")
        .in(out)
        .remedy("name another folder");
  // A file that a run gave its name before it was killed: its journal, which the conversion reads, knows it.
  if (fs::is_symlink(parent_of_output(out) / name_of_output(out), error))
    throw Error::refused("exists already, and is a link").in(out).remedy("name a new folder");
  const bool is_recorded = fs::exists(publication_record(out), error);
  const bool is_unfinished = fs::exists(partial_folder(out), error);
  const bool may_be_ours =
      options.resume && (is_recorded || !is_unfinished || fs::is_regular_file(out, error));
  const bool there =
      fs::exists(out, error) && !may_be_ours && !(fs::is_directory(out, error) && fs::is_empty(out, error));
  if (there && !options.overwrite) throw_exists(out, kAnotherFolder);
  if (there && (is_within(in, out) || !may_be_replaced(out, options)))
    throw Error::refused("exists already, and is not what a conversion wrote")
        .in(out)
        .remedy("name a new folder");
  if (!fs::is_directory(parent_of_output(out), error))
    throw Error::input("there is no such folder").in(parent_of_output(out));
  if (!options.overwrite && !options.resume && is_unfinished) {
    throw Error::refused("an unfinished conversion is here")
        .in(partial_folder(out))
        .remedy("continue it with --resume, or begin anew with --overwrite");
  }
}

void check_name_is_free(const ConversionPlan& plan, const OutputShard& file, const fs::path& out) {
  std::error_code error;
  const fs::path path = plan.folder_of(out) / file.name;
  if (!plan.is_folder && fs::exists(path, error)) throw_exists(path, "name a new file");
}

namespace {

// Where the bytes of a file, or of a tensor of a section, are to be.
struct Lying {
  const std::string& name;
  std::uint64_t begin, bytes;
};

Lying lying(const OutputShard& shard, const FinishedShard& finished, std::size_t file) {
  const FinishedFile& known = finished.files[file];
  const bool is_section = !shard.part_of.empty();
  return {is_section ? shard.part_of : known.name, is_section ? shard.tensors[file].offset : 0, known.bytes};
}

}  // namespace

bool is_there(const OutputShard& shard, const FinishedShard& finished, std::size_t file,
              const fs::path& folder) {
  const Lying where = lying(shard, finished, file);
  std::error_code error;
  if (!is_safe_relative_path(where.name) || !fs::is_regular_file(folder / where.name, error)) return false;
  const std::uint64_t size = fs::file_size(folder / where.name, error), end = where.begin + where.bytes;
  return !error && size >= end && (!shard.part_of.empty() || size == end);
}

bool is_whole(const OutputShard& shard, const FinishedShard& finished, std::size_t file,
              const fs::path& folder) {
  if (!is_there(shard, finished, file, folder)) return false;
  const Lying where = lying(shard, finished, file);
  return sha256_of_range(File::open(folder / where.name), where.begin, where.bytes) ==
         finished.files[file].sha256;
}

bool is_finished(const ConversionPlan& plan, const ConvertOptions& options, const fs::path& out,
                 ProgressMode mode) {
  std::error_code error;
  if (!options.resume || fs::exists(publication_record(out), error) ||
      fs::exists(partial_folder(out) / Journal::kName, error))
    return false;
  const fs::path folder = plan.folder_of(fs::absolute(out));
  fs::path there;
  if (fs::exists(out, error) && !(fs::is_directory(out, error) && fs::is_empty(out, error))) there = out;
  bool as_planned = true;
  for_each_file(plan, [&](const PlannedFile& file) {
    if (there.empty() && fs::exists(folder / file.name, error)) there = folder / file.name;
    as_planned = as_planned && begins_with(folder / file.name, file);
  });
  if (there.empty()) return false;
  if (!as_planned || (plan.is_folder && !is_finished_folder(plan, options, folder, mode)))
    throw_exists(there, there == out ? kAnotherFolder : "name a new file");
  return true;
}

void Space::require(const fs::path& out) const {
  if (needed <= free) return;
  throw Error::io(fmt::format("{} are needed, {} of them in reserve, and {} are free", human_bytes(needed),
                              human_bytes(reserve), human_bytes(free)))
      .in(parent_of_output(out));
}

Space check_space(const ConversionPlan& plan, const fs::path& out) {
  struct statvfs disk {};
  if (::statvfs(parent_of_output(out).c_str(), &disk) != 0)
    throw Error::from_errno("ask for free space", errno).in(out);
  std::uint64_t bytes = 0;
  for (const OtherFile& other : other_files(plan)) bytes += other.bytes;
  bytes = plan.file_bytes + bytes * (plan.ranks ? plan.ranks->grid().tp : 1);
  const std::uint64_t reserve = reserve_for(bytes);
  Space space{bytes + reserve, reserve, std::uint64_t{disk.f_bavail} * disk.f_frsize};
  const fs::path partial = partial_folder(out);
  std::error_code error;
  if (!fs::exists(partial, error)) return space;
  const bool may_be_published = !plan.is_folder && fs::exists(partial / Journal::kName, error);
  for_each_file(plan, [&](const PlannedFile& file) {  // what an earlier run has written needs no more room
    struct stat s {};
    const bool written = ::stat((partial / file.name).c_str(), &s) == 0 ||
                         (may_be_published && ::stat((plan.folder_of(out) / file.name).c_str(), &s) == 0);
    if (written) space.needed -= std::min(space.needed, static_cast<std::uint64_t>(s.st_blocks) * 512);
  });
  return space;
}

}  // namespace assay
