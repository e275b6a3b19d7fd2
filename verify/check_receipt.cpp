#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <span>
#include <vector>

#include "core/formats/json.h"
#include "core/formats/json_elements.h"
#include "core/system/error.h"
#include "core/system/finding_collector.h"
#include "core/system/name_filter.h"
#include "core/system/text.h"
#include "core/system/tree_names.h"
#include "verify/expected/hub_cache.h"
#include "verify/expected/signature_methods.h"
#include "verify/own_files.h"
#include "verify/receipt.h"
#include "verify/receipt_mac.h"

namespace assay {
namespace {

constexpr std::string_view kReceiptSchema = "assay.receipt/1";
constexpr std::uint64_t kMaxBytes = 1ull << 30;
constexpr JsonLimits kLimits{.max_bytes = kMaxBytes};

std::int64_t now_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// What verify() took as the root of the names: a file's folder, the snapshot of a hub cache, else the folder.
fs::path root_of(const fs::path& path) {
  if (hub_cache_place(path)) return expect_from_hub_cache(path).root;
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? path : path.parent_path();
}

class Checker {
 public:
  Checker(const ReceiptQuestion& question, const VerifyOptions& options)
      : question_(question), options_(options) {}

  ReceiptCheck run() {
    check_.root = root_of(plain_path(question_.path));
    std::string text = read_small_file(question_.receipt, kMaxBytes);
    check_authentication(text);
    const SplitJson split = without_files(text);
    const ParsedJson document = parse_json(split.rest, question_.receipt, kLimits);
    try {
      if (document.at("schema") != kReceiptSchema)
        throw Error::input("is not a receipt of assay verify").in(question_.receipt);
      check_verdict(document);
      check_scope(document);
      for (const ParsedJson& entry : document.at("files")) check_file(entry);
      check_files(std::span(text).subspan(split.begin, split.end - split.begin));
      if (document.contains("scope")) {
        check_links(document.at("scope"));
        check_added(document.at("scope"));
      }
    } catch (const ParsedJson::exception&) {
      throw Error::input("is not a receipt of assay verify, or a damaged one")
          .in(question_.receipt)
          .remedy("verify again");
    }
    if (check_.files == 0) problem("receipt.empty", "it vouches for no file");
    check_.findings = findings_.take();
    return std::move(check_);
  }

 private:
  void problem(std::string code, std::string message, std::string file = {},
               std::string remedy = "verify again") {
    findings_.add({.severity = Severity::error,
                   .code = std::move(code),
                   .message = std::move(message),
                   .file = std::move(file),
                   .remedy = std::move(remedy)});
  }

  // What is not JSON is told in the words that all such documents get.
  SplitJson without_files(const std::string& text) const {
    try {
      return split_array(text, "files", kLimits.max_depth);
    } catch (Error& error) {
      parse_json(text, question_.receipt, kLimits);
      throw error.in(question_.receipt);
    }
  }

  // Entry by entry, and what has been read goes: of a million files the names stay.
  void check_files(std::span<char> array) {
    PassingText passing(array.data(), array.size());
    const auto check = [&](std::string_view entry) {
      check_file(parse_json(entry, question_.receipt, kLimits));
    };
    if (!array.empty()) for_each_object({array.data(), array.size()}, kLimits.max_depth, check, &passing);
    std::sort(known_.begin(), known_.end());
  }

  void check_signature(const std::string& text) {
    if (!question_.signature) return;
    const fs::path bundle = question_.signature->bundle.value_or(signature_of_receipt(question_.receipt));
    const SignatureMethods methods = read_methods(*question_.signature, check_.root);
    const signature::Bundle read = signature::parse_bundle(read_small_file(bundle, kMaxBytes), bundle);
    try {
      check_.signer = signer_of_text(read, methods, text).words;
      check_.authenticated = true;
    } catch (const Error& error) {
      problem("receipt.not_signed", error.message());
    }
  }

  void check_authentication(const std::string& text) {
    check_signature(text);
    if (!question_.key) return;
    const Seal seal = check_seal(text, *question_.key);
    check_.authenticated = seal == Seal::whole && (!question_.signature || check_.authenticated);
    if (seal == Seal::none)
      problem("receipt.not_authenticated", "it carries no authentication code, and a key was given");
    if (seal == Seal::broken)
      problem("receipt.forged",
              "its authentication code does not fit: it was edited, or made with another key");
  }

  void check_verdict(const ParsedJson& document) {
    check_.origin = document.at("source").at("origin").get<std::string>();
    check_.age_seconds = now_seconds() - document.at("verified_unix").get<std::int64_t>();
    const std::string verdict = document.at("verdict").get<std::string>();
    if (verdict != "ok") {
      problem("receipt.verdict",
              fmt::format("the verification it records did not end well, but with '{}'", verdict));
    }
    if (check_.age_seconds < 0) problem("receipt.future", "it was written in the future");
    if (question_.max_age_seconds && check_.age_seconds > *question_.max_age_seconds) {
      problem("receipt.too_old",
              fmt::format("it is {} old", human_duration(static_cast<double>(check_.age_seconds))));
    }
  }

