#include "core/formats/safetensors.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "core/system/error.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::safetensors {
namespace {

using test::safetensors_bytes;

Header parse(std::string_view bytes, Reading reading) {
  return parse_header(std::as_bytes(std::span(bytes.data(), bytes.size())), bytes.size(), reading,
                      "m.safetensors");
}

bool accepts(std::string_view bytes, Reading reading) {
  try {
    parse(bytes, reading);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << error.line();
    return false;
  }
}

bool has_code(const Findings& findings, std::string_view code) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& f) { return f.code == code; });
}

Error error_of(std::string_view bytes, Reading reading = Reading::reference) {
  try {
    parse(bytes, reading);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "accepted";
  return Error::internal("accepted");
}

std::string u8_tensor(std::string_view name, std::uint64_t begin, std::uint64_t end) {
  return "\"" + std::string(name) + "\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(end - begin) +
         "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}

// The answers of the `safetensors` package, and of the README: data/safetensors_acceptance/make.py.
struct AcceptanceCase {
  std::string name, header;
  std::size_t buffer = 0;
  bool reference = false, strict = false;
};

std::vector<AcceptanceCase> acceptance_cases() {
  std::ifstream table(test::source_dir().string() + "/data/safetensors_acceptance/cases.tsv");
  std::vector<AcceptanceCase> result;
  for (std::string line; std::getline(table, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::string name, encoded, buffer, verdict, spec;
    std::getline(fields, name, '\t');
    std::getline(fields, encoded, '\t');
    std::getline(fields, buffer, '\t');
    std::getline(fields, verdict, '\t');
    std::getline(fields, spec, '\t');
    std::string header;
    for (std::size_t i = 0; i < encoded.size(); ++i) {
      if (encoded[i] != '%') {
        header += encoded[i];
        continue;
      }
      header += static_cast<char>(std::stoi(encoded.substr(i + 1, 2), nullptr, 16));
      i += 2;
    }
    result.push_back({name, header, std::stoul(buffer), verdict == "ok", spec == "yes"});
  }
  return result;
}

TEST(SafetensorsAcceptance, ReferenceReadingAgreesWithTheReferenceReader) {
  const auto cases = acceptance_cases();
  ASSERT_GT(cases.size(), 150u);
  for (const AcceptanceCase& c : cases) {
    const std::string bytes = safetensors_bytes(c.header, std::string(c.buffer, '\1'));
    EXPECT_EQ(accepts(bytes, Reading::reference), c.reference) << c.name << ": " << c.header;
  }
}

TEST(SafetensorsAcceptance, StrictReadingAgreesWithTheSpecification) {
  for (const AcceptanceCase& c : acceptance_cases()) {
    const std::string bytes = safetensors_bytes(c.header, std::string(c.buffer, '\1'));
    EXPECT_EQ(accepts(bytes, Reading::strict), c.strict) << c.name << ": " << c.header;
  }
}

TEST(SafetensorsAcceptance, WhatOnlyTheReferenceAcceptsIsAWarning) {
  for (const AcceptanceCase& c : acceptance_cases()) {
    if (!c.reference) continue;
    const std::string bytes = safetensors_bytes(c.header, std::string(c.buffer, '\1'));
    const Findings findings = parse(bytes, Reading::reference).deviations;
    const bool warned = std::any_of(findings.begin(), findings.end(),
                                    [](const Finding& f) { return f.severity == Severity::warning; });
    EXPECT_EQ(warned, !c.strict) << c.name;
    EXPECT_FALSE(has_errors(findings)) << c.name;
  }
}

TEST(Safetensors, NamesEachDeviation) {
  const auto code_of = [](std::string json) {
    const Findings findings =
        parse(safetensors_bytes(json, std::string(4, '\1')), Reading::reference).deviations;
    return findings.empty() ? std::string("none") : findings.front().code;
  };
  const std::string a = u8_tensor("a", 0, 4);
  EXPECT_EQ(code_of("{" + a + "}  "), "none");
  EXPECT_EQ(code_of("{" + a + "," + a + "}"), "safetensors.duplicate_key");
  EXPECT_EQ(code_of("{" + a + "," + u8_tensor("\\u0061", 0, 4) + "}"), "safetensors.duplicate_key");
  EXPECT_EQ(code_of("\t{" + a + "}"), "safetensors.leading_whitespace");
  EXPECT_EQ(code_of("{" + a + "}\n"), "safetensors.trailing_whitespace");
  EXPECT_EQ(code_of("{\"__metadata__\":null," + a + "}"), "safetensors.metadata_null");
  EXPECT_EQ(code_of("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}," + a + "}"),
            "safetensors.metadata_duplicate_key");
  EXPECT_EQ(code_of(R"({"a":["U8",[4],[0,4]]})"), "safetensors.array_form");
  EXPECT_EQ(code_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"scale":1}})"),
            "safetensors.extra_field");
  EXPECT_EQ(code_of(R"({"a":{"dtype":{"U8":null},"shape":[4],"data_offsets":[0,4]}})"),
            "safetensors.dtype_object");
  EXPECT_EQ(code_of(R"({"a\n":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})"), "safetensors.odd_name");
}

