#include "refimpl/run_handoff_places.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/system/error.h"
#include "core/system/text.h"
#include "refimpl/handoff/part_socket.h"

namespace assay {

RankGrid other_side(const std::string& ranks) {
  if (ranks.empty()) return {};
  const std::size_t times = std::min(ranks.find('x'), ranks.size());
  const auto tp = parse_u64(std::string_view(ranks).substr(0, times));
  const auto pp = times == ranks.size() ? std::optional<std::uint64_t>(1)
                                        : parse_u64(std::string_view(ranks).substr(times + 1));
  if (!tp || !pp) throw Error::usage("--handoff-ranks takes N, as of --tp N, or NxM, as of --tp N --pp M");
  const RankGrid grid = {.tp = *tp, .pp = *pp};
  check_ranks(grid);
  return grid;
}

std::string place_of_pair(const std::string& where, const HandoffPair& pair) {
  const std::uint64_t pairs = pair.senders * pair.takers;
  if (pairs == 1) return where;
  const auto place = socket_place(where);
  if (!place) {
    std::string folder = fmt::format("rank-{}", pair.takers == 1 ? pair.sender : pair.taker);
    if (pair.senders > 1 && pair.takers > 1) folder = fmt::format("rank-{}-to-{}", pair.sender, pair.taker);
    return (std::filesystem::path(where) / folder).string();
  }
  if (place->port == 0 || place->port + pairs - 1 > 65535)
    throw Error::usage(fmt::format("{} take as many ports, from that of {} on",
                                   pair.senders > 1 && pair.takers > 1
                                       ? fmt::format("{} × {} ranks", pair.senders, pair.takers)
                                       : fmt::format("{} ranks", pairs),
                                   escape_for_terminal(where)))
        .remedy("give the first of them");
  const bool is_v6 = place->host.find(':') != std::string::npos;
  return fmt::format("tcp://{}:{}", is_v6 ? "[" + place->host + "]" : place->host,
                     place->port + pair.sender * pair.takers + pair.taker);
}

}  // namespace assay
