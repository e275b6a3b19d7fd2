// Tensors as engines hold them, against what data/make_tensor_digests.py slices and joins with NumPy.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

using nlohmann::json;
using Held =
    std::map<std::pair<std::string, std::uint64_t>, std::pair<std::string, std::vector<std::uint64_t>>>;

fs::path models() {
  return source_dir() / "data" / "models";
}

Held by_rank(const json& document) {
  Held held;
  for (const json& tensor : document["tensors"])
    for (const std::uint64_t rank : tensor["ranks"])
      held[{tensor["name"], rank}] = {tensor["sha256"], tensor["shape"]};
  return held;
}

json listed(const std::string& model, std::vector<std::string> words) {
  words.insert(words.begin(), {"manifest", (models() / model).string(), "--tensors"});
  const ProcessResult result = assay(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return json::parse(result.out, nullptr, false);
}

class TensorsHeld : public ::testing::TestWithParam<std::string> {};

TEST_P(TensorsHeld, AreThoseOfTheEngine) {
  const json wanted =
      json::parse(read_file(source_dir() / "data" / "fixtures" / "tensor_digests" / GetParam()));
  std::vector<std::string> words = {"--engine", wanted["engine"],
                                    "--tp",     std::to_string(wanted["tp"].get<int>()),
                                    "--ep",     std::to_string(wanted["ep"].get<int>())};
  if (!wanted["dtype"].get<std::string>().empty()) words.insert(words.end(), {"--dtype", wanted["dtype"]});
  const Held here = by_rank(listed(wanted["model"], words)), there = by_rank(wanted);
  EXPECT_FALSE(there.empty());
  for (const auto& [name, held] : there) {
    const auto found = here.find(name);
    ASSERT_NE(found, here.end()) << name.first << " of rank " << name.second;
    EXPECT_EQ(found->second.second, held.second) << name.first;
    EXPECT_EQ(found->second.first, held.first) << name.first << " of rank " << name.second;
  }
  EXPECT_EQ(here.size(), there.size());
}

std::vector<std::string> fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(source_dir() / "data" / "fixtures" / "tensor_digests"))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}
std::string as_test_name(const ::testing::TestParamInfo<std::string>& file) {
  std::string name = fs::path(file.param).stem().string();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Engines, TensorsHeld, ::testing::ValuesIn(fixtures()), as_test_name);

TEST(TensorManifest, AsStoredIsEveryTensorOnce) {
  const json document = listed("gpt2", {});
  EXPECT_EQ(document["schema"], "assay.tensors/1");
  const std::string bytes = read_file(models() / "gpt2" / "model.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const json header = json::parse(bytes.substr(8, length));
  std::size_t tensors = 0;
  for (const auto& [name, entry] : header.items()) tensors += name != "__metadata__";
  EXPECT_EQ(document["tensors"].size(), tensors);
  EXPECT_TRUE(document["not_told"].empty());
}

TEST(TensorManifest, EmptyTensorsAreNotCut) {
  const TempDir dir;
  fs::copy(models() / "qwen3", dir / "model", fs::copy_options::recursive);
  fs::permissions(dir / "model", fs::perms::owner_all);
  fs::remove(dir / "model" / "model.safetensors");
  write_file(dir / "model" / "model.safetensors",
             safetensors_bytes(
                 R"({"model.embed_tokens.weight":{"dtype":"F32","shape":[0,64],"data_offsets":[0,0]}})", ""));
  const ProcessResult result = assay({"manifest", (dir / "model").string(), "--tensors", "--engine", "vllm"});
  EXPECT_LE(result.exit_code, 2) << result.err;  // it divided by nothing
}

TEST(TensorManifest, RefusesWhatItCannotTell) {
  const auto refused = [](std::vector<std::string> words, int code, std::string_view why) {
    words.insert(words.begin(), "manifest");
    const ProcessResult result = assay(words);
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
  };
  const std::string llama = (models() / "llama").string();
  refused({(models() / "gpt2").string(), "--tensors", "--engine", "vllm"}, 2, "is not known here");
  refused({llama, "--tensors", "--tp", "4"}, 2, "4");
  refused({llama, "--tensors", "--tp", "0"}, 2, "--tp takes");
  refused({llama, "--tensors", "--tp", "4", "--ep", "3"}, 2, "--ep 3");
  refused({llama, "--tp", "2"}, 2, "for --tensors");
  refused({llama, "--tensors", "--hash"}, 2, "do not go with it");
  refused({(models() / "nothing").string(), "--tensors"}, 2, "nothing");
}

TEST(TensorManifest, IsHeldAgainstWhatALiveModelSays) {
  const TempDir dir;
  const std::string model = (models() / "qwen2").string();
  const json document = listed("qwen2", {"--engine", "vllm", "--tp", "2"});
  json live =
      json::array({json::object(), json::object()});  // one map a rank, as a collective call returns them
  for (const auto& [name, held] : by_rank(document)) live[name.second][name.first] = held.first;
  for (json& rank : live) rank["model.layers.0.self_attn.rotary_emb.cos_sin_cache"] = std::string(64, '7');
  const fs::path file = dir / "live.json";
  const auto compare = [&] {
    write_file(file, live.dump());
    return assay({"compare", "tensors", model, file.string(), "--engine", "vllm", "--tp", "2"});
  };
  const ProcessResult good = compare();
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  EXPECT_NE(good.out.find("2 buffers"), std::string::npos) << good.out;

  const std::string q = "model.layers.0.self_attn.qkv_proj.weight",
                    o = "model.layers.1.self_attn.qkv_proj.weight";
  std::swap(live[1][q], live[1][o]);
  const ProcessResult swapped = compare();
  EXPECT_EQ(swapped.exit_code, 1);
  EXPECT_NE(swapped.out.find(q + ": DIFFERS at rank 1, its bytes are B's " + o), std::string::npos)
      << swapped.out;
  std::swap(live[1][q], live[1][o]);

  live[0].erase(q);
  const ProcessResult missing = compare();
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.out.find(q + ": ONLY IN A at rank 0"), std::string::npos) << missing.out;
}

}  // namespace
}  // namespace assay::test
