// The second level of a block pool, on disk: one file a block.
//
//   header   "assay block 2", the chain's key and the one before it, which stand for weights, precision, kernels, rope
//            regime and salt; what a block of this model is made of (a digest); group, place in the text, tokens
//   states   of recurrent layers behind the block's last token, where it has them
//   SHA-256  of all before: the block's own
//   rows     of each of the group's layers, keys before values, as numbers lie in memory, and behind each layer's
//   SHA-256  of the block's own, the layer's number, and its rows
//
// So layers can be read one by one, while earlier ones are computed, and each is known to be of this block and in its place.
// A file counts only if all of this is what is wanted, to the byte; else it is removed, and the block computed anew.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
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
  bool by_layer = false;  // rows come back layer by layer (OuterBlock::later), not with fetch()
};

class DiskLevel : public OuterLevel {
 public:
  DiskLevel(Ops& ops, const BlockStorage& storage, const DiskOptions& options);

  bool has(std::size_t group, const BlockContent& wanted, bool with_states) const override;
  std::optional<OuterBlock> fetch(std::size_t group, const BlockContent& wanted, bool with_states) override;
  void keep(std::size_t group, BlockId block, const BlockContent& content) override;

  // What a text that waits will want goes last.
  using Wanted = std::function<bool(const BlockKey&)>;
  void ask(Wanted wanted) { wanted_ = std::move(wanted); }

  // keep() in steps, so that only the first and the last need the folder: room for it, and what is to be written; its
  // digests; the file.
  struct Unsaved {
    std::string name;
    std::vector<std::vector<std::byte>> sections;  // header and states; each layer's rows
    std::vector<std::byte> bytes = {};             // of the file, once it is sealed
  };
  // None: it is there, or nothing is written any more.
  std::optional<Unsaved> prepare(std::size_t group, const BlockContent& content,
                                 const std::function<std::vector<double>()>& rows);
  static void seal(Unsaved& unsaved);
  void put(const Unsaved& unsaved) { folder_.put(unsaved.name, unsaved.bytes); }
  void forget(const std::string& name) { folder_.forget(name); }  // what was prepared is not put

  std::size_t file_bytes(std::size_t group, bool with_states) const;
  const BlockFolder& folder() const { return folder_; }
  std::size_t spared() const {
    return spared_;
  }  // blocks passed over when room was made, since a text waits for them

 private:
  std::optional<OuterBlock> begin(std::unique_ptr<BlockFileReader> file, const std::string& name,
                                  std::size_t group, const BlockContent& wanted, bool stated);
  std::vector<std::byte> header(std::size_t group, const BlockContent& content, bool with_states) const;
  std::vector<std::size_t> layer_numbers(std::size_t group) const;  // of each of its layers' rows
  std::size_t numbers_of_states() const;
  SequenceCache::States states_from(std::span<const std::byte> bytes) const;

  Ops& ops_;
  const BlockStorage& storage_;
  NumberWidth width_;
  BlockKey made_of_;
  bool by_layer_;
  std::size_t spared_ = 0;
  Wanted wanted_;
  std::shared_ptr<std::atomic<std::size_t>> open_files_ = std::make_shared<std::atomic<std::size_t>>(0);
  BlockFolder folder_;
};

}  // namespace assay
