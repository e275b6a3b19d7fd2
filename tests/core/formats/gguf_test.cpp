#include "core/formats/gguf.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <sstream>

#include "core/system/error.h"
#include "core/system/text.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::gguf {
namespace {

using test::GgufBytes;

const fs::path kFixtures = test::source_dir() / "data/fixtures/gguf";

Header parse(const std::string& bytes) {
  return parse_header(std::as_bytes(std::span(bytes)), bytes.size(), "m.gguf");
}

// The refusal's one line; empty where the header was accepted.
std::string refusal(const std::string& bytes) {
  try {
    parse(bytes);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), kExitBadInput) << error.line();
    EXPECT_EQ(error.file(), "m.gguf");
    return error.line();
  }
}

std::vector<std::string> codes(const Header& header) {
  std::vector<std::string> result;
  for (const Finding& f : header.deviations) result.push_back(f.code);
  return result;
}

// One F32 tensor "t" of four elements behind architecture "llama": what most attacks begin from.
GgufBytes small() {
  return GgufBytes(1, 1).text_key("general.architecture", "llama");
}
GgufBytes small_tensor() {
  return small().tensor("t", {4}, 0, 0);
}

#define EXPECT_REFUSED(bytes, words) EXPECT_PRED_FORMAT2(::testing::IsSubstring, (words), refusal(bytes))

TEST(Gguf, SmallestFileIsAccepted) {
  const std::string bytes = small_tensor().data(16 + 16).take();  // 16 bytes of tensor, padded to 32
  const Header header = parse(bytes);
  EXPECT_EQ(header.version, 3u);
  EXPECT_EQ(header.alignment, 32u);
  ASSERT_EQ(header.tensors.size(), 1u);
  EXPECT_EQ(header.tensors[0].bytes, 16u);
  EXPECT_EQ(header.data_offset + 32, bytes.size());
  EXPECT_EQ(header.text("general.architecture"), "llama");
  EXPECT_EQ(codes(header), std::vector<std::string>{});
  EXPECT_EQ(parse(small_tensor().version(2).data(32).take()).version, 2u);
}

TEST(Gguf, PreambleIsChecked) {
  EXPECT_REFUSED("", "file ends inside the magic");
  EXPECT_REFUSED("PK\x03\x04", "does not begin with \"GGUF\"");
  EXPECT_REFUSED("tjgg\x03", "GGML file from before GGUF");
  EXPECT_REFUSED("version https://git-lfs.github.com/spec/v1\n",
                 "does not begin with \"GGUF\" but with \"vers\"");
  EXPECT_REFUSED(small_tensor().version(0).data(32).take(), "version is 0");
  EXPECT_REFUSED(small_tensor().version(1).data(32).take(), "version 1, which loaders no longer read");
  EXPECT_REFUSED(small_tensor().version(4).data(32).take(), "is GGUF version 4");
  EXPECT_REFUSED(small_tensor().version(0x03000000).data(32).take(), "big-endian");
  EXPECT_REFUSED(test::read_file(kFixtures / "big_endian.gguf"), "big-endian");
}

TEST(Gguf, CountsAreHeldAgainstTheFile) {
  EXPECT_REFUSED(GgufBytes(-1, 0).take(), "number of tensors is negative: -1");
  EXPECT_REFUSED(GgufBytes(0, -1).take(), "number of key/values is negative: -1");
  EXPECT_REFUSED(GgufBytes(INT64_MAX, 0).take(), "9223372036854775807 tensors do not fit");
  EXPECT_REFUSED(GgufBytes(0, INT64_MAX).take(), "9223372036854775807 key/values do not fit");
  // A sparse file of terabytes would hold them: refused before any memory is spent.
  const std::string bytes = GgufBytes(100'000'000, 0).take();
  EXPECT_THROW(parse_header(std::as_bytes(std::span(bytes)), 1ull << 42, "m.gguf"), Error);
}

