// Some of the ranks, who do something together: the tp ranks that share a matrix, the ranks that share experts, the
// stages of a pipeline. Every member makes the same calls in the same order; a message that belongs to another call
// is an Error that says which, so that a rank which left one out is found at once and not by what comes of it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/model/rank_grid.h"
#include "refimpl/ranks/transport.h"

namespace assay {

class RankGroup {
 public:
  // `members`: ranks of the transport, its own among them. Groups that share two ranks have different channels.
  RankGroup(Transport& transport, std::vector<std::size_t> members, int channel);

  std::size_t rank() const { return rank_; }  // within the group
  std::size_t size() const { return members_.size(); }

  // What all have, one rank's after the other's.
  std::vector<std::vector<double>> all_gather(std::span<const double> mine);
  // What every member has for me; to_each[r] is what I have for member r.
  std::vector<std::vector<double>> all_to_all(std::vector<std::vector<double>> to_each);
  // `values` of the member `from`, at all others.
  void broadcast(std::size_t from, std::vector<double>& values);
  void send(std::size_t to, std::span<const double> values);
  std::vector<double> receive(std::size_t from);

  std::uint64_t doubles_sent() const { return sent_; }

 private:
  enum class What : std::uint8_t { gather = 1, exchange, broadcast, letter };
  void put(std::size_t to, What what, std::uint64_t call, std::span<const double> values);
  std::vector<double> take(std::size_t from, What what, std::uint64_t call);

  Transport& transport_;
  std::vector<std::size_t> members_;
  std::size_t rank_ = 0;
  int channel_;
  std::uint64_t calls_ = 0, sent_ = 0;
  std::vector<std::uint64_t> letters_to_, letters_from_;
};

// The groups that a rank is in.
struct RankGroups {
  RankGroups(Transport& transport, const RankPlace& place);
  RankPlace place;
  RankGroup tensor;    // the tp ranks of its copy in its stage
  RankGroup stage;     // all ranks of its stage: they share the routed experts
  RankGroup expert;    // those that cut its experts
  RankGroup pipeline;  // the same place in every stage
  RankGroup all;
};

}  // namespace assay
