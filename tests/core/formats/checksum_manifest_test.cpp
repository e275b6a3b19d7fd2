#include "core/formats/checksum_manifest.h"

#include <fmt/format.h>

#include <algorithm>

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

std::vector<std::string> codes(const ChecksumManifest& manifest) {
  std::vector<std::string> result;
  for (const Finding& f : manifest.findings) result.push_back(f.code);
  return result;
}

// The one entry of a one-line manifest.
ManifestEntry only(const std::string& line) {
  const ChecksumManifest manifest = parse(line);
  EXPECT_EQ(manifest.entries.size(), 1u) << line;
  EXPECT_EQ(manifest.findings.size(), 0u) << line;
  return manifest.entries.at(0);
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

TEST(ChecksumManifest, EveryWayOfWritingALine) {
  struct Case {
    std::string line, name;
  };
  std::string upper = kAbc;
  std::transform(upper.begin(), upper.end(), upper.begin(), ::toupper);
  for (const Case& c : std::vector<Case>{
           {kAbc + "  a.bin\n", "a.bin"},
           {kAbc + " *a.bin\n", "a.bin"},
           {kAbc + " a.bin\n", "a.bin"},  // BSD's sum -r
           {kAbc + "  a.bin", "a.bin"},   // no newline at the end
           {kAbc + "  a.bin\r\n", "a.bin"},
           {"\xEF\xBB\xBF" + kAbc + "  a.bin\n", "a.bin"},
           {"  " + kAbc + "  a.bin\n", "a.bin"},
           {upper + "  a.bin\n", "a.bin"},
           {kAbc + "  a b  c \n", "a b  c "},  // blanks belong to the name
           {kAbc + "  *a\n", "*a"},
           {kAbc + "   a\n", " a"},
           {kAbc + "  back\\slash\n", "back\\slash"},  // not announced, so not an escape
           {"\\" + kAbc + "  new\\nline\\\\\\r\n", "new\nline\\\r"},
           {"SHA256 (a.bin) = " + kAbc + "\n", "a.bin"},
           {"SHA256 (a) = (b)) = " + kAbc + "\n", "a) = (b)"},
           {"\\SHA256 (a\\nb) = " + kAbc + "\n", "a\nb"},
           {"SHA256(a.bin)= " + kAbc + "\n", "a.bin"},    // openssl 1
           {"SHA2-256(a.bin)= " + kAbc + "\n", "a.bin"},  // openssl 3
           {"SHA2-256(dir/模型 1)= " + kAbc + "\n", "dir/模型 1"},
       }) {
    const ManifestEntry entry = only(c.line);
    EXPECT_EQ(entry.name, c.name) << c.line;
    EXPECT_EQ(entry.digest.hex(), kAbc) << c.line;
  }
}

TEST(ChecksumManifest, CommentsAndBlankLinesSayNothing) {
  const ChecksumManifest manifest = parse("# made by hand\n\n" + kAbc + "  a\n\r\n   \n#" + kEmpty + "  b\n");
  EXPECT_EQ(manifest.entries.size(), 1u);
  EXPECT_EQ(manifest.findings.size(), 0u);
}

TEST(ChecksumManifest, WhatIsNoSha256LineIsNamed) {
  const std::string good = kAbc + "  good\n";
  for (const std::string& bad : std::vector<std::string>{
           kAbc + "\n", kAbc + "  \n", kAbc.substr(1) + "  a\n", "\\" + kAbc + "  a\\t\n",
           "\\" + kAbc + "  a\\\n", "hello\n", "SHA256 (a) = xyz\n", "SHA256 (a) = " + kAbc.substr(2) + "\n",
           "SHA256 a = " + kAbc + "\n", kAbc + "a  b\n", "SHA256 () = " + kAbc + "\n",
           std::string("\0", 1) + "\n"}) {
    const ChecksumManifest manifest = parse(good + bad);
    EXPECT_EQ(codes(manifest), std::vector<std::string>{"manifest.line_malformed"}) << bad;
    EXPECT_EQ(manifest.entries.size(), 1u) << bad;
    EXPECT_EQ(manifest.findings.at(0).offset, good.size()) << bad;
    EXPECT_EQ(manifest.findings.at(0).message.substr(0, 6), "line 2");
  }
  for (const std::string& other : std::vector<std::string>{
           std::string(32, 'a') + "  a\n", std::string(40, 'a') + "  a\n", std::string(96, 'a') + " *a\n",
           std::string(128, 'a') + "  a\n", "MD5 (a) = " + std::string(32, 'a') + "\n",
           "SHA512/256 (a) = " + kAbc + "\n", "SHA2-512(a)= " + std::string(128, 'a') + "\n"}) {
    const ChecksumManifest manifest = parse(other + good);
    EXPECT_EQ(codes(manifest), std::vector<std::string>{"manifest.algorithm_unsupported"}) << other;
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "only sha256 is supported", manifest.findings.at(0).message);
    EXPECT_TRUE(has_errors(manifest.findings));
  }
}