TEST(Gguf, StringsAndArraysAreHeldAgainstTheFile) {
  const std::string pad(64, '\0');
  EXPECT_REFUSED(GgufBytes(0, 1).u64(UINT64_MAX).raw(pad).take(), "the loader takes at most 1073741824");
  EXPECT_REFUSED(GgufBytes(0, 1).u64(1 << 30).raw(pad).take(), "file ends inside a key");
  EXPECT_REFUSED(GgufBytes(0, 1).text("").raw(pad).take(), "key is empty");
  EXPECT_REFUSED(GgufBytes(0, 1).text("k").u32(13).raw(pad).take(), "unknown type 13");
  EXPECT_REFUSED(GgufBytes(0, 1).text("k").u32(0xFFFFFFFF).raw(pad).take(), "unknown type 4294967295");
  EXPECT_REFUSED(GgufBytes(0, 1).text("k").u32(9).u32(9).u64(1).raw(pad).take(), "array of arrays");
  EXPECT_REFUSED(GgufBytes(0, 1).text("k").u32(9).u32(13).u64(1).raw(pad).take(),
                 "array of the unknown type 13");
  // gguf-py loops for ever on these 43 bytes (llama.cpp#27188).
  EXPECT_REFUSED(GgufBytes(0, 1).text("k").u32(9).u32(8).u64(1ull << 63).take(),
                 "array of 9223372036854775808");
  EXPECT_REFUSED(GgufBytes(0, 1).text("k").u32(9).u32(10).u64((1ull << 61) + 1).raw(pad).take(), "array of");
  EXPECT_REFUSED(GgufBytes(0, 1).text("k").u32(9).u32(10).u64(9).raw(pad).take(), "72 bytes wanted, 64 left");
  EXPECT_REFUSED(GgufBytes(0, 1).text("k").u32(9).u32(8).u64(1000).raw(pad).take(),
                 "file ends inside the array");
}

TEST(Gguf, DuplicatesAreRefused) {
  EXPECT_REFUSED(GgufBytes(0, 2).text_key("a", "x").text_key("a", "y").take(), "the key \"a\" twice");
  EXPECT_REFUSED(GgufBytes(2, 0).tensor("t", {4}, 0, 0).tensor("t", {4}, 0, 32).data(64).take(),
                 "two tensors have this name");
  // ggml reads names as C strings, so these two are one to it.
  EXPECT_REFUSED(GgufBytes(2, 0)
                     .tensor(std::string("t\0a", 3), {4}, 0, 0)
                     .tensor(std::string("t\0b", 3), {4}, 0, 32)
                     .data(64)
                     .take(),
                 "two tensors have this name");
}

TEST(Gguf, AlignmentIsAPowerOfTwoOfTypeU32) {
  const auto with = [](std::uint32_t alignment) {
    return GgufBytes(1, 2).text_key("general.architecture", "llama").u32_key("general.alignment", alignment);
  };
  EXPECT_REFUSED(with(0).tensor("t", {4}, 0, 0).data(32).take(), "general.alignment is 0");
  EXPECT_REFUSED(with(48).tensor("t", {4}, 0, 0).data(48).take(), "general.alignment is 48");
  EXPECT_REFUSED(with(1u << 31).tensor("t", {4}, 0, 0).data(32).take(), "truncated");
  EXPECT_REFUSED(GgufBytes(0, 1).text_key("general.alignment", "32").take(), "is of type str, not u32");
  const Header four = parse(with(4).tensor("t", {4}, 0, 0).align(4).raw(std::string(16, '\0')).take());
  EXPECT_EQ(four.alignment, 4u);
  EXPECT_EQ(codes(four), std::vector<std::string>{"gguf.alignment_not_multiple_of_8"});
}

