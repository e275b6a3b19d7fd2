// --tp N [--ep M]: every file of the output cut over N folders, one for each rank of a tensor-parallel group.
//
//   OUT/rank-00/model-00001-of-00163.safetensors …, config.json, index, tokenizer; the same for rank-01 …
//
// The module tree says along which dimension and in which units a weight is cut; its scales, zero points and
// the like are cut along with it, at the borders of quantization blocks or not at all. Each file says in its
// __metadata__ what of every tensor it holds, so that the whole can be put together again (merge.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/plan.h"
#include "core/model/module_tree.h"
#include "core/model/tensor_cut.h"

namespace assay {

inline constexpr const char* kRankMetadata = "assay.rank";         // "3 of 32", the experts over "4"
inline constexpr const char* kCutMetadata = "assay.cut";           // JSON, below
inline constexpr const char* kShardMetadata = "assay.shard";       // the file that this one is a part of
std::string rank_folder(std::uint64_t rank, std::uint64_t ranks);  // "rank-03"

struct RankFile {
  std::string name;  // "rank-03/model-00001-of-00002.safetensors"
  std::uint64_t rank = 0;
  std::string header;
  std::uint64_t bytes = 0, tensor_bytes = 0;
  std::vector<std::string> tensors;
};
// TensorCut for every tensor of the shard; RankPart::file counts `files`.
struct CutShard {
  std::vector<RankFile> files;
  std::vector<TensorCut> tensors;
};

class RankPlan {
 public:
  // Of a plan that is laid out. What stands against the cut is added to `findings`: convert.cut (in the words
  // of vLLM and SGLang) and convert.cut_unknown. Throws Error::input where the architecture is unknown.
  RankPlan(const ConversionPlan& plan, const ParallelConfig& grid, Findings& findings);

  const ParallelConfig& grid() const { return grid_; }
  CutShard cut(const ConversionPlan& plan, const OutputShard& shard) const;
  // Bytes of each rank's files, and of the tensors in them: known after measure().
  void measure(const ConversionPlan& plan, int jobs);
  const std::vector<std::uint64_t>& file_bytes() const { return file_bytes_; }
  const std::vector<std::uint64_t>& tensor_bytes() const { return tensor_bytes_; }
  // The file that rank's part of a shard lies in, without its folder; "": it has none.
  const std::string& file_name(const OutputShard& shard, std::uint64_t rank) const;
  // "columns / 32", "whole on each rank".
  std::string rule(std::uint32_t work) const;

 private:
  struct Weight {  // what the tree says of a logical tensor
    const TensorSpec* spec = nullptr;
    std::uint64_t expert = 0;
    std::size_t dimension = 0;  // of the logical shape
    std::uint64_t size = 0;     // along it
    bool any_group = false;     // an index says of which group an input is: all ranks need all scales
  };
  struct Axis {  // of a stored tensor, along which the weight's cut runs
    std::size_t axis = 0;
    std::uint64_t step = 1;  // indices of the weight for one of the axis; 0: not known
  };
  struct Piece;  // of a stored tensor, as one rank holds it

  void find_weights(const ConversionPlan& plan, Findings& findings);
  void find_act_order(const ConversionPlan& plan, Findings& findings);
  void check(const ConversionPlan& plan, Findings& findings) const;
  std::uint64_t undivided_block(const ConversionPlan& plan, const OutputTensor& output,
                                const Weight& weight) const;
  std::uint64_t largest_block(const ConversionPlan& plan) const;
  void name_files(const ConversionPlan& plan);
  std::optional<Axis> axis_of(const ConversionPlan& plan, const OutputTensor& output) const;
  Piece piece_of(const ConversionPlan& plan, const OutputTensor& output, std::uint64_t rank) const;

  ParallelConfig grid_;
  std::shared_ptr<const ModuleTree> tree_;
  std::vector<Weight> weights_;                                         // of every work
  std::map<std::string, std::vector<std::string>, std::less<>> names_;  // of a shard, at every rank
  std::vector<std::uint64_t> file_bytes_, tensor_bytes_;
};

}  // namespace assay
