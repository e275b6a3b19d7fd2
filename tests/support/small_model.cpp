#include "tests/support/small_model.h"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <stdexcept>

#include "tests/support/support.h"

namespace assay::test {
namespace {

constexpr int kTensorsPerShard = 4;
constexpr std::uint64_t kElements = 4096;

std::string random_bf16(std::uint32_t seed) {
  std::string bytes;
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::uint64_t i = 0; i < kElements; ++i) {
    state = state * 1664525u + 1013904223u;
    const std::uint32_t mantissa_and_sign = state >> 16;
    const std::uint16_t code =
        static_cast<std::uint16_t>((mantissa_and_sign & 0x807F) | 0x3F00);  // ±[0.5, 1)
    bytes += static_cast<char>(code & 0xFF);
    bytes += static_cast<char>(code >> 8);
  }
  return bytes;
}

void git(const fs::path& folder, std::vector<std::string> arguments, const std::string& input = {}) {
  arguments.insert(arguments.begin(),
                   {"git", "-C", folder.string(), "-c", "user.name=t", "-c", "user.email=t@t", "-c",
                    "commit.gpgsign=false", "-c", "init.defaultBranch=main"});
  const ProcessResult result = run(arguments, {.input = input});
  if (result.exit_code != 0) throw std::runtime_error("git failed: " + result.err);
}

}  // namespace

SmallModel write_small_model(const fs::path& folder) {
  SmallModel model{.folder = folder};
  std::string weight_map;
  for (int shard = 1; shard <= 3; ++shard) {
    const std::string file = "model-0000" + std::to_string(shard) + "-of-00003.safetensors";
    std::string json = "{\"__metadata__\":{\"format\":\"pt\"}", buffer;
    for (int t = 0; t < kTensorsPerShard; ++t) {
      const std::string name = "layers." + std::to_string(shard) + ".w" + std::to_string(t);
      const std::string data = random_bf16(static_cast<std::uint32_t>(shard * 100 + t));
      json += ",\"" + name + "\":{\"dtype\":\"BF16\",\"shape\":[64,64],\"data_offsets\":[" +
              std::to_string(buffer.size()) + "," + std::to_string(buffer.size() + data.size()) + "]}";
      buffer += data;
      weight_map += (weight_map.empty() ? "\"" : ",\"") + name + "\":\"" + file + "\"";
    }
    json += "}";
    while (json.size() % 8 != 0) json += ' ';
    write_file(folder / file, safetensors_bytes(json, buffer));
    model.shards.push_back(file);
  }
  const std::uint64_t total = 3ull * kTensorsPerShard * kElements * 2;
  write_file(
      folder / "model.safetensors.index.json",
      "{\"metadata\":{\"total_size\":" + std::to_string(total) + "},\"weight_map\":{" + weight_map + "}}\n");
  write_file(folder / "config.json", "{\"model_type\":\"test\"}\n");
  return model;
}

std::string sha256_by_openssl(const fs::path& file) {
  const ProcessResult result = run({"openssl", "dgst", "-sha256", "-r", file.string()});
  if (result.exit_code != 0) throw std::runtime_error("openssl failed: " + result.err);
  return result.out.substr(0, 64);
}

void commit_with_pointers(const fs::path& folder) {
  git(folder, {"init", "-q"});
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name == ".git") continue;
    if (!name.ends_with(".safetensors")) {
      git(folder, {"add", name});
      continue;
    }
    const std::string pointer =
        "version https://git-lfs.github.com/spec/v1\noid sha256:" + sha256_by_openssl(entry.path()) +
        "\nsize " + std::to_string(entry.file_size()) + "\n";
    const ProcessResult object =
        run({"git", "-C", folder.string(), "hash-object", "-w", "--stdin"}, {.input = pointer});
    git(folder, {"update-index", "--add", "--cacheinfo", "100644," + object.out.substr(0, 40) + "," + name});
  }
  git(folder, {"commit", "-q", "-m", "weights"});
}

}  // namespace assay::test
