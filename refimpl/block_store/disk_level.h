// The second level of a block pool, on disk: one file a block.
//
//   header   "assay block 1", the chain's key and the one before it, which stand for weights, precision, kernels, rope
//            regime and salt; what a block of this model is made of (a digest); group, place in the text, tokens
//   rows     of the group's layers, keys before values, as numbers lie in memory
//   states   of recurrent layers behind the block's last token, where it has them
//   SHA-256  of all before
//
// A file counts only if all of this is what is wanted, to the byte; else it is removed, and the block computed anew.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "refimpl/block_store/block_bytes.h"
#include "refimpl/block_store/block_folder.h"
#include "refimpl/engine/outer_level.h"
#include "refimpl/step/block_storage.h"

namespace assay {

struct DiskOptions {
  std::filesystem::path folder;
  std::uint64_t most_bytes = std::uint64_t{4} << 30;
  BlockFolder::Told told = {};
};

class DiskLevel : public OuterLevel {
 public:
  DiskLevel(Ops& ops, const BlockStorage& storage, const DiskOptions& options);

  bool has(std::size_t group, const BlockContent& wanted, bool with_states) const override;
  std::optional<OuterBlock> fetch(std::size_t group, const BlockContent& wanted, bool with_states) override;
  void keep(std::size_t group, BlockId block, const BlockContent& content) override;

  // keep() in steps, so that only the last needs the folder: what is to be written; its digest behind it; the file.
  struct Unsaved {
    std::string name;
    std::vector<std::byte> bytes;
  };
  // None: it is there, or nothing is written any more.
  std::optional<Unsaved> prepare(std::size_t group, const BlockContent& content,
                                 const std::function<std::vector<double>()>& rows);
  static void seal(Unsaved& unsaved);
  void put(const Unsaved& unsaved) { folder_.put(unsaved.name, unsaved.bytes); }

  std::size_t file_bytes(std::size_t group, bool with_states) const;
  const BlockFolder& folder() const { return folder_; }

 private:
  std::vector<std::byte> header(std::size_t group, const BlockContent& content, bool with_states) const;
  std::size_t numbers_of_rows(std::size_t group) const;
  std::size_t numbers_of_states() const;
  SequenceCache::States states_from(std::span<const std::byte> bytes) const;

  Ops& ops_;
  const BlockStorage& storage_;
  NumberWidth width_;
  BlockKey made_of_;
  BlockFolder folder_;
};

}  // namespace assay
