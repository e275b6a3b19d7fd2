// .npy and .npz: what NumPy wrote (data/make_dump_fixtures.py), and files that lie.
#include "core/formats/npy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "core/formats/zip.h"
#include "core/numeric/codec.h"
#include "core/system/error.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

struct Expected {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::vector<double> values;
};

fs::path fixtures() {
  return test::source_dir() / "data" / "fixtures" / "dumps";
}

std::vector<std::string> split(const std::string& text, char between) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, between);) parts.push_back(part);
  return parts;
}

std::vector<Expected> expected() {
  std::vector<Expected> all;
  for (const std::string& line : split(test::read_file(fixtures() / "arrays" / "EXPECTED.tsv"), '\n')) {
    const auto fields = split(line, '\t');
    Expected& e = all.emplace_back();
    e.name = fields.at(0);
    for (const std::string& d : split(fields.at(1), ',')) e.shape.push_back(std::stoull(d));
    if (fields.size() < 3) continue;
    for (const std::string& x : split(fields[2], ',')) e.values.push_back(std::strtod(x.c_str(), nullptr));
  }
  return all;
}

std::vector<double> decoded(const npy::Header& header, std::vector<std::byte> file) {
  file.erase(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(header.data_offset));
  const std::vector<std::byte> ordered = npy::in_c_order(header, std::move(file));
  std::vector<double> values(*element_count(header.shape) * values_per_block(header.type));
  decode(header.type, ordered, values.data());
  return values;
}

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  std::transform(text.begin(), text.end(), bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

// The header `text` says, in a file whose array has `array` bytes.
std::string npy_file(const std::string& text, std::size_t array, char version = 1) {
  std::string file("\x93NUMPY");
  file += version;
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(text.size() >> (8 * i) & 0xFF);
  return file + text + std::string(array, '\0');
}

std::string refusal(const std::string& file) {
  const std::vector<std::byte> bytes = bytes_of(file);
  try {
    npy::parse_header(bytes, bytes.size(), "x.npy");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.line();
  }
  return "accepted";
}

TEST(Npy, ReadsWhatNumPyWrites) {
  const auto all = expected();
  ASSERT_GE(all.size(), 20u);
  for (const Expected& e : all) {
    const fs::path path = fixtures() / "arrays" / (e.name + ".npy");
    const npy::Header header = npy::read_header(File::open(path));
    EXPECT_EQ(header.shape, e.shape) << e.name;
    EXPECT_EQ(decoded(header, bytes_of(test::read_file(path))), e.values) << e.name;
  }
  EXPECT_EQ(npy::read_header(File::open(fixtures() / "arrays" / "bf16.npy")).type, ElementType::BF16);
}

TEST(Npy, WritesWhatNumPyWould) {
  const std::string theirs = test::read_file(fixtures() / "arrays" / "f4.npy");
  const std::uint64_t shape[] = {2, 3, 4};
  const std::string ours = npy::serialize_header(ElementType::F32, shape);
  EXPECT_EQ(ours.size(), theirs.size() - 96);
  EXPECT_EQ(ours, theirs.substr(0, ours.size()));
  const std::uint64_t row[] = {5};
  const std::string vector = npy::serialize_header(ElementType::I64, row);
  EXPECT_EQ(vector, test::read_file(fixtures() / "arrays" / "vector.npy").substr(0, vector.size()));
}

TEST(Npy, RefusesWhatIsNoNumbers) {
  const auto told = [](const char* name) {
    try {
      npy::read_header(File::open(fixtures() / "arrays" / "refused" / (std::string(name) + ".npy")));
    } catch (const Error& error) {
      return error.line();
    }
    return std::string("accepted");
  };
  EXPECT_NE(told("objects").find("pickle"), std::string::npos) << told("objects");
  EXPECT_NE(told("records").find("records"), std::string::npos) << told("records");
  EXPECT_NE(told("text").find("'<U2'"), std::string::npos) << told("text");
  EXPECT_NE(told("e4m3").find("8-bit float"), std::string::npos) << told("e4m3");
  EXPECT_NE(told("longdouble").find("'<f16'"), std::string::npos) << told("longdouble");
}

TEST(Npy, HostileHeaders) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  EXPECT_EQ(refusal(npy_file(good, 8)), "accepted");
  EXPECT_EQ(refusal(npy_file(good, 8, 3)), "accepted");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "begin with"},
      {"NUMPY", "begin with"},
      {npy_file(good, 8, 4), "version 4"},
      {npy_file(good, 7), "truncated"},
      {npy_file(good, 9), "1 bytes after the array"},
      {npy_file(good, 8).substr(0, 9), "ends inside"},
      {npy_file(good, 8).substr(0, 30), "exceeds the file"},
      {npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8), }", 0),
       "overflows"},
      {npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 0),
       "whole numbers"},
      {npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 0), "whole numbers"},
      {npy_file("{'descr': '<f4', 'fortran_order': 1, 'shape': (2,), }", 8), "neither True nor False"},
      {npy_file("{'descr': '<f4', 'shape': (2,), }", 8), "lacks"},
      {npy_file("{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", 8), "or twice"},
      {npy_file("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", 8), "pickle"},
      {npy_file("{'descr': 'f4', 'fortran_order': False, 'shape': (2,), }", 8), "byte order"},
      {npy_file(good + "exec", 8), "goes on after"},
      {npy_file("{'descr': '<f4", 8), "ends inside a text"}};
  for (const auto& [file, reason] : cases)
    EXPECT_NE(refusal(file).find(reason), std::string::npos) << refusal(file) << " | " << reason;
  std::string axes = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 65; ++i) axes += "1, ";
  EXPECT_NE(refusal(npy_file(axes + "), }", 4)).find("more than 64 axes"), std::string::npos);
}

