#include "verify/expected/local_dir.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <set>

#include "core/system/error.h"
#include "core/system/text.h"
#include "verify/expected/assemble.h"
#include "verify/expected/hub_listing.h"
#include "verify/expected/hub_names.h"
#include "verify/expected/partial_download.h"
#include "verify/expected/weight_files.h"

namespace assay {
namespace {

constexpr std::string_view kFolder = ".cache/huggingface";
constexpr std::string_view kMetadata = ".metadata";
constexpr std::uint64_t kMaxMetadataBytes = 4096;

struct Metadata {
  std::string commit;
  std::string etag;
  double written = 0;  // seconds since 1970
};

// Three lines; the third is Python's str(time.time()).
std::optional<Metadata> parse_metadata(std::string_view text) {
  Metadata metadata;
  std::array<std::string_view, 3> lines;
  for (std::string_view& line : lines) {
    const auto end = text.find('\n');
    line = trim(text.substr(0, end));
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
  const char* last = lines[2].data() + lines[2].size();
  const auto [stop, error] = std::from_chars(lines[2].data(), last, metadata.written);
  if (error != std::errc() || stop != last || !is_commit_id(lines[0]) || lines[1].empty())
    return std::nullopt;
  metadata.commit = lines[0];
  metadata.etag = lines[1];
  return metadata;
}

class LocalDir {
 public:
  explicit LocalDir(const fs::path& folder) : folder_(folder) {
    out_.kind = "Hugging Face download";
    out_.root = folder;
    out_.ignored = {".cache", ".git"};
  }

  Expectation read() {
    for (const TreeEntry& entry : list_tree(folder_ / kFolder / "download")) {
      if (entry.kind != TreeEntry::Kind::regular) continue;
      if (entry.name.ends_with(kMetadata))
        metadata(entry.name);
      else if (is_incomplete(entry.name))
        incomplete_.push_back(entry);
    }
    const std::string commit = newest_commit();
    out_.origin = commit.empty() ? "no commit known" : "commit " + commit;
    if (commits_.size() > 1) {
      out_.findings.push_back({.severity = Severity::warning,
                               .code = "local_dir.mixed_commits",
                               .message = fmt::format("files of {} commits lie together; the newest is {}",
                                                      commits_.size(), commit.substr(0, 10)),
                               .remedy = "download again with one --revision"});
    }
    if (!commit.empty()) tree(commit);
    report_bad_metadata();
    report_incomplete();
    if (out_.files.empty() && incomplete_.empty()) {
      throw Error::input("is a download's folder, but holds the metadata of no file")
          .in(folder_ / kFolder / "download")
          .remedy(
              "download again, name the digests with --manifest, or delete it to have only the structure "
              "checked");
    }
    finish(out_);
    return std::move(out_);
  }

 private:
  void metadata(const std::string& entry) {
    const std::string name = entry.substr(0, entry.size() - kMetadata.size());
    if (!accept_name(name, out_.findings)) return;
    ExpectedFile file{.name = name};
    try {
      const auto known =
          parse_metadata(read_small_file(folder_ / kFolder / "download" / entry, kMaxMetadataBytes));
      if (!known) throw Error::input("is not three lines of commit, etag and time");
      file.digest = digest_named(known->etag);
      if (!file.digest)
        throw Error::input(fmt::format("holds the etag '{}', which is no digest", known->etag));
      file.trust = Trust{TrustSource::download_metadata, commit_detail(known->commit), true, known->commit};
      commit_of_[name] = known->commit;
      double& newest = commits_[known->commit];
      newest = std::max(newest, known->written);
    } catch (const Error& error) {
      bad_metadata_.emplace_back(name, error.message());
    }
    out_.files.push_back(std::move(file));
  }

  std::string newest_commit() const {
    std::pair<double, std::string> newest;
    for (const auto& [commit, written] : commits_) newest = std::max(newest, {written, commit});
    return newest.second;
  }

  // The tree listing knows sizes, and the files whose download never began.
  void tree(const std::string& commit) {
    const fs::path path = folder_ / kFolder / "trees" / (commit + ".json");
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(path, ignored))) return;
    const std::optional<HubListing> listing = read_tree_cache(path);
    if (!listing) return;
    out_.complete = true;
    out_.findings.insert(out_.findings.end(), listing->findings.begin(), listing->findings.end());
    const SharedTrust trust = Trust{TrustSource::hub_tree_cache, path.filename().string(), true, commit};
    std::map<std::string, ExpectedFile*> known;
    for (ExpectedFile& file : out_.files) known[file.name] = &file;
    DownloadedPart part;
    for (const ExpectedFile& file : out_.files) part.present.insert(file.name);
    std::vector<ExpectedFile> more;
    for (const auto& [name, entry] : listing->files) {
      const auto it = known.find(name);
      if (it != known.end()) {
        agree(*it->second, entry, trust, commit);
        continue;
      }
      ExpectedFile file{
          .name = name, .digest = entry.digest, .trust = trust, .size = entry.size, .xet = boxed(entry.xet)};
      if (fs::exists(fs::symlink_status(folder_ / name, ignored)))
        part.present.insert(name);
      else
        part.absent.push_back(name);
      more.push_back(std::move(file));
    }
    leave_out(part, more);
    std::move(more.begin(), more.end(), std::back_inserter(out_.files));
  }

