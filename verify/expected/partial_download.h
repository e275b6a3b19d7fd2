// Downloads of a part of a commit: `snapshot_download(allow_patterns=…)`, `hf download --include …`, what
// from_pretrained() fetches. huggingface_hub writes down the listing of the whole commit all the same, and
// nowhere which patterns were asked for.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "verify/expected/expected.h"

namespace assay {

// A commit's files, as far as this download is concerned.
struct DownloadedPart {
  std::set<std::string> present;    // here, or known to have been here
  std::vector<std::string> absent;  // listed, and never seen here
};

// Of the absent files those whose absence is a fault whatever the patterns were, so that what is here cannot
// be loaded or may be an unfinished download:
//   weights   of a set of shards of which others are here; all of them, where a model's folder has none at
//   all an index  of shards that are here a config.json beside weights that need one (all but GGUF)
// The others (texts, other formats, other quantizations of the same model) nobody need have asked for.
std::set<std::string> missed(const DownloadedPart& part);

// A model of which nobody lists the files: what is surely missing of it, each an error that names the file.
//   an index      of numbered shards, where no index is in their folder
//   a config.json beside weights that transformers and diffusers write with one
Findings missed_without_listing(const std::set<std::string>& present, const std::string& prefix);

// One note about files that were left out; nothing for none.
void note_left_out(const std::vector<std::string>& names, const std::string& place, Findings& findings);

}  // namespace assay
