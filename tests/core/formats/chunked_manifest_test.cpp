#include "core/formats/chunked_manifest.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/system/error.h"
#include "tests/support/support.h"

namespace assay {
namespace {

// sha256 of "abc" (FIPS 180-2 appendix B.1) and of nothing.
const std::string kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const std::string kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

Digest digest(const std::string& hex) {
  return *Digest::parse(DigestKind::sha256, hex);
}

ChecksumManifest parse(const std::string& text) {
  return parse_checksum_manifest(text, "SHA256SUMS");
}

std::string refusal(const std::string& text) {
  try {
    parse(text);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), kExitBadInput);
    return error.line();
  }
}

ChecksumManifest chunked() {
  ChecksumManifest manifest;
  manifest.chunk_bytes = 1 << 20;
  manifest.entries.push_back(
      {"dir/模型 \"1\"\n.bin", digest(kAbc), (1 << 20) + 1, std::vector{digest(kAbc), digest(kEmpty)}});
  manifest.entries.push_back({"empty", digest(kEmpty), 0, {}});
  return manifest;
}

TEST(ChunkedManifest, WhatIsWrittenIsRead) {
  const std::string text = render_chunked_manifest(chunked());
  const ChecksumManifest read = parse(text);
  EXPECT_EQ(read.chunk_bytes, 1u << 20);
  ASSERT_EQ(read.entries.size(), 2u);
  EXPECT_EQ(read.entries[0].name, "dir/模型 \"1\"\n.bin");
  EXPECT_EQ(read.entries[0].size, (1u << 20) + 1);
  EXPECT_EQ(read.entries[0].digest, digest(kAbc));
  EXPECT_EQ(*read.entries[0].chunks, (std::vector<Digest>{digest(kAbc), digest(kEmpty)}));
  EXPECT_EQ(read.entries[1].chunks->size(), 0u);
  EXPECT_EQ(render_chunked_manifest(read), text);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);  // two of the head, one a file, one of the end
}

// The document of the schema as other programs would write it.
TEST(ChunkedManifest, HandWritten) {
  const ChecksumManifest read =
      parse(R"(
    {"files": [{"chunks": [")" +
            kAbc + R"("], "sha256": ")" + kAbc + R"(", "size": 3, "name": "abc", "mode": 420}],
     "chunk_bytes": 16777216, "schema": "assay.manifest/1"})");
  ASSERT_EQ(read.entries.size(), 1u);
  EXPECT_EQ(read.entries[0].name, "abc");
  EXPECT_EQ(read.chunk_bytes, 16u << 20);
}

TEST(ChunkedManifest, WhatBreaksTheSchemaIsRefused) {
  const std::string good = render_chunked_manifest(chunked());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return refusal(text.replace(at, from.size(), to));
  };
  const auto contains = [](const std::string& line, const char* words) {
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, words, line);
  };
  contains(with("assay.manifest/1", "assay.manifest/2"), "has the schema \"assay.manifest/2\"");
  contains(with("\"schema\"", "\"scheme\""), "lacks \"schema\"");
  contains(with("1048576,", "0,"), "chunk_bytes is 0");
  contains(with("1048576,", "-1,"), "chunk_bytes is negative");
  contains(with("1048576,", "1.5,"), "not a whole number");
  contains(with("1048577", "1048576"), "has 2 chunks");
  contains(with("1048577", "18446744073709551615"), "has 2 chunks");
  contains(with("\"size\":0", "\"size\":1"), "has 0 chunks");
  contains(with("\"empty\"", "\"\""), "name is empty");
  contains(with("\"empty\"", "7"), "not a string");
  contains(with("\"chunks\":[]", "\"chunks\":{}"), "\"chunks\" is not a list");
  contains(with(kAbc, kAbc.substr(1)), "not 64 hex digits");
  contains(with("\n ]}", "\n ]"), "JSON text ends");
  contains(with("]}\n ]}", "]},\n" + std::string(R"({"name":"empty","size":0,"sha256":")") + kEmpty +
                               R"(","chunks":[]}]})"),
           "\"empty\" is listed twice");
}

