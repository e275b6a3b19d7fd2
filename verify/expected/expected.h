// What the files should be, and on whose word.
//
// Each source (a git commit, a hub cache, a download's metadata, a manifest, …) is turned into one
// Expectation; verify compares it with what is there and never asks again where a digest came from: each
// carries its Trust.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/digest.h"
#include "core/system/compact.h"
#include "core/system/file.h"
#include "core/system/finding.h"
#include "verify/claims/claim.h"

namespace assay {

enum class TrustSource {
  none,               // structure only: nobody said what the bytes should be
  lfs_pointer,        // an LFS pointer in a git commit
  git_blob,           // a git object id in a commit's tree
  hub_listing,        // a saved listing of the hub's tree API
  hub_tree_cache,     // trees/<commit>.json, which huggingface_hub wrote beside the files
  download_metadata,  // .cache/huggingface/download/<file>.metadata
  blob_name,          // the file's own name in a hub cache
  manifest,           // a checksum file the user named
  command_line,       // --sha256
  signature,          // a signed list of a model's files
  store_manifest,     // a model's manifest in a store of blobs (Ollama)
};

struct Trust {
  TrustSource source = TrustSource::none;
  std::string detail;  // "commit 1a2b3c4d5e", "SHA256SUMS"
  // The digest lies beside the file it vouches for: it proves the absence of bit-rot, not of substitution.
  bool stored_beside = false;
  std::string commit = {};  // the whole id, where the source is about one
};
std::string describe(const Trust& trust);         // "LFS pointer in commit 1a2b3c4d5e"
std::string_view trust_name(TrustSource source);  // "lfs_pointer": for JSON and receipts

// One source vouches for many files, in the same words: these are kept once, for as long as the program runs, and told
// by their number, which takes half of a pointer's room.
class SharedTrust {
 public:
  SharedTrust() = default;  // nobody's
  SharedTrust(const Trust& trust);
  const Trust& operator*() const;
  const Trust* operator->() const { return &**this; }
  friend bool operator==(const SharedTrust&, const SharedTrust&) = default;

 private:
  std::uint32_t number_ = 0;
};

// A list may hold a million of these: what few have takes little room where it is not there.
struct ExpectedFile {
  std::string name;  // relative to Expectation::root, '/' separators, safe
  std::optional<Digest> digest = {};
  SharedTrust trust = {};
  KnownSize size = {};
  Box<std::vector<Digest>> chunks = {};  // with a chunked manifest
  Box<Digest> xet = {};                  // what the source says of its Xet hash, beside any other digest
  Box<fs::path> elsewhere = {};          // where the bytes are, if not under that name: a hub cache's blob
  // A second, independent expectation of the same file (tree listing and blob name, say) that disagrees with
  // the first is a finding of the source, not kept here.
};

// By whom a model was signed, for reports.
struct SignatureFacts {
  std::string file, method, signer;  // the bundle; "key", "certificate", "keyless"; in words
  std::string identity, issuer;      // keyless
  std::string certificate;           // SHA-256 of the signer's, or the key's hint
  std::vector<std::int64_t> times;   // keyless: when it was signed, in seconds, by each witness
  std::string trusted_root;          // keyless: whose word was taken, and its digest
  std::string model, root_digest;    // what was signed, as it names itself; over all of its files
};

struct Expectation {
  std::string kind;    // "git clone", "Hugging Face cache", "checksum manifest", …: for people
  std::string origin;  // "commit 1a2b…", "models--org--name @ 1a2b…", the manifest's path
  fs::path root;
  std::vector<ExpectedFile> files;  // sorted by name
  bool complete = false;            // it lists everything there should be
  bool owns_root = true;  // whatever else lies in root is extra; not so for one file out of a folder,
                          // nor for a whole hub cache
  std::vector<std::string> ignored;  // top-level names that are never "extra": .git, .cache, …
  // Listed by the source but nothing to hash: symbolic links it compared itself, submodules, names it refused
  // with a finding. Neither these nor anything below them is extra or missing.
  std::vector<std::string> settled;
  std::uint64_t chunk_bytes = 0;
  DigestKind chunk_kind = DigestKind::sha256;
  Box<SignatureFacts> signature = {};
  FileClaimsByName claims = {};  // what is said of few files beside their digests, or in place of one
  Findings findings;             // dangling links, *.incomplete, unsafe names, unreadable metadata

  fs::path path_of(const ExpectedFile& file) const {
    return file.elsewhere ? *file.elsewhere : root / file.name;
  }
};

// For the end of a report, one sentence a source: where the digests come from and what they can prove.
//
//   Digests come from LFS pointers in commit 1a2b3c4d5e of this clone: they prove that the files match that
//   commit; compare the commit id with the publisher's.
std::string trust_summary(const Expectation& expectation);

// The same, of files that come one by one.
class TrustTally {
 public:
  void add(const SharedTrust& trust);  // of a file; nobody's where it has no digest
  std::string summary() const;

 private:
  using Key = std::pair<TrustSource, std::string>;
  std::size_t count_of(TrustSource source, const std::string& detail) const;
  std::map<Key, std::pair<SharedTrust, std::size_t>> sources_;
  std::size_t unvouched_ = 0;
  SharedTrust last_;
  std::size_t* count_of_last_ = nullptr;
};

}  // namespace assay
