#include "refimpl/ranks/rank_group.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr int kTensor = 1, kStage = 2, kExpert = 3, kPipeline = 4, kAll = 5;
constexpr std::size_t kHead = 2;  // of a message: what it is, and of which call

// The ranks for which `same` holds.
template <class Same>
std::vector<std::size_t> ranks_where(const RankGrid& grid, Same same) {
  std::vector<std::size_t> ranks;
  for (std::size_t r = 0; r < grid.ranks(); ++r) {
    if (same(RankPlace{grid, r})) ranks.push_back(r);
  }
  return ranks;
}

}  // namespace

RankGroup::RankGroup(Transport& transport, std::vector<std::size_t> members, int channel)
    : transport_(transport), members_(std::move(members)), channel_(channel) {
  const auto me = std::find(members_.begin(), members_.end(), transport.rank());
  if (me == members_.end()) throw Error::internal("a rank in a group that it is no member of");
  rank_ = static_cast<std::size_t>(me - members_.begin());
  letters_to_.assign(members_.size(), 0);
  letters_from_.assign(members_.size(), 0);
}

void RankGroup::put(std::size_t to, What what, std::uint64_t call, std::span<const double> values) {
  Transport::Message message = {static_cast<double>(what), static_cast<double>(call)};
  message.insert(message.end(), values.begin(), values.end());
  sent_ += values.size();
  transport_.send(members_.at(to), channel_, std::move(message));
}

std::vector<double> RankGroup::take(std::size_t from, What what, std::uint64_t call) {
  Transport::Message message = transport_.receive(members_.at(from), channel_);
  const bool belongs = message.size() >= kHead && message[0] == static_cast<double>(what) &&
                       message[1] == static_cast<double>(call);
  if (!belongs)
    throw Error::io(fmt::format("rank {} is at another call than rank {}: one of them left one out",
                                members_[from], members_[rank_]));
  message.erase(message.begin(), message.begin() + kHead);
  return message;
}

std::vector<std::vector<double>> RankGroup::all_gather(std::span<const double> mine) {
  const std::uint64_t call = calls_++;
  for (std::size_t r = 0; r < size(); ++r)
    if (r != rank_) put(r, What::gather, call, mine);
  std::vector<std::vector<double>> all(size());
  for (std::size_t r = 0; r < size(); ++r)
    all[r] = r == rank_ ? std::vector<double>(mine.begin(), mine.end()) : take(r, What::gather, call);
  return all;
}

std::vector<std::vector<double>> RankGroup::all_to_all(std::vector<std::vector<double>> to_each) {
  const std::uint64_t call = calls_++;
  for (std::size_t r = 0; r < size(); ++r)
    if (r != rank_) put(r, What::exchange, call, to_each.at(r));
  std::vector<std::vector<double>> from_each(size());
  for (std::size_t r = 0; r < size(); ++r)
    from_each[r] = r == rank_ ? std::move(to_each[r]) : take(r, What::exchange, call);
  return from_each;
}

void RankGroup::broadcast(std::size_t from, std::vector<double>& values) {
  const std::uint64_t call = calls_++;
  if (rank_ != from) {
    values = take(from, What::broadcast, call);
    return;
  }
  for (std::size_t r = 0; r < size(); ++r)
    if (r != rank_) put(r, What::broadcast, call, values);
}

void RankGroup::send(std::size_t to, std::span<const double> values) {
  put(to, What::letter, letters_to_.at(to)++, values);
}

std::vector<double> RankGroup::receive(std::size_t from) {
  return take(from, What::letter, letters_from_.at(from)++);
}

RankGroups::RankGroups(Transport& transport, const RankPlace& at)
    : place(at),
      tensor(
          transport,
          ranks_where(at.grid,
                      [&](const RankPlace& p) { return p.stage() == at.stage() && p.copy() == at.copy(); }),
          kTensor),
      stage(transport, ranks_where(at.grid, [&](const RankPlace& p) { return p.stage() == at.stage(); }),
            kStage),
      expert(transport,
             ranks_where(at.grid,
                         [&](const RankPlace& p) {
                           return p.stage() == at.stage() && p.expert_group() == at.expert_group();
                         }),
             kExpert),
      pipeline(transport,
               ranks_where(at.grid, [&](const RankPlace& p) { return p.in_stage() == at.in_stage(); }),
               kPipeline),
      all(transport, ranks_where(at.grid, [](const RankPlace&) { return true; }), kAll) {}

}  // namespace assay
