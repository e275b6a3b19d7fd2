// A model and its ranks, for the tests of many nodes: processes with what a launcher would tell them.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {

using nlohmann::json;
using Words = std::vector<std::string>;

inline constexpr int kRanks = 64;
inline constexpr int kAtOnce = 8;

inline std::string random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Shards of `sizes` bytes of weights each.
inline void write_model(const fs::path& folder, const std::vector<std::size_t>& sizes) {
  json map = json::object();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, sizes.size());
    const std::string tensor = fmt::format("t{}", i);
    const json header = {{tensor, {{"dtype", "U8"}, {"shape", {sizes[i]}}, {"data_offsets", {0, sizes[i]}}}}};
    write_file(folder / name,
               safetensors_bytes(header.dump(), random_bytes(sizes[i], static_cast<unsigned>(i))));
    map[tensor] = name;
  }
  write_file(folder / "model.safetensors.index.json",
             json{{"metadata", json::object()}, {"weight_map", map}}.dump());
  write_file(folder / "config.json", "{\"model_type\": \"x\"}");
}

inline void flip_byte(const fs::path& file, std::uint64_t at) {
  std::string bytes = read_file(file);
  bytes.at(at) = static_cast<char>(bytes.at(at) ^ 1);
  write_file(file, bytes);
}

class Nodes : public ::testing::Test {
 protected:
  std::string manifest(const fs::path& model, const Words& options = {"--hash"}) {
    const std::string file = (dir_ / "list").string();
    Words words = {"manifest", model.string(), "-o", file};
    words.insert(words.end(), options.begin(), options.end());
    EXPECT_EQ(assay(words).exit_code, 0);
    return file;
  }
  std::string folder() const { return (dir_ / "gather").string(); }

  // Every rank of `ranks`, several at a time; results by rank.
  static std::map<int, ProcessResult> launch(const std::vector<int>& ranks,
                                             const std::function<ProcessResult(int)>& one) {
    std::map<int, ProcessResult> results;
    for (std::size_t first = 0; first < ranks.size(); first += kAtOnce) {
      std::vector<std::pair<int, std::future<ProcessResult>>> running;
      for (std::size_t i = first; i < std::min(ranks.size(), first + kAtOnce); ++i)
        running.emplace_back(ranks[i], std::async(std::launch::async, one, ranks[i]));
      for (auto& [rank, result] : running) results[rank] = result.get();
    }
    return results;
  }
  static std::vector<int> all_but(const std::set<int>& left_out, int ranks = kRanks) {
    std::vector<int> list;
    for (int rank = 1; rank < ranks; ++rank) {
      if (!left_out.contains(rank)) list.push_back(rank);
    }
    return list;
  }
  static Words join(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // kind@rank:file of each fault, sorted.
  static std::set<std::string> faults(const ProcessResult& result) {
    std::set<std::string> found;
    const json document = json::parse(result.out, nullptr, false);
    EXPECT_FALSE(document.is_discarded()) << result.out << result.err;
    if (document.is_discarded()) return found;
    for (const json& fault : document.at("faults")) {
      std::string text = fmt::format("{}@{}:{}", fault.at("kind").get<std::string>(), fault.at("rank").dump(),
                                     fault.at("file").get<std::string>());
      for (const json& range : fault.at("ranges")) text += " " + range.get<std::string>();
      found.insert(text);
    }
    return found;
  }

  TempDir dir_;
};

class Receivers : public Nodes {
 protected:
  void SetUp() override {
    write_model(dir_ / "m", {20'000, 40'000, 30'000});
    list_ = manifest(dir_ / "m");
    for (int rank = 1; rank < 4; ++rank) one(rank);
  }
  ProcessResult one(int rank, const Words& more = {}) {
    return assay(join({"verify", (dir_ / "m").string(), "--share", "--manifest", list_, "--gather", folder(),
                       "--run-id", "a", "--rank", fmt::format("{}/4", rank), "--gather-timeout", "0s"},
                      more));
  }
  ProcessResult merged(const Words& more = {}) {
    Words words = {"verify", "--merge"};
    for (int rank = 0; rank < 4; ++rank) words.push_back(receipt(rank).string());
    return assay(join(words, more));
  }
  fs::path receipt(int rank) const { return dir_ / fmt::format("gather/rank-0000{}.json", rank); }
  std::string list_;
};

}  // namespace assay::test
