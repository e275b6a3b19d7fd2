#include "verify/expected/manifest.h"
#include "core/system/json.h"

#include "core/system/error.h"
#include "tests/support/git.h"
#include "tests/verify/expected/hub_fixture.h"
#include "tests/verify/expected/lookup.h"

namespace assay {
namespace {

using namespace test;

TEST(ManifestExpectation, ReadsChecksumFiles) {
  const TempDir dir;
  fs::create_directory(dir / "model");
  write_file(dir / "sums",
             kWeightsSha256 + "  ./model.safetensors\n" + kWeightsSha256 + "  sub/name with  spaces\n");
  const Expectation e = expect_from_manifest(dir / "sums", dir / "model");
  EXPECT_EQ(names(e), (std::vector<std::string>{"model.safetensors", "sub/name with  spaces"}));
  EXPECT_EQ(e.path_of(e.files[0]), dir / "model" / "model.safetensors");
  EXPECT_EQ(e.files[0].trust->source, TrustSource::manifest);
  EXPECT_FALSE(e.files[0].trust->stored_beside);
  EXPECT_FALSE(e.complete);
  write_file(dir / "model" / "sums", test::read_file(dir / "sums"));
  EXPECT_TRUE(expect_from_manifest(dir / "model" / "sums", dir / "model").files[0].trust->stored_beside);
}

TEST(ManifestExpectation, TellsTheFormatsApart) {
  const TempDir dir;
  write_file(dir / "chunked", R"({"schema": "assay.manifest/1", "chunk_bytes": 4096, "files": [
      {"name": "f", "size": 5000, "sha256": ")" +
                                  kWeightsSha256 + R"(", "chunks": [")" + kWeightsSha256 + "\", \"" +
                                  kWeightsSha256 + R"("]}]})");
  const Expectation chunked = expect_from_manifest(dir / "chunked", dir.path());
  EXPECT_EQ(chunked.chunk_bytes, 4096u);
  EXPECT_EQ(chunked.files[0].chunks->size(), 2u);
  EXPECT_EQ(chunked.files[0].size, 5000u);
  write_file(dir / "tree", tree_json());
  EXPECT_EQ(expect_from_manifest(dir / "tree", dir.path()).kind, "hub listing");
  write_file(dir / "page", " \n[{\"type\": \"file\", \"path\": \"f\", \"oid\": \"" + kConfigId + "\"}]");
  EXPECT_EQ(expect_from_manifest(dir / "page", dir.path()).kind, "hub listing");
}

// By its keys, wherever they stand, and not by how it begins or what its values hold.
TEST(ManifestExpectation, TellsTheFormatsApartByKeysAnywhere) {
  const TempDir dir;
  const std::string blanks(5000, ' '), long_text(10'000, 'x');
  const std::string files = R"("files": [{"name": "f", "size": 5, "sha256": ")" + kWeightsSha256 +
                            R"(", "chunks": [")" + kWeightsSha256 + R"("]}])";
  const std::string schema = R"("schema": "assay.manifest/1")", chunks = R"("chunk_bytes": 4096)";
  const std::string made = R"("made by": {"schema": "none", "files": {}, "text": ")" + long_text + "\"}";
  for (const std::string& document : {"{" + made + ", " + chunks + ", " + files + ", " + schema + "}",
                                      "{" + made + ", " + schema + ", " + files + ", " + chunks + "}",
                                      blanks + "{" + files + ", " + chunks + ", " + blanks + schema + "}"}) {
    write_file(dir / "chunked", document);
    const Expectation e = expect_from_manifest(dir / "chunked", dir.path());
    EXPECT_EQ(e.kind, "chunked manifest");
    EXPECT_EQ(e.chunk_bytes, 4096u);
  }
  const std::string page = R"([{"type": "file", "path": "assay.manifest/1", "oid": ")" + kConfigId + R"("}])";
  const std::string card =
      R"({"cardData": {"schema": "assay.manifest/1", "chunk_bytes": 1},)" +
      (R"("siblings": [{"rfilename": "assay.manifest/1", "blobId": ")" + kConfigId + R"("}]})");
  for (const std::string& document : {page, blanks + page, card, blanks + card}) {
    write_file(dir / "listing", document);
    EXPECT_EQ(expect_from_manifest(dir / "listing", dir.path()).kind, "hub listing") << document.size();
  }
}

