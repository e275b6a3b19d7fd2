// Normal numbers of a seed, which many cases share: a grid of thousands has some ten seeds.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace assay {

// At least `count` numbers that InputStream(seed).normal() gives, from its beginning. Those of few seeds are kept; a process
// has no more than 256 MiB of them. May be called by any thread.
using NormalNumbers = std::shared_ptr<const std::vector<double>>;
NormalNumbers normal_numbers(std::uint64_t seed, std::size_t count);

}  // namespace assay
