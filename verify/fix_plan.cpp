#include "verify/fix_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/stream_digest.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "core/system/text.h"
#include "verify/expected/git_objects.h"

namespace assay {
namespace {

bool is_fault(const FileReport& file) {
  return file.status == FileStatus::failed || file.status == FileStatus::missing ||
         file.status == FileStatus::unreadable;
}

// git-lfs takes names as patterns that commas divide, and trims them: what it would take for more than a letter
// stands as '?', any one letter.
std::string lfs_pattern(std::string_view name) {
  std::string pattern;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool end = i == 0 || i + 1 == name.size();
    const bool odd = static_cast<unsigned char>(c) < ' ' ||
                     std::string_view("*?[]\\,!#").find(c) != name.npos || (c == ' ' && end);
    pattern += odd ? '?' : c;
  }
  return pattern;
}

class Planner {
 public:
  Planner(const VerifyReport& report, const VerifyOptions& options) : report_(report), options_(options) {
    if (!options.fix_from.empty()) from_ = parse_fix_source(options.fix_from);
  }

  // About the whole: a manifest that cannot be read, a download that was not finished and has no name.
  FixStep plan(const Finding& finding) {
    FixStep step{.file = finding.file, .fault = finding.message};
    constexpr std::string_view kManifests = "manifests/";
    if (finding.code.starts_with("ollama.") && finding.file.starts_with(kManifests))
      pull_model(finding.file.substr(kManifests.size()), step);
    else
      step.note = finding.remedy.empty() ? "see to it by hand" : finding.remedy;
    return step;
  }

  FixStep plan(const FileReport& file) {
    FixStep step{.file = file.name, .fault = std::string(file.diagnosis())};
    std::error_code ignored;
    const fs::path path = report_.expectation.root / file.name;
    present_ = fs::exists(fs::symlink_status(path, ignored));
    if (file.status == FileStatus::unreadable) {
      step.note = "it cannot be read: no download mends that";
    } else if (file.expected && file.actual() == file.expected) {
      step.note = "its bytes are what they should be: a download would give the same";
    } else if (fs::is_symlink(path, ignored) && file.status == FileStatus::failed &&
               file.elsewhere().empty() && !options_.follow_links) {
      step.note = "it is a link out of the folder: see to it by hand";
    } else {
      by_source(file, path, step);
    }
    return step;
  }

 private:
  void by_source(const FileReport& file, const fs::path& path, FixStep& step) {
    const TrustSource source = file.trust->source;
    const bool git = source == TrustSource::lfs_pointer || source == TrustSource::git_blob;
    if (git && !options_.find.root && from_git(file, path, step)) return;
    if (source == TrustSource::store_manifest && report_.expectation.kind == "Ollama store")
      return from_ollama(file, step);
    if (const auto cached = hub_cache_file(path)) {
      step.commands.push_back(fetch_into_cache(*cached, file.status == FileStatus::failed));
      return;
    }
    // What a store calls a file is not where it keeps it.
    if (source == TrustSource::store_manifest || source == TrustSource::blob_name ||
        !file.elsewhere().empty()) {
      step.note = "it lies in a store: have the store's own program fetch it again";
      return;
    }
    if (!from_) {
      step.note = "nobody says where it comes from: give --fix-from ORG/NAME of the hub, or an address";
      return;
    }
    if (from_->kind == FixSource::Kind::url) return from_address(file, path, step);
    step.commands.push_back(fetch_into_folder(*from_, file.trust->commit, report_.expectation.root, file.name,
                                              file.status == FileStatus::failed));
  }

  bool from_git(const FileReport& file, const fs::path& path, FixStep& step) {
    if (!repository_looked_for_) repository_ = git::Repository::find(report_.expectation.root);
    repository_looked_for_ = true;
    if (!repository_) return false;
    const std::string root = report_.expectation.root.string();
    // What git and git-lfs take for unchanged, by its size and time, they leave as it is; so does git-lfs what is
    // no pointer.
    if (present_) step.commands.push_back(remove_file(path));
    const bool lfs = file.trust->source == TrustSource::lfs_pointer;
    if (lfs) remove_bad_object(file, step);
    // git-lfs pulls what the checked-out commit has; of another one, git's own filter asks it.
    if (!lfs || options_.find.rev) {
      step.commands.push_back({{"git", "-C", root, "--literal-pathspecs", "restore",
                                "--source=" + file.trust->commit, "--worktree", "--", file.name}});
      return true;
    }
    const std::string name = path.lexically_relative(repository_->folder()).generic_string();
    step.commands.push_back(
        {{"git", "-C", root, "lfs", "pull", "--include=" + lfs_pattern(name), "--exclude="}});
    return true;
  }