TEST(ManifestExpectation, RefusesNamesThatClimb) {
  const TempDir dir;
  std::string lines = kWeightsSha256 + "  ok\n";
  const std::vector<std::string> bad = {"../up", "/abs", "a/../../b", "c:\\x", ".//../x", "a//b"};
  for (const std::string& name : bad) lines += kWeightsSha256 + "  " + name + "\n";
  write_file(dir / "sums", lines);
  const Expectation e = expect_from_manifest(dir / "sums", dir.path());
  EXPECT_EQ(names(e), std::vector<std::string>{"ok"});
  EXPECT_EQ(std::count_if(e.findings.begin(), e.findings.end(),
                          [](const Finding& f) { return f.code == "expected.unsafe_name"; }),
            static_cast<std::ptrdiff_t>(bad.size()));
}

TEST(ManifestExpectation, WarnsOfNamesThatCollide) {
  const TempDir dir;
  write_file(dir / "sums", kWeightsSha256 + "  Model.bin\n" + kWeightsSha256 + "  model.bin\n" +
                               kWeightsSha256 + "  caf\xC3\xA9\n" + kWeightsSha256 + "  cafe\xCC\x81\n" +
                               kWeightsSha256 + "  a\n" + kWeightsSha256 + "  a/b\n");
  const Expectation e = expect_from_manifest(dir / "sums", dir.path());
  EXPECT_NE(finding(e, "expected.name_collision", "model.bin"), nullptr);
  EXPECT_NE(finding(e, "expected.name_collision", "caf\xC3\xA9"), nullptr);
  EXPECT_NE(finding(e, "expected.file_and_folder", "a"), nullptr);
}

TEST(ManifestExpectation, OfOneFileIsItsLine) {
  const TempDir dir;
  write_file(dir / "sums", kWeightsSha256 + "  other\n" + kWeightsSha256 + "  deep/down/f\n");
  write_file(dir / "x" / "f", "");
  const Expectation e = expect_from_manifest(dir / "sums", dir / "x" / "f");
  EXPECT_EQ(names(e), std::vector<std::string>{"f"});
  EXPECT_EQ(e.path_of(e.files[0]), dir / "x" / "f");
  write_file(dir / "x" / "g", "");
  EXPECT_THROW(expect_from_manifest(dir / "sums", dir / "x" / "g"), Error);
}

TEST(ManifestExpectation, TakesASha256) {
  const TempDir dir;
  write_file(dir / "f", kWeights);
  const Expectation e = expect_from_sha256(kWeightsSha256, dir / "f");
  EXPECT_EQ(digest(e, "f"), kWeightsSha256);
  EXPECT_EQ(e.files[0].trust->source, TrustSource::command_line);
  EXPECT_THROW(expect_from_sha256(kWeightsSha256.substr(1), dir / "f"), Error);
  EXPECT_THROW(expect_from_sha256(kWeightsSha256, dir.path()), Error);
}

TEST(PlainFolder, ListsWhatIsThere) {
  const TempDir dir;
  write_file(dir / "sub" / "f", "x");
  write_file(dir / ".git" / "config", "x");
  fs::create_symlink("nowhere", dir / "dangling");
  fs::create_symlink("sub/f", dir / "link");
  const Expectation e = expect_nothing(dir.path());
  EXPECT_EQ(names(e), (std::vector<std::string>{"link", "sub/f"}));
  EXPECT_EQ(digest(e, "sub/f"), "no digest");
  EXPECT_NE(finding(e, "expected.dangling_link", "dangling"), nullptr);
  EXPECT_EQ(trust_summary(e), "Nobody said what the bytes should be: only structure can be checked.");
}

