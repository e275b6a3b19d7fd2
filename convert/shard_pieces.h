// One output shard as pieces of work of bounded size, in the order in which they lie in the file; what they
// write depends on the plan alone, not on when or where they run.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "convert/derived_rows.h"
#include "convert/pipeline.h"

namespace assay {

class ShardPieces {
 public:
  // All of them outlive this.
  ShardPieces(const PipelineContext& context, const OutputShard& shard, ShardSink& sink);
  ShardPieces(const ShardPieces&) = delete;
  ShardPieces& operator=(const ShardPieces&) = delete;

  // --- from one thread at a time

  // The next piece; nullptr: none is left, or the next has to wait for others that are under way.
  const std::function<void()>* next();
  // Of those handed out, one has run. True: it was the last of all.
  bool finished() { return ++finished_ == pieces_.size(); }
  bool empty() const { return pieces_.empty(); }
  // By how much each tensor moved; when all is finished.
  std::vector<WorkError> errors() const;

 private:
  using Outputs = std::vector<const OutputTensor*>;
  struct Group;
  // The largest magnitude behind a scale that stands for whole tensors, of all that share it.
  struct WholeAmax {
    std::atomic<float> amax = 0;
    std::vector<std::function<void()>> passes;  // that find it
    const Group* first = nullptr;               // the group that they go before
  };
  // What is made of one weight, or one run of bytes that are copied.
  struct Group {
    std::uint64_t offset = 0;  // in the file, of what it writes most of
    WholeAmax* needs = nullptr;
    std::vector<std::function<void()>> before;  // to be over before any of the others begins
    std::vector<std::function<void()>> pieces;
    std::atomic<std::size_t> unmet = 0;  // of `before`
  };
  struct Piece {
    const std::function<void()>* run;
    const std::atomic<std::size_t>* waits_for;  // to become 0; nullptr: nothing
  };

  const LogicalTensor& tensor_of(std::uint32_t work) const {
    return plan_.stored.tensors[plan_.works[work].tensor];
  }
  Group& group_at(std::uint64_t offset);
  void put_in_order();
  void queue_copies();
  void queue_cut_copies();
  void queue_checks();
  void queue_gathering(const OutputTensor& output);
  void queue_derived(const OutputTensor& output);
  void queue_work(std::uint32_t work, const Outputs& outputs);
  WholeAmax& whole_amax_of(std::uint32_t work);
  void queue_recoding(const LogicalTensor& tensor, const Outputs& outputs, std::uint64_t step,
                      std::uint64_t count);

  std::span<const float> read(const LogicalTensor& tensor, std::uint64_t first, std::uint64_t rows) const;
  float check_values(const LogicalTensor& tensor, std::span<const float> values) const;
  void cast(const LogicalTensor& tensor, std::uint64_t first, std::uint64_t rows, const OutputTensor& output,
            ErrorSums& sums);
  void raise_amax(const LogicalTensor& tensor, std::uint64_t first, std::uint64_t rows,
                  std::atomic<float>& amax);
  void quantize(const LogicalTensor& tensor, std::uint64_t first, std::uint64_t rows, const Outputs& outputs,
                float whole_amax, ErrorSums& sums);
  void recode(const LogicalTensor& tensor, std::uint64_t first, std::uint64_t size,
              const OutputTensor& output);
  void double_scales(const LogicalTensor& tensor, const OutputTensor& output);
  void reblock_scales(const LogicalTensor& tensor, const OutputTensor& output);

  const PipelineContext& context_;
  const ConversionPlan& plan_;
  const OutputShard& shard_;
  ShardSink& sink_;
  const DerivedRows derived_rows_;
  std::set<std::uint32_t> scales_checked_;  // of the tensors that are derived from
  std::map<std::uint32_t, Outputs> made_;
  std::map<std::uint32_t, std::vector<ErrorSums>> sums_;
  std::map<std::uint32_t, WholeAmax> whole_amax_;  // by the first work of those that share it
  std::deque<Group> groups_;
  std::vector<Piece> pieces_;
  std::size_t next_ = 0, finished_ = 0;
};

// Rows that one piece of work takes: whole blocks, about as many as stay in a core's cache.
std::uint64_t rows_a_piece(const ConversionPlan& plan, const Work& work);
inline constexpr std::uint64_t kPieceBytesAnElement =
    20;  // stored, decoded, encoded, decoded again, and scales

}  // namespace assay
