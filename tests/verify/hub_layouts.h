// A folder of files as huggingface_hub lays it out: a cache, or a --local-dir download's metadata. Digests
// are git's and sha256sum's.
#pragma once

#include <map>

#include "tests/support/support.h"

namespace assay::test {

inline const std::string kLayoutCommit = "abcdef1234567890abcdef1234567890abcdef12";

// Files of the commit that were not downloaded.
inline const std::vector<std::string> kNotDownloaded = {".gitattributes", "README.md", "onnx/model.onnx",
                                                        "pytorch_model.bin"};

struct FileDigests {
  std::string git_id, sha256;
  std::uint64_t size = 0;
  bool lfs = false;
};

inline std::map<std::string, FileDigests> digests_in(const fs::path& folder) {
  std::map<std::string, FileDigests> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = entry.path().string(), name = entry.path().filename().string();
    files[name] = {.git_id = run({"git", "hash-object", "--no-filters", path}).out.substr(0, 40),
                   .sha256 = run({"sha256sum", path}).out.substr(0, 64),
                   .size = entry.file_size(),
                   .lfs = name.ends_with(".safetensors")};
  }
  return files;
}

inline std::string tree_listing(const std::map<std::string, FileDigests>& files,
                                const std::vector<std::string>& not_downloaded) {
  std::string text;
  for (const auto& [name, file] : files) {
    text +=
        (text.empty() ? "" : ",\n") + ("\"" + name) + R"(": {"size": )" + std::to_string(file.size) +
        R"(, "blob_id": ")" + file.git_id + "\"" +
        (file.lfs ? R"(, "lfs_sha256": ")" + file.sha256 + R"(", "lfs_size": )" + std::to_string(file.size)
                  : "") +
        "}";
  }
  for (const std::string& name : not_downloaded)
    text += ",\n\"" + name + R"(": {"size": 7, "blob_id": ")" + std::string(40, '7') + "\"}";
  return R"({"format_version": 1, "files": {)" + text + "}}";
}

struct CacheLayout {
  fs::path repository, snapshot, tree;
};

inline CacheLayout write_hub_cache(const fs::path& cache, const fs::path& source,
                                   const std::vector<std::string>& not_downloaded) {
  const fs::path repository = cache / "models--org--small";
  CacheLayout made{repository, repository / "snapshots" / kLayoutCommit,
                   repository / "trees" / (kLayoutCommit + ".json")};
  fs::create_directories(made.snapshot);
  fs::create_directories(repository / "blobs");
  write_file(repository / "refs/main", kLayoutCommit);
  const auto files = digests_in(source);
  for (const auto& [name, file] : files) {
    const std::string blob = file.lfs ? file.sha256 : file.git_id;
    fs::copy(source / name, repository / "blobs" / blob);
    fs::create_symlink("../../blobs/" + blob, made.snapshot / name);
  }
  write_file(made.tree, tree_listing(files, not_downloaded));
  return made;
}

// As if `folder` had been downloaded; with a listing that has the other names as well, where there are any.
inline void write_download_metadata(const fs::path& folder, const std::vector<std::string>& not_downloaded) {
  const auto files = digests_in(folder);
  for (const auto& [name, file] : files) {
    write_file(folder / ".cache/huggingface/download" / (name + ".metadata"),
               kLayoutCommit + "\n" + (file.lfs ? file.sha256 : file.git_id) + "\n1795221253.5\n");
  }
  if (not_downloaded.empty()) return;
  write_file(folder / ".cache/huggingface/trees" / (kLayoutCommit + ".json"),
             tree_listing(files, not_downloaded));
}

}  // namespace assay::test
