// BLAKE3 against its authors' implementation (PyPI blake3), on the inputs of their test vectors: the bytes 0 to 250 over and
// over, and their key.
#include "core/formats/blake3.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/stream_digest.h"
#include "core/system/text.h"

namespace assay {
namespace {

struct Vector {
  std::size_t length;
  std::string_view hash, keyed;
};
constexpr Vector kVectors[] = {
    {0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
     "92b2b75604ed3c761f9d6f62392c8a9227ad0ea3f09573e783f1498a4ed60d26"},
    {1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
     "6d7878dfff2f485635d39013278ae14f1454b8c0a3a2d34bc1ab38228a80c95b"},
    {63, "e9bc37a594daad83be9470df7f7b3798297c3d834ce80ba85d6e207627b7db7b",
     "bb1eb5d4afa793c1ebdd9fb08def6c36d10096986ae0cfe148cd101170ce37ae"},
    {64, "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98",
     "ba8ced36f327700d213f120b1a207a3b8c04330528586f414d09f2f7d9ccb7e6"},
    {65, "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee",
     "c0a4edefa2d2accb9277c371ac12fcdbb52988a86edc54f0716e1591b4326e72"},
    {1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11",
     "c951ecdf03288d0fcc96ee3413563d8a6d3589547f2c2fb36d9786470f1b9d6e"},
    {1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
     "75c46f6f3d9eb4f55ecaaee480db732e6c2105546f1e675003687c31719c7ba4"},
    {1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
     "357dc55de0c7e382c900fd6e320acc04146be01db6a8ce7210b7189bd664ea69"},
    {2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a",
     "879cf1fa2ea0e79126cb1063617a05b6ad9d0b696d0d757cf053439f60a99dd1"},
    {2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030",
     "9f29700902f7c86e514ddc4df1e3049f258b2472b6dd5267f61bf13983b78dd5"},
    {3072, "b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2",
     "044a0e7b172a312dc02a4c9a818c036ffa2776368d7f528268d2e6b5df191770"},
    {3073, "7124b49501012f81cc7f11ca069ec9226cecb8a2c850cfe644e327d22d3e1cd3",
     "68dede9bef00ba89e43f31a6825f4cf433389fedae75c04ee9f0cf16a427c95a"},
    {4096, "015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969",
     "befc660aea2f1718884cd8deb9902811d332f4fc4a38cf7c7300d597a081bfc0"},
    {5120, "9cadc15fed8b5d854562b26a9536d9707cadeda9b143978f319ab34230535833",
     "2c493e48e9b9bf31e0553a22b23503c0a3388f035cece68eb438d22fa1943e20"},
    {7168, "61da957ec2499a95d6b8023e2b0e604ec7f6b50e80a9678b89d2628e99ada77a",
     "b42835e40e9d4a7f42ad8cc04f85a963a76e18198377ed84adddeaecacc6f3fc"},
    {8192, "aae792484c8efe4f19e2ca7d371d8c467ffb10748d8a5a1ae579948f718a2a63",
     "dc9637c8845a770b4cbf76b8daec0eebf7dc2eac11498517f08d44c8fc00d58a"},
    {8193, "bab6c09cb8ce8cf459261398d2e7aef35700bf488116ceb94a36d0f5f1b7bc3b",
     "954a2a75420c8d6547e3ba5b98d963e6fa6491addc8c023189cc519821b4a1f5"},
    {9216, "e5ef79624045ef3e98fd23342e61d7eb965997b32928f9de591cd0d465a223fb",
     "7afd4062c334ec8055f34217764e4845534c6033712575d51b8133e88f86ce5a"},
    {16384, "f875d6646de28985646f34ee13be9a576fd515f76b5b0a26bb324735041ddde4",
     "9e9fc4eb7cf081ea7c47d1807790ed211bfec56aa25bb7037784c13c4b707b0d"},
    {31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47",
     "efa53b389ab67c593dba624d898d0f7353ab99e4ac9d42302ee64cbf9939a419"},
    {102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085",
     "1c35d1a5811083fd7119f5d5d1ba027b4d01c0c6c49fb6ff2cf75393ea5db4a7"},
};

std::vector<std::byte> input_of(std::size_t length) {
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(i % 251);
  return bytes;
}

// In pieces of `first`, three times as many, and so on: every boundary is crossed somewhere.
std::string hash_in_pieces(Blake3 hash, std::span<const std::byte> bytes, std::size_t first) {
  for (std::size_t piece = first; !bytes.empty(); piece *= 3) {
    const auto part = bytes.first(std::min(piece, bytes.size()));
    hash.update(part);
    bytes = bytes.subspan(part.size());
  }
  return to_hex(hash.finish());
}

TEST(Blake3, IsThatOfItsAuthors) {
  constexpr std::string_view kKey = "whats the Elvish word for friend";
  std::array<std::uint8_t, 32> key;
  std::copy(kKey.begin(), kKey.end(), key.begin());
  for (const Vector& vector : kVectors) {
    const auto bytes = input_of(vector.length);
    for (const std::size_t first :
         {std::size_t{1}, std::size_t{64}, std::size_t{1000}, std::size_t{1} << 20}) {
      EXPECT_EQ(hash_in_pieces(Blake3(), bytes, first), vector.hash) << vector.length << " by " << first;
      EXPECT_EQ(hash_in_pieces(Blake3(key), bytes, first), vector.keyed) << vector.length << " by " << first;
    }
  }
}

TEST(Blake3, IsOneOfTheStreams) {
  EXPECT_EQ(digest_of(DigestKind::blake3, input_of(kVectors[0].length)).hex(), kVectors[0].hash);
}

// RFC 7693's BLAKE2b of "abc", 64 bytes, as SHA-256.
TEST(Blake2, IsKeptAsItsSha256) {
  const std::string_view abc = "abc";
  EXPECT_EQ(digest_of(DigestKind::blake2b, std::as_bytes(std::span(abc))).hex(),
            "17bc0414aae5d667ad58f162ad174cfac9367308b48168e43be6eafa31b3ed41");
}

}  // namespace
}  // namespace assay