// Every member and every element as each kind of value that it should not be.
TEST(ChunkedManifest, ValuesOfAnotherKindAreRefused) {
  const std::string hex = '"' + kAbc + '"';
  const auto document = [&](const char* place, const char* value) {
    const auto at = [&](const char* here, const std::string& otherwise) {
      return std::string(here) == place ? value : otherwise;
    };
    const std::string entry = R"({"name": )" + at("name", R"("abc")") + R"(, "size": )" + at("size", "3") +
                              R"(, "sha256": )" + at("sha256", hex) + R"(, "chunks": )" +
                              at("chunks", '[' + at("chunk", hex) + ']') + R"(, "mode": )" +
                              at("mode", "420") + '}';
    return R"({"schema": )" + at("schema", R"("assay.manifest/1")") + R"(, "chunk_bytes": )" +
           at("chunk_bytes", "16777216") + R"(, "files": )" + at("files", '[' + at("file", entry) + ']') +
           R"(, "made": )" + at("made", R"("today")") + '}';
  };
  constexpr const char *kString = R"("abc")", *kNumber = "7", *kReal = "7.5", *kNegative = "-7",
                       *kObject = R"({"name": "x", "size": 1, "files": [], "chunks": []})",
                       *kList = R"([["7"], {"name": "x"}, "7"])";
  const std::map<std::string, std::set<const char*>> taken = {
      {"name", {kString}}, {"size", {kNumber}},        {"sha256", {}}, {"chunks", {}}, {"chunk", {}},
      {"schema", {}},      {"chunk_bytes", {kNumber}}, {"files", {}},  {"file", {}}};
  for (const char* value : {kString, kNumber, kReal, kNegative, kObject, kList, "null", "true"}) {
    for (const auto& [place, good] : taken) {
      if (!good.contains(value)) {
        EXPECT_NE(refusal(document(place.c_str(), value)).find("SHA256SUMS: byte "), std::string::npos)
            << place << " " << value;
      }
    }
    for (const char* unknown : {"mode", "made"}) {
      const ChecksumManifest read = parse(document(unknown, value));
      ASSERT_EQ(read.entries.size(), 1u) << unknown << " " << value;
      EXPECT_EQ(read.entries[0].name, "abc");
      EXPECT_EQ(*read.entries[0].chunks, std::vector{digest(kAbc)});
    }
  }
}

TEST(ChunkedManifest, KeysComeInAnyOrderAndOnce) {
  const std::string entry = R"("name": "abc", "size": 3, "sha256": ")" + kAbc + R"(", "chunks": [")" + kAbc +
                            R"("])",
                    head = R"("schema": "assay.manifest/1", "chunk_bytes": 4)";
  EXPECT_EQ(parse("{" + head + R"(, "files": [{)" + entry + "}]}").entries.size(), 1u);
  EXPECT_EQ(parse(R"({"files": [{)" + entry + "}], " + head + "}").entries.size(), 1u);
  EXPECT_NE(refusal(R"({"files": [{)" + entry + R"(}], "schema": "assay.manifest/1", "chunk_bytes": 2})")
                .find("has 1 chunks"),
            std::string::npos);
  for (const char* key : {"name", "size", "sha256", "chunks", "schema", "chunk_bytes", "files"}) {
    const std::string text = "{" + head + R"(, "files": [{)" + entry + "}]}";
    const std::string member = '"' + std::string(key) + "\":";
    std::string lacking = text, twice = text;
    lacking.replace(text.find(member), member.size(), R"("else":)");
    EXPECT_NE(refusal(lacking).find("lacks \"" + std::string(key)), std::string::npos) << key;
    const bool of_entry = text.find(member) > text.find('[');
    const std::string value = member == "\"size\":" || member == "\"chunk_bytes\":" ? "4"
                              : member == "\"files\":" || member == "\"chunks\":"   ? "[]"
                              : member == "\"schema\":"                             ? R"("assay.manifest/1")"
                                                                                    : '"' + kAbc + '"';
    twice.insert(of_entry ? text.find("}]}") : text.size() - 1, ", " + member + value);
    EXPECT_NE(refusal(twice).find("the key \"" + std::string(key) + "\" twice"), std::string::npos) << key;
  }
}

// Of a list for a few files that are meant, what lies beyond the first thousand is let go.
TEST(ChunkedManifest, WhatNobodyWantsIsDropped) {
  ChecksumManifest all = chunked();
  all.entries.clear();
  for (std::size_t i = 0; i < kEntriesAlwaysKept + 500; ++i)
    all.entries.push_back({"f" + std::to_string(i), digest(kEmpty), 0, {}});
  std::string text = render_chunked_manifest(all);
  PassingText passing(text.data(), text.size());
  const auto wanted = [](std::string_view name) { return name == "f1203"; };
  const ChecksumManifest read =
      parse_checksum_manifest(text, "SHA256SUMS", {.wanted = wanted, .passing = &passing});
  ASSERT_EQ(read.entries.size(), kEntriesAlwaysKept + 1);
  EXPECT_EQ(read.entries.back().name, "f1203");
}

TEST(ChunkedManifest, NamesThatJsonCannotHoldAreRefused) {
  ChecksumManifest manifest = chunked();
  manifest.entries[1].name = "\xFF.bin";
  EXPECT_THROW(render_chunked_manifest(manifest), Error);
}

}  // namespace
}  // namespace assay
