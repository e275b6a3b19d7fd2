#include "refimpl/ranks/ranked_model.h"

#include <fmt/format.h>

#include "core/system/error.h"

namespace assay {
namespace {

RankPlace place_in(const RankGrid& grid, const Transport& transport) {
  check_ranks(grid);
  if (transport.size() != grid.ranks())
    throw Error::usage(
        fmt::format("{} takes {} ranks, and {} run", grid.text(), grid.ranks(), transport.size()))
        .remedy(fmt::format("mpirun -n {} …, or --threads-as-ranks", grid.ranks()));
  return {grid, transport.rank()};
}

}  // namespace

RankedModel::RankedModel(const std::filesystem::path& path, const RankedSettings& settings,
                         Transport& transport)
    : cut_(place_in(settings.grid, transport), settings.ranks.fault),
      weights_(path, settings.jobs, &cut_),
      groups_(transport, cut_.place()),
      ops_(settings.arithmetic, settings.jobs, cut_, groups_, settings.ranks,
           settings.kernels ? settings.kernels->make(settings.arithmetic, settings.jobs) : nullptr),
      model_(make_model(weights_, settings.options), cut_, groups_, settings.micro_batches,
             settings.ranks.fault) {}

}  // namespace assay
