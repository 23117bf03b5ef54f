#include "ranks.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <thread>

#include "check.hpp"

namespace unisono::tests {

namespace {

using std::chrono::microseconds;

std::vector<int> usable_cores() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    CHECK(::sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    std::vector<int> cores;
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &allowed)) cores.push_back(core);
    return cores;
}

void stay_on(int core) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    ::sched_setaffinity(0, sizeof only, &only);  // without it, the test is only slower
}

// Runs a forked rank and ends the process.
[[noreturn]] void be_rank(std::uint32_t rank, std::vector<int> processes, int pipe,
                          const std::function<void(std::uint32_t, const std::vector<int>&)>& body) {
    const auto bytes = static_cast<ssize_t>(processes.size() * sizeof(int));
    CHECK(::read(pipe, processes.data(), static_cast<std::size_t>(bytes)) == bytes);
    try {
        body(rank, processes);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %u: %s\n", rank, error.what());
        std::fflush(nullptr);
        std::_Exit(1);
    }
    std::fflush(nullptr);
    std::_Exit(0);
}

}  // namespace

SharedMemory::SharedMemory(const Geometry& given, std::size_t communicators)
    : geometry(given), bytes_(Layout(given).bytes()), communicators_(communicators),
      file_(::memfd_create("unisono tests", MFD_CLOEXEC)) {
    CHECK(file_ >= 0 && ::ftruncate(file_, static_cast<off_t>(bytes_ * communicators_)) == 0);
}

SharedMemory::~SharedMemory() {
    if (mapped_ != nullptr) ::munmap(mapped_, bytes_);
    ::close(file_);
}

Settings SharedMemory::for_process(std::uint32_t rank, const std::vector<int>& processes,
                                   std::size_t communicator) const {
    Settings settings;
    settings.file = file_;
    settings.offset = communicator * bytes_;
    settings.geometry = geometry;
    settings.rank = rank;
    settings.processes = processes;
    settings.wait_policy = {enough_cores(geometry.size) ? microseconds(100) : microseconds(0), microseconds(2000)};
    return settings;
}

std::vector<Settings> SharedMemory::for_threads() {
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    CHECK(memory != MAP_FAILED);
    mapped_ = static_cast<std::byte*>(memory);
    std::vector<Settings> settings;
    for (std::uint32_t rank = 0; rank < geometry.size; ++rank) {
        settings.push_back(for_process(rank, std::vector<int>(geometry.size, ::getpid())));
        settings.back().memory = mapped_;
        // Short, so that sleeping and waking are tested as well.
        settings.back().wait_policy = {microseconds(0), microseconds(50)};
    }
    return settings;
}

bool enough_cores(std::uint32_t size) {
    static const std::size_t cores = usable_cores().size();  // before any rank is pinned to a core
    return size <= cores;
}

bool run_in_processes(std::uint32_t size,
                      const std::function<void(std::uint32_t rank, const std::vector<int>& processes)>& body) {
    std::fflush(nullptr);
    const std::vector<int> cores = usable_cores();
    const bool enough = enough_cores(size);
    std::vector<int> processes(size);
    std::vector<int> pipes(size);
    for (std::uint32_t rank = 0; rank < size; ++rank) {
        int ends[2];  // a pipe through which a rank gets all process ids
        CHECK(::pipe(ends) == 0);
        const int process = ::fork();
        CHECK(process >= 0);
        if (process == 0) {
            if (enough) stay_on(cores[rank]);
            be_rank(rank, processes, ends[0], body);
        }
        ::close(ends[0]);
        pipes[rank] = ends[1];
        processes[rank] = process;
    }
    for (const int pipe : pipes) {
        const auto bytes = static_cast<ssize_t>(size * sizeof(int));
        CHECK(::write(pipe, processes.data(), static_cast<std::size_t>(bytes)) == bytes);
        ::close(pipe);
    }
    bool fine = true;
    for (const int process : processes) {
        int status = 0;
        CHECK(::waitpid(process, &status, 0) == process);
        fine = fine && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return fine;
}

void run_in_threads(std::uint32_t size, const std::function<void(std::uint32_t rank)>& body) {
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < size; ++rank)
        threads.emplace_back([&body, rank] {
            try {
                body(rank);
            } catch (const std::exception& error) {
                give_up(error.what(), "rank", static_cast<int>(rank));
            }
        });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace unisono::tests