TEST(ChecksumManifest, NamesTwice) {
  const ChecksumManifest same = parse(kAbc + "  a\n" + kAbc + " *a\n");
  EXPECT_EQ(same.entries.size(), 1u);
  EXPECT_EQ(codes(same), std::vector<std::string>{"manifest.name_twice"});
  EXPECT_FALSE(has_errors(same.findings));
  const ChecksumManifest different = parse(kAbc + "  a\n" + kEmpty + "  a\n");
  ASSERT_EQ(different.entries.size(), 1u);
  EXPECT_EQ(different.entries[0].digest.hex(), kAbc);
  EXPECT_EQ(codes(different), std::vector<std::string>{"manifest.name_conflict"});
  EXPECT_TRUE(has_errors(different.findings));
}

TEST(ChecksumManifest, NothingToCheckIsAnError) {
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "no sha256 checksum line", refusal(""));
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "no sha256 checksum line", refusal("# only a comment\n"));
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "by md5", refusal(std::string(32, 'a') + "  a\n"));
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "holds no sha256",
                      refusal(std::string("\xFF\xFE"
                                          "b\0a\0",
                                          6)));
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "half a surrogate",
                      refusal(std::string("\xFF\xFE\0\xD8"
                                          "a\0",
                                          6)));
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "within a character", refusal("\xFF\xFE-"));
}

std::string utf16(std::string_view ascii) {
  std::string text = "\xFF\xFE";
  for (const char c : ascii) text += {c, '\0'};
  return text;
}

TEST(ChecksumManifest, OtherWrappingsAreNamed) {
  const std::string line = kAbc + "  a.bin";
  EXPECT_NE(refusal(line + '\0').find("make it again without -z"), std::string::npos);
  EXPECT_NE(
      refusal("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n" + line + "\n").find("gpg --verify"),
      std::string::npos);
  const std::string b2 = refusal(kAbc + kAbc + "  a.bin\n");
  EXPECT_NE(b2.find("by sha512 or blake2b"), std::string::npos) << b2;
  EXPECT_NE(b2.find("sha256sum"), std::string::npos) << b2;
}

TEST(ChecksumManifest, AsWindowsPrintsThem) {
  std::string upper = kAbc;
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  std::string parted;
  for (std::size_t i = 0; i < 64; i += 2) parted += (i > 0 ? " " : "") + std::string(kAbc).substr(i, 2);
  const std::string table =
      "\r\nAlgorithm       Hash                                                                   Path\r\n"
      "---------       ----                                                                   ----\r\n"
      "SHA256          " +
      upper + "       C:\\my models\\m.safetensors\r\n\r\n";
  const std::string list =
      "\n\nAlgorithm : SHA256\nHash      : " + upper + "\nPath      : C:\\my models\\m.safetensors\n\n";
  const std::string certutil = "SHA256 hash of C:\\my models\\m.safetensors:\r\n" + std::string(kAbc) +
                               "\r\nCertUtil: -hashfile command completed successfully.\r\n";
  const std::string old_certutil = "SHA256 hash of file C:\\my models\\m.safetensors:\r\n" + parted +
                                   "\r\nCertUtil: -hashfile command completed successfully.\r\n";
  for (const std::string& text : {table, list, certutil, old_certutil, utf16(table), utf16(certutil)}) {
    const ChecksumManifest manifest = parse(text);
    ASSERT_EQ(manifest.entries.size(), 1u) << text;
    EXPECT_EQ(manifest.entries[0].name, "/my models/m.safetensors");
    EXPECT_EQ(manifest.entries[0].digest.hex(), kAbc);
    EXPECT_TRUE(manifest.findings.empty()) << text;
  }
  EXPECT_EQ(parse(certutil + certutil.substr(0, 0) + "SHA256 hash of b:\n" + kEmpty + "\n").entries.size(),
            2u);
}

TEST(ChecksumManifest, WindowsChecksumsOfNothingAreMalformed) {
  const std::string list = "Algorithm : SHA256\nHash : " + kAbc + "\nPath : C:\n";
  const std::string row = "SHA256 " + kAbc + " C:\n";
  for (const std::string& text : {list, row}) {
    EXPECT_EQ(codes(parse(kAbc + "  a\n" + text)), std::vector<std::string>{"manifest.line_malformed"})
        << text;
  }
}

TEST(ChecksumManifest, ADigestAloneIsOfTheFileItIsNamedAfter) {
  const auto read = [](const std::string& text, const char* source) {
    return parse_checksum_manifest(text, source);
  };
  EXPECT_EQ(read(std::string(kAbc) + "\n", "m.safetensors.sha256").entries.at(0).name, "m.safetensors");
  EXPECT_EQ(read(kAbc, "m.gguf.sha256sum").entries.at(0).name, "m.gguf");
  EXPECT_EQ(read(std::string(kAbc) + "  -\n", "m.gguf.sha256").entries.at(0).name, "m.gguf");
  EXPECT_FALSE(read(kAbc, "m.gguf.sha256").nameless);
  EXPECT_TRUE(read(kAbc, "digest.txt").nameless);
  EXPECT_THROW(read(std::string(kAbc) + "\n" + kEmpty + "\n", "digest.txt"), Error);
}