TEST(Gguf, DimensionsAndSizesAreChecked) {
  const auto shaped = [](std::vector<std::int64_t> ne, std::uint32_t type = 0) {
    return refusal(small().tensor("t", ne, type, 0).data(32).take());
  };
  const auto contains = [](const std::string& line, const char* words) {
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, words, line);
  };
  contains(shaped({1, 1, 1, 1, 1}), "it has 5 dimensions");
  contains(shaped({4, -1}), "its dimension 1 is -1");
  contains(shaped({INT64_MAX}), "2^63-1 elements or more");
  contains(shaped({1ll << 32, 1ll << 31}), "2^63-1 elements or more");
  contains(shaped({1ll << 32, 1ll << 32}), "2^63-1 elements or more");  // wraps to 0 in 64 bits
  contains(shaped({(1ll << 42) + 1, 1ll << 22}), "2^63-1 elements or more");
  contains(shaped({1ll << 61, 2}), "beyond 64 bits");     // 2^62 elements of 4 bytes
  contains(shaped({INT64_MAX - 1}, 24), "truncated by");  // I8: fits 64 bits, not the file
  contains(shaped({33}, 2), "rows of 33 elements are no whole blocks of 32, which Q4_0 needs");
  contains(shaped({16, 2}, 2), "rows of 16 elements");  // 32 elements in all, but not in a row
  for (const std::uint32_t type : {4u, 5u, 31u, 33u, 36u, 38u, 43u, 0x80000000u}) {
    contains(shaped({256}, type), "unknown to, or was removed from, ggml");
  }
  EXPECT_NE(shaped({4, -1}).find("tensor t: byte"), std::string::npos);
}

TEST(Gguf, AZeroDimensionIsAcceptedAndNamed) {
  const Header header = parse(small().tensor("t", {4, 0}, 0, 0).data(0).take());
  EXPECT_EQ(header.tensors[0].bytes, 0u);
  EXPECT_EQ(codes(header), std::vector<std::string>{"gguf.empty_tensor"});
}

TEST(Gguf, OffsetsRunWithoutHolesOrOverlap) {
  const auto second_at = [](std::uint64_t offset) {
    return refusal(GgufBytes(2, 0).tensor("a", {4}, 0, 0).tensor("b", {4}, 0, offset).data(4096).take());
  };
  EXPECT_EQ(second_at(32), "");
  for (const std::uint64_t offset : {0ull, 16ull, 33ull, 64ull, 1ull << 63, ~0ull}) {
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "where 32 is due", second_at(offset)) << offset;
  }
  EXPECT_REFUSED(small().tensor("t", {4}, 0, 32).data(64).take(), "where 0 is due");
}

TEST(Gguf, PaddedSumsDoNotWrap) {
  // Each tensor is just below 2^63 bytes: the third takes the sum beyond 2^64.
  GgufBytes bytes(3, 0);
  const std::int64_t most = INT64_MAX - 1;
  const std::uint64_t size = 1ull << 63;  // padded
  bytes.tensor("a", {most}, 24, 0).tensor("b", {most}, 24, size).tensor("c", {4}, 24, 0);
  EXPECT_REFUSED(bytes.data(32).take(), "beyond 64 bits");
  // 2^61-1 elements of 8 bytes and alignment 32: rounding up wraps to 0 in size_t (llama.cpp#24759).
  EXPECT_REFUSED(small().tensor("t", {(1ll << 61) - 1}, 28, 0).data(32).take(), "beyond 64 bits");
  EXPECT_EQ(padded(~0ull, 32), std::nullopt);
  EXPECT_EQ(padded(~0ull - 31, 32), ~0ull - 31);
  EXPECT_EQ(padded(1, 32), 32u);
  EXPECT_EQ(padded(0, 32), 0u);
}

