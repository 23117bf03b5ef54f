// Letters between processes on different hosts. A transport knows neither channels nor programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace unisono {

enum class LetterKind : std::uint32_t {
    message,     // of a collective
    transfer,    // a part of a message of send and recv
    credit,      // the number of messages that the reader of a channel has taken
    asks_entry,  // asks for `entered` once the receiver has entered call `number`
    entered,
    closed,      // the sender makes no further calls on this communicator; it has sent `number` messages and transfers
    asks_state,  // asks for the board of the receiver
    state,
    proposal,      // a fault that the sender has noticed
    verdict,       // the fault that all ranks report
    farewell,      // the process of the sender ends in good order
    asks_address,  // asks for the address of the data transport of the receiver
    address,       // empty: it has none
    data_ends,     // asks for `data_arrived` once `number` letters of the data transport have arrived
    data_arrived,
    asks_clock,  // asks for `clock` with the same number
    clock,       // `tag` is the time of the sender
};

// Precedes the payload of every letter. All hosts of a job have the same byte order (the rendezvous compares it).
struct Label {
    LetterKind kind;
    std::uint32_t from;  // the rank of the sender in the job
    std::uint64_t communicator;
    std::uint64_t number;       // of a message in its channel, counted from 0; of a call
    std::uint64_t fingerprint;  // of the call; of a transfer: its label
    std::uint64_t bytes;        // of the payload
    std::uint64_t tag;          // of a transfer; of a message: its track; of a credit: the track, see Layout::Pair
    std::uint64_t calls;        // that the sender has entered
    std::uint64_t taken;        // messages that the sender has taken from the channel of the same track
};
static_assert(sizeof(Label) == 64);

// A letter on its way out. `data` must stay valid until Sink::on_sent, unless the letter owns its payload.
struct Letter {
    Label label;
    const std::byte* data = nullptr;
    std::vector<std::byte> owned;

    const std::byte* payload() const { return owned.empty() ? data : owned.data(); }
};

// The payload of a letter that has arrived. It is returned to the transport when this object is destroyed.
class Payload {
  public:
    using Release = void (*)(void* owner, std::byte* data);
    Payload() = default;
    Payload(std::byte* data, Release release, void* owner) : data_(data), release_(release), owner_(owner) {}
    Payload(Payload&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), release_(other.release_), owner_(other.owner_) {}
    Payload& operator=(Payload&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(release_, other.release_);
        std::swap(owner_, other.owner_);
        return *this;
    }
    ~Payload() {
        if (data_ != nullptr && release_ != nullptr) release_(owner_, data_);
    }
    std::byte* data() const { return data_; }

  private:
    std::byte* data_ = nullptr;
    Release release_ = nullptr;
    void* owner_ = nullptr;
};

// The user of a transport. Called from Transport::progress and Transport::send only.
class Sink {
  public:
    virtual ~Sink() = default;
    // A payload of at most `borrowed_bytes` is valid during the call only; a longer one belongs to the sink.
    static constexpr std::size_t borrowed_bytes = 32;
    virtual void on_letter(const Label& label, Payload payload) = 0;
    // The transport no longer needs the payload. Letters to one peer are reported in the order of `send`.
    virtual void on_sent(std::uint32_t to, const Label& label) = 0;
    // The peer can no longer be reached. Reported once.
    virtual void on_lost(std::uint32_t peer, const std::string& reason) = 0;
};

// Not safe for threads: the courier calls it under its lock.
class Transport {
  public:
    virtual ~Transport() = default;
    // Begins to connect to a peer, unless there is a connection. Without it, `send` connects.
    virtual void connect(std::uint32_t peer) = 0;
    // Sends as much as possible now, the rest in `progress`. Letters to one peer arrive in order, but messages,
    // transfers and credit may arrive before and after others.
    virtual void send(std::uint32_t to, Letter letter, Sink& sink) = 0;
    // Sends a letter without payload to every peer that there is a connection to.
    virtual void send_to_all(const Letter& letter, Sink& sink) = 0;
    // Copies the payloads of the unsent letters of a communicator, whose memory is about to go.
    virtual void detach(std::uint64_t communicator) = 0;
    // Moves whatever can move; returns whether something did.
    virtual bool progress(Sink& sink) = 0;
    // A descriptor that is readable when `progress` has work.
    virtual int event_descriptor() const = 0;
    // To be called before waiting for the descriptor. Returns false if `progress` has work already.
    virtual bool arm() { return true; }
    // Returns whether letters wait to be sent.
    virtual bool has_unsent() const = 0;
    // Returns the number of letters or bytes that the hosts of the peers do not have yet: a connection that is closed
    // earlier may lose them.
    virtual std::size_t undelivered() const { return has_unsent() ? 1 : 0; }
    // Returns whether the peer is lost or has said farewell: letters to it are dropped.
    virtual bool is_gone(std::uint32_t peer) const = 0;
    // Checks peers that are silent; called about twice a second, and more often while `has_suspects`.
    virtual void check_peers(Sink& sink) = 0;
    // Returns whether `check_peers` is about to decide that a peer is lost.
    virtual bool has_suspects() const { return false; }
    // In a forked child: closes the copies of the descriptors, so that they do not outlive the parent.
    virtual void abandon() = 0;
};

}  // namespace unisono