// ---- zip

zip::Archive archive_of(const std::string& bytes) {
  return {[bytes](std::uint64_t offset, std::span<std::byte> out) {
            ASSERT_LE(offset + out.size(), bytes.size());
            const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
            std::transform(from, from + static_cast<std::ptrdiff_t>(out.size()), out.begin(),
                           [](char c) { return static_cast<std::byte>(c); });
          },
          bytes.size(), "x.npz"};
}

// What opening, or reading every member of, an archive says.
std::string zip_refusal(const std::string& bytes) {
  try {
    const zip::Archive archive = archive_of(bytes);
    for (const zip::Member& member : archive.members()) archive.read(member);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.line();
  }
  return "accepted";
}

TEST(Zip, ReadsNumPysArchives) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const zip::Archive archive = zip::Archive::open(fixtures() / name);
    std::size_t found = 0;
    for (const Expected& e : expected()) {
      for (const zip::Member& member : archive.members()) {
        if (member.name != e.name + ".npy") continue;
        ++found;
        const std::vector<std::byte> file = archive.read(member);
        const npy::Header header = npy::parse_header(file, file.size(), name);
        EXPECT_EQ(header.shape, e.shape);
        EXPECT_EQ(decoded(header, file), e.values) << name << " " << e.name;
        const auto part = archive.read(member, 20);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), file.begin()));
        EXPECT_EQ(part.size(), 20u);
      }
    }
    EXPECT_GE(found, 18u) << name;
  }
}

TEST(Zip, HostileArchives) {
  const std::string good = test::read_file(fixtures() / "deflated.npz");
  ASSERT_EQ(zip_refusal(good), "accepted");
  EXPECT_NE(zip_refusal("").find("no end of a directory"), std::string::npos);
  EXPECT_NE(zip_refusal(good.substr(0, good.size() - 1)).find("no end of a directory"), std::string::npos);
  EXPECT_NE(zip_refusal(good.substr(100)), "accepted");
  // Of the first member: what is changed, where in its directory record, and what is said of it.
  const std::size_t record = good.find("PK\x01\x02");
  const auto changed = [&](std::size_t at, std::uint32_t value, std::size_t width) {
    std::string bytes = good;
    std::memcpy(bytes.data() + record + at, &value, width);
    return zip_refusal(bytes);
  };
  EXPECT_NE(changed(8, 1, 2).find("encrypted"), std::string::npos);
  EXPECT_NE(changed(10, 12, 2).find("method 12"), std::string::npos);
  EXPECT_NE(changed(16, 1234, 4).find("CRC-32"), std::string::npos);
  EXPECT_NE(changed(20, 0x7FFFFFFF, 4).find("overlaps"), std::string::npos);
  EXPECT_NE(changed(24, 0xFFFFFFFE, 4).find("cannot come of"), std::string::npos) << "a bomb";
  EXPECT_NE(changed(24, 100, 4).find("does not inflate"), std::string::npos) << "longer than it says";
  EXPECT_NE(changed(24, 10'000, 4).find("does not inflate"), std::string::npos) << "shorter than it says";
  EXPECT_NE(changed(42, 5, 4), "accepted");
  std::string damaged = good;
  damaged[good.find("PK\x03\x04") + 60] ^= 0x55;
  EXPECT_NE(zip_refusal(damaged), "accepted");
}

}  // namespace
}  // namespace assay
