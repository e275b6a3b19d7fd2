#include "verify/expected/expected.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <tuple>

namespace assay {
namespace {

std::string plural(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// What the sentence about one source says after "Digests come from".
std::string provenance(const Trust& trust, std::size_t files) {
  switch (trust.source) {
    case TrustSource::lfs_pointer:
      return fmt::format("LFS pointers ({}) in {}", plural(files, "file"), trust.detail);
    case TrustSource::git_blob:
      return fmt::format("git object ids ({}) in {}", plural(files, "file"), trust.detail);
    case TrustSource::hub_listing: return fmt::format("the hub listing {}", trust.detail);
    case TrustSource::hub_tree_cache: return fmt::format("the tree listing {} of the download", trust.detail);
    case TrustSource::download_metadata: return fmt::format("the download's metadata for {}", trust.detail);
    case TrustSource::blob_name: return "the files' own names in the cache";
    case TrustSource::manifest: return fmt::format("the manifest {}", trust.detail);
    case TrustSource::command_line: return "the command line";
    case TrustSource::store_manifest: return fmt::format("the store's manifest {}", trust.detail);
    case TrustSource::signature:
      return fmt::format("the signature {} ({})", trust.detail, plural(files, "file"));
    case TrustSource::none: break;
  }
  return "nowhere";
}

std::string proof(const Trust& trust) {
  switch (trust.source) {
    case TrustSource::lfs_pointer:
    case TrustSource::git_blob:
      return "they prove that the files match that commit; compare the commit id with the publisher's";
    case TrustSource::hub_listing:
      if (trust.stored_beside) break;
      return "they prove that the files are the ones it lists; it is worth what the place you got it from is "
             "worth";
    case TrustSource::manifest:
      if (trust.stored_beside) break;
      return "they prove that the files are the ones it lists; it is worth what its author is worth";
    case TrustSource::command_line: return "it proves that the file is the one you meant";
    case TrustSource::store_manifest:
      if (trust.stored_beside) break;
      return "they prove that the files are those of the manifest that you pinned";
    case TrustSource::signature:
      return "they prove that the files are those that were signed; it is worth what its signer is worth";
    case TrustSource::hub_tree_cache:
    case TrustSource::download_metadata:
      return "it was stored beside the files when they were downloaded, so they prove that nothing has "
             "rotted since, "
             "not that the right files were downloaded";
    case TrustSource::blob_name:
      return "they prove that nothing has rotted since the download, not that the right files were "
             "downloaded";
    case TrustSource::none: break;
  }
  return "it lies beside the files, so they prove that nothing has rotted, not that nobody replaced both";
}

// LFS pointers and object ids of one commit are one sentence: the same word vouches for both.
std::string git_sentence(const Trust& trust, std::size_t pointers, std::size_t blobs) {
  std::string what;
  if (pointers > 0) what = fmt::format("LFS pointers ({})", plural(pointers, "file"));
  if (blobs > 0)
    what += fmt::format("{}git object ids ({})", what.empty() ? "" : " and ", plural(blobs, "file"));
  return fmt::format("Digests come from {} in {}{}: {}.", what, trust.detail,
                     trust.stored_beside ? " of this clone" : "", proof(trust));
}

}  // namespace

std::string_view trust_name(TrustSource source) {
  switch (source) {
    case TrustSource::lfs_pointer: return "lfs_pointer";
    case TrustSource::git_blob: return "git_blob";
    case TrustSource::hub_listing: return "hub_listing";
    case TrustSource::hub_tree_cache: return "hub_tree_cache";
    case TrustSource::download_metadata: return "download_metadata";
    case TrustSource::blob_name: return "blob_name";
    case TrustSource::manifest: return "manifest";
    case TrustSource::command_line: return "command_line";
    case TrustSource::signature: return "signature";
    case TrustSource::store_manifest: return "store_manifest";
    case TrustSource::none: break;
  }
  return "none";
}

std::string describe(const Trust& trust) {
  switch (trust.source) {
    case TrustSource::lfs_pointer: return "LFS pointer in " + trust.detail;
    case TrustSource::git_blob: return "git object id in " + trust.detail;
    case TrustSource::hub_listing: return "hub listing " + trust.detail;
    case TrustSource::hub_tree_cache: return "tree listing " + trust.detail + " beside the files";
    case TrustSource::download_metadata: return "download metadata for " + trust.detail;
    case TrustSource::blob_name: return "the file's own name in the cache";
    case TrustSource::manifest:
      return "manifest " + trust.detail + (trust.stored_beside ? " beside the files" : "");
    case TrustSource::command_line: return "--sha256 on the command line";
    case TrustSource::signature: return "signature " + trust.detail;
    case TrustSource::store_manifest: return "manifest " + trust.detail + " of the store";
    case TrustSource::none: break;
  }
  return "nobody";
}

namespace {

// Of a deque nothing moves as it grows.
struct TrustWords {
  std::shared_mutex mutex;
  std::deque<Trust> by_number = {Trust{}};  // 0: nobody's
  std::map<std::tuple<TrustSource, std::string, bool, std::string>, std::uint32_t> numbers;
};

TrustWords& trust_words() {
  static TrustWords words;
  return words;
}

}  // namespace

SharedTrust::SharedTrust(const Trust& trust) {
  if (trust.source == TrustSource::none) return;
  TrustWords& words = trust_words();
  const std::lock_guard lock(words.mutex);
  const auto [it, fresh] =
      words.numbers.try_emplace(std::tuple(trust.source, trust.detail, trust.stored_beside, trust.commit),
                                static_cast<std::uint32_t>(words.by_number.size()));
  if (fresh) words.by_number.push_back(trust);
  number_ = it->second;
}

const Trust& SharedTrust::operator*() const {
  TrustWords& words = trust_words();
  const std::shared_lock lock(words.mutex);
  return words.by_number[number_];
}

std::string trust_summary(const Expectation& expectation) {
  TrustTally tally;
  for (const ExpectedFile& file : expectation.files) tally.add(file.digest ? file.trust : SharedTrust());
  return tally.summary();
}

void TrustTally::add(const SharedTrust& trust) {
  if (trust->source == TrustSource::none) {
    ++unvouched_;
  } else if (count_of_last_ != nullptr && trust == last_) {
    ++*count_of_last_;
  } else {
    auto& [first, files] = sources_[{trust->source, trust->detail}];
    if (files++ == 0) first = trust;
    last_ = trust;
    count_of_last_ = &files;
  }
}

std::size_t TrustTally::count_of(TrustSource source, const std::string& detail) const {
  const auto it = sources_.find({source, detail});
  return it == sources_.end() ? 0 : it->second.second;
}

std::string TrustTally::summary() const {
  std::vector<std::string> sentences;
  const auto is_store = [](const auto& source) {
    return source.first.first == TrustSource::store_manifest && source.second.first->stored_beside;
  };
  // A store of many models has as many manifests.
  const auto manifests = std::count_if(sources_.begin(), sources_.end(), is_store);
  if (manifests > 1)
    sentences.push_back(
        fmt::format("Digests come from the store's {} manifests: they lie beside the files, so "
                    "the digests prove that nothing has rotted, not that nobody replaced both.",
                    manifests));
  for (const auto& source : sources_) {
    const auto& [key, entry] = source;
    const auto& [trust, count] = entry;
    if (manifests > 1 && is_store(source)) continue;
    if (key.first == TrustSource::git_blob && count_of(TrustSource::lfs_pointer, key.second) > 0) continue;
    if (key.first == TrustSource::lfs_pointer || key.first == TrustSource::git_blob) {
      sentences.push_back(git_sentence(*trust, count_of(TrustSource::lfs_pointer, key.second),
                                       count_of(TrustSource::git_blob, key.second)));
    } else if (key.first == TrustSource::command_line) {
      sentences.push_back(fmt::format("The digest comes from the command line: {}.", proof(*trust)));
    } else {
      sentences.push_back(fmt::format("Digests come from {}: {}.", provenance(*trust, count), proof(*trust)));
    }
  }
  if (sources_.empty()) return "Nobody said what the bytes should be: only structure can be checked.";
  if (unvouched_ > 0)
    sentences.push_back(fmt::format("{} no expected digest.",
                                    plural(unvouched_, "file") + (unvouched_ == 1 ? " has" : " have")));
  return fmt::format("{}", fmt::join(sentences, " "));
}

}  // namespace assay