  // The copy that git-lfs keeps is what it would write again, and it does not look whether it is whole.
  void remove_bad_object(const FileReport& file, FixStep& step) {
    if (!file.expected || file.expected->kind != DigestKind::sha256) return;
    const std::string hex = file.expected->hex();
    const fs::path object = common_folder() / "lfs" / "objects" / hex.substr(0, 2) / hex.substr(2, 2) / hex;
    std::error_code ignored;
    if (!fs::is_regular_file(object, ignored)) return;
    try {
      if (sha256_of_file(File::open(object)) == *file.expected) return;
    } catch (const Error&) {
      // It cannot be read, and is no use.
    }
    step.commands.push_back(remove_file(object));
  }

  // A linked work tree has a folder of its own, and objects in that of the repository.
  fs::path common_folder() const {
    const fs::path folder = repository_->git_folder();
    std::error_code ignored;
    if (!fs::is_regular_file(folder / "commondir", ignored)) return folder;
    return (folder / trim(read_small_file(folder / "commondir", 4096))).lexically_normal();
  }

  // Ollama takes a blob that is there for a good one.
  void from_ollama(const FileReport& file, FixStep& step) {
    std::error_code ignored;
    const fs::path blob = report_.path_of(file);
    if (fs::exists(blob, ignored)) step.commands.push_back(remove_file(blob));
    pull_model(file.trust->detail, step);
  }

  // By its manifest's path below the folder of manifests.
  static void pull_model(const std::string& manifest, FixStep& step) {
    const fs::path parts(manifest);
    const std::vector<std::string> words(parts.begin(), parts.end());
    if (words.size() != 4) {
      step.note = "its manifest does not lie where HOST/NAMESPACE/MODEL/TAG would: pull its model again";
      return;
    }
    std::string model = words[2] + ":" + words[3];
    if (words[1] != "library" || words[0] != "registry.ollama.ai") model = words[1] + "/" + model;
    if (words[0] != "registry.ollama.ai") model = words[0] + "/" + model;
    step.commands.push_back({{"ollama", "pull", "--", model}});
  }

  void from_address(const FileReport& file, const fs::path& path, FixStep& step) {
    const std::string address = address_of(*from_, file.name);
    const std::uint64_t wanted = file.expected_size().value_or(file.size());
    if (present_ && !file.damaged().empty()) {
      for (const ByteRange& range : file.damaged())
        step.commands.push_back(fetch_range(address, path, range));
      if (file.size() > wanted)
        step.commands.push_back({{"truncate", "-s", std::to_string(wanted), "--", path.string()}});
      return;
    }
    const bool cut_short = present_ && file.diagnosis().starts_with("is truncated");
    if (cut_short) {
      step.commands.push_back(fetch_rest(address, path));
      step.note = "goes on where it ends; if it is not right then, fetch all of it";
    } else {
      step.commands.push_back(fetch_whole(address, path));
    }
    step.alternatives.push_back(fetch_in_parts(address, path, file.expected));
  }

  const VerifyReport& report_;
  const VerifyOptions& options_;
  std::optional<FixSource> from_;
  std::optional<git::Repository> repository_;
  bool repository_looked_for_ = false, present_ = false;
};

Json command_json(const FixCommand& command) {
  Json json = {{"words", command.words}, {"line", command.line()}};
  if (!command.into.empty()) json["into"] = command.into;
  return json;
}

}  // namespace

std::vector<FixStep> fix_plan(const VerifyReport& report, const VerifyOptions& options) {
  Planner planner(report, options);
  std::vector<FixStep> plan;
  for (const FileReport& file : report.files) {
    if (is_fault(file)) plan.push_back(planner.plan(file));
  }
  for (const Finding& finding : report.findings) {
    if (finding.severity == Severity::error) plan.push_back(planner.plan(finding));
  }
  return plan;
}

// Comments and lines, so that all of it can be given to a shell.
void render_fix_plan(const std::vector<FixStep>& plan, const Output& output) {
  if (plan.empty()) return;
  output.line("");
  output.line("# To mend it:");
  for (const FixStep& step : plan) {
    output.line(fmt::format("# {} {}", escape_for_terminal(step.file), escape_for_terminal(step.fault)));
    for (const FixCommand& command : step.commands) output.line(command.line());
    for (const FixCommand& command : step.alternatives) output.line("# or: " + command.line());
    if (!step.note.empty()) output.line("# " + escape_for_terminal(step.note));
  }
}

Json fix_plan_json(const std::vector<FixStep>& plan) {
  Json steps = Json::array();
  for (const FixStep& step : plan) {
    Json json = {{"file", step.file}, {"fault", step.fault}};
    json["commands"] = Json::array();
    for (const FixCommand& command : step.commands) json["commands"].push_back(command_json(command));
    if (!step.alternatives.empty()) json["alternatives"] = Json::array();
    for (const FixCommand& command : step.alternatives) json["alternatives"].push_back(command_json(command));
    if (!step.note.empty()) json["note"] = step.note;
    steps.push_back(std::move(json));
  }
  return steps;
}

}  // namespace assay
