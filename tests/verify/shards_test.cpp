// Sets of shards as `assay verify` judges them in a folder nobody vouches for: by their index where there is
// one, whatever its format; by their numbers where there is none.
#include "tests/support/support.h"

namespace assay::test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string tensor(const std::string& name) {
  return safetensors_bytes(R"({")" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234");
}

class Shards : public ::testing::Test {
 protected:
  // One tensor a shard, named as the shard is; `stored` where the format is safetensors.
  void write_set(const std::vector<std::string>& names, const std::string& index) {
    std::string map;
    for (const std::string& name : names) {
      write_file(dir_ / name, name.ends_with(".safetensors") ? tensor(name) : "not looked into");
      map += (map.empty() ? "" : ",") + ("\"" + name + "\":\"" + name + "\"");
    }
    if (!index.empty()) write_file(dir_ / index, "{\"weight_map\":{" + map + "}}");
  }
  ProcessResult verify() { return assay({"verify", dir_.path().string()}); }

  TempDir dir_;
};

TEST_F(Shards, AnIndexDecidesWhateverTheNumbersAre) {
  write_set({"model-00000-of-00002.safetensors", "model-00001-of-00002.safetensors",
             "model-00002-of-00002.safetensors"},
            "model.safetensors.index.json");
  const ProcessResult result = verify();
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_TRUE(contains(result.out, "note: model-00000-of-00002.safetensors: shard 0 of 2")) << result.out;
  fs::remove(dir_ / "model-00000-of-00002.safetensors");
  EXPECT_EQ(verify().exit_code, 1);
}

TEST_F(Shards, AWholeModelBesideThemIsTold) {
  write_set({"model-00001-of-00001.safetensors"}, "model.safetensors.index.json");
  EXPECT_FALSE(contains(verify().out, "model.safetensors lies beside it"));
  write_file(dir_ / "model.safetensors", tensor("a"));
  const ProcessResult result = verify();
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_TRUE(contains(result.out, "warning: model.safetensors.index.json: model.safetensors lies beside it"))
      << result.out;
}

TEST_F(Shards, NoTensorAtAllIsNoModel) {
  write_file(dir_ / "model.safetensors", safetensors_bytes("{}", ""));
  EXPECT_EQ(verify().exit_code, 1);
  fs::remove(dir_ / "model.safetensors");
  write_set({"model-00001-of-00001.safetensors"}, "model.safetensors.index.json");
  write_file(dir_ / "model-00001-of-00001.safetensors", tensor("a"));
  write_file(dir_ / "model.safetensors.index.json", "{\"weight_map\":{}}");
  const ProcessResult result = verify();
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_TRUE(contains(result.out, "its weight_map is empty")) << result.out;
}

TEST_F(Shards, NumberedFromZero) {
  write_set({"model-00000-of-00002.safetensors", "model-00001-of-00002.safetensors"}, "");
  EXPECT_EQ(verify().exit_code, 0);
  fs::remove(dir_ / "model-00001-of-00002.safetensors");
  EXPECT_EQ(verify().exit_code, 1);
}

TEST_F(Shards, AMissingOneIsNoticedInEveryFormat) {
  const std::pair<const char*, const char*> formats[] = {
      {"pytorch_model-0000%-of-00003.bin", "pytorch_model.bin.index.json"},
      {"pytorch_model_0000%-of-00003.bin", "pytorch_model.bin.index.json"},
      {"tf_model-0000%-of-00003.h5", "tf_model.h5.index.json"},
      {"flax_model-0000%-of-00003.msgpack", "flax_model.msgpack.index.json"},
      {"model.fp16-0000%-of-00003.safetensors", "model.safetensors.index.fp16.json"},
      {"pytorch_model-0000%-of-00003.bin", ""},
      {"model_0000%-of-00003.safetensors", ""},
  };
  for (const auto& [pattern, index] : formats) {
    std::vector<std::string> names;
    for (const char number : {'1', '2', '3'}) {
      names.emplace_back(pattern);
      names.back()[names.back().find('%')] = number;
    }
    write_set(names, index);
    EXPECT_EQ(verify().exit_code, 0) << pattern << verify().out;
    fs::remove(dir_ / names[1]);
    const ProcessResult result = verify();
    EXPECT_EQ(result.exit_code, 1) << pattern << " " << index;
    EXPECT_TRUE(contains(result.out, names[1])) << result.out;
    for (const fs::directory_entry& entry : fs::directory_iterator(dir_.path())) fs::remove(entry);
  }
}

// snapshot_download(allow_patterns=["*.json", "*.safetensors"]) brings the other format's index along.
TEST_F(Shards, TheIndexOfAFormatThatIsNotHereIsANote) {
  write_set({"pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"},
            "pytorch_model.bin.index.json");
  fs::remove(dir_ / "pytorch_model-00001-of-00002.bin");
  fs::remove(dir_ / "pytorch_model-00002-of-00002.bin");
  EXPECT_EQ(verify().exit_code, 1) << "no weights at all";
  write_set({"model.safetensors"}, "");
  const ProcessResult result = verify();
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_TRUE(contains(result.out, "note: pytorch_model.bin.index.json: none of its files is here"));
}

}  // namespace
}  // namespace assay::test