  void check_scope(const ParsedJson& document) {
    if (!document.contains("scope")) {
      return problem("receipt.scope", "it does not say what was looked at: an older version wrote it");
    }
    if (document.contains("rank") && document.at("rank").at("mode") == "share")
      problem("receipt.scope", "it covers only a part: one of many ranks wrote it", {},
              "give all of them to --merge");
    const ParsedJson& scope = document.at("scope");
    for (const auto& [key, asked] :
         {std::pair{"include", &options_.include}, {"exclude", &options_.exclude}}) {
      const std::string said = scope.at(key).get<std::string>();
      if (said == *asked) continue;
      problem("receipt.scope",
              said.empty() ? fmt::format("it was not made with --{} '{}'", key, *asked)
                           : fmt::format("it covers only a part: it was made with --{} '{}'", key, said),
              {}, "verify the whole, or give the same option");
    }
    const ParsedJson& weights = document.at("weights");
    const bool all = weights.at("vouched_files") == weights.at("files") && weights.at("files") != 0;
    if (options_.require_digests && !all)
      problem("receipt.unvouched", "nobody vouched for some of the weights");
    if (!options_.expect_commit) return;
    const ParsedJson& commits = document.at("commits");
    if (commits.size() != 1 || commits[0] != *options_.expect_commit)
      problem("receipt.other_commit", fmt::format("it is not about commit {}", *options_.expect_commit));
  }

  void check_file(const ParsedJson& entry) {
    const std::string& name = json_string(entry.at("name"), "name", question_.receipt);
    if (!is_safe_relative_path(name))
      throw Error::input(fmt::format("names the unsafe path '{}'", name)).in(question_.receipt);
    known_.push_back(name);
    check_status(entry, name);
    try {
      const FileIdentity now = File::open(check_.root / name).identity();
      const bool same = now.size == json_u64(entry.at("size"), "size", question_.receipt) &&
                        now.inode == json_u64(entry.at("inode"), "inode", question_.receipt) &&
                        now.mtime_ns == entry.at("mtime_ns").get<std::int64_t>() &&
                        now.ctime_ns == entry.at("ctime_ns").get<std::int64_t>();
      if (!same) problem("receipt.changed", "is not the file that was verified", name);
    } catch (const Error& error) {
      if (error.file() == question_.receipt.string()) throw;
      problem("receipt.missing", error.message(), name);
    }
  }

  // The verdict has to follow from the files.
  void check_status(const ParsedJson& entry, const std::string& name) {
    const std::string status = entry.value("status", "ok");
    const std::string digest = entry.at("digest").get<std::string>();
    if (status == "ok" && !digest.empty() && entry.value("expected", digest) == digest) {
      ++check_.files;
    } else if (status == "ok") {
      problem("receipt.contradiction", "is called ok, and its digest is not the one expected", name);
    } else if (status == "extra" && options_.fail_on_extra) {
      problem("receipt.extra", "was there without being expected", name);
    } else if (status != "extra" && status != "unchecked") {
      problem("receipt.contradiction", fmt::format("was found to be '{}'", status), name);
    }
  }

  void check_links(const ParsedJson& scope) {
    for (const auto& [name, target] : scope.at("links").items()) {
      if (!is_safe_relative_path(name))
        throw Error::input(fmt::format("names the unsafe path '{}'", name)).in(question_.receipt);
      std::error_code error;
      const fs::path now = fs::read_symlink(check_.root / name, error);
      if (error || now.string() != target.get<std::string>())
        problem("receipt.changed", "is not the symbolic link that was there", name);
    }
  }

  // Files that came later. Of one file verified by itself the neighbours are nobody's business; of a whole
  // hub cache its snapshots are.
  void check_added(const ParsedJson& scope) {
    const bool whole = scope.at("whole").get<bool>();
    const bool cache = !whole && hub_cache_place(check_.root) == HubCachePlace::cache;
    std::error_code ignored;
    if ((!whole && !cache) || !fs::is_directory(check_.root, ignored)) return;
    std::set<std::string> passed_over;
    for (const ParsedJson& name : scope.at("not_judged")) passed_over.insert(name.get<std::string>());
    const NameFilter filter(options_.include, options_.exclude);
    std::vector<fs::path> named = options_.own_files;
    named.push_back(question_.receipt);
    const OwnFiles own(named);
    for (const TreeEntry& entry : list_names(check_.root)) {
      if (std::binary_search(known_.begin(), known_.end(), entry.name) || !filter.accepts(entry.name))
        continue;
      if (cache && entry.name.find("/snapshots/") == std::string::npos) continue;
      if (is_below_any(entry.name, passed_over) || own.contains(check_.root / entry.name)) continue;
      problem("receipt.added", "was not there when the folder was verified", entry.name);
    }
  }

  static bool is_below_any(const std::string& name, const std::set<std::string>& folders) {
    for (auto slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      if (folders.contains(name.substr(0, slash))) return true;
    }
    return folders.contains(name);
  }

  const ReceiptQuestion& question_;
  const VerifyOptions& options_;
  ReceiptCheck check_;
  FindingCollector findings_;
  std::vector<std::string> known_;  // names of its files; sorted when all are read
};

}  // namespace

fs::path signature_of_receipt(const fs::path& receipt) {
  fs::path bundle = receipt;
  return bundle += ".sig";
}

ReceiptCheck check_receipt(const ReceiptQuestion& question, const VerifyOptions& options) {
  return Checker(question, options).run();
}

}  // namespace assay