TEST(Gguf, TruncationNamesTheTensorAndTheBytes) {
  const std::string whole =
      GgufBytes(2, 0).tensor("a", {4}, 0, 0).tensor("b", {9}, 0, 32).data(32 + 64).take();
  const std::size_t data = whole.size() - 96;
  // The last 28 bytes are padding: without them the file is good.
  const Header header = parse(whole.substr(0, whole.size() - 28));
  EXPECT_EQ(codes(header), (std::vector<std::string>{"gguf.padding_missing", "gguf.architecture_missing"}));
  EXPECT_REFUSED(whole.substr(0, whole.size() - 29), "tensor b: byte");
  EXPECT_REFUSED(whole.substr(0, whole.size() - 29), "truncated by 1 bytes");
  EXPECT_REFUSED(whole.substr(0, data + 15), "tensor a: byte");
  EXPECT_REFUSED(whole.substr(0, data + 15), "truncated by 53 bytes");
  EXPECT_EQ(codes(parse(whole + "tail")),
            (std::vector<std::string>{"gguf.trailing_bytes", "gguf.architecture_missing"}));
  // A cut anywhere in the header is a refusal, never a shorter model.
  for (std::size_t n = 0; n < data; ++n) EXPECT_NE(refusal(whole.substr(0, n)), "") << n;
}

TEST(Gguf, SpecificationOnlyFaultsAreFindings) {
  GgufBytes bytes(2, 5);
  bytes.text_key("General.Name", "x").text_key("a..b", "x").text_key("bad", "\xFF");
  bytes.text("flag").u32(7).raw("\x02").text_key("general.architecture", "Llama-3");
  bytes.tensor(std::string(64, 'n'), {32}, 2, 0).tensor(std::string("z\0", 2), {4}, 0, 32).data(32 + 32);
  const Header header = parse(bytes.take());
  EXPECT_EQ(codes(header),
            (std::vector<std::string>{"gguf.key_not_snake_case", "gguf.key_not_snake_case", "gguf.not_utf8",
                                      "gguf.bool_value", "gguf.name_too_long", "gguf.name_has_nul",
                                      "gguf.architecture_name", "gguf.quantization_version_missing"}));
  EXPECT_TRUE(has_errors(header.deviations));
  EXPECT_EQ(std::get<bool>(header.find("flag")->value), true);
}

TEST(Gguf, FindingsOfOneKindAreBounded) {
  GgufBytes bytes(0, 1000);
  for (int i = 0; i < 1000; ++i) bytes.text_key("K" + std::to_string(i), "");
  const Header header = parse(bytes.take());
  EXPECT_EQ(header.metadata.size(), 1000u);
  ASSERT_EQ(header.deviations.size(), 22u);  // 20, "980 more", and the missing architecture
  EXPECT_EQ(header.deviations.back().message, "980 more of the same");
}

TEST(Gguf, SplitNumbersAreChecked) {
  const auto split = [](std::uint32_t number, std::uint32_t count, std::uint32_t tensors) {
    GgufBytes bytes(1, 3);
    bytes.u32_key("split.no", number).u32_key("split.count", count).u32_key("split.tensors.count", tensors);
    return parse(bytes.tensor("t", {8}, 0, 0).data(32).take());
  };
  EXPECT_EQ(codes(split(1, 3, 5)), std::vector<std::string>{});
  EXPECT_EQ(codes(split(3, 3, 5)), std::vector<std::string>{"gguf.split_number"});
  EXPECT_EQ(codes(split(1, 3, 0)), std::vector<std::string>{"gguf.split_tensors"});
  EXPECT_FALSE(split(0, 1, 1).split().has_value());
}

// Rows of EXPECTED.tsv, which gguf-py's reader wrote (data/make_gguf_fixtures.py).
std::vector<std::vector<std::string>> expected_rows() {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(test::read_file(kFixtures / "EXPECTED.tsv"));
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream cells(line + "\t");
    for (std::string cell; std::getline(cells, cell, '\t');) rows.back().push_back(cell);
  }
  return rows;
}

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text + separator);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

