// Receipts of ranks that are signed: who is believed, in a folder where they meet and of those collected by hand.
#include <fmt/format.h>

#include <cstdlib>

#include "tests/verify/nodes.h"

namespace assay::test {
namespace {

TEST_F(Receivers, SignaturesTellForgeries) {
  ASSERT_EQ(
      ::system(
          fmt::format("cd '{}' && openssl ecparam -name prime256v1 -genkey -noout -out k && openssl ec -in k "
                      "-pubout -out k.pub && openssl ecparam -name prime256v1 -genkey -noout -out other && "
                      "openssl ec -in other -pubout -out other.pub",
                      (dir_ / "").string())
              .c_str()),
      0);
  const std::string own = dir_ / "k", pub = dir_ / "k.pub", other = dir_ / "other.pub";
  const auto name = [&](int rank) { return (dir_ / fmt::format("r{}.json", rank)).string(); };
  for (int rank = 0; rank < 4; ++rank)
    ASSERT_EQ(assay({"verify", (dir_ / "m").string(), "--share", "--manifest", list_, "--run-id", "a",
                     "--rank", fmt::format("{}/4", rank), "--receipt", name(rank), "--sign-receipt", own})
                  .exit_code,
              0);
  const auto merge = [&](const Words& more) {
    return assay(join({"verify", "--merge", name(0), name(1), name(2), name(3)}, more));
  };
  const auto fails = [&](const ProcessResult& result, const std::string& words) {
    EXPECT_EQ(result.exit_code, 1) << words;
    EXPECT_NE(result.out.find(words), std::string::npos) << result.out;
  };
  const ProcessResult good = merge({"--public-key", pub});
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  fails(merge({"--public-key", other}), "r2.json: this receipt is not signed as it has to be");
  EXPECT_EQ(merge({"--public-key", pub, "--signature", name(0) + ".sig"}).exit_code, 2);
  EXPECT_EQ(merge({"--policy", pub}).exit_code, 2) << "of which model?";
  const std::string text = read_file(name(2));
  std::string forged = text;
  forged.replace(forged.find("\"verified_unix\""), 1, " \"");
  write_file(name(2), forged);
  const ProcessResult edited = merge({"--public-key", pub});
  fails(edited, "r2.json: this receipt is not signed as it has to be");
  EXPECT_EQ(edited.out.find("r3.json"), std::string::npos) << edited.out;
  EXPECT_EQ(merge({}).exit_code, 0) << "nobody asked for signatures";
  write_file(name(2), text);
  fs::remove(name(2) + ".sig");
  fails(merge({"--public-key", pub}), "r2.json: this receipt is not signed: there is no r2.json.sig");
  write_file(name(2) + ".sig", "{");
  fails(merge({"--public-key", pub}),
        "is not signed as it has to be: r2.json.sig: JSON text ends where a key should be");
  fs::remove(name(2));
  fails(merge({}), "r2.json: this receipt cannot be opened: No such file or directory");
}

TEST_F(Receivers, GatheredReceiptsAreSignedAndHeldToTheSigner) {
  ASSERT_EQ(::system(fmt::format("cd '{}' && for k in k other; do openssl ecparam -name prime256v1 -genkey "
                                 "-noout -out $k && openssl ec -in $k -pubout -out $k.pub; done",
                                 (dir_ / "").string())
                         .c_str()),
            0);
  const Words own = {"--sign-receipt", (dir_ / "k").string()};
  const Words other = {"--sign-receipt", (dir_ / "other").string()};
  const auto names_rank_two = [&](const ProcessResult& result, const std::string& why) {
    EXPECT_EQ(result.exit_code, 1) << why;
    EXPECT_EQ(faults(result), std::set<std::string>{"damaged@2:"}) << why << result.out;
    EXPECT_NE(result.out.find("its receipt is not signed"), std::string::npos) << result.out;
  };
  for (int rank = 1; rank < 4; ++rank) ASSERT_EQ(one(rank, own).exit_code, 0);
  const Words as_json = join(own, {"--json", "-"});
  const ProcessResult good = one(0, own);
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  EXPECT_EQ(merged({"--public-key", (dir_ / "k.pub").string()}).exit_code, 0) << "rank 0's is signed, too";
  EXPECT_EQ(merged({"--public-key", (dir_ / "other.pub").string()}).exit_code, 1);
  // Openssl's word for it: the signature in the bundle is over the receipt's bytes.
  const json bundle = json::parse(read_file(receipt(2).string() + ".sig"));
  write_file(dir_ / "s64", bundle.at("messageSignature").at("signature").get<std::string>());
  EXPECT_EQ(::system(fmt::format("cd '{}' && base64 -d s64 > s && openssl dgst -sha256 -verify k.pub "
                                 "-signature s gather/rank-00002.json > /dev/null",
                                 (dir_ / "").string())
                         .c_str()),
            0);
  const std::string text = read_file(receipt(2));
  std::string forged = text;
  forged.replace(forged.find("\"verified_unix\""), 1, " \"");
  write_file(receipt(2), forged);
  names_rank_two(one(0, as_json), "edited");
  ASSERT_EQ(one(2, other).exit_code, 0);
  names_rank_two(one(0, as_json), "by another key");
  fs::remove(receipt(2).string() + ".sig");
  ASSERT_EQ(one(2).exit_code, 0);
  names_rank_two(one(0, as_json), "by nobody");
  ASSERT_EQ(one(2, own).exit_code, 0);
  EXPECT_EQ(one(0, as_json).exit_code, 0) << "signed again";
}

TEST_F(Receivers, GatheredReceiptsBySeveralCertificatesOfOneAuthority) {
  const std::string make =
      "cd '{}' && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key "
      "-subj /CN=house -days 2 -out ca.pem 2> /dev/null && "
      "printf 'keyUsage=critical,digitalSignature\n' > ext && for n in a b; do "
      "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout $n.key -subj /CN=$n "
      "-out $n.csr 2> /dev/null && openssl x509 -req -in $n.csr -CA ca.pem -CAkey ca.key -CAcreateserial "
      "-days 2 -extfile ext -out $n.pem 2> /dev/null && cat ca.pem >> $n.pem; done";
  ASSERT_EQ(::system(fmt::format(fmt::runtime(make), (dir_ / "").string()).c_str()), 0);
  const auto signer = [&](const std::string& name) {
    return Words{"--sign-receipt", dir_ / (name + ".key"), "--receipt-certificate", dir_ / (name + ".pem")};
  };
  for (int rank = 1; rank < 4; ++rank) ASSERT_EQ(one(rank, signer("b")).exit_code, 0);
  const ProcessResult good = one(0, signer("a"));
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  EXPECT_EQ(merged({"--ca", dir_ / "ca.pem"}).exit_code, 0);
  one(2);
  fs::remove(receipt(2).string() + ".sig");
  EXPECT_EQ(one(0, signer("a")).exit_code, 1);
}

}  // namespace
}  // namespace assay::test
