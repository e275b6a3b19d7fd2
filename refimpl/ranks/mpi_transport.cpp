#include "refimpl/ranks/mpi_transport.h"

#include <fmt/format.h>

#include "core/system/error.h"

#if ASSAY_HAS_MPI
#include <dlfcn.h>
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <exception>
#include <list>
#include <thread>

#include "core/system/launcher.h"
#include "core/system/threads.h"
#endif

namespace assay {

#if ASSAY_HAS_MPI
namespace {

// The functions that are called; of Open MPI, communicators and types are addresses in the library, too.
class Mpi {
 public:
  Mpi() : library_(dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL)) {
    if (library_ == nullptr)
      throw Error::io(fmt::format("cannot open Open MPI: {}", dlerror())).remedy("apt install libopenmpi3");
    find(init, "MPI_Init");
    find(finalize, "MPI_Finalize");
    find(comm_rank, "MPI_Comm_rank");
    find(comm_size, "MPI_Comm_size");
    find(isend, "MPI_Isend");
    find(test, "MPI_Test");
    find(improbe, "MPI_Improbe");
    find(mrecv, "MPI_Mrecv");
    find(get_count, "MPI_Get_count");
    world = static_cast<MPI_Comm>(address("ompi_mpi_comm_world"));
    doubles = static_cast<MPI_Datatype>(address("ompi_mpi_double"));
  }
  decltype(&MPI_Init) init = nullptr;
  decltype(&MPI_Finalize) finalize = nullptr;
  decltype(&MPI_Comm_rank) comm_rank = nullptr;
  decltype(&MPI_Comm_size) comm_size = nullptr;
  decltype(&MPI_Isend) isend = nullptr;
  decltype(&MPI_Test) test = nullptr;
  decltype(&MPI_Improbe) improbe = nullptr;
  decltype(&MPI_Mrecv) mrecv = nullptr;
  decltype(&MPI_Get_count) get_count = nullptr;
  MPI_Comm world = nullptr;
  MPI_Datatype doubles = nullptr;

 private:
  void* address(const char* name) {
    void* found = dlsym(library_, name);
    if (found == nullptr) throw Error::io(fmt::format("this Open MPI has no {}", name));
    return found;
  }
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(address(name));
  }
  void* library_;
};

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(std::chrono::milliseconds limit) : Transport(limit) {
    check(mpi_.init(nullptr, nullptr), "MPI_Init");
    int rank = 0, size = 0;
    mpi_.comm_rank(mpi_.world, &rank);
    mpi_.comm_size(mpi_.world, &size);
    rank_ = static_cast<std::size_t>(rank);
    size_ = static_cast<std::size_t>(size);
  }
  // A rank that fails leaves without a word to the others: mpirun ends them.
  ~MpiTransport() override {
    if (std::uncaught_exceptions() == 0) mpi_.finalize();
  }

  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return size_; }

  void send(std::size_t to, int channel, Message message) override {
    sent_.remove_if([&](Sent& s) { return is_done(s.request); });
    Sent& s = sent_.emplace_back();
    s.message = std::move(message);
    check(mpi_.isend(s.message.data(), static_cast<int>(s.message.size()), mpi_.doubles, static_cast<int>(to),
                     channel, mpi_.world, &s.request),
          "MPI_Isend");
  }

  Message receive(std::size_t from, int channel) override {
    const auto end = std::chrono::steady_clock::now() + limit();
    for (std::size_t looked = 0;; ++looked) {
      int found = 0;
      MPI_Message handle = nullptr;
      MPI_Status status;
      check(mpi_.improbe(static_cast<int>(from), channel, mpi_.world, &found, &handle, &status),
            "MPI_Improbe");
      if (found != 0) return take(handle, status);
      if (interrupted()) throw RanksInterrupted{};
      if (std::chrono::steady_clock::now() >= end)
        throw Error::io(fmt::format("rank {} waited {} ms for rank {}, which takes no part", rank_,
                                    limit().count(), from));
      // Ranks may be more than cores.
      if (looked > 100) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

 private:
  struct Sent {
    Message message;
    MPI_Request request = nullptr;
  };
  static void check(int code, const char* call) {
    if (code != MPI_SUCCESS) throw Error::io(fmt::format("{} failed with {}", call, code));
  }
  bool is_done(MPI_Request& request) {
    int done = 0;
    check(mpi_.test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }
  Message take(MPI_Message handle, MPI_Status& status) {
    int count = 0;
    check(mpi_.get_count(&status, mpi_.doubles, &count), "MPI_Get_count");
    Message message(static_cast<std::size_t>(count));
    check(mpi_.mrecv(message.data(), count, mpi_.doubles, &handle, &status), "MPI_Mrecv");
    return message;
  }

  Mpi mpi_;
  std::size_t rank_ = 0, size_ = 1;
  std::list<Sent> sent_;
};

}  // namespace

std::unique_ptr<Transport> start_mpi(std::chrono::milliseconds limit) {
  if (process_environment("OMPI_COMM_WORLD_SIZE") == nullptr)
    throw Error::usage("nobody started this as one of several processes")
        .remedy("mpirun -n N assay run …, or --threads-as-ranks");
  return std::make_unique<MpiTransport>(limit);
}

#else

std::unique_ptr<Transport> start_mpi(std::chrono::milliseconds) {
  throw Error::usage("this program was built without MPI")
      .remedy("--threads-as-ranks, or build it again with libopenmpi-dev");
}

#endif

}  // namespace assay