void expect_value(const KeyValue& kv, const std::string& expected) {
  SCOPED_TRACE(kv.key);
  if (const auto* array = std::get_if<Array>(&kv.value)) {
    const auto parts = split_at(expected, '|');
    ASSERT_EQ(array->count, parts.size());
    if (array->type == ValueType::string) {
      EXPECT_EQ(array->strings(), parts);
    } else {
      const auto numbers = array->numbers();
      for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(numbers[i], std::stod(parts[i])) << i;
    }
  } else if (const auto* u = std::get_if<std::uint64_t>(&kv.value)) {
    EXPECT_EQ(std::to_string(*u), expected);
  } else if (const auto* i = std::get_if<std::int64_t>(&kv.value)) {
    EXPECT_EQ(std::to_string(*i), expected);
  } else if (const auto* d = std::get_if<double>(&kv.value)) {
    EXPECT_EQ(*d, std::stod(expected));
  } else if (const auto* b = std::get_if<bool>(&kv.value)) {
    EXPECT_EQ(*b ? "1" : "0", expected);
  } else {
    EXPECT_EQ(std::get<std::string>(kv.value), expected);
  }
}

TEST(Gguf, ReadsWhatGgufPyWritesAsGgufPyDoes) {
  std::map<std::string, Header> headers;
  std::size_t tensors = 0, keys = 0;
  for (const auto& row : expected_rows()) {
    SCOPED_TRACE(row[1] + " " + row[2]);
    if (row[0] == "file") {
      const Header header = headers[row[1]] = read_header(File::open(kFixtures / row[1]));
      EXPECT_EQ(std::to_string(header.version), row[2]);
      EXPECT_EQ(std::to_string(header.metadata.size()), row[3]);
      EXPECT_EQ(std::to_string(header.tensors.size()), row[4]);
      EXPECT_EQ(std::to_string(header.alignment), row[5]);
      EXPECT_EQ(std::to_string(header.data_offset), row[6]);
      EXPECT_EQ(codes(header), std::vector<std::string>{});
      continue;
    }
    const Header& header = headers.at(row[1]);
    if (row[0] == "tensor") {
      const auto it = std::find_if(header.tensors.begin(), header.tensors.end(),
                                   [&](const Tensor& t) { return t.name == row[2]; });
      ASSERT_NE(it, header.tensors.end());
      std::string ne;
      for (const std::uint64_t n : it->ne) ne += (ne.empty() ? "" : ",") + std::to_string(n);
      EXPECT_EQ(assay::name(it->type), row[3]);
      EXPECT_EQ(ne, row[4]);
      EXPECT_EQ(std::to_string(header.data_offset + it->offset), row[5]);
      EXPECT_EQ(std::to_string(it->bytes), row[6]);
      ++tensors;
    } else {
      const KeyValue* kv = header.find(row[2]);
      ASSERT_NE(kv, nullptr);
      const auto types = split_at(row[3], ',');
      EXPECT_EQ(std::to_string(static_cast<int>(kv->type)), types[0]);
      if (types.size() > 1) {
        EXPECT_EQ(std::to_string(static_cast<int>(std::get<Array>(kv->value).type)), types[1]);
      }
      expect_value(*kv, row[4]);
      ++keys;
    }
  }
  EXPECT_EQ(tensors, 45u);
  EXPECT_EQ(keys, 35u);
}

TEST(Gguf, SplitMetadataOfGgufPy) {
  const auto split = read_header(File::open(kFixtures / "split-00002-of-00003.gguf")).split();
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->number, 1u);
  EXPECT_EQ(split->count, 3u);
  EXPECT_EQ(split->tensors, 5u);
  EXPECT_FALSE(read_header(File::open(kFixtures / "values.gguf")).split().has_value());
}

