#include "refimpl/sampling/draws.h"

#include "refimpl/sampling/law.h"

namespace assay {

TokenId KeyedDraws::token(std::span<const double> law, std::uint64_t position, DrawPurpose purpose,
                          std::size_t branch) const {
  return token_at(law, keyed_uniform(key_, position, purpose, branch));
}

bool KeyedDraws::keeps(double probability, std::uint64_t position, std::size_t branch) const {
  return keyed_uniform(key_, position, DrawPurpose::acceptance, branch) < probability;
}

}  // namespace assay
