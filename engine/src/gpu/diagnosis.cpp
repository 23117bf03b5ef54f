#include "unisono/gpu/diagnosis.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "unisono/gpu/gpu_endpoint.hpp"

namespace unisono::gpu {

namespace {

constexpr auto longest_lock = std::chrono::milliseconds(200);  // a thread that hangs may hold it
constexpr auto leaving = std::chrono::milliseconds(300);       // the time that kernels have to report where they waited

struct Endpoints {
    std::timed_mutex lock;
    std::vector<GpuEndpoint*> all;
};
// Never destroyed: the thread may run while the process exits. A forked child starts with a new one.
Endpoints* endpoints = new Endpoints;
volatile int requests = -1;  // an eventfd

void request(int) {
    const std::uint64_t one = 1;
    if (requests >= 0) static_cast<void>(!::write(requests, &one, sizeof one));
}

void append(int file, const std::string& text) { static_cast<void>(!::write(file, text.data(), text.size())); }

void describe_all(int file) {
    Endpoints& known = *endpoints;
    const bool locked = known.lock.try_lock_for(longest_lock);
    append(file, "GPU calls of process " + std::to_string(::getpid()) + ", " + std::to_string(known.all.size()) +
                     " communicators:\n");
    for (GpuEndpoint* const endpoint : known.all) append(file, endpoint->describe());
    for (GpuEndpoint* const endpoint : known.all) endpoint->end_kernels();
    std::this_thread::sleep_for(leaving);
    for (GpuEndpoint* const endpoint : known.all) append(file, endpoint->describe_wait());
    if (locked) known.lock.unlock();
}

}  // namespace

Described::Described(GpuEndpoint& endpoint) : endpoint_(endpoint) {
    const std::lock_guard guard(endpoints->lock);
    endpoints->all.push_back(&endpoint);
}

Described::~Described() {
    const std::lock_guard guard(endpoints->lock);
    std::erase(endpoints->all, &endpoint_);
}

void describe_on_signal(int signal, const std::string& path) {
    static pid_t owner = ::getpid();
    if (owner != ::getpid()) {  // the lock may be held by a thread that does not exist in this process
        endpoints = new Endpoints;
        owner = ::getpid();
    }
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int counter = ::eventfd(0, EFD_CLOEXEC);
    if (file < 0 || counter < 0) return;
    std::thread([file, counter] {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, nullptr);
        std::uint64_t count = 0;
        while (::read(counter, &count, sizeof count) == sizeof count) describe_all(file);
    }).detach();
    requests = counter;
    struct sigaction action{};
    action.sa_handler = request;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
}

// ---- what an endpoint says ---------------------------------------------------------------------------------------

std::string GpuEndpoint::name() const {
    return "  rank " + std::to_string(rank()) + " of " + std::to_string(size()) + " (communicator " +
           std::to_string(endpoint_.settings.number) + ", " + (options_.kernel_mode ? "kernel" : "stream") + " mode)";
}

// Without the driver, and without waiting for a lock.
std::string GpuEndpoint::describe() {
    std::string text = name() + ": ";
    const std::uint32_t enqueued = enqueued_.load(), over = completed();
    if (const std::unique_lock lock(announced_mutex_, std::try_to_lock); !lock) {
        text += "its list of calls is locked";
    } else if (enqueued == over && !captured_) {
        text += "no call runs, " + std::to_string(enqueued) + " are over";
    } else {
        const std::uint32_t first = options_.kernel_mode ? over + 1 : started();
        text += std::to_string(enqueued) + " calls enqueued, " + std::to_string(over) + " seen to be over";
        for (const bool last : {false, true}) {
            const std::uint32_t number = last ? enqueued : first;
            const Announced& made = announced_[number % remembered];
            if ((last && enqueued == first) || enqueued - number >= remembered || made.call.text == nullptr) continue;
            text += (last ? "; last: call " : "; first of the others: call ") + std::to_string(made.call.number) +
                    ", " + *made.call.text;
        }
    }
    if (const std::unique_lock calls(calls_, std::try_to_lock); !calls)
        text += "; a thread is inside a call (it holds the lock of calls)";
    if (endpoint_.broken()) text += "; the communicator is broken";
    text += asleep_ ? "; the service thread sleeps" : "; the service thread works, or hangs in the driver";
    text += "\n";
    for (std::uint32_t peer = 0; peer < size(); ++peer) {
        const BoardHead& head = board_->head(peer);
        text += "    rank " + std::to_string(peer) + ": large calls entered " +
                std::to_string(head.large_calls.load()) + ", offers of memory " + std::to_string(head.version.load()) +
                (peer == rank() || mappings_->has_looked_at(peer, head.version.load()) ? "" : " (not all opened here)");
        for (const bool sending : {true, false}) {
            const std::uint64_t at = progress_offset(sending, peer);
            if (const std::uint32_t made = lane(sending, peer).enqueued; made != word(at + 4))
                text += std::string(sending ? "; send to it: " : "; recv from it: ") + std::to_string(made) +
                        " enqueued, " + std::to_string(word(at)) + " started, " + std::to_string(word(at + 4)) +
                        " over";
        }
        text += "\n";
    }
    return text;
}

void GpuEndpoint::end_kernels() {
    if (options_.kernel_mode) board_->head(rank()).abort.store(1, std::memory_order_release);
}

// Says for which rank a kernel waited that was told to leave.
std::string GpuEndpoint::describe_wait() const {
    if (!options_.kernel_mode || word(offsetof(Mailbox, fault)) == Mailbox::none)
        return name() + (options_.kernel_mode ? ": no kernel waited\n" : ": its streams wait, not its kernels\n");
    return name() + ": its kernel waited for rank " + std::to_string(word(offsetof(Mailbox, peer))) + " in step " +
           std::to_string(word(offsetof(Mailbox, step)) + 1) + ", after " +
           std::to_string(word(offsetof(Mailbox, calls))) + " calls of this rank\n";
}

}  // namespace unisono::gpu