TEST(Safetensors, TheLastOfRepeatedKeysCounts) {
  const Header header = parse(safetensors_bytes(R"({"__metadata__":{"k":"1","l":"x","k":"2"},)"
                                                R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                                R"("a":{"dtype":"I8","shape":[2,2],"data_offsets":[0,4]}})",
                                                "1234"),
                              Reading::reference);
  ASSERT_EQ(header.tensors.size(), 1u);
  EXPECT_EQ(header.tensors[0].type, ElementType::I8);
  EXPECT_EQ(header.tensors[0].shape, (std::vector<std::uint64_t>{2, 2}));
  EXPECT_EQ(header.metadata, (std::vector<std::pair<std::string, std::string>>{{"l", "x"}, {"k", "2"}}));
}

TEST(Safetensors, ReadsTensorsInTheOrderOfTheirData) {
  const Header header = parse(safetensors_bytes(R"({"b":{"dtype":"BF16","shape":[2,1],"data_offsets":[4,8]},)"
                                                R"("z":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]},)"
                                                R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}   )",
                                                "12345678"),
                              Reading::strict);
  ASSERT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_TRUE(header.tensors[0].shape.empty());
  EXPECT_EQ(header.tensors[1].name, "z");
  EXPECT_EQ(header.tensors[1].bytes(), 0u);
  EXPECT_EQ(header.tensors[2].type, ElementType::BF16);
  EXPECT_EQ(header.tensors[2].begin, 4u);
}

TEST(Safetensors, NotesMisalignedTensors) {
  const std::string bytes = safetensors_bytes(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                              R"("b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
                                              "12345");
  for (const Reading reading : {Reading::strict, Reading::reference}) {
    const Findings findings = parse(bytes, reading).deviations;
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].code, "safetensors.misaligned");
    EXPECT_EQ(findings[0].severity, Severity::note);
    EXPECT_EQ(findings[0].tensor, "b");
  }
}

TEST(SafetensorsErrors, NameFileTensorAndOffset) {
  const std::string json = "{" + u8_tensor("a", 0, 4) + "," + u8_tensor("b", 6, 8) + "}";
  const Error hole = error_of(safetensors_bytes(json, std::string(8, '\0')));
  EXPECT_EQ(hole.file(), "m.safetensors");
  EXPECT_EQ(hole.offset(), 8 + json.size() + 6);
  EXPECT_NE(hole.line().find("tensor b: "), std::string::npos) << hole.line();
  EXPECT_NE(hole.line().find("2 bytes before it belong to no tensor"), std::string::npos) << hole.line();

  const Error short_file = error_of(safetensors_bytes("{" + u8_tensor("a", 0, 4) + "}", "1"));
  EXPECT_NE(short_file.line().find("the last 3 bytes are missing"), std::string::npos) << short_file.line();

  const Error bad_json = error_of(safetensors_bytes(R"({"a":{"dtype":"U8","shape":[x]}})", ""));
  EXPECT_EQ(bad_json.offset(), 8u + 28u) << bad_json.line();  // the x
}

