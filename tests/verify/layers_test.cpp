// What layers of OCI layouts hold: a ModelPack layout of layers packed in each way (data/make_store_fixtures.py), and
// archives that are hostile, damaged, or far larger than what they are packed in.
#include <gtest/gtest.h>
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/formats/stream_digest.h"
#include "core/system/error.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"
#include "verify/claims/tar_walk.h"
#include "verify/claims/unpack.h"

namespace assay::test {
namespace {

using nlohmann::json;

std::string sha256_of(std::string_view bytes) {
  return digest_of(DigestKind::sha256, std::as_bytes(std::span(bytes))).hex();
}

// A header as tar writes it, and the bytes of the file.
std::string member(const std::string& name, const std::string& bytes, char type = '0',
                   const std::string& link = {}) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  const auto octal = [](std::uint64_t value, int digits) {
    char text[24];
    std::snprintf(text, sizeof text, "%0*llo", digits, static_cast<unsigned long long>(value));
    return std::string(text);
  };
  put(0, name);
  put(100, "0000644");
  put(124, octal(bytes.size(), 11));
  put(148, std::string(8, ' '));
  header[156] = type;
  put(157, link);
  put(257, std::string("ustar\0", 6) + "00");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

std::string archive(const std::string& members) {
  return members + std::string(1024, '\0');
}

std::string gzipped(std::string_view bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

bool unpacks_zstd() {
  try {
    return make_unpacker(Packing::zstd) != nullptr;
  } catch (const Error&) {
    return false;
  }
}

class Layers : public ::testing::Test {
 protected:
  static fs::path fixtures() { return source_dir() / "data" / "fixtures" / "stores"; }
  fs::path root() const { return dir_ / "layout"; }
  std::string put(const std::string& bytes) const {
    write_file(root() / "blobs" / "sha256" / sha256_of(bytes), bytes);
    return "sha256:" + sha256_of(bytes);
  }
  // A layout of one layer; `unpacked`: what its config says of it.
  void make(const std::string& form, const std::string& blob, const std::string& unpacked) const {
    write_file(root() / "oci-layout", "{}");
    const json config = {{"modelfs", {{"diffIds", json::array({unpacked})}}}};
    const std::string described = put(unpacked.empty() ? "{}" : config.dump());
    const json layer = {{"mediaType", "application/vnd.cncf.model.weight.v1." + form},
                        {"digest", put(blob)},
                        {"size", blob.size()},
                        {"annotations", {{"org.cncf.model.filepath", "model.layer"}}}};
    const std::string manifest =
        put(json{{"config", {{"digest", described}}}, {"layers", json::array({layer})}}.dump());
    write_file(
        root() / "index.json",
        json{{"manifests", json::array({{{"digest", manifest},
                                         {"annotations", {{"org.opencontainers.image.ref.name", "v1"}}}}})}}
            .dump());
  }
  ProcessResult verify() const { return assay({"verify", root()}); }
  static bool says(const ProcessResult& result, std::string_view words) {
    return (result.out + result.err).find(words) != std::string::npos;
  }
  TempDir dir_;
};

TEST_F(Layers, OfEveryPackingHoldWhatTheConfigSays) {
  if (!unpacks_zstd()) GTEST_SKIP() << "SKIPPED: built without libzstd";
  const auto result = assay({"verify", fixtures() / "modelpack"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(says(result, "2 files are consistent with what the config of v1 says of it unpacked"))
      << result.out;
  EXPECT_FALSE(says(result, "warning: v1/")) << result.out;
}

TEST_F(Layers, UnpackedToOtherBytes) {
  const std::string tar = archive(member("model.bin", "weights"));
  make("tar+gzip", gzipped(tar), "sha256:" + sha256_of(tar));
  EXPECT_EQ(verify().exit_code, 0) << verify().out;
  make("tar+gzip", gzipped(tar), "sha256:" + sha256_of(tar + "x"));
  const auto other = verify();
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_TRUE(says(other, "v1/model.layer: FAILED") && says(other, "holds other bytes, unpacked"))
      << other.out;
  make("raw", "weights", "sha256:" + sha256_of("others"));
  EXPECT_TRUE(says(verify(), "is not packed, and the config of v1 gives it another digest")) << verify().out;
  make("tar+gzip", gzipped(tar), "sha256:zz");
  EXPECT_EQ(verify().exit_code, 1);
}

TEST_F(Layers, DamagedAlthoughTheirDigestIsRight) {
  const std::string tar = archive(member("model.bin", std::string(3000, 'w')));
  std::string packed = gzipped(tar);
  for (const auto& [what, blob] :
       std::vector<std::pair<std::string, std::string>>{{"ends early", packed.substr(0, packed.size() - 9)},
                                                        {"cannot be unpacked", packed + "trailing"},
                                                        {"cannot be unpacked", "no gzip at all"}}) {
    make("tar+gzip", blob, "");
    const auto result = verify();
    EXPECT_EQ(result.exit_code, 1) << what << result.out;
    EXPECT_TRUE(says(result, what)) << what << result.out;
  }
  make("tar", archive(member("a", "b")).substr(0, 800), "");
  EXPECT_TRUE(says(verify(), "is a tar archive that ends early")) << verify().out;
  make("tar", std::string(1024, 'x'), "");
  EXPECT_TRUE(says(verify(), "is no tar archive: the checksum of a header is wrong")) << verify().out;
}

TEST_F(Layers, HostileArchives) {
  for (const std::string& bad : {member("../up", "x"), member("/etc/passwd", "x"), member("a/../../up", "x"),
                                 member("in", "", '2', "../out"), member("in", "", '2', "/etc/passwd"),
                                 member("in", "", '1', "../out"), member("dev", "", '3'),
                                 member("long", std::string("../up\0", 6), 'L') + member("short", "x"),
                                 member("pax", "14 path=../up\n", 'x') + member("short", "x")}) {
    make("tar+gzip", gzipped(archive(bad)), "");
    const auto result = verify();
    EXPECT_EQ(result.exit_code, 1) << result.out;
    EXPECT_TRUE(says(result, "v1/model.layer: FAILED") && says(result, "is hostile")) << result.out;
  }
  make("tar",
       archive(member("a/b/in", "", '2', "../c") + member("./", "", '5') + member("c", "", '1', "./a")), "");
  EXPECT_EQ(verify().exit_code, 0) << verify().out;
}

// A folder that was unpacked from a layout, held against what the layers hold.
TEST_F(Layers, VouchForAFolderThatWasUnpacked) {
  if (!unpacks_zstd()) GTEST_SKIP() << "SKIPPED: built without libzstd";
  fs::copy(fixtures() / "model", dir_ / "model", fs::copy_options::recursive);
  const std::string long_name = std::string(90, 'd') + "/" + std::string(120, 'n') + ".txt";
  write_file(dir_ / "model" / long_name, "long");
  write_file(dir_ / "model" / "run.py.txt", "pass\n");
  const auto against = [&](const fs::path& layout, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"verify", dir_ / "model", "--no-git", "--manifest", layout};
    words.insert(words.end(), more.begin(), more.end());
    return assay(words);
  };
  const auto good = against(fixtures() / "modelpack", {"--require-digests", "--fail-on-extra"});
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  for (const char* name :
       {"model.safetensors: OK", "config.json: OK", "docs/README.md: OK", "run.py.txt: OK"})
    EXPECT_TRUE(says(good, name)) << name << good.out;
  const json index = json::parse(read_file(fixtures() / "modelpack" / "index.json"));
  const std::string pin = index["manifests"][0]["digest"];
  EXPECT_TRUE(says(against(fixtures() / "modelpack", {"--digest", pin}), "the manifest that you pinned"));
  write_file(dir_ / "model" / "docs" / "README.md", "# A small model?");
  fs::remove(dir_ / "model" / "config.json");
  const auto bad = against(fixtures() / "modelpack");
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_TRUE(says(bad, "docs/README.md: FAILED") && says(bad, "config.json: MISSING")) << bad.out;
  const std::string tar = archive(member("config.json", "other"));
  make("tar+gzip", gzipped(tar), "");
  const fs::path blob = root() / "blobs" / "sha256" / sha256_of(gzipped(tar));
  write_file(blob, gzipped(archive(member("config.json", "evil!"))));
  EXPECT_EQ(against(root()).exit_code, 2) << "a layer that is not that of its digest vouches for nothing";
}

// A hundred megabytes of zeros in a hundred kilobytes.
TEST_F(Layers, BombsAreGivenUp) {
  const auto unpacker = make_unpacker(Packing::gzip);
  const std::string piece = gzipped(std::string(4u << 20, '\0'));  // gzip members may follow each other
  std::uint64_t unpacked = 0;
  const auto count = [&](std::span<const std::byte> bytes) { unpacked += bytes.size(); };
  EXPECT_THROW(for (int i = 0; i < 32; ++i) unpacker->consume(std::as_bytes(std::span(piece)), count), Error);
  EXPECT_LE(unpacked, kUnpackedFreely + (1u << 20));
  EXPECT_GE(unpacked, kUnpackedFreely - (1u << 20)) << "not before";
}

TEST(TarWalk, SizesBeyondOctalDigits) {
  std::string header = member("large", "");
  header.replace(124, 12, std::string("\x80\0\0\0\0\0\0\x03\0\0\0\0", 12));  // 3 << 32, as GNU tar writes it
  unsigned sum = 8 * ' ';
  for (std::size_t i = 0; i < 512; ++i)
    sum += i >= 148 && i < 156 ? 0 : static_cast<unsigned char>(header[i]);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  header.replace(148, 6, digits);
  TarWalk walk;
  walk.consume(std::as_bytes(std::span(header)));
  EXPECT_EQ(walk.files(), 1u);
  EXPECT_THROW(walk.finish(), Error) << "its bytes are not there";
}

}  // namespace
}  // namespace assay::test
