// Where parts of a hand-off between ranks go: a port, or a folder, for each pair of a sender and a taker.
//
//   sender s of S, taker t of T    tcp://HOST:(PORT + s T + t)
//                                  FOLDER/rank-s where one takes, FOLDER/rank-t where one sends, else FOLDER/rank-s-to-t
#pragma once

#include <string>

#include "core/model/rank_grid.h"

namespace assay {

// "4": --tp 4; "2x3": --tp 2 --pp 3; empty: one process. Copies and experts of the other side change nothing of what it keeps.
// Throws Error::usage.
RankGrid other_side(const std::string& ranks);

struct HandoffPair {
  std::uint64_t senders = 1, sender = 0, takers = 1, taker = 0;
};
// Throws Error::usage where there are not as many ports.
std::string place_of_pair(const std::string& where, const HandoffPair& pair);

}  // namespace assay