// Counts as GGUFReader of gguf-py 0.19.0 reports them.
TEST(Gguf, RealVocabularies) {
  struct Case {
    const char* file;
    std::size_t keys, tokens;
    const char* first_token;
    std::uint64_t eos;
  };
  for (const Case& c : {Case{"ggml-vocab-gpt-2.gguf", 16, 50257, "!", 50256},
                        Case{"ggml-vocab-deepseek-coder.gguf", 25, 32256, "!", 32014},
                        Case{"ggml-vocab-llama-spm.gguf", 22, 32000, "<unk>", 2}}) {
    ASSAY_CASE_OR_SKIP(path, std::string("tokenizers/llama.cpp-vocab/") + c.file);
    SCOPED_TRACE(c.file);
    const Header header = read_header(File::open(path));
    EXPECT_EQ(header.version, 3u);
    EXPECT_EQ(header.tensors.size(), 0u);
    EXPECT_EQ(header.metadata.size(), c.keys);
    const auto tokens = std::get<Array>(header.find("tokenizer.ggml.tokens")->value).strings();
    ASSERT_EQ(tokens.size(), c.tokens);
    EXPECT_EQ(tokens.front(), c.first_token);
    EXPECT_EQ(header.number("tokenizer.ggml.eos_token_id"), c.eos);
    EXPECT_EQ(std::get<Array>(header.find("tokenizer.ggml.token_type")->value).integers().size(), c.tokens);
    EXPECT_FALSE(has_errors(header.deviations));
  }
}

TEST(Gguf, RealModel) {
  ASSAY_CASE_OR_SKIP(path, "models/stories260k/stories260K.gguf");
  const Header header = read_header(File::open(path));
  EXPECT_EQ(header.metadata.size(), 19u);
  ASSERT_EQ(header.tensors.size(), 48u);
  EXPECT_EQ(header.data_offset, 14176u);
  std::uint64_t bytes = 0, elements = 0;
  for (const Tensor& t : header.tensors) {
    bytes += t.bytes;
    elements += *element_count(t.ne);
  }
  EXPECT_EQ(bytes, 1'171'200u);
  EXPECT_EQ(elements, 292'800u);
  EXPECT_EQ(header.number("llama.block_count"), 5u);
}

// A header of 3 MB in a sparse file of 400 GB: only the header is read, in pieces.
TEST(Gguf, ALargeFileCostsItsHeader) {
  test::TempDir folder;
  const std::string long_text(3 << 20, 'x');
  GgufBytes bytes(1, 1);
  const std::string header =
      bytes.text_key("general.architecture", long_text).tensor("t", {100'000'000'000}, 0, 0).data(0).take();
  test::write_file(folder / "m.gguf", header);
  ASSERT_EQ(::truncate((folder / "m.gguf").c_str(), static_cast<off_t>(header.size() + 400'000'000'000)), 0);
  const Header read = read_header(File::open(folder / "m.gguf"));
  EXPECT_EQ(read.tensors.at(0).bytes, 400'000'000'000u);
  EXPECT_EQ(read.data_offset, header.size());
  ASSERT_EQ(::truncate((folder / "m.gguf").c_str(), static_cast<off_t>(header.size() + 399'999'999'000)), 0);
  try {
    read_header(File::open(folder / "m.gguf"));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "tensor t: byte", error.line());
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "truncated by 1000 bytes", error.line());
  }
}

TEST(Gguf, ArraysDecodeOnlyAsWhatTheyAre) {
  const auto of = [](ValueType type, std::uint64_t count, std::string encoded) {
    return Array{type, count, encoded};
  };
  EXPECT_EQ(of(ValueType::i8, 2, "\xFF\x01").integers(), (std::vector<std::int64_t>{-1, 1}));
  EXPECT_EQ(of(ValueType::boolean, 2, std::string("\x02\x00", 2)).integers(),
            (std::vector<std::int64_t>{1, 0}));
  EXPECT_THROW(of(ValueType::u64, 1, std::string(8, '\xFF')).integers(), Error);
  EXPECT_THROW(of(ValueType::f32, 1, std::string(4, '\0')).integers(), Error);
  EXPECT_THROW(of(ValueType::u8, 1, "x").strings(), Error);
  EXPECT_THROW(of(ValueType::u32, 2, "1234").numbers(), Error);
  EXPECT_THROW(of(ValueType::string, 1, "short").strings(), Error);
}

}  // namespace
}  // namespace assay::gguf
