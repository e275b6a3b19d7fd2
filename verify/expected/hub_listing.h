// Saved answers of a hub's API that list a repository's files, with sizes and digests.
//
//   [{"type": "file", "path": …, "oid": …, "size": …, "lfs": {"oid": …}}, …]    Hugging Face,
//   /api/models/ID/tree/REV;
//                                                                               several pages one after
//                                                                               another, too
//   [{"type": "file", "path": …, "size": …, "xetHash": …}, …]                   a storage bucket's, where Xet's
//                                                                               hash is all there is
//   {"sha": COMMIT, "siblings": [{"rfilename": …, "size": …, "blobId": …, "lfs": {"sha256": …}}]}
//                                                                               …, /api/models/ID?blobs=true
//   {"format_version": 1, "files": {PATH: {"size": …, "blob_id": …, "lfs_sha256": …}}}
//                                                                               huggingface_hub's
//                                                                               trees/<commit>.json
//   {"Data": {"Files": [{"Path": …, "Size": …, "Sha256": …, "Type": "blob"}]}}  ModelScope,
//   /api/v1/models/ID/repo/files
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "verify/expected/expected.h"

namespace assay {

struct HubListing {
  struct Entry {
    std::optional<Digest> digest;  // sha256 where the hub has one, else the git object id, else the Xet hash
    std::optional<Digest> xet;
    std::optional<std::uint64_t> size;
  };
  std::map<std::string, Entry> files;  // names as written, already accepted as safe
  std::string commit;                  // where the document says it
  bool complete = true;  // false: folders not descended into, or a page that may have a successor
  Findings findings;
};

// Throws Error::input when `text` is none of the above.
HubListing parse_hub_listing(std::string_view text, const fs::path& source);
// trees/<commit>.json alone. nullopt: a format_version not known here, to be ignored (as its writer asks).
std::optional<HubListing> read_tree_cache(const fs::path& path);

// The listing `text`, read from `source`, as the expectation for the files below `root`.
Expectation expect_from_hub_listing(std::string_view text, const fs::path& source, const fs::path& root);

}  // namespace assay