TEST(SafetensorsErrors, QuoteNoMoreThanAFewWordsOfTheFile) {
  const Error error = error_of(safetensors_bytes("{\"" + std::string(1'000'000, 'y') + "\n\":1}", ""));
  EXPECT_LT(error.line().size(), 300u);
}

TEST(SafetensorsAttacks, LengthsAreCheckedBeforeAnythingIsAllocated) {
  test::TempDir folder;
  for (const std::uint64_t claim : {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{100'000'001},
                                    std::uint64_t{100'000'000}, std::uint64_t{9}, ~std::uint64_t{0} - 7}) {
    std::string bytes(8, '\0');
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(claim >> (8 * i) & 0xFF);
    bytes += "{}      ";
    test::write_file(folder / "bomb.safetensors", bytes);
    const File file = File::open(folder / "bomb.safetensors");
    EXPECT_THROW(read_header(file, Reading::reference), Error) << claim;
    EXPECT_THROW(parse(bytes, Reading::reference), Error) << claim;
  }
}

TEST(SafetensorsAttacks, DeepNestingIsRefused) {
  EXPECT_FALSE(accepts(safetensors_bytes(std::string(4'000'000, '['), ""), Reading::reference));
  EXPECT_FALSE(
      accepts(safetensors_bytes(R"({"a":{"x":)" + std::string(4'000'000, '['), ""), Reading::reference));
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"\":";
  EXPECT_FALSE(accepts(safetensors_bytes(objects, ""), Reading::reference));
}