TEST(ChecksumManifest, ManyLines) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += fmt::format("{}  shard-{}.bin\n", i % 2 == 0 ? kAbc : kEmpty, i);
  EXPECT_EQ(parse(text).entries.size(), 100'000u);
  std::string junk;
  for (int i = 0; i < 100'000; ++i) junk += "junk\n";
  const ChecksumManifest manifest = parse(junk + kAbc + "  a\n");
  ASSERT_EQ(manifest.findings.size(), 21u);
  EXPECT_EQ(manifest.findings.back().message, "99980 more of the same");
}

TEST(ChecksumManifest, FindsANameAmongManyAgain) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += fmt::format("{}  shard-{}.bin\n", kAbc, i);
  const ChecksumManifest manifest = parse(text + kEmpty + "  shard-0.bin\n" + kAbc + "  shard-49999.bin\n" +
                                          kEmpty + "  shard-50000.bin\n");
  EXPECT_EQ(manifest.entries.size(), 50'001u);
  ASSERT_EQ(codes(manifest), (std::vector<std::string>{"manifest.name_conflict", "manifest.name_twice"}));
  EXPECT_EQ(manifest.findings[0].message, "line 50001 gives \"shard-0.bin\" a second, different digest");
  EXPECT_EQ(manifest.findings[1].message, "line 50002 gives \"shard-49999.bin\" a second time");
}

TEST(ChecksumManifest, KeepsOfALongListWhatIsWanted) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += fmt::format("{}  folder/shard-{}.bin\n", kAbc, i);
  PassingText passing(text.data(), text.size());
  const auto wanted = [](std::string_view name) { return name == "folder/shard-49990.bin"; };
  const ChecksumManifest manifest =
      parse_checksum_manifest(text, "SHA256SUMS", {.wanted = wanted, .passing = &passing});
  ASSERT_EQ(manifest.entries.size(), kEntriesAlwaysKept + 1);
  EXPECT_EQ(manifest.entries[999].name, "folder/shard-999.bin");
  EXPECT_EQ(manifest.entries.back().name, "folder/shard-49990.bin");
  EXPECT_TRUE(manifest.findings.empty());
  EXPECT_EQ(text[text.size() / 2], '\0') << "read, and gone";
  EXPECT_EQ(text.back(), '\n');
}

// Names that need escaping, written by sha256sum and read by us, and the other way round.
TEST(ChecksumManifest, AgreesWithSha256sum) {
  ASSAY_PROGRAM_OR_SKIP("sha256sum");
  const test::TempDir folder;
  const std::vector<std::string> names = {"plain.bin",   "with blank ", "*star",
                                          "back\\slash", "new\nline",   "模型"};
  std::vector<std::string> command = {"sha256sum"}, tagged = {"sha256sum", "--tag"};
  std::string ours;
  for (const std::string& name : names) {
    test::write_file(folder / name, "abc");
    command.push_back(name);
    tagged.push_back(name);
    ours += checksum_line(digest(kAbc), name);
  }
  test::ProcessOptions inside;
  inside.directory = folder.path();
  for (const auto& argv : {command, tagged}) {
    const auto written = test::run(argv, inside);
    ASSERT_EQ(written.exit_code, 0) << written.err;
    const ChecksumManifest manifest = parse(written.out);
    ASSERT_EQ(manifest.entries.size(), names.size()) << written.out;
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(manifest.entries[i].name, names[i]);
      EXPECT_EQ(manifest.entries[i].digest.hex(), kAbc);
    }
  }
  EXPECT_EQ(test::run(command, inside).out, ours);
  test::write_file(folder / "SUMS", ours);
  const auto checked = test::run({"sha256sum", "--strict", "-c", "SUMS"}, inside);
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
}

TEST(ChecksumManifest, AgreesWithOpenssl) {
  ASSAY_PROGRAM_OR_SKIP("openssl");
  const test::TempDir folder;
  test::write_file(folder / "a (1).bin", "abc");
  test::ProcessOptions inside;
  inside.directory = folder.path();
  for (const std::vector<std::string>& argv :
       {std::vector<std::string>{"openssl", "dgst", "-sha256", "a (1).bin"},
        {"openssl", "dgst", "-sha256", "-r", "a (1).bin"}}) {
    const auto written = test::run(argv, inside);
    ASSERT_EQ(written.exit_code, 0) << written.err;
    const ManifestEntry entry = only(written.out);
    EXPECT_EQ(entry.name, "a (1).bin") << written.out;
    EXPECT_EQ(entry.digest.hex(), kAbc);
  }
}

}  // namespace
}  // namespace assay
