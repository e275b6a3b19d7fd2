// A folder that `hf download --local-dir` filled (huggingface_hub/_local_folder.py):
//
//   .cache/huggingface/download/<path>.metadata        three lines: commit, etag, time of writing
//   .cache/huggingface/download/<hash>.<etag>.incomplete
//   .cache/huggingface/trees/<commit>.json             every file of the commit, since huggingface_hub 1.22
#pragma once

#include "verify/expected/expected.h"

namespace assay {

bool is_local_dir_download(const fs::path& folder);
Expectation expect_from_local_dir(const fs::path& folder);

}  // namespace assay