TEST(SafetensorsAttacks, ManyTensorsOverOneByteAreRefused) {
  std::string json = "{\"t\":[\"U8\",[1],[0,1]]";
  for (int i = 0; i < 200'000; ++i) json += ",\"" + std::to_string(i) + "\":[\"U8\",[1],[0,1]]";
  const Error error = error_of(safetensors_bytes(json + "}", "1"));
  EXPECT_NE(error.line().find("overlap"), std::string::npos) << error.line();
}

TEST(SafetensorsAttacks, ManyTensorsAreReadAndManyDeviationsAreOneFinding) {
  std::string json = "{";
  for (int i = 0; i < 200'000; ++i)
    json += (i > 0 ? ",\"" : "\"") + std::to_string(i % 199'000) + "\":[\"U8\",[0],[0,0]]";
  const Header header = parse(safetensors_bytes(json + "}", ""), Reading::reference);
  EXPECT_EQ(header.tensors.size(), 199'000u);
  ASSERT_EQ(header.deviations.size(), 2u);
  EXPECT_TRUE(has_code(header.deviations, "safetensors.array_form"));
  EXPECT_TRUE(has_code(header.deviations, "safetensors.duplicate_key"));
}

TEST(SafetensorsAttacks, DamagedHeadersNeverCrash) {
  const std::string good = safetensors_bytes(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
      R"("b\u0041":["F8_E4M3",[4],[8,12]],"c":{"dtype":"F4","shape":[4],"x":[{}],"data_offsets":[12,14]}})",
      std::string(14, '\0'));
  ASSERT_TRUE(accepts(good, Reading::reference));
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(accepts(std::string_view(good).substr(0, length), Reading::reference)) << length;
  }
  std::mt19937_64 random(1);
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = good;
    for (std::uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      damaged[8 + random() % (damaged.size() - 8)] = static_cast<char>(random());
    }
    const bool reference = accepts(damaged, Reading::reference);
    accepted += reference;
    EXPECT_FALSE(!reference && accepts(damaged, Reading::strict))
        << damaged;  // strict is never the looser one
  }
  EXPECT_GT(accepted, 0);
}

TEST(SafetensorsWriter, LaysOutAFileThatBothReadingsAccept) {
  std::vector<Tensor> tensors = {{"z", ElementType::BF16, {2, 3}},
                                 {"a\"\n", ElementType::F32, {}},
                                 {"f4", ElementType::F4, {6}},
                                 {"empty", ElementType::I64, {0}}};
  const std::vector<std::pair<std::string, std::string>> metadata = {{"format", "pt"}, {"quote", "\"\\"}};
  sort_as_reference(tensors);
  EXPECT_EQ(tensors.front().name, "empty");  // I64: the largest alignment first
  for (const std::uint64_t alignment : {8u, 4096u}) {
    const std::string header = serialize_header(tensors, metadata, alignment);
    EXPECT_EQ(header.size() % alignment, 0u);
    const Header read = parse(header + std::string(12 + 4 + 3, '\0'), Reading::strict);
    EXPECT_EQ(read.metadata, metadata);
    ASSERT_EQ(read.tensors.size(), 4u);
    EXPECT_EQ(read.tensors[1].name, "a\"\n");
    EXPECT_EQ(read.tensors[2].begin, 4u);
    EXPECT_EQ(read.tensors[3].bytes(), 3u);
  }
}

// Written by safetensors 0.8.0: safetensors.numpy.save of "b" F32 [1], "a" F32 [1], "c" U8 [3], {"format":
// "pt"}.
TEST(SafetensorsWriter, WritesTheBytesOfTheReferenceWriter) {
  std::vector<Tensor> tensors = {
      {"c", ElementType::U8, {3}}, {"b", ElementType::F32, {1}}, {"a", ElementType::F32, {1}}};
  sort_as_reference(tensors);
  const std::vector<std::pair<std::string, std::string>> metadata = {{"format", "pt"}};
  std::string json =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},"c":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
  json.append((8 - json.size() % 8) % 8, ' ');
  EXPECT_EQ(serialize_header(tensors, metadata), safetensors_bytes(json, ""));
}

TEST(SafetensorsWriter, RefusesWhatCannotBeStored) {
  const auto refused = [](std::vector<Tensor> tensors) {
    EXPECT_THROW(serialize_header(tensors, {}), Error);
  };
  refused({{"a", ElementType::U8, {1}}, {"a", ElementType::U8, {2}}});
  refused({{"a", ElementType::F4, {3}}});
  refused({{"a", ElementType::Q4_0, {32}}});
  refused({{"a", ElementType::F64, {std::uint64_t{1} << 62}}});
  refused(
      {{"a", ElementType::U8, {std::uint64_t{1} << 63}}, {"b", ElementType::U8, {std::uint64_t{1} << 63}}});
  refused({{"__metadata__", ElementType::U8, {1}}});
  refused({{"\xff", ElementType::U8, {1}}});
}

// The byte strings of the reference implementation's own tests, and the answers that they expect.
TEST(SafetensorsCases, UnitLiteralsOfTheReference) {
  ASSAY_CASE_OR_SKIP(folder, "safetensors/unit-literals");
  std::ifstream table(folder / "EXPECTED.tsv");
  std::string line;
  std::getline(table, line);
  int seen = 0;
  while (std::getline(table, line)) {
    const std::string file_name = line.substr(0, line.find('\t'));
    const bool expected = line.substr(line.rfind('\t') + 1) == "Ok";
    EXPECT_EQ(accepts(test::read_file(folder / file_name), Reading::reference), expected) << file_name;
    ++seen;
  }
  EXPECT_EQ(seen, 16);
}

TEST(SafetensorsCases, OneFileOfEachType) {
  ASSAY_CASE_OR_SKIP(folder, "safetensors/dtype-samples");
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const Header header = read_header(File::open(entry.path()), Reading::reference);
    EXPECT_FALSE(header.tensors.empty()) << entry.path();
    EXPECT_EQ(header.buffer_offset() + header.tensors.back().end, header.file_bytes);
    ++seen;
  }
  EXPECT_EQ(seen, 10);
}

}  // namespace
}  // namespace assay::safetensors