  // What was never downloaded, and need not have been, is no part of what should be here.
  void leave_out(const DownloadedPart& part, std::vector<ExpectedFile>& files) {
    const std::set<std::string> needed = missed(part);
    std::vector<std::string> left_out;
    for (const std::string& name : part.absent) {
      if (!needed.contains(name)) left_out.push_back(name);
    }
    std::erase_if(files, [&](const ExpectedFile& file) {
      return !needed.contains(file.name) && !part.present.contains(file.name);
    });
    note_left_out(left_out, "", out_.findings);
  }

  // A weight whose digest is lost fails: nobody can tell any more whether it is whole.
  void report_bad_metadata() {
    std::map<std::string_view, const ExpectedFile*> known;
    for (const ExpectedFile& file : out_.files) known[file.name] = &file;
    for (const auto& [name, why] : bad_metadata_) {
      const bool lost = may_hold_weights(name) && !known.at(name)->digest;
      out_.findings.push_back({.severity = lost ? Severity::error : Severity::warning,
                               .code = "local_dir.bad_metadata",
                               .message = fmt::format("its metadata {}: nobody says what it should be", why),
                               .file = name,
                               .remedy = "download it again, or give a listing or manifest with --manifest"});
    }
  }

  // A file downloaded at another commit keeps its own digest; at this one, both sources must say the same.
  void agree(ExpectedFile& file, const HubListing::Entry& entry, const SharedTrust& trust,
             const std::string& commit) {
    const auto it = commit_of_.find(file.name);
    const bool comparable = file.digest && entry.digest && file.digest->kind == entry.digest->kind;
    if (!comparable || file.digest == entry.digest) {
      file.size = entry.size;
      file.xet = boxed(entry.xet);
      const bool weaker = file.digest && entry.digest == entry.xet;  // a Xet hash, beside a better digest
      if (comparable || !entry.digest || weaker) return;
      file.digest = entry.digest;
      file.trust = trust;
      return;
    }
    const bool stale = it != commit_of_.end() && it->second != commit;
    out_.findings.push_back(
        {.severity = stale ? Severity::warning : Severity::error,
         .code = stale ? "local_dir.stale_file" : "local_dir.contradiction",
         .message = stale ? fmt::format("was downloaded at commit {} and is another file at {}",
                                        it->second.substr(0, 10), commit.substr(0, 10))
                          : "its download metadata and the tree listing name different digests",
         .file = file.name});
  }

  void report_incomplete() {
    std::map<Digest, std::string> names;
    for (const ExpectedFile& file : out_.files) {
      if (file.digest) names[*file.digest] = file.name;
    }
    for (const TreeEntry& entry : incomplete_) {
      const auto digest = digest_of_incomplete(fs::path(entry.name).filename().string());
      const auto it = digest ? names.find(*digest) : names.end();
      std::error_code ignored;
      const bool finished = it != names.end() && fs::exists(folder_ / it->second, ignored);
      out_.findings.push_back(
          {.severity = finished ? Severity::note : Severity::error,
           .code = "local_dir.incomplete",
           .message = finished ? fmt::format("is left over from a download that was finished later ({})",
                                             human_bytes(entry.size))
                               : fmt::format("is an unfinished download of {} ({} so far)",
                                             it == names.end() ? "an unknown file" : it->second,
                                             human_bytes(entry.size)),
           .file = fmt::format("{}/download/{}", kFolder, entry.name),
           .remedy = finished ? "delete it" : "run the download again"});
    }
  }

  fs::path folder_;
  Expectation out_;
  std::map<std::string, double> commits_;         // to the time of their newest metadata
  std::map<std::string, std::string> commit_of_;  // file to commit
  std::vector<TreeEntry> incomplete_;
  std::vector<std::pair<std::string, std::string>> bad_metadata_;  // file, and what is wrong
};

}  // namespace

bool is_local_dir_download(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / kFolder / "download", ignored);
}

Expectation expect_from_local_dir(const fs::path& folder) {
  return LocalDir(folder).read();
}

}  // namespace assay
