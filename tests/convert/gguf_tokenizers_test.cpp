// The tokenizer's keys of newer families are those of llama.cpp's converter (data/make_gguf_tokenizers.py).
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/formats/gguf.h"
#include "core/model/gguf_rules.h"
#include "core/model/gguf_tokenizer.h"
#include "core/system/error.h"
#include "tests/convert/convert_support.h"

namespace assay {
namespace {

const fs::path kTokenizers = test::source_dir() / "data/fixtures/gguf_tokenizers";

// "key type value", a list as JSON.
std::string line_of(const gguf::KeyValue& key) {
  using nlohmann::json;
  std::string type(gguf::name(key.type));
  json value;
  if (const auto* array = std::get_if<gguf::Array>(&key.value)) {
    type = std::string(gguf::name(array->type)) + "s";
    if (array->type == gguf::ValueType::string)
      value = array->strings();
    else if (array->type == gguf::ValueType::f32)
      value = array->numbers();
    else
      value = array->integers();
  } else if (const auto* text = std::get_if<std::string>(&key.value)) {
    value = *text;
  } else if (const auto* flag = std::get_if<bool>(&key.value)) {
    value = *flag;
  } else {
    value = std::get<std::uint64_t>(key.value);
  }
  return key.key + " " + type + " " + value.dump();
}

std::vector<gguf::KeyValue> keys_of(const fs::path& folder) {
  const ModelConfig config = ModelConfig::read(folder / "config.json");
  const GgufFamily* family = gguf_family_of(describe(config));
  if (family == nullptr) throw Error::refused("no family").in(folder);
  return gguf_tokenizer(folder, config, *family, "");
}

std::vector<std::string> lines_of(const fs::path& folder) {
  std::vector<std::string> lines;
  for (const gguf::KeyValue& key : keys_of(folder)) lines.push_back(line_of(key));
  return lines;
}

TEST(GgufTokenizers, AreTheConverters) {
  std::size_t cases = 0;
  for (const auto& entry : fs::directory_iterator(kTokenizers)) {
    ++cases;
    std::vector<std::string> expected;
    std::istringstream file(test::read_file(entry.path() / "EXPECTED.txt"));
    for (std::string line; std::getline(file, line);) {
      // Both as JSON that this library writes: 0.1 and 0.10 are one number.
      const auto value = line.find(' ', line.find(' ') + 1) + 1;
      expected.push_back(line.substr(0, value) + nlohmann::json::parse(line.substr(value)).dump());
    }
    const std::vector<std::string> lines = lines_of(entry.path());
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(lines.size(), expected.size()) << name;
    const auto [ours, theirs] = std::mismatch(lines.begin(), lines.end(), expected.begin(), expected.end());
    if (ours != lines.end() && theirs != expected.end()) {
      EXPECT_EQ(*ours, *theirs) << name;
    }
  }
  EXPECT_EQ(cases, 22u);
}

// A file of PLaMo's that is none is one line, not a crash.
TEST(GgufTokenizers, BrokenFilesAreRefused) {
  const auto copied = [](const char* name, const test::TempDir& dir) {
    fs::copy(kTokenizers / name, dir / name, fs::copy_options::recursive);
    return dir / name;
  };
  const test::TempDir dir;
  const fs::path plamo = copied("plamo3", dir);
  for (const char* row : {"[\"a\"]", "{\"a\": 1}", "[1, 2]", "[\"a\", \"b\"]", "[\"a\", 1"}) {
    test::write_file(plamo / "tokenizer.jsonl", row);
    EXPECT_THROW(keys_of(plamo), Error) << row;
  }
  const fs::path glm = copied("glm4_moe", dir);
  test::write_file(glm / "tokenizer_config.json", "[1]");
  EXPECT_THROW(keys_of(glm), Error);
}

}  // namespace
}  // namespace assay