// `sha256sum /data/m/*`, `sha256sum models/m/*`: the sums are of this folder, wherever it was then.
TEST(ManifestExpectation, FoldersInFrontOfTheNamesAreTakenAway) {
  const test::TempDir dir;
  test::write_file(dir / "m/a.bin", "a");
  test::write_file(dir / "m/sub/b.bin", "b");
  const std::string a = test::sha256sum("a"), b = test::sha256sum("b");
  const auto names = [&](const std::string& sums) {
    test::write_file(dir / "sums", sums);
    std::vector<std::string> list;
    for (const ExpectedFile& file : expect_from_manifest(dir / "sums", dir / "m").files)
      list.push_back(file.name);
    return list;
  };
  const std::vector<std::string> both = {"a.bin", "sub/b.bin"};
  EXPECT_EQ(names(a + "  /data/old/m/a.bin\n" + b + "  /data/old/m/sub/b.bin\n"), both);
  EXPECT_EQ(names(a + "  m/a.bin\n" + b + "  m/sub/b.bin\n"), both);
  EXPECT_EQ(names(a + "  ./m/a.bin\n" + b + "  ./m/sub/b.bin\n"), both);
  EXPECT_EQ(
      names(a + "  " + (dir / "m/a.bin").string() + "\n" + b + "  " + (dir / "m/sub/b.bin").string() + "\n"),
      both);
  EXPECT_EQ(names(a + "  m/a.bin\n" + b + "  other/c.bin\n"), std::vector<std::string>{"a.bin"});
  EXPECT_EQ(names(a + "  a.bin\n" + b + "  m/sub/b.bin\n"),
            (std::vector<std::string>{"a.bin", "m/sub/b.bin"}))
      << "names that are found as they stand stay as they stand";
  EXPECT_EQ(names("SHA256 hash of C:\\m\\a.bin:\n" + a + "\nCertUtil: done\n"),
            std::vector<std::string>{"a.bin"});
  EXPECT_EQ(expect_from_manifest(dir / "sums", dir / "m").findings.at(0).code, "manifest.prefix_removed");
}

TEST(ManifestExpectation, ADigestWithoutANameIsOfTheOneFileMeant) {
  const test::TempDir dir;
  test::write_file(dir / "f.bin", "a");
  test::write_file(dir / "digest", test::sha256sum("a") + "\n");
  EXPECT_EQ(expect_from_manifest(dir / "digest", dir / "f.bin").files.at(0).name, "f.bin");
  EXPECT_THROW(expect_from_manifest(dir / "digest", dir.path()), Error);
  test::write_file(dir / "f.bin.sha256", test::sha256sum("a"));
  EXPECT_EQ(expect_from_manifest(dir / "f.bin.sha256", dir.path()).files.at(0).name, "f.bin");
}

TEST(ManifestExpectation, MayComeFromStandardInput) {
  const test::TempDir dir;
  test::write_file(dir / "f.bin", "a");
  const auto verify = [&](const std::string& input) {
    return test::assay({"verify", dir.path().string(), "--manifest", "-"}, {.input = input});
  };
  const auto good = verify(test::sha256sum("a") + "  f.bin\n");
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  EXPECT_NE(good.out.find("checked against standard input"), std::string::npos) << good.out;
  EXPECT_EQ(verify(test::sha256sum("b") + "  f.bin\n").exit_code, 1);
  EXPECT_EQ(verify("[]").exit_code, 2);
  EXPECT_EQ(verify("nonsense").exit_code, 2);
}

// It would let everything pass.
TEST(Manifest, OfNothingOrWithoutDigestsIsRefused) {
  const TempDir dir;
  write_file(dir / "model/model.safetensors", kWeights);
  for (const char* text : {"[]", "[[]]", "{\"siblings\": []}", "{\"Data\": {\"Files\": []}}", "# no line\n",
                           "{}", "{\"format_version\": 1, \"files\": {}}",
                           "{\"schema\": \"assay.manifest/1\", \"chunk_bytes\": 4096, \"files\": []}",
                           "[{\"type\": \"directory\", \"path\": \"x\", \"oid\": \"y\", \"size\": 0}]",
                           "{\"siblings\": [{\"rfilename\": \"model.safetensors\"}]}",
                           "{\"siblings\": [{\"rfilename\": \"config.json\"}]}"}) {
    write_file(dir / "source", text);
    EXPECT_THROW(expect_from_manifest(dir / "source", dir / "model"), Error) << text;
  }
}

}  // namespace
}  // namespace assay
