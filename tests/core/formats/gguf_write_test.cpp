// Headers as gguf-py writes them.
#include "core/formats/gguf_write.h"

#include <gtest/gtest.h>

#include "core/system/error.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::gguf {
namespace {

TEST(GgufWrite, AHeaderIsWhatTheSpecificationSays) {
  std::vector<Tensor> tensors = {{"a", ElementType::F32, {3}}, {"b", ElementType::Q8_0, {32, 2}}};
  EXPECT_EQ(place_tensors(tensors, 32), 32u + 96u);
  const std::vector<KeyValue> keys = {text_value("general.architecture", "llama"),
                                      u32_value("llama.block_count", 7)};
  const std::string expected = test::GgufBytes(2, 2)
                                   .text_key("general.architecture", "llama")
                                   .u32_key("llama.block_count", 7)
                                   .tensor("a", {3}, 0, 0)
                                   .tensor("b", {32, 2}, 8, 32)
                                   .align(32)
                                   .take();
  EXPECT_EQ(serialize_header(keys, tensors, 32), expected);
}

TEST(GgufWrite, WhatIsReadIsWrittenAgain) {
  // Made by gguf-py (data/make_gguf_fixtures.py).
  int files = 0;
  for (const auto& entry : fs::directory_iterator(test::source_dir() / "data/fixtures/gguf")) {
    const bool is_little_endian = entry.path().stem() != "big_endian";
    if (entry.path().extension() != ".gguf" || !is_little_endian) continue;
    const std::string bytes = test::read_file(entry.path());
    Header header = read_header(File::open(entry.path()));
    if (header.version != 3) continue;
    std::vector<Tensor> tensors = header.tensors;
    place_tensors(tensors, header.alignment);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ(tensors[i].offset, header.tensors[i].offset);
      EXPECT_EQ(tensors[i].bytes, header.tensors[i].bytes);
    }
    const std::string written = serialize_header(header.metadata, tensors, header.alignment);
    EXPECT_EQ(written.substr(0, header.data_offset), bytes.substr(0, header.data_offset)) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 1);
}

TEST(GgufWrite, KeysKeepTheirPlaceOrMoveToTheEnd) {
  std::vector<KeyValue> keys = {u32_value("a", 1), u32_value("b", 2)};
  set_value(keys, u32_value("a", 3));
  EXPECT_EQ(keys.front().key, "a");
  EXPECT_EQ(std::get<std::uint64_t>(keys.front().value), 3u);
  move_to_end(keys, u32_value("a", 4));
  EXPECT_EQ(keys.front().key, "b");
  EXPECT_EQ(std::get<std::uint64_t>(keys.back().value), 4u);
  remove_key(keys, "b");
  EXPECT_EQ(keys.size(), 1u);
}

TEST(GgufWrite, RefusesWhatNoLoaderTakes) {
  std::vector<Tensor> tensors = {{"a", ElementType::Q4_K, {100, 2}}};
  EXPECT_THROW(place_tensors(tensors, 32), Error);
  tensors = {{"a", ElementType::F32, {1ull << 62, 4}}};
  EXPECT_THROW(place_tensors(tensors, 32), Error);
  tensors = {{std::string(64, 'n'), ElementType::F32, {1}}};
  place_tensors(tensors, 32);
  EXPECT_THROW(serialize_header({}, tensors, 32), Error);
}

}  // namespace
}  // namespace assay::gguf
