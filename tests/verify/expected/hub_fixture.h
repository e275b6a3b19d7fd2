// A Hugging Face cache and a --local-dir download in small, laid out by hand; and, where huggingface_hub is
// installed, by huggingface_hub.
#pragma once

#include <cstdlib>

#include "tests/support/git.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {

inline const std::string kCommit = "1234567890abcdef1234567890abcdef12345678";
inline const std::string kConfig = "{\"model_type\": \"llama\"}\n";
inline const std::string kWeights(5000, 'w');
// Of the two, by `git hash-object` and `sha256sum`.
inline const std::string kConfigId = "9eddb62b076f586b2186445e7872e5a05f0dfe06";
inline const std::string kWeightsSha256 = "4d3ce487907df7c82875b924d841f0a3d576492e4d589b734abbd71d966151a8";

inline std::string tree_json() {
  return R"({"format_version": 1, "files": {"config.json": {"size": 24, "blob_id": ")" + kConfigId +
         R"("}, "model.safetensors": {"size": 5000, "blob_id": "e3b660f2a77e2e189ed9519abdf2e3b94467d30e",
         "lfs_sha256": ")" +
         kWeightsSha256 + R"(", "lfs_size": 5000}}})";
}

struct HubCache {
  fs::path repository;
  fs::path snapshot() const { return repository / "snapshots" / kCommit; }
  void link(const std::string& name, const std::string& target) const {
    fs::create_directories((snapshot() / name).parent_path());
    fs::create_symlink(target, snapshot() / name);
  }
  void write_tree() const { write_file(repository / "trees" / (kCommit + ".json"), tree_json()); }
};

inline HubCache make_hub_cache(const fs::path& cache, const std::string& name = "models--org--name") {
  const HubCache made{cache / name};
  write_file(made.repository / "refs/main", kCommit);
  write_file(made.repository / "blobs" / kConfigId, kConfig);
  write_file(made.repository / "blobs" / kWeightsSha256, kWeights);
  made.link("config.json", "../../blobs/" + kConfigId);
  made.link("model.safetensors", "../../blobs/" + kWeightsSha256);
  return made;
}

inline fs::path make_local_dir(const fs::path& folder) {
  const fs::path download = folder / ".cache/huggingface/download";
  write_file(folder / "config.json", kConfig);
  write_file(folder / "model.safetensors", kWeights);
  write_file(download / "config.json.metadata", kCommit + "\n" + kConfigId + "\n1795221253.7521243\n");
  write_file(download / "model.safetensors.metadata",
             kCommit + "\n" + kWeightsSha256 + "\n1795221253.7533352\n");
  return folder;
}

// True when $ASSAY_PYTHON, else python3, has huggingface_hub and has filled `folder` (hub_download.py).
inline bool download_with_huggingface_hub(const fs::path& folder) {
  const char* given = std::getenv("ASSAY_PYTHON");
  const ProcessResult result =
      run({given != nullptr ? given : "python3",
           test::source_dir().string() + "/tests/verify/expected/hub_download.py", folder.string()},
          {.environment = {"no_proxy=*", "NO_PROXY=*"}});
  return result.exit_code == 0;
}

}  // namespace assay::test
