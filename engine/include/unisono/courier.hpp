// The courier moves messages between the channels of this process and the ranks of other hosts.
//
// A channel to a far rank ends at the courier of the writing process, which reads messages from the channel and sends
// them as letters. The courier of the receiving process writes them into the channel from the far rank in the memory of
// its host. The executor does not know which channels are far.
//
// There is one courier per process, for all of its communicators. A thread that waits in a call moves letters itself;
// the thread of the courier does so when no other thread polls.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "unisono/far_link.hpp"
#include "unisono/transport.hpp"
#include "unisono/waiting.hpp"

namespace unisono {

class FarChannels;

// The clock of a peer, read between two readings of the clock of this process; ns of CLOCK_MONOTONIC.
struct PeerClock {
    std::uint64_t asked, read, answered;
};

class Courier : public FarSide, private Sink {
  public:
    // `hosts[r]` is the name of the host of rank r of the job.
    Courier(std::unique_ptr<Transport> transport, std::uint32_t rank, std::vector<std::string> hosts);
    ~Courier() override;
    Courier(const Courier&) = delete;
    Courier& operator=(const Courier&) = delete;

    std::unique_ptr<FarLink> join(Endpoint& endpoint) override;
    // Asks a far process for its clock; nothing if it is gone, or if it does not answer in time.
    std::optional<PeerClock> ask_clock(std::uint32_t peer, Nanoseconds longest);
    // Takes leave of all peers and ends the thread.
    void close();
    // Called in a forked child.
    void abandon();

  private:
    friend class FarChannels;

    // Holds the lock. Threads that cannot get it neglect their channels rather than wait; so the holder services
    // neglected channels after it has released the lock.
    class Hold {
      public:
        explicit Hold(Courier& courier) : courier_(courier) { courier.mutex_.lock(); }
        ~Hold() {
            courier_.mutex_.unlock();
            courier_.attend();
        }
        Hold(const Hold&) = delete;
        Hold& operator=(const Hold&) = delete;

      private:
        Courier& courier_;
    };
    // Runs an action under the lock and returns true, unless another thread holds the lock.
    template <typename Action>
    bool try_hold(Action action) {
        if (!mutex_.try_lock()) return false;
        action();
        mutex_.unlock();
        attend();
        return true;
    }
    void attend();  // services the neglected channels, unless another thread will
    void poll();
    void finish_call();
    void hand_over();
    void wake_thread();
    void work();
    bool is_armed();  // returns false if the transport has work already
    void sleep(bool is_polled, std::chrono::milliseconds longest);
    void remove(FarChannels& channels);
    void send(std::uint32_t to, Letter letter) { transport_->send(to, std::move(letter), *this); }

    void on_letter(const Label& label, Payload payload) override;
    void on_clock(const Label& label);
    void on_sent(std::uint32_t to, const Label& label) override;
    void on_lost(std::uint32_t peer, const std::string& reason) override;

    std::unique_ptr<Transport> transport_;
    const std::uint32_t rank_;
    const std::vector<std::string> hosts_;
    std::recursive_mutex mutex_;                      // of the transport and of the maps
    std::map<std::uint64_t, FarChannels*> channels_;  // by number of the communicator
    std::set<std::uint64_t> left_;                    // communicators that this process has left
    // Letters for communicators that this process has yet to join.
    std::map<std::uint64_t, std::vector<std::pair<Label, std::vector<std::byte>>>> early_;
    std::map<std::uint32_t, std::string> lost_;
    std::uint64_t clock_questions_ = 0;      // the number of the last one
    std::optional<PeerClock> clock_answer_;  // to it
    std::mutex asking_;                      // held while a thread asks for a clock, which needs the transport
    std::atomic<bool> neglected_ = false;    // channels wait to be serviced
    std::atomic<std::uint64_t> polls_ = 0;
    std::atomic<bool> naps_ = false;         // the thread leaves the letters to the threads that poll
    std::atomic<bool> handed_over_ = false;  // a thread has stopped polling
    std::atomic<bool> stopping_ = false;
    int wake_up_ = -1;  // an eventfd for the thread
    std::atomic<bool> closed_ = false;
    std::thread thread_;
};

}  // namespace unisono
